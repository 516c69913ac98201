"""Activation patching over items: which share of the answer passes through which layer.

A share is what the patches move toward the run they come from, summed over steps and items,
over the sum of the differences of the two runs, each step with the sign of its own difference:
a ratio of sums, so that a step whose corruption hardly matters weighs little. Intervals are
percentile bootstraps over items. Layers are 1..L, depth is layer / L.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.measure import Measure, OfItem
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import pairs_of, short
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.short_names import middle_cut
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import columns, mean, present, where, with_interval
from faithscope.experiments.studies.slrc.measures.slice import (
    Frame,
    Slice,
    Table,
    per_step,
)
from faithscope.experiments.studies.slrc.tables.by_place import BINS, middle, steps_in
from faithscope.experiments.studies.slrc.tables.outcomes import of_probe

_KIND = ("place", "site", "direction")
_PLACES, _SITES = ("step", "answer"), ("residual", "attention", "mlp")
_DIRECTIONS = ("denoise", "noise")
_SUMMARY = ("share_max", "peak_layer", "share_mean")


def patching_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task, place, site and direction.

    `difference`: mean absolute change of the answer's log-odds (nats) by a corruption, over the
    `n_corrupted` steps that could be corrupted at equal length; `n_patched` of them were
    patched, those that it moved. `share_max` is the greatest share over layers, at `peak_layer`;
    `share_mean` the mean over the layers patched. Shares are NaN where nothing was patched.
    """
    found = []
    for place, same in _groups(records):
        sums, layers = _sums(same), same[0]["layers"]

        def summary(x: np.ndarray, layers: Sequence[int] = layers) -> np.ndarray:
            shares = _shares(x)
            if np.isnan(shares).any():
                return np.full(len(_SUMMARY), np.nan)
            return np.array([shares.max(), layers[int(shares.argmax())], shares.mean()])

        made = stats.bootstrapped(sums, summary, seed=seed, resamples=resamples)
        moved = [abs(d) for r in same for d in present(r["difference"])]
        row: dict[str, Any] = place | {
            "n": len(same),
            "n_steps": sum(r["n_steps"] for r in same),
            "n_corrupted": len(moved),
            "n_patched": sum(r["n_patched"] for r in same),
            "difference": math.fsum(moved) / len(moved) if moved else math.nan,
        }
        for name, estimate in zip(_SUMMARY, made, strict=True):
            row |= columns(name, estimate)
        depth = same[0]["n_layers"]
        found.append(row | {"peak_depth": row["peak_layer"] / depth, "n_layers": depth})
    counts = ["n", "n_steps", "n_corrupted", "n_patched", "difference"]
    names = ["model", "task", *_KIND, *counts, *with_interval(*_SUMMARY), "peak_depth", "n_layers"]
    return pd.DataFrame(found, columns=names)


def patching_by_layer_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task, place, site, direction and layer: the share moved there."""
    found = []
    for place, same in _groups(records):
        shares = stats.bootstrapped(_sums(same), _shares, seed=seed, resamples=resamples)
        for layer, share in zip(same[0]["layers"], shares, strict=True):
            found.append(_cell(place, same, layer) | columns("share", share))
    names = ["model", "task", *_KIND, "layer", "depth", "n", "n_patched", *with_interval("share")]
    return pd.DataFrame(found, columns=names)


def patching_map_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same by relative place of the step, too: step i of T stands at (i - 1/2) / T.

    `position` is the middle of the bin it falls in, of five; bins without a patched step have
    no rows.
    """
    found = []
    for place, same in _groups(records):
        for b in range(BINS):
            kept = [(r, s) for r in same if (s := _in_bin(r, b))]
            if not kept:
                continue
            sums = np.stack([_item(r, s) for r, s in kept])
            shares = stats.bootstrapped(sums, _shares, seed=seed, resamples=resamples)
            n_patched = sum(len(s) for _, s in kept)
            for layer, share in zip(same[0]["layers"], shares, strict=True):
                cell = _cell(place, [r for r, _ in kept], layer) | {"n_patched": n_patched}
                found.append(cell | {"position": middle(b)} | columns("share", share))
    names = ["model", "task", *_KIND, "layer", "depth", "position", "n", "n_patched"]
    return pd.DataFrame(found, columns=[*names, *with_interval("share")])


