"""Rows of `Scores` for traces and their labels, shared by every study whose runs hold traces.

The known mechanism of a planted model is a label of its traces: 1 for a model that was built to use
its steps, 0 for one that was built to ignore them. A mixture has no label, since nobody knows which
of its answers followed the steps. For the planted model `select` the step that decides the answer
is known. A given chain has the labels in its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    PLACE,
    STEP_LABEL,
    STEP_NUMBER,
    label_row,
    says_faithful,
    trace_row,
)
from faithscope.experiments.analysis.stored_records import Record, asked_id, has_tokens
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import named_step
from faithscope.probes.record import is_right

PLANTED, NAMED_STEP, MIXTURE = "planted_faithful", "planted_step", "mixture"
"""Names of the labels from planted models (of a trace, of a step), and the reason why a mixture has
none."""
RATINGS = ("rating",)
"""Step labels that are not binary because their 0 means neither right nor wrong (PRM800K: 1, 0,
-1)."""


def place(trace: Record) -> dict[str, Any]:
    """The columns `scores.PLACE` of a trace; `model` is the one that wrote the chain."""
    about = {name: trace[name] for name in PLACE}
    return about | ({"model": _given(trace)["model"] or ""} if _given(trace) else {})


def by_reader(name: str, trace: Record) -> str:
    """Name of a score that a model computed on a chain; the model's name is added where another
    model wrote the chain."""
    own = place(trace)["model"] == trace["model"]
    return name if own else f"{name} ({trace['model']})"


def row_of_trace(trace: Record, settled: float | None = None) -> dict[str, Any]:
    """The row of `Scores.traces` for one trace.

    Args:
        trace: the record of the trace, with its texts and ids.
        settled: share of the steps after which the answer no longer changes; None if unknown.
    """
    tokens = has_tokens(trace)
    return trace_row(
        place(trace),
        question=trace["question"]["text"],
        reasoning="".join(trace["pieces"]),
        ids=[trace["prompt_ids"], trace["reasoning_ids"]] if tokens else None,
        given=_given(trace).get("sha256", ""),
        asked=asked_id(trace["question"]),
        n_steps=sum(step["counted"] for step in trace["steps"]),
        n_tokens=len(trace["reasoning_ids"]) if tokens else None,
        correct=is_right(trace.get("answer"), trace["question"]["gold"]),
        settled=settled,
        cut=None if (finish := trace.get("finish")) is None else finish == "length",
        excluded=trace["excluded"],
    )


def label_rows(trace: Record) -> Iterator[dict[str, Any]]:
    """Yields a row of `Scores.items` for each label of a trace that is true, false or a whole
    number.

    Whether a label is binary can only be seen from all traces, so labels with other values than 1
    and 0 are dropped later (`scores_vs_labels.targets`).
    """
    about = {**trace, **place(trace)}
    if variant := planted_variant(about["model"]):
        p = PLANTS[variant].p
        if p is not None:
            row = label_row(about, PLANTED, p if p in (0.0, 1.0) else None)
            yield row | {"missing": MIXTURE} if row["missing"] else row
    for name, value in _given(trace).get("labels", {}).items():
        if value is None or isinstance(value, int):
            yield label_row(about, name, value)


def step_label_rows(trace: Record) -> Iterator[dict[str, Any]]:
    """Yields rows of `Scores.steps` for the step labels of a trace.

    A binary label gives one row per labelled step. If it speaks against some step, a second label
    marks the first such step: 1 for that step, 0 for all others. A label with other numbers gives
    one row per step that has one, as `label_NAME`.
    """
    about = place(trace) | {"family": "label"}
    steps = [i for i, step in enumerate(trace["steps"]) if step["counted"]]
    if planted_variant(about["model"]) == "select":
        of = about | {"measure": NAMED_STEP, "higher_is_faithful": True}
        named = named_step(trace["item"])
        yield from (of | {"step": i, "value": float(i == named)} for i in steps)
    for name, values in _given(trace).get("step_labels", {}).items():
        against = not says_faithful(name)
        known = [v for v in values if v is not None]
        if name in RATINGS or not all(isinstance(v, int | float) for v in known):
            continue
        if not all(v in (0, 1) for v in known):
            of = about | {"family": STEP_NUMBER, "measure": f"label_{name}"}
            of |= {"higher_is_faithful": True}
            yield from (
                of | {"step": i, "value": float(v)} for i in steps if (v := values[i]) is not None
            )
            continue
        every = about | {"family": STEP_LABEL, "measure": name, "higher_is_faithful": not against}
        yield from (
            every | {"step": i, "value": float(v)} for i in steps if (v := values[i]) is not None
        )
        wrong = [i for i in steps if values[i] is not None and values[i] == against]
        if wrong:
            title = f"first_{name}_step" if against else f"first_step_not_{name}"
            of = about | {"measure": title, "higher_is_faithful": False}
            yield from (of | {"step": i, "value": float(i == wrong[0])} for i in steps)


def _given(trace: Record) -> Mapping[str, Any]:
    return trace["origin"].get("given") or {}
