"""Agreement of people who review r′, and how often they accept it (RFEval, appendix B.3; Tables 5
to 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import EACH_ROW, Count, Numbers, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.raters import (
    CONSTANT,
    fleiss_kappa,
    krippendorff_alpha,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import wilson_of_items
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import check_rows, columns, only, where
from faithscope.experiments.studies.rfeval.tables.frames import REASON
from faithscope.experiments.studies.rfeval.tables.people import ANNOTATIONS, DECISION, VALID

UNEQUAL = "items differ in their number of reviewers"


def reviews_of_items(annotations: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """People's decisions on r′ with the task of the item, `accepted` 1 or 0.

    Reviews of items that are not in the run are left out.

    Args:
        annotations: `people.ANNOTATIONS`, a row per label that a person gave.
        items: `item` and `task`, a row per item of the run.

    Raises:
        ValueError: a column is missing, or one person decides on an r′ twice.
    """
    check_rows("rfeval annotations", annotations, ANNOTATIONS, (*DECISION, "annotator"))
    reviews = only(items, ["item", "task"]).merge(where(annotations, decision=VALID), on="item")
    return reviews.assign(accepted=(reviews["label"] == "True").astype(float))


def _agreement(reviews: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    verdicts = reviews.pivot(index="item", columns="annotator", values="accepted").to_numpy(float)
    twice = verdicts[(~np.isnan(verdicts)).sum(axis=1) >= 2]
    pairs = [np.mean(list(_pairs_agree(row))) for row in twice]
    value = float(np.mean(pairs)) if pairs else math.nan
    shares = columns("agreement", wilson_of_items(value, len(pairs)))
    row: dict[str, Any] = {"n_items": len(pairs)} | shares
    row |= dict(zip(PABAK.names, (2 * x - 1 for x in shares.values()), strict=True))
    row["fleiss_kappa"], no_kappa = _fleiss(twice)
    row["krippendorff_alpha"], no_alpha = krippendorff_alpha(verdicts, "nominal")
    return row | {"reason": no_alpha or no_kappa}


def _pairs_agree(row: np.ndarray) -> Iterator[bool]:
    """Whether the verdicts of each two reviewers of an item are the same."""
    yield from (one == other for one, other in combinations(row[~np.isnan(row)], 2))


def _fleiss(verdicts: np.ndarray) -> tuple[float, str]:
    """Fleiss' κ, whoever the reviewers of an item are, and why it is NaN."""
    counts = {int(n) for n in (~np.isnan(verdicts)).sum(axis=1)}
    if len(counts) > 1:
        return math.nan, UNEQUAL
    kappa = fleiss_kappa(np.array([row[~np.isnan(row)] for row in verdicts]))
    return kappa, CONSTANT if len(verdicts) and math.isnan(kappa) else ""


PABAK = Column(
    "pabak",
    "PABAK",
    "Agreement adjusted for prevalence: 2 · agreement − 1.",
    interval=True,
)
AGREEMENT = (
    Column("n_items", "items reviewed twice", "Items with two or more reviews."),
    Column(
        "agreement",
        meaning="Share of the items on which two reviewers decide alike; of more than two, the "
        "mean share of pairs.",
        interval=True,
    ),
    PABAK,
    Column("fleiss_kappa", "Fleiss’ κ", "Agreement beyond chance of reviewers of one pool."),
    Column(
        "krippendorff_alpha",
        "Krippendorff’s α",
        "Agreement beyond chance, corrected for the number of reviews.",
    ),
    REASON,
)
REVIEWS = Table(
    "rf_reviews",
    ("annotations", "items"),
    ("task",),
    (
        Count("n", label="reviews", meaning="Decisions of people on an r′."),
        Count(
            "n_accepted",
            lambda reviews: reviews["accepted"] == 1,
            "yes",
            "Reviews that accept the r′.",
        ),
        Share("accepted", meaning="Share of the reviews that accept the r′.", cluster=EACH_ROW),
        Numbers(AGREEMENT, _agreement),
    ),
    pool=("task",),
    prepare=reviews_of_items,
)
"""People's reviews of r′: how often they accept it, and how far they agree, by task and over all
tasks (appendix B.3). The interval counts reviews, as Table 6 does.

Reviews are of r′ alone, so they are the same for all models. A statistic that is NaN has its
`reason`: all reviews may be the same ("the κ paradox").
"""