def _groups(records: Iterable[Record]) -> list[tuple[dict[str, Any], list[Record]]]:
    """By model, task, place, site and direction.

    Raises:
        ValueError: records of different layers: another model, or setting, stood under the name.
    """
    found = []
    for (model, task), same in of_probe(records, "patching"):
        for key, of in itertools.groupby(sorted(same, key=_rank), key=_rank):
            mine = list(of)
            names = [mine[0][k] for k in _KIND]
            if len({(r["n_layers"], *r["layers"]) for r in mine}) > 1:
                raise ValueError(
                    f"patching of {model} on {task}, {'.'.join(names)} {key}: records of different "
                    "layers; the records of two runs are mixed: run again under another name"
                )
            place = {"model": model, "task": task} | dict(zip(_KIND, names, strict=True))
            found.append((place, mine))
    return found


def _rank(record: Record) -> tuple[int, int, int]:
    orders = zip((_PLACES, _SITES, _DIRECTIONS), _KIND, strict=True)
    one, two, three = (order.index(record[k]) for order, k in orders)
    return one, two, three


def _cell(place: dict[str, Any], same: Sequence[Record], layer: int) -> dict[str, Any]:
    return place | {
        "layer": layer,
        "depth": layer / same[0]["n_layers"],
        "n": len(same),
        "n_patched": sum(r["n_patched"] for r in same),
    }


def _in_bin(record: Record, b: int) -> list[int]:
    """The patched steps of a record that stand in a bin."""
    return [i for i in steps_in(record["n_steps"], b) if record["not_patched"][i] is None]


def _sums(records: Sequence[Record]) -> np.ndarray:
    """(items, layers + 1); see `_item`."""
    return np.stack(
        [_item(r, [i for i, why in enumerate(r["not_patched"]) if why is None]) for r in records]
    )


def _item(record: Record, steps: Sequence[int]) -> np.ndarray:
    """Per layer what was moved at these steps, and last the whole of their differences."""
    moved = np.array(record["moved"], dtype=float).reshape(len(record["layers"]), -1)
    difference = np.array(record["difference"], dtype=float)
    # a log-odds that was not finite takes its step out of both sums
    kept = [i for i in steps if not np.isnan(moved[:, i]).any()]
    signed = moved[:, kept] * np.sign(difference[kept])
    return np.append(signed.sum(axis=1), np.abs(difference[kept]).sum())


def _shares(sums: np.ndarray) -> np.ndarray:
    total = sums.sum(axis=0)
    return total[:-1] / total[-1] if total[-1] > 0 else np.full(len(total) - 1, np.nan)


_TITLES = {
    ("step", "residual"): "step's tokens, residual stream",
    ("step", "attention"): "step's tokens, attention",
    ("step", "mlp"): "step's tokens, MLP",
    ("answer", "residual"): "answer's tokens, residual stream",
    ("answer", "attention"): "answer's tokens, attention",
    ("answer", "mlp"): "answer's tokens, MLP",
}


def layer_by_step(ax: Axes, table: pd.DataFrame) -> Axes:
    """Share restored, layers upwards, places of the step from first to last."""
    grid = table.pivot_table(index="layer", columns="position", values="share", dropna=False)
    colours = np.clip(grid.to_numpy(dtype=float), -1, 1)
    image = ax.imshow(
        colours, origin="lower", aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True
    )
    ax.set_xticks(range(len(grid.columns)), [f"{p:.1f}" for p in grid.columns])
    ax.set_yticks(range(len(grid.index)), [str(layer) for layer in grid.index])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02, ticks=[-1, 0, 1])  # pyright: ignore
    return ax


