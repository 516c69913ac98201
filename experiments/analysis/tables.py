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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column, Columns, by_name
from faithscope.experiments.analysis.paper_table import PaperTable
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.statistics.against_label import (
    Totals,
    against_label,
    drawn_together,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns as interval_columns
from faithscope.experiments.analysis.tidy import columns_of, count, groups, keep, numbers

OVERALL = "overall"
"""Value of a pooled column in the rows that pool all its values."""
Mask = Callable[[Any], Any]
"""Frame -> (rows,) whether each row takes part."""
Values = str | Callable[[Any], Any]
"""A column of the frame, or what is computed from its rows: as a rule one value for each."""
Group = tuple[dict[str, Any], Any]
"""The keys of a row of the table, and the rows of the frame, or the records, that it is of."""


def every_row(rows: Any) -> np.ndarray:
    """Mask of all rows."""
    return np.ones(len(rows), dtype=bool)


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

    def of(self, rows: Any, how: Any) -> Mapping[str, Any]:
        """Column name -> number, for the rows of one group; a column with an interval has its
        `_low` and `_high` beside it."""
        ...


@dataclass(frozen=True)
class Groups:
    """How records, which are no frame, are put into rows of a table."""

    by: tuple[str | Column, ...]
    """The columns of the keys; a name alone is one of `columns.SHARED`."""
    of: Callable[[Any], Iterable[Group]]
    """Records -> the groups in the order of the table."""


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

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
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

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        values = values_of(_under(self.among, rows), self.values)
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

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
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

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        chosen = keep(rows, self.among(rows))
        values = {self.name: values_of(chosen, self.values)}
        estimates = means(chosen[self.cluster].to_numpy(), values, how=how)
        return interval_columns(self.name, estimates[self.name])


_WORDS = (
    ("auroc", "AUROC", "AUROC of the score against the label; .5 is chance."),
    ("kappa", "κ", "Cohen's, of flags and labels; it collapses where one class is nearly all."),
    ("ac2", "AC2", "Gwet's, which does not collapse where one class is nearly all."),
    ("accuracy", "", "Share of flags that are the label."),
    ("f1", "F1", "F1 where the label is true."),
)
AUROC, KAPPA, AC2, ACCURACY, F1 = (Column(*words, interval=True) for words in _WORDS)
AVERAGE_PRECISION = Column("average_precision", "AP", "Average precision where the label is true.")
SATURATED = Column("saturated", meaning="One class is 90 % of labels and flags: read AC2, not κ.")
"""Columns of statistics against a label, by the names of `statistics.against_label`."""


@dataclass(frozen=True)
class AgainstLabel:
    """How far a score, or flags, agree with a label (`statistics.against_label`)."""

    columns: tuple[Column, ...]
    """Named for the statistics that stand in them."""
    label: Values
    """1 or 0, NaN where there is none: such rows take no part."""
    cluster: str
    """Column that names the cluster of each row (a question, a chain): clusters are drawn whole."""
    score: Values | None = None
    flag: Values | None = None
    strata: str | None = None
    among: Mask = every_row
    named: Mapping[str, str] = field(default_factory=dict)
    """Column -> the statistic in it, where it has another name."""
    totals: Totals = drawn_together

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        label = values_of(rows, self.label)
        chosen = self.among(rows) & ~np.isnan(label)
        said = {
            name: None if values is None else values_of(rows, values)[chosen]
            for name, values in (("score", self.score), ("flag", self.flag))
        }
        statistics = {c: self.named.get(c.name, c.name) for c in self.columns}
        estimates = against_label(
            statistics.values(),
            label[chosen] == 1,
            rows[self.cluster].to_numpy()[chosen],
            how,
            strata=None if self.strata is None else rows[self.strata].to_numpy()[chosen],
            totals=self.totals,
            **said,
        )
        numbers_of_row: dict[str, Any] = {}
        for column, statistic in statistics.items():
            numbers_of_row |= columns_of({column.name: estimates[statistic]})
        return {name: numbers_of_row[name] for c in self.columns for name in c.names}


@dataclass(frozen=True)
class Kept:
    """Columns that are taken over from the frame, where a group is one row, or all its rows have
    the same."""

    columns: tuple[Column, ...]

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        first = rows.iloc[0]
        return {name: first[name] for column in self.columns for name in column.names}


@dataclass(frozen=True)
class Number:
    """One number, or text, without an interval, that a function computes from a group."""

    name: str
    compute: Callable[[Any], Any]
    label: str = ""
    meaning: str = ""
    unit: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column(self.name, self.label, self.meaning, self.unit),)

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        return {self.name: self.compute(rows)}


