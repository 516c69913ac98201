"""Config section of the comparison of measures, within a run or between runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, StrictFloat, StrictInt

from faithscope.experiments.config.base import Section

AS_GOOD = 0.05
"""Default difference in AUROC to the best up to which a measure counts as good; fixed before any
data was seen."""


class ComparisonConfig(Section):
    """Statistical settings of a comparison of measures, and how much its page lists."""

    per: Literal["chain", "question"] = "chain"
    """Unit that measures are compared on: every chain, or every question with the mean over its
    samples (`generation.samples`, or a column `sample`), and the label of most of them."""
    folds: StrictInt = Field(default=5, ge=2, le=20)
    """Number of folds that questions are divided into for thresholds, calibration and
    classifiers."""
    false_discovery: StrictFloat = Field(default=0.05, gt=0, lt=1)
    """False discovery rate that Benjamini and Hochberg's procedure controls."""
    as_good: StrictFloat = Field(default=AS_GOOD, gt=0, lt=0.5)
    """Largest deficit in AUROC at which a measure is still called as good as the best one; choose
    it before any data are seen."""
    listed: StrictInt = Field(default=20, ge=1, le=500)
    """Number of items listed for each kind of disagreement."""
