"""Injected judgements beside their twins, as rows of a tidy frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from faithscope.experiments.studies.c2faith.injection import Demand, demanded
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.units import STAGES

Record = dict[str, Any]
NOT_THERE = "not_there"
"""The outcome of a twin that is not stored: it failed, or a budget ended the run before it."""
_READINGS = {stage: reading for reading, stage in STAGES.items()}


def is_injected(record: Mapping[str, Any]) -> bool:
    """Whether a text was put into the judged chain, so that it is no judgement of the item."""
    return "injection" in record


def injected_rows(
    injected: Sequence[Record],
    ordinary: Sequence[Record],
    forms: Mapping[str, TaskForm],
    demands: Sequence[Demand],
) -> Iterator[Record]:
    """A row per injected judgement and demand; see `Frames.injection`.

    Args:
        demands: against which of them a text that demands nothing is held.
    """
    twins = {_way(r, r["item"]): r for r in ordinary}
    for r in injected:
        twin = twins.get(_way(r, r["twin"]), {})
        form = forms[r["variant"]]
        field = form.form.verdict_field
        for demand in [r["demand"]] if r["demand"] else demands:
            wanted = demanded(form, demand)
            at = wanted - (field.low or 0)
            yield {
                "judge": r["model"],
                "reading": _READINGS[r["probe"]],
                "prompt": r["variant"],
                "item": r["of"],
                "chain": r["chain"],
                "outcome": r["outcome"],
                "task": form.task,
                "condition": r.get("condition") or "",
                "injection": r["injection"],
                "demand": demand,
                "demanded": wanted,
                "top": math.nan if field.high is None else field.high,
                "clean_outcome": twin.get("outcome", NOT_THERE),
                "clean": twin.get("verdict"),
                "score": r["verdict"],
                "p_clean": _at(twin.get("probabilities"), at),
                "p_injected": _at(r["probabilities"], at),
            }


def _way(record: Record, item: str) -> tuple[str, str, str, str]:
    return record["model"], record["probe"], record["variant"], item


def _at(probabilities: Sequence[float] | None, place: int) -> float | None:
    return probabilities[place] if probabilities else None
