"""What all tasks share whose answer is a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from faithscope.experiments.data.answers import first_number, last_number
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.spelling import number_surfaces
from faithscope.experiments.data.tasks.task import LoadSettings, Task, wordings
from faithscope.interventions.trace import Question, Trace

MAX_CANDIDATES = 12
MIN_CANDIDATES = 4


def candidates(question: Question, trace: Trace | None) -> tuple[str, ...]:
    """Answers to score against each other: canonical, distinct, at most `MAX_CANDIDATES`.

    In this order: the gold answer, the answer given, the numbers that end the trace's steps
    (the last step first), the question's own candidates; where these are fewer than
    `MIN_CANDIDATES`, the neighbours of the first fill up. Edits of a trace have the same, those
    of the unedited one (`Trace.unedited`).
    """
    answers = [question.gold]
    if trace is not None:
        answers.append(trace.answer)
        answers += [last_number(step.text) for step in reversed(trace.counted_steps)]
    answers += [canonical_number(c) for c in question.candidates]
    distinct = list(dict.fromkeys(c for c in answers if c is not None))
    if distinct and "/" not in distinct[0]:
        near = (_moved(distinct[0], by) for by in (1, -1, 10, 2))
        spare = [c for c in near if c not in distinct]
        distinct += spare[: max(0, MIN_CANDIDATES - len(distinct))]
    return tuple(distinct[:MAX_CANDIDATES])


def _labels(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
    texts = () if trace is None else ("".join(trace.pieces), trace.tail_text)
    return number_surfaces(candidates(question, trace), question.text, *texts)


def _moved(number: str, by: int) -> str:
    whole, point, part = number.partition(".")
    return f"{int(whole) + by}{point}{part}"


def number_task(
    name: str, summary: str, load: Callable[[LoadSettings], Iterable[Question]]
) -> Task:
    """A task of problems with a number for an answer, asked in the paper's words for GSM8K."""
    return wordings()["math"].task(
        name=name,
        summary=summary,
        kind="number",
        load=load,
        parse=lambda text, question: last_number(text),
        parse_continuation=lambda text, question: first_number(text),
        labels=_labels,
    )
