"""What every study over traces shows of a trace: question, stated and right answer, steps, and the
text after the reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from faithscope.experiments.analysis.item_view import ItemView, answered
from faithscope.experiments.analysis.page import Block, Paragraph, Step
from faithscope.experiments.analysis.stored_records import Record, place_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def trace_view(
    trace: Record, steps: Sequence[Step], facts: Sequence[str] = (), **more: Any
) -> ItemView:
    """The view of a trace with its steps.

    Args:
        steps: the steps as they are to be shown, one for each of the trace.
        facts: phrases beside those on the answers.
        more: further fields of the `ItemView`; `below` follows the text after the reasoning.
    """
    answer, gold = trace.get("answer"), trace["question"].get("gold")
    tail: list[Block] = [Paragraph((trace.get("tail_text") or "").strip(), "tail")]
    below = [*tail, *more.pop("below", ())]
    if trace.get("excluded"):
        below.append(f"Not measured: {trace['excluded'].replace('_', ' ')}.")
    return ItemView(
        " · ".join(place_of(trace)),
        _question(trace["question"]),
        answer,
        gold,
        [*answered(answer, gold), *facts],
        steps=steps,
        below=below,
        **more,
    )


def numbered(trace: Record) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Yields each step with its number, counted from 1; None for text that does not count."""
    number = 0
    for step in trace["steps"]:
        number += step["counted"]
        yield step, number if step["counted"] else None


def _question(question: Mapping[str, Any]) -> str:
    """The text of a question, with its options."""
    options = question.get("options") or ()
    if question["kind"] != "choice":
        return "\n".join(
            [question["text"], *([f"Answers: {', '.join(options)}"] if options else [])]
        )
    listed = (f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False))
    return "\n".join([question["text"], *listed])
