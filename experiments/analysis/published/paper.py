"""Specifications of a paper's printed tables: which of our numbers stands beside which cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Mask, every_row, rows_with
from faithscope.experiments.config.api import same_model
from faithscope.interp.errors import UserError, did_you_mean

Tables = Mapping[str, pd.DataFrame]
Selection = Callable[[pd.DataFrame, Tables], Any]
"""Mask of our rows for a printed table, which may depend on other tables of the run."""
Name = str | tuple[str, ...]
"""Our value for a printed name; of a tuple, the first that a run has (one model behind several
services). An empty tuple says that nothing of ours has this name."""
Names = Mapping[str, Mapping[str, Name]]
"""Key column of the file of cells -> printed name -> our value."""


@dataclass(frozen=True)
class Ours:
    """Our column beside a printed heading, for headings that need more than a column's name."""

    column: str
    among: Mask = every_row
    """Selects our rows for this heading alone, beside `Published.among`."""
    n: str = ""
    """Our column with the number of cases; empty takes that of the table."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Our value, as text -> the printed word, for cells that hold words."""
    allowed: Callable[[Mapping[str, Any]], Iterable[Any]] | None = None
    """Maps our row to the values of a word that the intervals of its numbers allow, none where it
    has none; without it, only the word itself."""
    unit: str = ""
    """Unit, one of `cells.UNITS`, of a heading that the paper does not have (`Published.also`)."""
    decimals: int = 0
    """Decimals of a heading that the paper does not have."""

    def words_of(self, row: Mapping[str, Any]) -> set[str]:
        """The words that may stand in a cell of words."""
        values = [row.get(self.column)] if self.allowed is None else self.allowed(row)
        return {self.words.get(str(value), str(value)) for value in values}


@dataclass(frozen=True)
class Stated:
    """A setting that a paper states, so that a run can deviate from it.

    The shipped config has it, unless `stand_in` says what it has instead.
    """

    key: str
    """Config key, or a section with all of its keys."""
    section: str
    """Where the paper states it: `4.1`, `C.2`."""
    says: str = ""
    """What it states, in words, where the value in the shipped config does not tell."""
    also: tuple[Any, ...] = ()
    """Further values of the key that are what the paper states, or are nearer to it than the
    shipped config's."""
    any_given: bool = False
    """Whether every value but null is what the paper states."""
    stand_in: str = ""
    """What the shipped config has instead, for readers: a sentence. Its value then costs no
    verdict and is named with every run that has it."""
    tables: tuple[str, ...] = ()
    """Names of the printed tables for which it is stated; empty for all."""

    def holds(self, value: Any) -> bool:
        """Whether a value other than the shipped config's is what the paper states."""
        return value in self.also or (self.any_given and value is not None)


def every_selected(rows: pd.DataFrame, tables: Tables) -> np.ndarray:
    """Selection of all rows."""
    return every_row(rows)


def in_way(**values: Any) -> Selection:
    """Selection of the rows in which every named column has the given value, or one of a tuple of
    values."""
    mask = rows_with(**values)
    return lambda rows, tables: mask(rows)


