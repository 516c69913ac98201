"""Can faithfulness be prompted into existence? One task in other words (SLRC, section 2.6).

A task named `sst2:alternative` asks the questions of `sst2` with another prompt for the
reasoning. Both are measured over the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.stats import Estimate
from faithscope.experiments.analysis.tidy import columns
from faithscope.experiments.studies.slrc.tables.outcomes import GROUP, flips, groups
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig

MEASURES = ("necessity", "sufficiency", "accuracy", "steps")
_PLACES = {"necessity": 0, "sufficiency": 2, "accuracy": 4, "steps": 6}
"""Where the numerator of each stands in the counts of an item; its denominator follows."""


def prompt_interventions_table(
    records: Sequence[Record],
    settings: TaxonomyConfig | None = None,
    *,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
) -> pd.DataFrame:
    """Every measure under the task's own prompt and under a variant's, and the difference.

    Over the `n` items measured under both. The interval of the difference is a percentile
    bootstrap over these items. `beyond_threshold`: whether necessity moved by at least the
    paper's robustness threshold, `yes` or `no`; empty for the other measures.
    """
    settings = settings or TaxonomyConfig()
    by_group = dict(groups(records))
    found = []
    for key, changed in by_group.items():
        model, task, framing, reading = key
        base, colon, variant = task.partition(":")
        standard = by_group.get((model, base, framing, reading), []) if colon else []
        before, after = ({r["item"]: _counts(r) for r in same} for same in (standard, changed))
        both = [item for item in before if item in after]
        if not both:
            continue
        where = {"model": model, "task": base, "variant": variant}
        where |= {"framing": framing, "reading": reading}
        one, other = (np.array([of[item] for item in both]) for of in (before, after))
        draws = stats.resampled_totals(
            np.hstack([one, other]), np.random.default_rng(seed), resamples
        )
        for measure in MEASURES:
            row = _row(one, other, draws, measure)
            beyond = ""
            if measure == "necessity":
                beyond = "yes" if abs(row["difference"]) >= settings.robustness else "no"
            found.append(
                where | {"measure": measure, "n": len(both)} | row | {"beyond_threshold": beyond}
            )
    names = [*GROUP[:2], "variant", *GROUP[2:], "measure", "n", "standard", "changed"]
    ends = ["difference", "difference_low", "difference_high", "beyond_threshold"]
    return pd.DataFrame(found, columns=[*names, *ends])


def _counts(record: Record) -> list[int]:
    removed = [f for f in flips(record, "remove") if f is not None]
    alone = [f for f in flips(record, "keep_only") if f is not None]
    right = record.get("correct")
    return [
        *(sum(removed), len(removed)),
        *(len(alone) - sum(alone), len(alone)),
        *(bool(right), right is not None),
        *(record["n_steps"], 1),
    ]


def _row(one: np.ndarray, other: np.ndarray, draws: np.ndarray, measure: str) -> dict[str, Any]:
    share = _share(_PLACES[measure])
    before, after = (float(share(x.sum(axis=0)[None])[0]) for x in (one, other))
    first, second = np.hsplit(draws, 2)
    low, high = stats.percentiles(share(second) - share(first))
    difference = Estimate(after - before, low, high, len(one))
    return {"standard": before, "changed": after} | columns("difference", difference)


def _share(at: int) -> Callable[[np.ndarray], np.ndarray]:
    def share(totals: np.ndarray) -> np.ndarray:
        n = totals[:, at + 1]
        return np.where(n > 0, totals[:, at] / np.maximum(n, 1), np.nan)

    return share
