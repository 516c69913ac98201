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

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.outcomes import Record, of_probe
from faithscope.experiments.tables.tidy import columns, present, with_interval

BINS = 5
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
                found.append(cell | {"position": (b + 0.5) / BINS} | columns("share", share))
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
    n = record["n_steps"]
    why = record["not_patched"]
    return [i for i in range(n) if why[i] is None and int((i + 0.5) / n * BINS) == b]


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