@dataclass(frozen=True)
class Published:
    """One printed table of a paper, with the place of our numbers for it.

    The same declaration serves the comparison with the paper (`comparison.beside`) and the tables
    that a run writes of its own numbers in the paper's layout (`layout.printed_tables`).
    """

    name: str
    """Name in the command and in the file of cells: `table4`, `ed3`, `section2_6`."""
    title: str
    """One line that says what the paper shows there."""
    config: str = ""
    """Name of the shipped config that carries it out; empty where `why_not` says why none can."""
    sets: tuple[str, ...] = ()
    """Settings on top of the shipped config, as `--set` takes them, that the table needs."""
    of: str | Callable[[Tables], pd.DataFrame | None] = ""
    """Name of our tidy table, or a function from all tables of a run to a frame (None where the run
    has nothing for it). A column `x` has its 95 % interval in `x_low` and `x_high`, if any."""
    make: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Maps our table that `of` names, if it has rows, to those that stand beside the printed
    ones."""
    columns: Mapping[str, str | Ours] = field(default_factory=dict)
    """Printed heading of a measure -> our column."""
    also: Mapping[str, Ours] = field(default_factory=dict)
    """Heading of a further column of a run's own table, after the paper's -> our column."""
    no_counterpart: Mapping[str, str] = field(default_factory=dict)
    """Printed heading, or printed name of any key -> sentence that says why no number of ours
    stands there."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Key column of the file of cells -> our column that holds the same key; "" for a key that
    only tells printed cells apart."""
    names: Names = field(default_factory=dict)
    """Key column -> printed name -> our value, before those of `Paper.names`."""
    across: tuple[str, ...] = ()
    """Key columns whose values the paper prints as headings, outermost first."""
    among: Mask = every_row
    """Selects the rows of ours that belong into the table."""
    compared: Selection = every_selected
    """Selects, of these rows, those that are measured and pooled as the paper's are: only they
    stand beside its cells. A run's own table has all rows: those of a second reader or prompt, and
    those that pool over the run's own models."""
    own: Mask = every_row
    """Selects, of the rows of `among`, those of a run's own table."""
    n: str = "n"
    """Our column with the number of cases behind a row."""
    limit: str = "data.limit"
    """Config key that `--limit` sets."""
    pooled_over: tuple[str, ...] = ()
    """Config keys with a list over which every cell pools: its cells are comparable only if the run
    has the paper's whole list."""
    independent_of: tuple[str, ...] = ()
    """Config keys that the table does not depend on, beside `Paper.independent_of`;
    `tracing.` is a whole section."""
    differs: tuple[str, ...] = ()
    """Sentences that say in what the shipped config is known or feared to differ from the paper."""
    incomparable: str = ""
    """Sentence that says why our numbers may stand beside the paper's but are another quantity, so
    that no cell is called within or outside."""
    hours: float | None = None
    """GPU hours of the config on the paper's models; None where nothing says."""
    hours_from: str = ""
    """Sentence that says where the number in `hours` comes from."""
    dollars: float | None = None
    """Price of the config's calls of APIs in US dollars; None where nothing says."""
    dollars_from: str = ""
    """Sentence that says where the number in `dollars` comes from."""
    why_not: str = ""
    """Sentence that says why nothing of ours can stand there; empty where something can."""

    def __post_init__(self) -> None:
        if not self.config and not self.why_not:
            raise ValueError(f"{self.name}: give the config that carries it out, or why_not")

    def why_without(self, names: Iterable[str]) -> str:
        """Why no number of ours stands at a cell with these heading and names; empty where one may
        stand."""
        return self.why_not or next(
            (self.no_counterpart[n] for n in names if n in self.no_counterpart), ""
        )

    def ours(self, heading: str) -> Ours | None:
        """Our column beside a printed heading; None where there is none."""
        column = self.columns.get(heading)
        return Ours(column) if isinstance(column, str) else column


@dataclass(frozen=True)
class Paper:
    """A paper whose printed tables can be set beside one's own runs."""

    name: str
    """Name in the command, `slrc` in `slrc.table4`."""
    title: str
    """Short title with the arXiv number."""
    cells: Path
    """File of the printed cells (`aggregates.read_cells`)."""
    tables: tuple[Published, ...]
    names: Names = field(default_factory=dict)
    """Key column of the file of cells -> printed name -> our value. A printed name without an entry
    is our value itself."""
    row_keys: tuple[str, ...] = ("model.name", "judge.model")
    """Config keys with a list each of whose entries gives rows or tables of its own, so that a
    longer or shorter list changes no cell (unless the cell pools over it)."""
    independent_of: tuple[str, ...] = ()
    """Config keys that no table depends on, beside those that never matter (`deviations.HARMLESS`);
    `tracing.` is a whole section."""
    states: tuple[Stated, ...] = ()
    """The settings that the paper states. A run that has another value is not comparable."""
    leaves_open: tuple[str, ...] = ()
    """Patterns of config keys of which the paper says nothing, beside `deviations.SILENT`: what a
    run has there is named and costs nothing. `judge.` is a whole section."""
    ways: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Our column that tells apart ways of measuring (reader, prompt, framing) -> the paper's value
    or values. It is a further key of a run's own tables that have rows of another value."""

    def table(self, name: str) -> Published:
        """The specification of a printed table.

        Raises:
            UserError: the paper has no table of this name.
        """
        known = {table.name: table for table in self.tables}
        if name not in known:
            guess = did_you_mean(name, list(known)) or f"; known: {', '.join(known)}"
            raise UserError(f"{self.name}: no table {name!r}{guess}")
        return known[name]

    def stated(self, key: str, published: Published) -> Stated | None:
        """What the paper states for a config key in a table; None where it leaves it open."""
        return next(
            (
                s
                for s in self.states
                if (not s.tables or published.name in s.tables)
                and (key == s.key or key.startswith(f"{s.key.removesuffix('.')}."))
            ),
            None,
        )

    def same(self, one: Any, other: Any) -> bool:
        """Whether two config values are the same, whatever service or snapshot a model is asked
        through: equal names (`same_model`), or two of our names for one printed name."""
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(any(self.same(a, b) for b in other) for a in one)
        if one == other:
            return True
        if not (isinstance(one, str) and isinstance(other, str)):
            return False
        return same_model(one, other) or any(
            all(any(same_model(name, n) for n in names) for name in (one, other))
            for key in ("model", "judge")
            for names in self.names.get(key, {}).values()
            if isinstance(names, tuple)
        )

    def name_of(self, published: Published, key: str, printed: str) -> tuple[str, ...]:
        """Our values for a printed name, in the order of preference."""
        of_table = published.names.get(key, {})
        name = of_table[printed] if printed in of_table else self.names.get(key, {}).get(printed)
        name = printed if name is None else name
        return name if isinstance(name, tuple) else (name,)
