"""A pair of outputs and what was said of them, as a row of the frame that all numbers come from."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition, judged_parts
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, is_right, stance_of_answer
from faithscope.experiments.studies.rfeval.metrics.frames import FLAWS, SAID, STANCES
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.probes.judge.form import Reply

MATCHING = "matching"
"""The name of the reader that matches the parsed answer, without any model."""
TESTS = "tests"
"""The name of the reader that runs an item's public tests."""
NOT_WRITTEN = "not_written"
"""Outcome of an output that failed; it is tried again when the run is."""
_FENCE = re.compile(r"```[a-zA-Z0-9_+-]*[ \t]*\n(.*?)```", re.S)


def code_of(output: Output) -> str:
    """The program in an output: the last fenced block of the answer, else of the explanation,
    else the answer as it stands; "" where there is none of these."""
    for part in (output.answer, output.explanation):
        if found := _FENCE.findall(part):
            return found[-1].strip("\n")
    return output.answer


def pair_row(
    reader: str,
    model: str,
    item: Item,
    outputs: Mapping[Condition, Output],
    replies: Mapping[Condition, Reply],
    tested: Mapping[Condition, str] | None = None,
    excluded: str = "",
    naming: Naming = "letters",
    paper_compat: bool = False,
) -> dict[str, Any]:
    """The row of one item, both outputs of a model as one reader judged them.

    Args:
        outputs: the parsed ones; of a condition that is missing, writing failed (`not_written`).
        replies: the reader's, of outputs that it was asked about.
        tested: of code items, the stance that the public tests give each answer
            (`sandbox.Report.stance`): it takes the place of the reader's (RFEval, §4.1).
        excluded: why the pair counts for nothing at all ("" of most).
        paper_compat: as of `asks.judged_parts`.

    Returns:
        A row for `metrics.frames.checked`, with the reader's own stances of the answers beside
        those that count (`metrics.frames.SAID`); `…_right` is of the answer's stance, NaN where
        there is none, and of code without tests.
    """
    row: dict[str, Any] = {"reader": reader, "model": model, "task": item.task, "item": item.id}
    row |= {"excluded": excluded, **dict.fromkeys(STANCES, ""), **dict.fromkeys(FLAWS, False)}
    row |= dict.fromkeys(SAID.values(), "")
    for condition in CONDITIONS:
        output, reply = outputs.get(condition), replies.get(condition)
        row[f"{condition}_outcome"] = output.outcome if output else NOT_WRITTEN
        row[f"{condition}_judged"] = reply.outcome if reply else ""
        row[f"{condition}_right"] = math.nan
        if reply and reply.outcome == "parsed":
            row |= judged_parts(reply.values, condition, paper_compat)
            row[SAID[f"{condition}_a"]] = row[f"{condition}_a"]
            by_tests = (tested or {}).get(condition)
            if by_tests:
                row[f"{condition}_a"] = by_tests
            if by_tests or item.task != "code_generation":
                row[f"{condition}_right"] = float(is_right(item, row[f"{condition}_a"], naming))
    return row


def answer_readings(
    model: str,
    item: Item,
    outputs: Mapping[Condition, Output],
    tested: Mapping[Condition, str] | None = None,
    naming: Naming = "letters",
) -> list[dict[str, Any]]:
    """The stances of the answers as matching reads them, or of code as the tests do.

    A row of `READINGS` per output that has an answer; where matching finds nothing it says
    "I don't know", which is a stance like the others.
    """
    readings = []
    for condition in CONDITIONS:
        output = outputs.get(condition)
        if output is None or not output.answer:
            continue
        if item.task == "code_generation":
            reader, stance = TESTS, (tested or {}).get(condition)
        else:
            reader, stance = MATCHING, stance_of_answer(item, output.answer, naming)
        if stance is not None:
            key = {"reader": reader, "model": model, "task": item.task, "item": item.id}
            readings.append(key | {"part": f"{condition}_a", "stance": stance})
    return readings
