"""Linear probes over items: at which place and layer the answer can be read.

Made from the arrays that the probe kept: its records hold classes, not features.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.classifiers import Classifying, Split, split, told
from faithscope.experiments.tables.outcomes import Place, Record, of_probe
from faithscope.experiments.tables.stats import NOTHING
from faithscope.experiments.tables.tidy import columns, with_interval
from faithscope.probes.linear_probe import LinearProbeSettings

TARGETS = ("answer", "gold")
"""What is to be read: the model's own final answer, and the right one."""
COLUMNS = ["model", "task", "target", "position", "layer", "depth", "n", "n_left_out", "n_classes"]
COLUMNS += [*with_interval("accuracy"), "control", *with_interval("selectivity"), "majority"]
COLUMNS += ["decodable", "reason"]


def linear_probe_table(
    records: Iterable[Record],
    states: Iterable[tuple[Place, Mapping[str, np.ndarray]]],
    settings: LinearProbeSettings,
    seed: int,
    resamples: int,
) -> pd.DataFrame:
    """A row per model, task, target, position and layer.

    `accuracy`: the share of the `n` items whose class was told by a classifier fitted on other
    items, with its Wilson interval. `control`: the mean of the same with the classes shuffled;
    `selectivity`: the difference, with a bootstrap over items. `majority`: the share of the
    largest class. `decodable`: the intervals of accuracy and selectivity lie above `majority`
    and 0. `n_left_out`: items whose class is unknown or too rare. Where nothing could be
    fitted `reason` says why and the measures are NaN.

    Args:
        states: the probe's arrays of each item, sorted by model and task. Those of one model
            and task are in memory at a time.

    Raises:
        ValueError: records and arrays do not belong together.
    """
    how = Classifying(
        folds=settings.folds,
        controls=settings.controls,
        inverse_regularisation=settings.inverse_regularisation,
        min_items=settings.min_items,
        seed=seed,
    )
    of_pair = dict(of_probe(records, "linear_probe"))
    made: list[dict[str, Any]] = []
    met = set()
    for pair, found in itertools.groupby(states, key=lambda s: s[0][:2]):
        arrays = {place[2]: kept["states"] for place, kept in found}
        mine = of_pair.get(pair, [])
        if mine:
            made += _of_pair(pair, mine, arrays, how, resamples)
            met.add(pair)
    if lost := set(of_pair) - met:
        raise ValueError(f"linear_probe: no arrays of {min(lost)}; run it again")
    return pd.DataFrame(made, columns=COLUMNS)


def _of_pair(
    pair: tuple[str, str],
    records: Sequence[Record],
    arrays: Mapping[str, np.ndarray],
    how: Classifying,
    resamples: int,
) -> list[dict[str, Any]]:
    first = records[0]
    for r in records:
        shape = getattr(arrays.get(str(r["item"])), "shape", None)
        same = all(tuple(r[k]) == tuple(first[k]) for k in ("positions", "layers"))
        if not same or shape != arrays[str(first["item"])].shape:
            raise ValueError(
                f"linear_probe of {pair[0]} on {pair[1]}: item {r['item']!r} has arrays of shape "
                f"{shape}, layers {list(r['layers'])}, unlike item {first['item']!r}; the records "
                "of two models are mixed: run again under another name"
            )
    # (items, positions, layers, width)
    features = np.stack([arrays[str(r["item"])] for r in records])
    groups = [r["group"] for r in records]
    made = []
    fitted: dict[tuple[Any, ...], dict[str, Any]] = {}
    for target in TARGETS:
        classes = [r[target] for r in records]
        found = split(classes, groups, how)
        counts = {"n": len(found.kept), "n_left_out": len(records) - len(found.kept)}
        for i, position in enumerate(first["positions"]):
            for j, layer in enumerate(first["layers"]):
                row = {"model": pair[0], "task": pair[1], "target": target, "position": position}
                row |= {"layer": layer, "depth": layer / first["n_layers"], **counts}
                row |= {"n_classes": found.n_classes, "reason": found.reason}
                # A model that is always right has one and the same probe twice.
                key = (tuple(classes), i, j)
                if key not in fitted:
                    fitted[key] = _measured(features[:, i, j], found, how, resamples)
                made.append(row | fitted[key])
    return made


def _measured(
    features: np.ndarray, found: Split, how: Classifying, resamples: int
) -> dict[str, Any]:
    if found.reason:
        none = columns("accuracy", NOTHING) | columns("selectivity", NOTHING)
        return none | {"control": math.nan, "majority": math.nan, "decodable": False}
    right, control = told(features[found.kept].astype(float), found, how)
    accuracy = stats.share(right.tolist())
    selectivity = stats.mean_of_items(
        (right - control.mean(0)).tolist(), seed=how.seed, resamples=resamples
    )
    return {
        **columns("accuracy", accuracy),
        "control": float(control.mean()),
        **columns("selectivity", selectivity),
        "majority": found.majority,
        "decodable": accuracy.low > found.majority and selectivity.low > 0,
    }
