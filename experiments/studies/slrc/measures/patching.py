"""Report of activation patching: the share of the answer that passes through each layer.

A share is what the patches move toward the run they come from, summed over steps and items,
over the sum of the differences of the two runs, each step with the sign of its own difference:
a ratio of sums, so that a step whose corruption hardly matters weighs little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import fold_titles, hatch_ground, sheet
from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Bootstrapped,
    Kept,
    Lines,
    Number,
    Numbers,
    Total,
    one_row,
)
from faithscope.experiments.analysis.colours import SIGN, colour_map
from faithscope.experiments.analysis.columns import Column, with_intervals
from faithscope.experiments.analysis.measure import Measure, OfItem
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    ITEMS_AND_STEPS,
    LAYER_AND_DEPTH,
    N_LAYERS,
    PARTS,
    POSITION,
    part_of,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import bootstrapped
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, in_order, keep, mean, present, where
from faithscope.experiments.analysis.wording import pair_names, pairs_of
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.figures.per_pair import PLACE, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import per_step
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS

_PLACES, _SITES = ("step", "answer"), ("residual", "attention", "mlp")
_DIRECTIONS = ("denoise", "noise")
_SUMMARY = (
    Column(
        "share_max", "greatest share", "Maximum over layers of the recovered share of probability."
    ),
    Column("peak_layer", meaning="The layer at which the share is greatest."),
    Column(
        "share_mean",
        "share, mean of layers",
        "Mean over the layers of the share that patches move.",
    ),
)
PEAK_DEPTH = Column("peak_depth", meaning="The peak layer over the number of layers.")
N_PATCHED = Total(
    "n_patched",
    label="patched",
    meaning="Steps whose corruption moved the answer: they were patched.",
)
KINDS = (
    Column("place", meaning="Whose tokens get the states: the step's, the answer's, a span's."),
    Column(
        "site", meaning="Which states are put in: of the residual stream, the attention or the MLP."
    ),
    Column("direction", meaning="Denoise: real states into the corrupted run; noise: the reverse."),
)
_KIND = tuple(column.name for column in KINDS)
_OF_KINDS: dict[str, Any] = {
    "of": "patching",
    "by": ("model", "task", *KINDS),
    "prepare": lambda frame: _in_order(keep(frame, INCLUDED(frame))),
    "alike": ("n_layers", "layers"),
}


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    places = dict.fromkeys((*_PLACES, *(frame["place"] if len(frame) else ())))
    return in_order(frame, place=tuple(places), site=_SITES, direction=_DIRECTIONS)


def _patched(record: Record) -> np.ndarray:
    """Indices of the patched steps of a record."""
    return np.flatnonzero([reason is None for reason in record["not_patched"]])


def _sums(rows: pd.DataFrame) -> np.ndarray:
    """(items, layers + 1): the difference recovered by patching each layer, and last the total
    difference."""
    return np.stack([_item(r, _patched(r)) for r in rows.to_dict("records")])


def _item(record: Record, steps: np.ndarray) -> np.ndarray:
    moved = np.array(record["moved"], dtype=float).reshape(len(record["layers"]), -1)
    difference = np.array(record["difference"], dtype=float)
    # A step with a log-odds that is not finite is left out of both sums.
    finite = [i for i in steps if not np.isnan(moved[:, i]).any()]
    signed = moved[:, finite] * np.sign(difference[finite])
    return np.append(signed.sum(axis=1), np.abs(difference[finite]).sum())


def _shares(sums: np.ndarray) -> np.ndarray:
    total = sums.sum(axis=0)
    return total[:-1] / total[-1] if total[-1] > 0 else np.full(len(total) - 1, np.nan)


def _summary(rows: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    """The greatest share over layers, its layer, and the mean share."""
    first = rows.iloc[0]

    def summary(sums: np.ndarray) -> np.ndarray:
        shares = _shares(sums)
        if np.isnan(shares).any():
            return np.full(len(_SUMMARY), np.nan)
        return np.array([shares.max(), first["layers"][int(shares.argmax())], shares.mean()])

    row = one_row((Bootstrapped(_SUMMARY, _sums, summary),), rows, how)
    return {**row, PEAK_DEPTH.name: row["peak_layer"] / first["n_layers"]}


def _moved(rows: pd.DataFrame) -> list[float]:
    return [abs(d) for of in rows["difference"] for d in present(of)]


def _by_layer(rows: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    """A line per layer: the share that patches of all steps move."""
    records = rows.to_dict("records")
    yield from _lines([(r, _patched(r)) for r in records], how)


def _by_part(rows: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    """A line per fifth of the reasoning and layer: the share that patches of steps in it move."""
    records = rows.to_dict("records")
    for part in range(PARTS):
        steps = [(r, _patched(r)) for r in records]
        here = [(r, at[part_of(at, r["n_steps"]) == part]) for r, at in steps]
        if items := [(r, at) for r, at in here if len(at)]:
            for line in _lines(items, how):
                yield {POSITION.name: (part + 0.5) / PARTS} | line


def _lines(items: Sequence[tuple[Record, np.ndarray]], how: Bootstrap) -> Iterator[dict[str, Any]]:
    first, _ = items[0]
    shares = bootstrapped(
        np.stack([_item(r, at) for r, at in items]),
        _shares,
        units=how.units(pd.DataFrame([{n: r[n] for n in ("dataset", "item")} for r, _ in items])),
        seed=how.seed,
        resamples=how.resamples,
    )
    counts = {"n": len(items), "n_patched": sum(len(at) for _, at in items)}
    for layer, share in zip(first["layers"], shares, strict=True):
        point = {"layer": layer, "depth": layer / first["n_layers"]}
        yield point | counts | columns("share", share)


SHARE = Column(
    "share",
    meaning="What patches move over the difference of the runs: sum over sum.",
    interval=True,
)
_SHARES = (*COUNTED.columns, *N_PATCHED.columns, SHARE)

_SITE_NAMES = dict(zip(_SITES, ("residual stream", "attention", "MLP"), strict=True))


def layer_by_step(ax: Axes, table: pd.DataFrame) -> Axes:
    """Heat map of the share restored, by layer (upwards) and place of the step."""
    grid = table.pivot_table(index="layer", columns="position", values="share", dropna=False)
    shares = np.clip(grid.to_numpy(dtype=float), -1, 1)
    look: dict[str, Any] = {"cmap": colour_map(SIGN), "vmin": -1, "vmax": 1}
    ax.imshow(shares, origin="lower", aspect="auto", **look)
    hatch_ground(ax)
    ax.set_xticks(range(len(grid.columns)), [decimal(p, 1) for p in grid.columns])
    ax.set_yticks(range(len(grid.index)), [str(layer) for layer in grid.index])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _drawn(data: pd.DataFrame) -> Figure:
    """One row per model and task, with one map per place and site of the patch."""
    pairs = pairs_of(data)
    present = dict.fromkeys(zip(data["place"], data["site"], strict=True))
    places = dict.fromkeys((*_PLACES, *data["place"]))
    kinds = [kind for kind in product(places, _SITES) if kind in present]
    figure = sheet(0.8 + 1.6 * len(pairs), 1.2 + 2.0 * len(kinds))
    axes = figure.subplots(len(pairs), len(kinds), squeeze=False)
    for line, (model, task), name in zip(axes, pairs, pair_names(pairs, "\n"), strict=True):
        for ax, (place, site) in zip(line, kinds, strict=True):
            of = where(data, model=model, task=task, place=place, site=site)
            if len(of):
                shown = layer_by_step(ax, of)
            else:
                ax.set_axis_off()
        line[0].set_ylabel(f"{name}\nlayer")
        for ax in line[1:]:
            ax.tick_params(labelleft=False)
    for ax, kind in zip(axes[0], kinds, strict=True):
        ax.set_title(f"{kind[0]}'s tokens, {_SITE_NAMES[kind[1]]}")
    bar = {"aspect": 40 * len(pairs), "pad": 0.01, "ticks": [-1, 0, 1]}
    figure.colorbar(shown.images[0], ax=axes.ravel().tolist(), label="share restored", **bar)
    figure.supxlabel(PLACE)
    fold_titles(figure, len(kinds))
    return figure


_picture = picture(
    "patching",
    "Where is the step, layer by layer?",
    "Share of the answer's log-odds that comes back when the states of the real run are put "
    "into the run with a corrupted step, at the step's own tokens and at those that ask for "
    "the answer. Where the first fade and the second come up, the step is read. Only steps "
    "whose corruption moves the answer are patched; hatched places have none.",
    _drawn,
    "No corrupted step moved the answer, so there was nothing to restore.",
)


def patching_picture(table: pd.DataFrame) -> Picture:
    """Maps of denoising if it was run, else of noising."""
    direction = "denoise" if "denoise" in set(table["direction"]) else "noise"
    return _picture(where(table, direction=direction))


def _restored(records: OfItem) -> dict[int, float]:
    """Step -> largest change in nats by a patch of any layer; 0 for a step whose corruption had no
    effect."""
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
    """Model calls: the unedited run, one corrupted run per step, and a patch per layer and patched
    step."""
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
    # The residual stream of the answer is left out, since its last layer restores the whole
    # difference.
    for place, site, words in (
        ("step", "residual", "patching: the step's residual stream"),
        ("answer", "attention", "patching: the answer's attention output"),
    )
)

_PATCHED = per_step("difference")

REPORT = MeasureReport(
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
            **_OF_KINDS,
            cells=(
                *ITEMS_AND_STEPS,
                Total(
                    "n_corrupted",
                    lambda rows: [len(present(of)) for of in rows["difference"]],
                    label="corrupted",
                    meaning="Steps that could be corrupted at equal length.",
                ),
                N_PATCHED,
                Number(
                    "difference",
                    lambda rows: mean(_moved(rows)),
                    meaning="Mean log-odds that a corruption moves.",
                    unit="nats",
                ),
                Numbers((*with_intervals(*_SUMMARY), PEAK_DEPTH), _summary),
                Kept((N_LAYERS,)),
                *FORCED_DIFFERS,
            ),
            caption="Activation patching, by place and site",
        ),
        Table(
            "patching_by_layer",
            **_OF_KINDS,
            lines=[Lines((*LAYER_AND_DEPTH, *_SHARES), _by_layer)],
            caption="Share by layer",
            folded="Layer by layer",
        ),
        Table(
            "patching_map",
            **_OF_KINDS,
            lines=[Lines((*LAYER_AND_DEPTH, POSITION, *_SHARES), _by_part)],
            caption="Share by layer and relative place of the step",
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
    reasons={
        "no_aligned_corruption": "no step can be corrupted at equal length",
        "no_patching_site": "model structure not recognised",
    },
)
