"""What the layouts of the SLRC paper share: names of tasks, and rows as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable
from faithscope.experiments.analysis.tidy import keep
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant

TITLES = {
    "sst2": "SST-2",
    "gsm8k": "GSM8K",
    "ag_news": "AG News",
    "medqa": "MedQA",
    "commonsense_qa": "CSQA",
    "arc_challenge": "ARC",
    "sentiment": "Rotten Tomatoes",
    "single_cue": "Single-cue",
    "conflicting_cue": "Conflicting-cue",
    "multi_feature": "Multi-feature",
    "sequential_math": "Sequential math",
}
WAY = ["framing", "reading"]
Row = Mapping[str, Any]


def title(task: str) -> str:
    """Name of a task in the paper; the task's own name if the paper has none."""
    return TITLES.get(task, task)


def way_of(row: Row) -> str:
    """Framing and reading of a row as text."""
    return f"{row['framing']}, {row['reading']}"


MEASURED = {"Model": lambda row: row["model"], "Measured": way_of}


def table_of(
    name: str,
    data: Sequence[Row],
    columns: Sequence[str],
    headings: Mapping[str, Callable[[Row], str]],
) -> PaperTable:
    """A paper table with one column per heading; each heading's function formats a row."""
    printed = [{heading: say(row) for heading, say in headings.items()} for row in data]
    return PaperTable(name, pd.DataFrame(data, columns=list(columns)), pd.DataFrame(printed))


def text_of(column: str, say: Callable[[Any], str] = str) -> Callable[[Row], str]:
    """A function that formats one column of a row."""
    return lambda row: say(row[column])


def own_tasks(table: pd.DataFrame) -> pd.DataFrame:
    """Rows without prompt variants (`sst2:alternative`), which have a table of their own."""
    return keep(table, [not is_variant(task) for task in table["task"]])


def models_of(table: pd.DataFrame) -> list[str]:
    """The models of a table, in the order in which they are shown."""
    return sorted(set(table["model"]), key=model_order)
