"""The numbers of the paper's tables, from the packaged file."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, TASKS, Task

with (files("faithscope.experiments.studies.rfeval") / "paper.csv").open("rb") as file:
    CELLS = pd.read_csv(file, dtype=str, keep_default_na=False)
TASK_NAMES: dict[str, Task] = {short: task for task, short in ABBREVIATIONS.items()}
TASK_NAMES |= {task.replace("_", " ").title(): task for task in TASKS}
"""Maps the name of a task, as some table prints it, to ours."""


def cells(table: int, column: str | None = None) -> pd.DataFrame:
    """The cells of a table, or of one of its columns, with their values as numbers in `number`."""
    of = CELLS.loc[CELLS["table"] == f"table{table}"]
    if column is not None:
        of = of.loc[of["column"] == column]
    assert len(of), (table, column)
    return of.assign(number=pd.to_numeric(of["value"], errors="coerce"))


def grid(table: int, rows: str, columns: str = "column", column: str | None = None) -> pd.DataFrame:
    """The numbers of a table, or of one of its columns, by two of its keys, in its own order."""
    of = cells(table, column)
    of = of.assign(**{c: pd.Categorical(of[c], of[c].unique()) for c in (rows, columns)})
    return of.pivot(index=rows, columns=columns, values="number")


def by_name(table: int, key: str, column: str) -> dict[str, float]:
    """The numbers of one column of a table by one of its keys."""
    of = cells(table, column)
    return dict(zip(of[key], of["number"], strict=True))


ITEMS = {
    TASK_NAMES[name]: int(n) for name, n in by_name(1, "task", "Count").items() if name != "Total"
}
"""Items per task (Table 1)."""
RF, COVERAGE = (grid(2, "model", "task", column).drop("Overall") for column in ("RF", "c"))
"""RF in percent and contrast coverage of every model, by task and "Overall" (Table 2)."""
INCLUDED = {model: int(n) for model, n in by_name(13, "model", "Included").items()}
"""Pairs of each model that count (Table 13)."""
UNFAITHFUL = {model: 1 - RF["Overall"][model] / 100 for model in RF.index}
"""Share of each model's pairs that are unfaithful (Table 2)."""
