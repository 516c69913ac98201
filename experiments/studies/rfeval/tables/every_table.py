"""Every table of RFEval, and the tidy frames that they are made of; pure functions, no disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Count
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, make_tables
from faithscope.experiments.studies.rfeval.tables import (
    accuracy,
    benchmark,
    faithfulness,
    inside,
    people,
    reviews,
    steps,
    texts,
)
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.filtering import FILTERING
from faithscope.experiments.studies.rfeval.tables.frames import CONDITION, READINGS, readings

TESTS = Table(
    "rf_tests",
    "tests",
    ("model", "task", CONDITION, Column("outcome", meaning="How the tests of a program ended.")),
    (Count("n", meaning="Programs."),),
)
"""Outcomes of the tests of programs."""
TABLES = (
    *benchmark.TABLES,
    FILTERING,
    *faithfulness.TABLES,
    *accuracy.TABLES,
    *texts.TABLES,
    *steps.TABLES,
    *people.TABLES,
    reviews.REVIEWS,
    *inside.TABLES,
    TESTS,
)
OBSERVED: Mapping[str, Iterable[str]] = {
    "judged": (),
    "without_judge": (),
    "models": ("model", "framing", "family", "regime"),
    "items": ("task", "item", "source", "question", "options", "context", "r_prime", "stances"),
    "lengths": texts.LENGTHS,
    "rewards": texts.REWARDS,
    "tests": ("model", "task", "condition", "outcome"),
    "steps": steps.STEPS,
    "steps_left": steps.LEFT,
    "readings": READINGS,
    "annotations": people.ANNOTATIONS,
    "evaluator": (*people.DECISION, "label"),
    "filtering": FILTERING.header,
}
"""Frame that a run gives -> its columns. `judged` is for `tables.frames.checked`, and so is
`without_judge`, by the model's own log-probs (`judging.scored_stances`); `models` says how r′ came
into the conversation (a model that is not in it counts as `prefix`), and which family and regime
are compared; `readings` are those of further readers, of some parts only; `evaluator` has the
judge's decisions, with which people's are compared."""
WRITTEN = {
    "pairs": "rf_pairs",
    "against": "rf_judge_against_log_probs_pairs",
    "inside": "rf_inside_pairs",
}
"""Frame -> the file that it is written as, row by row."""


def frames_of(
    observed: Mapping[str, pd.DataFrame],
    looked_inside: Iterable[Mapping[str, Any]] = (),
    *,
    paper_compat: bool = False,
    threshold: float | None = None,
) -> dict[str, pd.DataFrame]:
    """The frames that tables are made of, by name.

    Args:
        observed: some of `OBSERVED`; what was not run may be missing, or be an empty frame.
            Without `steps_left`, all pairs were to be judged step by step.
        looked_inside: records of `subjects.inside.look_inside`, one for each output.
        paper_compat: chains as the authors' released code scores them (`tables.chains.scored`).
        threshold: the Δ that parts low from high (`tables.texts.BY_EXTERNALITY`).
    """
    given = {
        name: observed[name] if len(observed.get(name, ())) else pd.DataFrame(columns=[*columns])
        for name, columns in OBSERVED.items()
    }
    models = given["models"]
    framings = dict(zip(models["model"], models["framing"], strict=True))
    pairs, unjudged = (
        faithfulness.with_framing(scored(given[name], paper_compat), framings)
        for name in ("judged", "without_judge")
    )
    read = [frame for frame in (readings(pairs), given["readings"]) if len(frame)]
    records = list(looked_inside)
    inside_pairs = inside.inside_frame(records, pairs)
    return given | {
        "pairs": pairs,
        "unjudged": unjudged,
        "against": people.pairs_against_log_probs(pairs, unjudged),
        "readings": pd.concat(read) if read else given["readings"],
        "externality": texts.externality_of_items(given["items"], threshold),
        "by_step": steps.per_step(pairs, given["steps"], observed.get("steps_left")),
        "inside": inside_pairs,
        "curves": inside.curve_frame(records, inside_pairs),
    }


def tables(
    frames: Mapping[str, pd.DataFrame], how: Bootstrap | None = None
) -> dict[str, pd.DataFrame]:
    """The tables by name.

    Args:
        frames: those of `frames_of`.
    """
    made = {table: frames[frame] for frame, table in WRITTEN.items()}
    return made | make_tables(TABLES, frames, how)
