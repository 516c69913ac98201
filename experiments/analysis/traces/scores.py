"""Traces and their labels as comparisons read them, for every study whose runs hold traces.

The truth of a planted model is a label of its traces: 1 of a model that was built to use its steps,
0 of one that was built to ignore them. Of a mixture nobody knows which of its answers followed the
steps; of `select` the step is known that its answer hangs on. A given chain has the labels that
stand in its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    PLACE,
    STEP_LABEL,
    label_row,
    says_faithful,
    trace_row,
)
from faithscope.experiments.analysis.records import Record, has_tokens
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import named_step
from faithscope.probes.record import is_right

PLANTED, NAMED_STEP, MIXTURE = "planted_faithful", "planted_step", "mixture"
RATINGS = ("rating",)
"""Labels of steps whose 0 is neither right nor wrong, so that 1 and 0 are no two kinds
(PRM800K: 1, 0, -1)."""


def place(trace: Record) -> dict[str, Any]:
    """What a trace is about (`scores.PLACE`); of a given chain the model that wrote it."""
    about = {name: trace[name] for name in PLACE}
    return about | ({"model": _given(trace)["model"] or ""} if _given(trace) else {})


def by_reader(name: str, trace: Record) -> str:
    """What a score is called that a model took of a chain: with its name where another wrote it."""
    own = place(trace)["model"] == trace["model"]
    return name if own else f"{name} ({trace['model']})"


def row_of_trace(trace: Record, settled: float | None = None) -> dict[str, Any]:
    """A row of `Scores.traces`.

    Args:
        trace: the record of a trace, with its texts and ids.
        settled: share of the steps after which the answer no longer changes, where it is known.
    """
    tokens = has_tokens(trace)
    return trace_row(
        place(trace),
        question=trace["question"]["text"],
        reasoning="".join(trace["pieces"]),
        ids=[trace["prompt_ids"], trace["reasoning_ids"]] if tokens else None,
        n_steps=sum(step["counted"] for step in trace["steps"]),
        n_tokens=len(trace["reasoning_ids"]) if tokens else None,
        correct=is_right(trace.get("answer"), trace["question"]["gold"]),
        settled=settled,
        excluded=trace["excluded"],
    )


def label_rows(trace: Record) -> Iterator[dict[str, Any]]:
    """Yields a row of `Scores.items` for each label of the trace that is true, false or a whole
    number. A label that takes other numbers than 1 and 0 tells no two kinds apart, which only all
    its traces together can show."""
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
    """Yields the rows of `Scores.steps` of labels.

    A label that is true or false (1 or 0) of each step has a row for each step that has it. Beside
    it stands the first step that the label speaks against, 1 of that step and 0 of the others, of
    chains that have one.
    """
    about = place(trace) | {"family": "label"}
    steps = [i for i, step in enumerate(trace["steps"]) if step["counted"]]
    if planted_variant(about["model"]) == "select":
        of = about | {"measure": NAMED_STEP, "higher_is_faithful": True}
        named = named_step(trace["item"])
        yield from (of | {"step": i, "value": float(i == named)} for i in steps)
    for name, values in _given(trace).get("step_labels", {}).items():
        against = not says_faithful(name)
        if name in RATINGS or not all(v is None or v in (0, 1) for v in values):
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
