"""How much of its probability a judge gives to verdicts, where they are read from log-probs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.resampling import Drawing, means
from faithscope.experiments.analysis.tidy import (
    all_columns,
    count,
    groups,
    keep,
    numbers,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import WAY

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
    made = []
    for key, mine in groups(scored, WAY):
        said = keep(mine, mine["mass"].notna())
        mass = numbers(said["mass"])
        mean = means(said["chain"].to_numpy(), {"mean_mass": mass}, how=how)
        row: dict[str, Any] = {"n": len(mass), "n_without_verdict": count(mine["mass"].isna())}
        row |= all_columns(mean, mean)
        row |= {
            "median_mass": float(np.median(mass)) if len(mass) else math.nan,
            "least_mass": float(mass.min()) if len(mass) else math.nan,
            "share_below_half": float((mass < 0.5).mean()) if len(mass) else math.nan,
        }
        made.append(key | row)
    return pd.DataFrame(made, columns=MASS)