def patching_picture(table: pd.DataFrame) -> Picture:
    """A row per model and task, a map for each place and site, denoising."""
    direction = "denoise" if "denoise" in set(table["direction"]) else "noise"
    data = where(table, direction=direction)
    figure = None
    if len(data):
        pairs = pairs_of(data)
        present = set(zip(data["place"], data["site"], strict=True))
        kinds = [kind for kind in _TITLES if kind in present]
        size = (1.2 + 2.3 * len(kinds), 0.8 + 2.0 * len(pairs))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(pairs), len(kinds), squeeze=False)
        for line, (model, task) in zip(axes, pairs, strict=True):
            for ax, (place, site) in zip(line, kinds, strict=True):
                of = where(data, model=model, task=task, place=place, site=site)
                if len(of):
                    layer_by_step(ax, of)
                else:
                    ax.set_axis_off()
            named = middle_cut(short(model), 30)
            line[0].set_ylabel(f"{named}\n{visible(task)}\nlayer", fontsize=8.5)
        for ax, kind in zip(axes[0], kinds, strict=True):
            ax.set_title(_TITLES[kind], fontsize=8.5)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
    return Picture(
        "patching",
        "Where is the step, layer by layer?",
        "Share of the answer's log-odds that comes back when the states of the real run are put "
        "into the run with a corrupted step, at the step's own tokens and at those that ask for "
        "the answer. Where the first fade and the second come up, the step is read. Only steps "
        "whose corruption moves the answer are patched.",
        data,
        figure,
        "No corrupted step moved the answer, so there was nothing to restore.",
    )


def _restored(records: OfItem) -> dict[int, float]:
    """The most that a patch of any layer gives back, in nats; 0 where there was nothing to."""
    (record,) = records
    credit = {}
    for i, (step, why) in enumerate(zip(record["steps"], record["not_patched"], strict=True)):
        here = present(record["moved"][i :: record["n_steps"]])
        if why == "no_effect":
            credit[step] = 0.0
        elif here:
            credit[step] = max(here, key=abs)
    return credit


def _mean_restored(records: OfItem) -> float | None:
    return mean(list(credit.values())) if (credit := _restored(records)) else None


def _patches(records: OfItem) -> int:
    """Both runs of every step, and each layer's patch of those that were patched."""
    (record,) = records
    layers = len(record["layers"])
    return 1 + len(present(record["difference"])) + record["n_patched"] * layers


OF_PATCHING = tuple(
    Measure(
        f"patching_{place}_{site}",
        "patching",
        "internal",
        _mean_restored,
        _patches,
        where={"variant": f"{place}.{site}.denoise"},
        steps=_restored,
        in_short=words,
    )
    # not the answer's stream: the last layer's gives all of the difference back
    for place, site, words in (
        ("step", "residual", "patching: the step's residual stream"),
        ("answer", "attention", "patching: the answer's attention output"),
    )
)


_PATCHED = per_step("difference")

SLICE = Slice(
    "patching",
    Section(
        "patching",
        "Patching",
        "Two runs of one length: the real reasoning, and the same with one step corrupted. States "
        "at one layer are put from one into the other: the real ones into the corrupted run "
        "(“denoise”) or the corrupted ones into the real run (“noise”), at the tokens of the step "
        "or at those after the reasoning that ask for the answer. The share is what this gives "
        "back, or takes away, of the difference between the runs in the answer's log-odds.",
    ),
    (
        Table(
            "patching",
            lambda records, a: patching_table(records, a.seed, a.resamples),
            "Activation patching, by place and site",
        ),
        Table(
            "patching_by_layer",
            lambda records, a: patching_by_layer_table(records, a.seed, a.resamples),
            "Share by layer",
            folded="Layer by layer",
        ),
        Table(
            "patching_map",
            lambda records, a: patching_map_table(records, a.seed, a.resamples),
            "Share by layer and relative place of the step",
            folded="By layer and place of the step",
            draw=patching_picture,
        ),
    ),
    (
        Frame(
            "patching",
            "A row per item, place, site, direction, layer and step that was patched.",
            (*_KIND, "layer", "position", "step", "answer", "difference", "moved"),
            lambda record: [
                {name: record[name] for name in _KIND}
                | {"layer": layer, "moved": record["moved"][at * record["n_steps"] + i]}
                | row
                for at, layer in enumerate(record.get("layers") or ())
                for i, row in enumerate(_PATCHED(record))
                if record["not_patched"][i] is None
            ],
        ),
    ),
    OF_PATCHING,
    {
        "n_corrupted": "corrupted",
        "n_patched": "patched",
        "difference": "difference, nats",
        "share_max": "greatest share",
        "share_mean": "share, mean of layers",
        "n_layers": "layers",
    },
    reasons={
        "no_aligned_corruption": "no step can be corrupted at equal length",
        "no_patching_site": "model's parts cannot be told",
    },
)