@dataclass(frozen=True)
class Numbers:
    """Several columns that one function computes from the rows of a group."""

    columns: tuple[Column, ...]
    compute: Callable[[Any, Any], Mapping[str, Any]]
    """Group and bootstrap settings -> column name -> number; a name that is missing is empty."""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        return self.compute(rows, how)


@dataclass(frozen=True)
class Lines:
    """Several rows of the table for each group, which one function computes."""

    columns: tuple[Column, ...]
    compute: Callable[[Any, Any], Iterable[Mapping[str, Any]]]
    """Rows of a group and bootstrap settings -> rows of the table, without the group's keys."""
    among: Mask = every_row
    """Rows that take part; a group without any has no line."""


def waterfall(fate: str, columns: tuple[Column, ...]) -> Lines:
    """A line for all rows of a group (`total`), one for each fate that is not `included`, by name,
    and one for the rows that are `included`: they add up.

    Args:
        fate: column that says what became of each row.
        columns: `reason` and `n`, as the table declares them.
    """

    def compute(rows: pd.DataFrame, how: Bootstrap) -> Iterator[Mapping[str, Any]]:
        counts = Counter(rows[fate])
        included = counts.pop("included", 0)
        reasons = [("total", len(rows)), *sorted(counts.items()), ("included", included)]
        yield from ({"reason": reason, "n": n} for reason, n in reasons)

    return Lines(columns, compute)


