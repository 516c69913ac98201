"""Judgements of C2-Faith, written by hand: of whole chains, of coverage and of places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.c2faith.tables.frames import Frames

HOW = Bootstrap(seed=3, resamples=400)


ABSENT = None
"""A judgement without a verdict."""


def judged(perturbed: list, control: list, judge: str = "a", p: list | None = None) -> pd.DataFrame:
    """A row per item: 1, 0 or ABSENT; `p` are the probabilities of 0, perturbed items first."""
    rows = []
    for condition, scores in (("perturbed", perturbed), ("control", control)):
        for i, score in enumerate(scores):
            rows.append(
                {"judge": judge, "reading": "scored" if p else "generated", "prompt": "c2"}
                | {"item": f"i{i}", "chain": f"c{i}", "condition": condition}
                | {"outcome": "refused" if score is ABSENT else "parsed", "score": score}
                | {"p_flag": p[len(rows)] if p else math.nan}
            )
    return pd.DataFrame(rows)


def frames(*parts: pd.DataFrame) -> pd.DataFrame:
    return Frames(detection=pd.concat(parts)).detection


def scored(
    scores: Sequence[float | None],
    references: Sequence[float] = (),
    *,
    level: float = 0.1,
    scale: str = "0-4",
    removed: Sequence[int] = (),
    expected: Sequence[float] = (),
) -> pd.DataFrame:
    """A row per chain of ten middle steps; None is no verdict."""
    rows = []
    for i, score in enumerate(scores):
        rows.append(
            {"judge": "a", "reading": "generated", "prompt": "c2", "item": f"i{i}:{level}"}
            | {"chain": f"c{i}", "outcome": "filtered" if score is None else "parsed"}
            | {"scale": scale, "level": level, "n_middle": 10, "score": score}
            | {"n_removed": removed[i] if removed else round(10 * level)}
            | {"expected": expected[i] if expected else math.nan}
            | {"reference": references[i] if references else math.nan}
            | {"reference_judge": "r" if references else ""}
        )
    return pd.DataFrame(rows)


def placed(
    perturbed: list,
    control: list,
    target: int = 5,
    judge: str = "a",
    final_scores: list | None = None,
) -> pd.DataFrame:
    """A row per chain of 10 steps; None is no verdict. `final_scores`: of all rows in turn."""
    rows = [
        {"judge": judge, "reading": "generated", "prompt": "c2", "item": f"i{i}"}
        | {"chain": f"c{i}", "condition": condition, "n_steps": 10, "target": target}
        | {"outcome": "unparsed" if said is None else "parsed", "predicted": said}
        | {"p_target": math.nan, "n_middle": 7, "final_score": None}
        for condition, all_said in (("perturbed", perturbed), ("control", control))
        for i, said in enumerate(all_said)
    ]
    made = pd.DataFrame(rows)
    return made if final_scores is None else made.assign(final_score=final_scores)
