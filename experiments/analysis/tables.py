"""A table as data: the frame it is made of, how rows are grouped, what stands in each column.

    Table(
        "rfeval",
        of="pairs",
        by=(READER, "model", "task"),
        pool=("task", "model"),
        cells=(
            Count("n_included", INCLUDED, "pairs that count", "Complete, judged, in contrast."),
            Share("rf", "rf", INCLUDED, "RF", "Share of the pairs that count with RF = 1."),
        ),
    )

A column is declared where its number is computed: the header of the CSV file, the headings and
tooltips of the page, Markdown, LaTeX and `docs/columns.md` are made from the declaration. A cell
gets the rows of one group and gives the numbers of one row of the table; `Lines` give several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column, Columns, by_name
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns as interval_columns
from faithscope.experiments.analysis.tidy import count, groups, keep, numbers

OVERALL = "overall"
"""Value of a pooled column in the rows that pool all its values."""
Mask = Callable[[pd.DataFrame], Any]
"""Frame -> (rows,) whether each row takes part."""
Values = str | Callable[[pd.DataFrame], Any]
"""A column of the frame, or what is computed from its rows, one value for each row."""


def every_row(frame: pd.DataFrame) -> np.ndarray:
    """Mask of all rows."""
    return np.ones(len(frame), dtype=bool)


def rows_with(**values: Any) -> Mask:
    """Mask of the rows in which every named column has the value, or one of a tuple of values."""

    def mask(frame: pd.DataFrame) -> np.ndarray:
        of = np.ones(len(frame), dtype=bool)
        for name, value in values.items():
            of &= frame[name].isin(value if isinstance(value, tuple) else [value]).to_numpy()
        return of

    return mask


def rows_without(**values: Any) -> Mask:
    """Mask of the rows in which none of the named columns has its value."""
    masks = [rows_with(**{name: value}) for name, value in values.items()]
    return lambda frame: ~np.any([mask(frame) for mask in masks], axis=0)


def rows_known(*names: str) -> Mask:
    """Mask of the rows in which every named column has a value."""
    return lambda frame: np.all([frame[name].notna().to_numpy() for name in names], axis=0)


def all_of(*masks: Mask) -> Mask:
    """Mask of the rows that are under every one of the masks."""
    return lambda frame: np.all([mask(frame) for mask in masks], axis=0)


class Cell(Protocol):
    """Columns of a table, and the numbers in them for one group of rows."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns, in the order of the header."""
        ...

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        """Column name -> number, for the rows of one group; a column with an interval has its
        `_low` and `_high` beside it."""
        ...


@dataclass(frozen=True)
class Count:
    """Number of rows under a mask."""

    name: str
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, self.label, self.meaning),)

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        return {self.name: count(self.among(rows))}


@dataclass(frozen=True)
class Share:
    """Share of the rows under a mask whose value is 1, with its Wilson interval.

    An unknown value (NaN) counts as not 1; leave such rows out by the mask where that is wrong.
    """

    name: str
    values: Values
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, self.label, self.meaning, interval=True),)

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        values = values_of(keep(rows, self.among(rows)), self.values)
        return interval_columns(self.name, wilson(count(values == 1), len(values)))


