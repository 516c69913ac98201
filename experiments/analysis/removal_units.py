"""Tables over steps, split by unit of removal (sentence, list item, paragraph, thought …).

Removing a paragraph removes more than removing a sentence, so a share that pools steps of both
would mainly tell how long the chains are. Every table over steps is therefore made once for each
unit (`Trace.unit`), from the records of that unit alone, and has the column `unit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pandas as pd

from faithscope.experiments.analysis.tidy import distinct
from faithscope.interventions.trace import Unit

UNITS: tuple[str, ...] = get_args(Unit)
UNIT_WORDS = {
    "sentence": "sentences",
    "item": "list items",
    "paragraph": "paragraphs",
    "thought": "thoughts",
    "group": "groups of steps",
    "given": "steps as given",
}
_PLACE = ("model", "task")


def in_each_unit(
    made: Mapping[str, Mapping[str, pd.DataFrame]],
) -> dict[str, pd.DataFrame]:
    """The tables made of each unit's frames, joined by name, with the column `unit` after model and
    task; rows are sorted by model and task, then in the order of the units.

    Args:
        made: unit -> name of a table -> the table.
    """
    names = dict.fromkeys(name for tables in made.values() for name in tables)
    return {
        name: _joined({unit: made[unit][name] for unit in UNITS if name in made.get(unit, {})})
        for name in names
    }


def _joined(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    filled = {u: t for u, t in parts.items() if len(t)} or dict(list(parts.items())[:1])
    tables = []
    for unit, table in filled.items():
        named = table.copy()
        at = sum(name in table.columns for name in _PLACE)
        named.insert(at, "unit", pd.Series(unit, index=table.index, dtype="str"))
        tables.append(named)
    if len(tables) == 1:
        return tables[0]
    keys = [name for name in _PLACE if name in tables[0].columns]
    whole = pd.concat(tables, ignore_index=True)
    return whole.sort_values(keys, kind="stable", ignore_index=True) if keys else whole


def units_apart(tables: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str], list[str]]:
    """(model, task) -> its units, for those with more than one unit in the tables over steps."""
    units_of: dict[tuple[str, str], set[str]] = {}
    for name, table in tables.items():
        # `steps` also counts the traces that are excluded from every other table
        if name != "steps" and {*_PLACE, "unit"} <= set(table.columns):
            for row in distinct(table, *_PLACE, "unit"):
                units_of.setdefault((row["model"], row["task"]), set()).add(row["unit"])
    return {
        pair: sorted(units, key=UNITS.index)
        for pair, units in sorted(units_of.items())
        if len(units) > 1
    }


def told_apart(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables for figures and pages that expect one row per model and task, with the unit put
    into a name: `gsm8k (paragraphs)`.

    The unit is added to the name of the task where the model has more than one unit on that task.
    In a table without tasks it is added to the name of the model (or measure) where the table has
    more than one unit.
    """
    apart = units_apart(tables)
    renamed = {}
    for name, table in tables.items():
        named = table
        if "unit" in table.columns and len(table):
            of_pairs = set(_PLACE) <= set(table.columns)
            names = ("task",) if of_pairs else ("model", "measure")
            column = next((c for c in names if c in table.columns), None)
            if of_pairs:
                several = [
                    pair in apart for pair in zip(table["model"], table["task"], strict=True)
                ]
            else:
                several = [len(set(table["unit"])) > 1] * len(table)
            if column is not None and any(several):
                of_each = zip(table[column], table["unit"], several, strict=True)
                named = table.assign(
                    **{column: [f"{of} ({UNIT_WORDS[u]})" if s else of for of, u, s in of_each]}
                )
        renamed[name] = named
    return renamed