def levels(values: Values, known: Iterable[Any], statistic: str, among: Mask = every_row) -> Lines:
    """A line for each value of a column: how many rows have it, and their share.

    Args:
        known: the values that have a line, in order, whether or not a row has them.
        statistic: what the column `statistic` says of these lines.
    """

    def compute(rows: pd.DataFrame, how: Bootstrap) -> Iterator[Mapping[str, Any]]:
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
    """`tables/<name>.csv`: one row for each group of the rows of a frame, or several `lines`.

    Where frames would be too large, a study makes its tables of records: `by` are then `Groups`.
    """

    name: str
    of: str | tuple[str, ...]
    """The frame that it is made of: one of the run's frames, or a table before it. Several are put
    together by `prepare`."""
    by: Sequence[str | Column] | Groups = ()
    """The columns that rows are grouped by; a name alone is one of `columns.SHARED`. Without any,
    the whole frame is one group."""
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
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Column -> the type of its values, where they do not tell: whole numbers, some of them
    unknown."""
    caption: str = ""
    """Caption on the page; a table without a caption is not on the page."""
    folded: str = ""
    """Words that it is folded under on the page; a table without them lies open."""
    draw: Callable[[pd.DataFrame], Picture] | None = None
    """The table -> the figure that is drawn of it."""

    @property
    def _by(self) -> Sequence[str | Column]:
        return self.by.by if isinstance(self.by, Groups) else self.by

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns that rows are grouped by."""
        return tuple(x if isinstance(x, str) else x.name for x in self._by)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column as it is declared, in the order of the header.

        Raises:
            KeyError: a key that is neither declared here nor shared by all studies.
        """
        keys = [SHARED[x] if isinstance(x, str) else x for x in self._by]
        declared = [c for part in (*self.cells, *self.lines) for c in part.columns]
        return tuple(by_name([*keys, *declared]).values())

    @property
    def header(self) -> list[str]:
        """Names of the columns of the CSV file, with those of the intervals."""
        return [name for column in self.columns for name in column.names]

    def make(self, *sources: Any, how: Bootstrap | None = None) -> pd.DataFrame:
        """The table; without a row it has its columns all the same.

        Args:
            sources: the frames, or the records, that `of` names, in that order.

        Raises:
            ValueError: there are several sources, and nothing puts them together; or a cell gives a
                number in a column that it does not declare.
        """
        how = how or Bootstrap()
        if self.prepare is None and len(sources) != 1:
            raise ValueError(f"table {self.name!r} is made of one frame, not of {len(sources)}")
        whole = self.prepare(*sources) if self.prepare else sources[0]
        rows: list[Mapping[str, Any]] = []
        if len(whole):
            rows = list(self._rows(_under(self.among, whole), how))
        if lost := {name for row in rows for name in row} - set(self.header):
            raise ValueError(f"table {self.name!r} declares no column {min(lost)!r}")
        return pd.DataFrame(rows, columns=self.header).astype(dict(self.dtypes))

    def _rows(self, source: Any, how: Bootstrap) -> Iterator[Mapping[str, Any]]:
        for part in _apart(source, self.apart):
            if self.cells or not self.lines:
                for key, rows in self._groups(part):
                    numbers_of_row = (cell.of(rows, how) for cell in self.cells)
                    yield key | {name: x for row in numbers_of_row for name, x in row.items()}
            for lines in self.lines:
                for key, rows in self._groups(_under(lines.among, part)):
                    yield from (key | dict(line) for line in lines.compute(rows, how))

    def _groups(self, source: Any) -> Iterable[Group]:
        if isinstance(self.by, Groups):
            return self.by.of(source)
        return groups(pooled(source, *self.pool), self.keys) if self.by else [({}, source)]


def computed_table(
    name: str,
    of: str,
    columns: tuple[Column, ...],
    compute: Callable[[Any, Any], Iterable[Mapping[str, Any]]],
    **more: Any,
) -> Table:
    """A table whose rows one function computes from the whole of what the table is made of.

    Args:
        more: other fields of `Table`.
    """
    return Table(name, of, lines=[Lines(columns, compute)], **more)


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


@dataclass(frozen=True)
class Computed:
    """`tables/<name>.csv` of rows that a function computes, where no grouping of one frame gives
    them: every two measures, tests that correct for all rows, what is fitted on other rows."""

    name: str
    declared: Sequence[str | Column]
    """The columns; a name alone is one of `columns.SHARED`."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column as it is declared, in the order of the header."""
        return tuple(SHARED[x] if isinstance(x, str) else x for x in self.declared)

    @property
    def header(self) -> list[str]:
        """Names of the columns of the CSV file, with those of the intervals."""
        return [name for column in self.columns for name in column.names]

    def table(self, rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
        """The rows under the header; what a row does not say of a column is missing there, and what
        it says of others, as a row of another table may, is left out."""
        ready = isinstance(rows, pd.DataFrame)
        return pd.DataFrame(rows if ready else list(rows), columns=self.header)


def make_tables(
    tables: Iterable[Table], frames: Mapping[str, Any], how: Bootstrap | None = None
) -> dict[str, pd.DataFrame]:
    """Every table by its name, in order; a table may be made of one before it."""
    made: dict[str, pd.DataFrame] = {}
    for table in tables:
        needed = (table.of,) if isinstance(table.of, str) else table.of
        # a frame and a table may share a name: the table is then made of the frame
        sources = (frames[name] if name in frames else made[name] for name in needed)
        made[table.name] = table.make(*sources, how=how)
    return made


def in_layout(
    specifications: Iterable[Table | Computed], tables: Mapping[str, pd.DataFrame]
) -> list[PaperTable]:
    """The tables of a run that have a paper's layout: numbers, and what the paper prints."""
    return [
        PaperTable(table.name, tables[table.name], table.layout(tables[table.name]))
        for table in specifications
        if isinstance(table, Table) and table.layout and table.name in tables
    ]


def declared(tables: Iterable[Table | Computed]) -> tuple[Columns, dict[str, Columns]]:
    """The columns of a study's tables for readers: what its page and the documentation show.

    Returns:
        By name the declaration that most tables have of it; and by table those that differ. What
        all studies share is in neither, unless most tables of the name declare something else.
    """
    declarations: dict[str, Counter[Column]] = {}
    every = list(tables)
    for column in (c for table in every for c in table.columns):
        # whether it has an interval is a matter of the table
        declarations.setdefault(column.name, Counter())[replace(column, interval=False)] += 1
    common = {name: counts.most_common(1)[0][0] for name, counts in declarations.items()}
    own = {
        table.name: by_name(
            c for c in table.columns if replace(c, interval=False) != common[c.name]
        )
        for table in every
    }
    common = {name: column for name, column in common.items() if column != SHARED.get(name)}
    return common, {name: columns for name, columns in own.items() if columns}


def pooled(frame: pd.DataFrame, *names: str, under: str = OVERALL) -> pd.DataFrame:
    """The frame, and all of it again `under` one value in each of the named columns (and in all).

    Grouped by these columns, every row then counts once in its own group and once in each pool.
    """
    parts = [frame]
    for name in names:
        parts += [part.assign(**{name: under}) for part in list(parts)]
    return pd.concat(parts, ignore_index=True)


def values_of(rows: Any, values: Values) -> np.ndarray:
    """(values,) as floats, NaN where unknown; of rows of a frame, or of records."""
    if not isinstance(values, str):
        return np.asarray(values(rows), dtype=float)
    if isinstance(rows, pd.DataFrame):
        return numbers(rows[values])
    return np.array([record[values] for record in rows], dtype=float)


def _under(mask: Mask, rows: Any) -> Any:
    """The rows under a mask; records, which are no frame, have none but `every_row`."""
    return rows if mask is every_row else keep(rows, mask(rows))


def _apart(frame: Any, name: str) -> list[Any]:
    """The rows of each value of a column, in the order of their first rows."""
    return [part for _, part in groups(frame, [name])] if name else [frame]
