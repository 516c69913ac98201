"""What a reader gets of one measure, as data: frames, tables, figures, a section, scores.

A measure is two files: its computation in `faithscope.probes`, its slice here. Frames, tables,
figures, page and comparison are made of slices and name none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.item_tables import Make
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record

if TYPE_CHECKING:
    from faithscope.experiments.analysis.picture import Picture


@dataclass(frozen=True)
class Frame:
    """`load_run(...).<name>`: rows as they were measured."""

    name: str
    meaning: str
    """One line, which begins with what a row is."""
    columns: tuple[str, ...]
    """Besides model, task and item."""
    rows: Callable[[Record], Iterable[Mapping[str, Any]]] = lambda record: (record,)
    """Of one record, whether or not it is excluded."""


@dataclass(frozen=True)
class Table:
    """`tables/<name>.csv`, and what is drawn of it."""

    name: str
    make: Make
    caption: str
    folded: str = ""
    """On the page, the words that it is folded under; "" for one that lies open."""
    draw: Callable[[pd.DataFrame], Picture] | None = None
    over_steps: bool = True
    """Whether it is about steps: then it is made for each unit of removal apart."""


@dataclass(frozen=True)
class Slice:
    """All of one measure that is not its computation."""

    probe: str
    section: Section | None = None
    """Where on the page it is shown; several measures may share one. None where the study's page
    shows it in a section of its own."""
    tables: tuple[Table, ...] = ()
    frames: tuple[Frame, ...] = ()
    measures: tuple[Measure, ...] = ()
    """The scores by which it is compared with others, and which way they point."""
    columns: tuple[Column, ...] = ()
    """Of its tables, where the name does not say all."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why items are left out -> in words."""


def per_step(*names: str, **more: Callable[[Record, int], Any]) -> Callable[[Record], Iterator]:
    """Rows of a frame, one for each counted step of a record that is not excluded.

    Args:
        names: lists of the record with a value per step.
        more: column -> its value, given the record and the place of the step.
    """

    def rows(record: Record) -> Iterator[dict[str, Any]]:
        if record.get("excluded"):
            return
        for i, step in enumerate(record["steps"]):
            row = {"position": i + 1, "step": step, "answer": record.get("answer")}
            row |= {name: values[i] if (values := record[name]) else None for name in names}
            yield row | {name: of(record, i) for name, of in more.items()}

    return rows
