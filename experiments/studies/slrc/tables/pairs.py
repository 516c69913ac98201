"""Two prompts, or two models, on the same items: every measure of both, and the difference.

Can faithfulness be prompted into existence (SLRC, 2.6)? A task named `sst2:alternative` asks the
questions of `sst2` with another prompt for the reasoning. Does training make it (3.2)? Two models
of one lab answer the same questions. Both sides are measured over the items that they share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns_of, groups, keep
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.branch_frame import (
    KEYS,
    UNEDITED,
    of_units,
    step_counts,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FRAMING, is_variant

MEASURES = ("necessity", "sufficiency", "accuracy", "steps")


def differences(
    first: pd.DataFrame, second: pd.DataFrame, how: SlrcAnalysis, names: tuple[str, str]
) -> Iterator[dict[str, Any]]:
    """One row per measure: its value on both sides, over the items that both sides have.

    Args:
        first: branches of one model, task, framing and reading.
        second: the branches of the other side.
        names: columns of the values of `first` and of `second`.
    """
    both = _counts(first).join(_counts(second), how="inner", lsuffix="_first", rsuffix="_second")
    if not len(both):
        return
    counts = of_units(both, how)
    rng = np.random.default_rng(how.seed)
    draws = _shares(stats.resampled_totals(counts, rng, how.resamples))
    values = _shares(counts.sum(axis=0, keepdims=True))[0]
    n, units = len(both), len(counts)
    for name, of_both, of_draws in zip(MEASURES, values, draws.swapaxes(0, 1), strict=True):
        sides = {**dict(zip(names, of_both, strict=True)), "difference": of_both[1] - of_both[0]}
        drawn = (*of_draws.T, of_draws[:, 1] - of_draws[:, 0])
        found = [
            Estimate(float(value), *stats.percentiles(draw, units), n)
            for value, draw in zip(sides.values(), drawn, strict=True)
        ]
        if name != "steps" and any(math.isnan(of.low) for of in found):
            # items that are too few, or all alike, say of shares what as many of yes and no say
            shares = [stats.wilson_of_items(float(value), units) for value in of_both]
            found = [*shares, stats.difference(shares[1], shares[0])]
        row: dict[str, Any] = {"measure": name, "n": n}
        yield row | columns_of(dict(zip(sides, found, strict=True)))


def _ways(branches: pd.DataFrame) -> dict[tuple[Any, ...], pd.DataFrame]:
    """(model, task, framing, reading) -> the branches of this way of measuring."""
    return {tuple(way.values()): of for way, of in groups(branches, KEYS)}


def _changes(branches: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    ways = _ways(branches)
    for (model, task, framing, reading), changed in ways.items():
        base, _, variant = task.partition(":")
        standard = ways.get((model, base, framing, reading)) if variant else None
        if standard is None:
            continue
        way = {"model": model, "task": base, "framing": framing, "reading": reading}
        for row in differences(standard, changed, how, ("standard", "changed")):
            beyond = "yes" if abs(row["difference"]) >= how.taxonomy.robustness else "no"
            of_necessity = row["measure"] == "necessity"
            yield (
                {**way, "variant": variant}
                | row
                | {"beyond_threshold": beyond if of_necessity else ""}
            )


PROMPT_INTERVENTIONS = computed_table(
    "prompt_interventions",
    (
        *(SHARED["model"], SHARED["task"]),
        Column("variant", meaning="The other prompt, by its name."),
        *(FRAMING, SHARED["reading"], SHARED["measure"]),
        *COUNTED.columns,
        Column("standard", meaning="The measure under the task's own prompt.", interval=True),
        Column("changed", meaning="The measure under the other prompt.", interval=True),
        Column(
            "difference",
            meaning="The measure under the other prompt minus that under the task's own.",
            interval=True,
        ),
        Column(
            "beyond_threshold",
            meaning="Whether necessity moves by taxonomy.robustness or more; empty for "
            "other measures.",
        ),
    ),
    "branches",
    _changes,
    caption="What another prompt changes",
)
"""Every measure under the task's own prompt and under a prompt variant, and the difference.

Over the `n` items measured under both. The intervals are percentiles of a bootstrap over these
items. `beyond_threshold`: whether necessity changed by at least the paper's robustness
threshold, `yes` or `no`; empty for the other measures.
"""


def _of_pairs(branches: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    ways = _ways(branches)
    for name, (model, other) in how.pairs.items():
        for way, first in ways.items():
            second = ways.get((other, *way[1:]))
            if way[0] == model and not is_variant(way[1]) and second is not None:
                for row in differences(first, second, how, ("first", "second")):
                    yield {"pair": name, **dict(zip(KEYS, way, strict=True)), "other": other} | row


MODEL_PAIRS = computed_table(
    "model_pairs",
    (
        Column("pair", meaning="Name of the pair in report.pairs, a lab for example."),
        SHARED["model"],
        Column("other", "other model", "The pair's second model."),
        *(SHARED["task"], FRAMING, SHARED["reading"], SHARED["measure"]),
        *COUNTED.columns,
        Column("first", meaning="The measure of the pair's first model.", interval=True),
        Column("second", meaning="The measure of the pair's second model.", interval=True),
        Column(
            "difference",
            meaning="The measure of the second model minus that of the first.",
            interval=True,
        ),
    ),
    "branches",
    _of_pairs,
    caption="Two models on the same items",
)
"""Every measure of two models that `report.pairs` names, and the difference (3.2).

Over the `n` items that both have, in the same framing and reading. The intervals are
percentiles of a bootstrap over these items.
"""


def _counts(branches: pd.DataFrame) -> pd.DataFrame:
    """Numerator and denominator of every measure, a row per item."""
    of_items = keep(branches, UNEDITED(branches)).set_index("item")
    right = of_items["correct"]
    return step_counts(branches).join(
        pd.DataFrame(
            {
                "right": (right == 1).astype(float),
                "known": right.notna().astype(float),
                "steps": of_items["n_steps"].astype(float),
                "items": 1.0,
            }
        )
    )


def _shares(totals: np.ndarray) -> np.ndarray:
    """(draws, measures, 2): each measure on either side, from resampled totals."""
    shares = stats.over(totals[:, 0::2], totals[:, 1::2])
    return shares.reshape(len(totals), 2, len(MEASURES)).swapaxes(1, 2)
