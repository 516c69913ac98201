"""How much of its probability a judge gives to verdicts, where they are read from log-probs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.tidy import (
    all_columns,
    count,
    keep,
    numbers,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import WAY, mean_or_nan, table_by

MASS = [*WAY, "n", "n_without_verdict", *with_interval("mean_mass"), "median_mass", "least_mass"]
MASS += ["share_below_half"]


def mass_table(scored: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading and prompt.

    A scored verdict is normalised over the verdicts that the item allows; `mass` is what these
    had together before that: 1 where the model would have written a verdict there and nothing
    else, near 0 where it would have written something else and the verdict says little. Mean
    with a percentile bootstrap over chains, median, least, and the share of judgements below .5.

    Args:
        scored: a row per judgement, `mass` in [0, 1] or NaN where none was read, and `chain`.
    """
    return table_by(scored, WAY, lambda judged: _mass_row(judged, how), MASS)


def _mass_row(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    read = keep(judged, judged["mass"].notna())
    mass = numbers(read["mass"])
    mean = means(read["chain"].to_numpy(), {"mean_mass": mass}, how=how)
    row: dict[str, Any] = {"n": len(mass), "n_without_verdict": count(judged["mass"].isna())}
    if len(mass):
        row |= {"median_mass": float(np.median(mass)), "least_mass": float(mass.min())}
    return row | all_columns(mean, mean) | {"share_below_half": mean_or_nan(mass < 0.5)}