@dataclass(frozen=True)
class Mean:
    """Statistic of the known values of the rows under a mask, without an interval.

    A sum of no rows is 0, any other statistic of no rows is NaN.
    """

    name: str
    values: Values
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""
    statistic: str = "mean"
    """A method of `pandas.Series`: mean, median, std, min, max, sum."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, self.label, self.meaning, self.unit),)

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        values = pd.Series(values_of(keep(rows, self.among(rows)), self.values))
        return {self.name: getattr(values, self.statistic)()}


@dataclass(frozen=True)
class Boot:
    """Mean of the known values under a mask, with the interval of a bootstrap over clusters."""

    name: str
    values: Values
    cluster: str
    """Column that names the cluster of each row (an item, a chain): clusters are drawn whole."""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, self.label, self.meaning, self.unit, interval=True),)

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        chosen = keep(rows, self.among(rows))
        values = {self.name: values_of(chosen, self.values)}
        estimates = means(chosen[self.cluster].to_numpy(), values, how=how)
        return interval_columns(self.name, estimates[self.name])


@dataclass(frozen=True)
class Kept:
    """Columns that are taken over from the frame, where a group is one row, or all its rows have
    the same."""

    columns: tuple[Column, ...]

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        first = rows.iloc[0]
        return {name: first[name] for column in self.columns for name in column.names}


@dataclass(frozen=True)
class Numbers:
    """Several columns that one function computes from the rows of a group."""

    columns: tuple[Column, ...]
    compute: Callable[[pd.DataFrame, Drawing], Mapping[str, Any]]
    """Group and bootstrap settings -> column name -> number; a name that is missing is empty."""

    def of(self, rows: pd.DataFrame, how: Drawing) -> Mapping[str, Any]:
        return self.compute(rows, how)


@dataclass(frozen=True)
class Lines:
    """Several rows of the table for each group, which one function computes."""

    columns: tuple[Column, ...]
    compute: Callable[[pd.DataFrame, Drawing], Iterable[Mapping[str, Any]]]
    """Rows of a group and bootstrap settings -> rows of the table, without the group's keys."""
    among: Mask = every_row
    """Rows that take part; a group without any has no line."""


def levels(
    values: Values,
    known: Iterable[Any],
    statistic: str,
    among: Mask = every_row,
) -> Lines:
    """A line for each value of a column: how many rows have it, and their share.

    Args:
        known: the values that have a line, in order, whether or not a row has them.
        statistic: what the column `statistic` says of these lines.
    """

    def compute(rows: pd.DataFrame, how: Drawing) -> Iterator[Mapping[str, Any]]:
        given = rows[values] if isinstance(values, str) else values(rows)
        for value in known:
            n = count(given == value)
            line = {"statistic": statistic, "value": value, "n_of": len(rows), "n": n}
            yield line | interval_columns("share", wilson(n, len(rows)))

    return Lines(LEVELS, compute, among)


LEVELS = (
    Column("statistic", meaning="Which statistic it is."),
    Column("value", meaning="The value that the share is of."),
    Column("n_of", "of", "Rows that the share is of."),
    Column("n", meaning="Rows that have the value."),
    Column("share", meaning="Share of the rows that have the value.", interval=True),
)
"""Columns of the lines of `levels`."""


