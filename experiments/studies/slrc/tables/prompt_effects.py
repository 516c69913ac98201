"""Can faithfulness be prompted into existence? One task in other words (SLRC, section 2.6).

A task named `sst2:alternative` asks the questions of `sst2` with another prompt for the
reasoning. Both are measured over the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.capacity import step_counts
from faithscope.experiments.studies.slrc.tables.outcomes import WAYS

MEASURES = ("necessity", "sufficiency", "accuracy", "steps")
_NAMES = ("model", "task", "variant", "framing", "reading", "measure", "n", "standard", "changed")


def prompt_interventions_table(records: Sequence[Record], analysis: SlrcAnalysis) -> pd.DataFrame:
    """Every measure under the task's own prompt and under a variant's, and the difference.

    Over the `n` items measured under both. The interval of the difference is a percentile
    bootstrap over these items. `beyond_threshold`: whether necessity moved by at least the
    paper's robustness threshold, `yes` or `no`; empty for the other measures.
    """
    ways = {tuple(way.values()): (way, same) for way, same in WAYS.of(records)}
    found: list[dict[str, Any]] = []
    for way, changed in ways.values():
        base, colon, variant = way["task"].partition(":")
        _, standard = ways.get(tuple((way | {"task": base}).values()), (way, []))
        before, after = ({r["item"]: _counts(r) for r in same} for same in (standard, changed))
        both = [item for item in before if colon and item in after]
        if not both:
            continue
        counts = np.array([before[item] + after[item] for item in both])
        rng = np.random.default_rng(analysis.seed)
        draws = _shares(stats.resampled_totals(counts, rng, analysis.resamples))
        values = _shares(counts.sum(axis=0, keepdims=True))[0]
        for name, (one, other), of_draws in zip(
            MEASURES, values, draws.swapaxes(0, 1), strict=True
        ):
            bounds = stats.percentiles(of_draws[:, 1] - of_draws[:, 0])
            difference = Estimate(other - one, *bounds, len(both))
            beyond = "yes" if abs(difference.value) >= analysis.taxonomy.robustness else "no"
            found.append(
                way
                | {"task": base, "variant": variant, "measure": name, "n": len(both)}
                | {"standard": one, "changed": other}
                | columns("difference", difference)
                | {"beyond_threshold": beyond if name == "necessity" else ""}
            )
    names = [*_NAMES, *with_interval("difference"), "beyond_threshold"]
    return pd.DataFrame(found, columns=names)


def _counts(record: Record) -> list[int]:
    """Of each of `MEASURES` what is counted, and of how many."""
    right = record.get("correct")
    return [*step_counts(record), bool(right), right is not None, record["n_steps"], 1]


def _shares(totals: np.ndarray) -> np.ndarray:
    """(draws, measures, 2): each measure under either prompt."""
    shares = stats.over(totals[:, 0::2], totals[:, 1::2])
    return shares.reshape(len(totals), 2, len(MEASURES)).swapaxes(1, 2)
