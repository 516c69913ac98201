"""Every table of C2-Faith, as specifications over the tidy frames of judgements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Count, Numbers
from faithscope.experiments.analysis.columns import SHARED, described
from faithscope.experiments.analysis.spend import USAGE as OF_CALLS
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, declared, make_tables
from faithscope.experiments.analysis.tidy import numbers
from faithscope.experiments.studies.c2faith.tables import (
    agreement,
    coverage,
    detection,
    internals,
    localisation,
    predictors,
    reliability,
    sensitivity,
)
from faithscope.experiments.studies.c2faith.tables.frames import Frames

OF_FRAMES = (
    *(detection.DETECTION, localisation.LOCALISATION, coverage.COVERAGE, coverage.POOLED),
    *(coverage.SCORES, detection.MCNEMAR, predictors.EDITS, predictors.METHODS),
    *(predictors.PREDICTORS, predictors.POSITIONS, agreement.FAILURE_OVERLAP),
    *(agreement.MISSED_BY_ALL, agreement.AGREEMENT, sensitivity.VARIANTS, sensitivity.PROMPTS),
    *(sensitivity.PROMPT_AGREEMENT, reliability.RELIABILITY),
    *(localisation.SIGNED_ERROR, localisation.WITHIN, internals.AGAINST),
)
"""The tables that are made of `Frames`."""


def _by_reason(left_out: pd.DataFrame) -> pd.DataFrame:
    return left_out.sort_values(["model", "stage", "reason"], kind="stable")


EXCLUSIONS = Table(
    "exclusions",
    "left_out",
    ("model", "stage", "reason"),
    (
        Count("n", label="items", meaning="What was left out for the reason."),
        Numbers(
            described(example="The first of those left out, by its id."),
            lambda left_out, how: {"example": left_out["item"].iloc[0]},
        ),
    ),
    prepare=_by_reason,
)
"""Everything that is in no estimate: solutions, chains, judgements, signals, with the reason."""
_OF_REPLIES = described(
    n=("items", "Judgements, those without a verdict too."),
    n_text_cut=(
        "rationale cut at the limit",
        "Verdicts whose rationale the token limit or the model's last position ended, as happens "
        "where a model is held to the form.",
    ),
    n_truncated="Replies cut off before their verdict.",
    n_extra_fields="Fields of replies that the form does not have; they count for nothing.",
)
COUNTED = tuple(c.name for c in _OF_REPLIES) + OF_CALLS


def _sums(judgements: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    return {name: int(numbers(judgements[name]).sum()) for name in COUNTED}


USAGE = Table(
    "usage",
    "asked",
    ("model", "prompt", "reading"),
    [Numbers((*_OF_REPLIES, *(SHARED[name] for name in OF_CALLS)), _sums)],
)
"""Tokens and calls of every judge, form and reading, and what the token limit cut."""
OF_RUN = (reliability.MASS, EXCLUSIONS, USAGE)
"""The tables that are made of what a run has beside `Frames`."""
TABLES = (*OF_FRAMES, *OF_RUN)
COLUMNS, OF_TABLES = declared(TABLES)


def tables(
    frames: Frames,
    *,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
    groups: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, pd.DataFrame]:
    """The tidy tables by name.

    A task that was not run gives tables without rows; a judge without any verdict, or alone
    where two are compared, gives rows that say so. Every table counts what it leaves out.

    Args:
        groups: data set -> chain or item -> group of those that are not independent.
    """
    return make_tables(OF_FRAMES, vars(frames), Bootstrap(seed, resamples, of_items=groups or {}))