@dataclass(frozen=True)
class Table:
    """`tables/<name>.csv`: one row for each group of the rows of a frame, or several `lines`."""

    name: str
    of: str | tuple[str, ...]
    """The frame that it is made of: one of the run's frames, or a table before it. Several are put
    together by `prepare`."""
    by: Sequence[str | Column]
    """The columns that rows are grouped by; a name alone is one of `columns.SHARED`."""
    cells: Sequence[Cell] = ()
    lines: Sequence[Lines] = ()
    """In the place of `cells`; those of one kind stand together, over all groups."""
    prepare: Callable[..., pd.DataFrame] | None = None
    """Frames -> the one frame that is grouped."""
    among: Mask = every_row
    """Rows of the frame that take part; a group without any has no row."""
    pool: Sequence[str] = ()
    """Columns of `by` that are also pooled: rows under `OVERALL` take all rows together, in each of
    these columns and in all of them."""
    apart: str = ""
    """Column whose values are grouped and pooled each by itself, one below the other."""
    layout: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """The table as a paper prints it: text under the paper's headings."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns that rows are grouped by."""
        return tuple(x if isinstance(x, str) else x.name for x in self.by)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column as it is declared, in the order of the header.

        Raises:
            KeyError: a key that is neither declared here nor shared by all studies.
        """
        keys = [SHARED[x] if isinstance(x, str) else x for x in self.by]
        declared = [c for part in (*self.cells, *self.lines) for c in part.columns]
        return tuple(by_name([*keys, *declared]).values())

    @property
    def header(self) -> list[str]:
        """Names of the columns of the CSV file, with those of the intervals."""
        return [name for column in self.columns for name in column.names]

    def make(self, *frames: pd.DataFrame, how: Drawing | None = None) -> pd.DataFrame:
        """The table; without a row it has its columns all the same.

        Args:
            frames: those that `of` names, in that order.
        """
        how = how or Drawing()
        whole = self.prepare(*frames) if self.prepare else frames[0]
        rows: list[Mapping[str, Any]] = []
        if len(whole):
            rows = list(self._rows(keep(whole, self.among(whole)), how))
        return pd.DataFrame(rows, columns=self.header)

    def _rows(self, frame: pd.DataFrame, how: Drawing) -> Iterator[Mapping[str, Any]]:
        for part in _apart(frame, self.apart):
            if self.cells or not self.lines:
                for key, rows in groups(pooled(part, *self.pool), self.keys):
                    numbers_of_row = (cell.of(rows, how) for cell in self.cells)
                    yield key | {name: x for row in numbers_of_row for name, x in row.items()}
            for lines in self.lines:
                chosen = pooled(keep(part, lines.among(part)), *self.pool)
                for key, rows in groups(chosen, self.keys):
                    yield from (key | dict(line) for line in lines.compute(rows, how))


def excerpt(
    name: str,
    table: Table,
    columns: Sequence[str] = (),
    *,
    keys: Sequence[str] = (),
    among: Mask = every_row,
    layout: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Table:
    """Rows of another table as a paper prints them.

    Args:
        columns: those beside the keys, without their intervals; nothing takes all, with intervals.
        keys: columns that together differ in every row; nothing takes the keys of the table.
    """
    declared, by = by_name(table.columns), [*(keys or table.keys)]
    own = [replace(declared[column], interval=False) for column in columns]
    kept = own or [column for column in table.columns if column.name not in by]
    cells = (Kept(tuple(kept)),)
    return Table(name, table.name, [declared[key] for key in by], cells, among=among, layout=layout)


def make_tables(
    tables: Iterable[Table], frames: Mapping[str, pd.DataFrame], how: Drawing | None = None
) -> dict[str, pd.DataFrame]:
    """Every table by its name, in order; a table may be made of one before it."""
    made: dict[str, pd.DataFrame] = {}
    for table in tables:
        needed = (table.of,) if isinstance(table.of, str) else table.of
        # a frame and a table may share a name: the table is then made of the frame
        sources = (frames[name] if name in frames else made[name] for name in needed)
        made[table.name] = table.make(*sources, how=how)
    return made


def declared(tables: Iterable[Table]) -> tuple[Columns, dict[str, Columns]]:
    """The columns of a study's tables for readers: what its page and the documentation show.

    Returns:
        By name the columns that every table which has them declares alike; and by table the
        others. Those that all studies share are in neither.
    """
    declarations: dict[str, set[Column]] = {}
    every = list(tables)
    for column in (c for table in every for c in table.columns):
        # whether it has an interval is a matter of the table
        declarations.setdefault(column.name, set()).add(replace(column, interval=False))
    shared = set(SHARED.values())
    alike = {name: next(iter(of)) for name, of in declarations.items() if len(of) == 1}
    own = {
        table.name: by_name(c for c in table.columns if c.name not in alike and c not in shared)
        for table in every
    }
    alike = {name: column for name, column in alike.items() if column not in shared}
    return alike, {name: columns for name, columns in own.items() if columns}


def pooled(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The frame, and all of it again under `OVERALL` in each of the named columns (and in all).

    Grouped by these columns, every row then counts once in its own group and once in each pool.
    """
    parts = [frame]
    for name in names:
        parts += [part.assign(**{name: OVERALL}) for part in list(parts)]
    return pd.concat(parts, ignore_index=True)


def values_of(rows: pd.DataFrame, values: Values) -> np.ndarray:
    """(rows,) the values as floats, NaN where unknown."""
    if isinstance(values, str):
        return numbers(rows[values])
    return np.asarray(values(rows), dtype=float)


def _apart(frame: pd.DataFrame, name: str) -> list[pd.DataFrame]:
    """The rows of each value of a column, in the order of their first rows."""
    return [part for _, part in groups(frame, [name])] if name else [frame]
