"""Coverage scoring (C2-Faith, §4.2 and §5.3, Table 3, Figure 3), on the paper's scale and finer.

Two truths to hold a score against: the score of a reference judge that saw what was removed,
as in the paper, and the share of the middle steps that is still there, which is known of every
item and asks no judge. Rank correlation is given with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, means, spearman
from faithscope.experiments.analysis.tidy import (
    Rows,
    all_columns,
    columns,
    groups,
    keep,
    numbers,
    rows_by,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    WAY,
    maximum,
    mean_or_nan,
)

INFLATED = 0.75
"""Of the maximum: the paper's score >= 3 on 0-4, at the same fraction on finer scales."""
OF = [*WAY, "scale", "reference_judge"]
_NUMBERS = ["n", "n_without_verdict", "n_reference", *with_interval("mean"), "sd"]
_NUMBERS += [*with_interval("mean_share"), "share_kept", "reference_mean"]
_NUMBERS += with_interval("bias", "mae")
_NUMBERS += [*with_interval("inflation"), "inflated_from"]
_NUMBERS += [*with_interval("spearman"), "spearman_p"]
_NUMBERS += [*with_interval("spearman_kept"), "spearman_kept_p"]
_NUMBERS += ["expected_mean", *with_interval("expected_spearman_kept")]


@tabled(*OF, "level", *_NUMBERS)
def coverage_table(coverage: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading, prompt, scale and deletion level (see `columns`).

    Bias and MAE are over the `n_reference` items that have a score and a reference. The rank
    correlation with the share kept varies within a level by rounding alone (ceil of d times the
    number of steps), so it is small even for a good judge: see the pooled table. Intervals are from
    drawing chains.
    """
    return (key | coverage_row(judged, how) for key, judged in of_levels(coverage))


@tabled(*OF, *_NUMBERS)
def pooled_coverage_table(coverage: pd.DataFrame, how: Drawing) -> Rows:
    """The same numbers over all deletion levels together.

    A chain has an item per level, so chains are drawn and no p-value is given.
    """
    return rows_by(coverage, OF, lambda judged: coverage_row(judged, how))


def coverage_row(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    """The numbers of one judge, reading, prompt and scale, over the items given."""
    top = maximum(str(judged["scale"].iloc[0]))
    scored = keep(judged, judged["score"].notna())
    chains = scored["chain"].to_numpy()
    score, reference = numbers(scored["score"]), numbers(scored["reference"])
    share_kept = 1 - numbers(scored["n_removed"]) / numbers(scored["n_middle"])
    referenced, error = ~np.isnan(reference), score - reference
    values = {"mean": score, "bias": error, "mae": np.abs(error)}
    values["inflation"] = score >= INFLATED * top
    row: dict[str, Any] = {"n": len(scored), "n_without_verdict": len(judged) - len(scored)}
    row |= {"n_reference": int(referenced.sum()), "inflated_from": INFLATED * top}
    row |= all_columns(means(chains, values, how=how), values)
    row |= {"sd": float(score.std()) if len(score) else math.nan}
    of_top = (row[name] / top for name in with_interval("mean"))
    row |= dict(zip(with_interval("mean_share"), of_top, strict=True))
    row |= {"share_kept": mean_or_nan(share_kept)}
    row |= {"reference_mean": mean_or_nan(reference[referenced])}
    for name, truth in (("spearman", reference), ("spearman_kept", share_kept)):
        of = ~np.isnan(truth)
        rho, p = spearman(chains[of], score[of], truth[of], how)
        row |= columns(name, rho) | {f"{name}_p": p}
    expected = numbers(scored["expected"])
    read = ~np.isnan(expected)
    rho, _ = spearman(chains[read], expected[read], share_kept[read], how)
    row |= {"expected_mean": mean_or_nan(expected[read])}
    return row | columns("expected_spearman_kept", rho)


@tabled(*OF, "level", "score", "n", "n_without_verdict", "share")
def scores_table(coverage: pd.DataFrame) -> Rows:
    """Figure 3a: the share of every score that was given, per level."""
    for key, judged in of_levels(coverage):
        scores = numbers(judged["score"].dropna())
        counts = {"n": len(scores), "n_without_verdict": len(judged) - len(scores)}
        values, times = np.unique(scores, return_counts=True)
        for value, count in zip(values, times, strict=True):
            yield key | {"score": value, "share": count / len(scores)} | counts
        if not len(scores):
            yield key | counts


def of_levels(coverage: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yields every judge, reading, prompt, scale and level, levels in rising order."""
    for key, judged in groups(coverage, OF):
        for level in sorted(set(judged["level"])):
            yield key | {"level": level}, where(judged, level=level)
