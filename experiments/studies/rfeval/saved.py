"""The benchmark of a run on disk: its items, the problems that became none, and counts of both."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from faithscope.experiments.data.saved import json_lines, rows_of
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.tables.filtering import FILTERING


def row_of(item: Item) -> dict[str, Any]:
    """The item as a row of the released data, which `data.read_rfeval` reads back."""
    content: dict[str, Any] = {"source": item.source}
    names = {"table_reasoning": "table", "paper_review": "paper"}
    if item.context:
        content[names.get(item.task, "context")] = item.context
    if item.tests is not None and item.tests.kind == "ds1000":
        content["code_context"] = item.tests.context
        content["reference_code"] = item.tests.reference
    elif item.tests is not None:
        cases = [
            {"input": case.input, "output": case.output, "testtype": item.tests.kind}
            for case in item.tests.cases
        ]
        content["public_test_cases"] = json.dumps(cases)
    return {
        "task": item.task,
        "id": item.id.partition("/")[2],
        "question": item.question,
        "options": list(item.options) or None,
        "answer": item.gold or None,
        "content": content,
        "r_prime": item.r_prime,
        "explanation": item.explanation,
    }


ITEMS, LEFT_OUT, FILTERED = "items.jsonl", "left_out.jsonl", "rf_filtering.csv"
Reason = Literal["not_written", "no_reasoning", "unvalidated", "rejected"]


@dataclass(frozen=True)
class LeftOut:
    """A problem of the data that became no item."""

    item: str
    task: str
    source: str
    reason: Reason
    """Why it became no item. `not_written`: the writer never replied; `no_reasoning`: its reply
    holds no r′ with a flaw; `unvalidated`: no verdict on r′; `rejected`: the validator is against
    it."""
    detail: str
    """Description of what was wrong; for a rejected problem, the criteria it fails and the
    validator's reason."""
    r_prime: str
    """The r′ that was written; "" where there is none."""
    flaw: str


def item_lines(items: Iterable[Item]) -> str:
    """Items as JSON lines, a format that `data.path` takes."""
    return json_lines(map(row_of, items))


def read_filtering(folder: Path) -> pd.DataFrame:
    """The stored counts of the validation; empty where nothing was built."""
    path = folder / FILTERED
    if not path.is_file():
        return pd.DataFrame(columns=FILTERING.header)
    return pd.read_csv(io.StringIO(path.read_text("utf-8")))


def read_left_out(folder: Path) -> tuple[LeftOut, ...]:
    """The stored account of problems that became no item; empty where nothing was built."""
    path = folder / LEFT_OUT
    return rows_of(LeftOut, path.read_text("utf-8"), path) if path.is_file() else ()
