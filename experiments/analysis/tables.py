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

This table has one row per reader, model and task, and further rows that pool all tasks, all models,
or both. Its columns are the three keys, `n_included`, and `rf` with the ends of its interval.

A column is declared where its number is computed: the header of the CSV file, the headings and
tooltips of the page, Markdown, LaTeX and `docs/columns.md` are made from the declaration. A `Cell`
maps the rows of one group to the numbers of one row of the table; `Lines` yield several rows per
group. `make_tables` makes a study's tables in order, so a table may be made of one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

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
"""Name of a column of the frame, or a function that maps the rows to values, as a rule one each."""
Group = tuple[dict[str, Any], Any]
"""Key column -> value for one row of the table, and the rows of the frame (or the records) of that
group."""


def every_row(rows: Any) -> np.ndarray:
    """Mask that selects all rows."""
    return np.ones(len(rows), dtype=bool)


def rows_with(**values: Any) -> Mask:
    """Mask of the rows in which every named column has the given value, or one of a tuple of
    values."""

    def mask(frame: pd.DataFrame) -> np.ndarray:
        of = np.ones(len(frame), dtype=bool)
        for name, value in values.items():
            of &= frame[name].isin(value if isinstance(value, tuple) else [value]).to_numpy()
        return of

    return mask


def rows_without(**values: Any) -> Mask:
    """Mask of the rows in which none of the named columns has the given value (or one of a tuple
    of values)."""
    masks = [rows_with(**{name: value}) for name, value in values.items()]
    return lambda frame: ~np.any([mask(frame) for mask in masks], axis=0)


def rows_known(*names: str) -> Mask:
    """Mask of the rows in which every named column has a value."""
    return lambda frame: np.all([frame[name].notna().to_numpy() for name in names], axis=0)


def all_of(*masks: Mask) -> Mask:
    """Mask of the rows that every one of the given masks selects."""
    return lambda frame: np.all([mask(frame) for mask in masks], axis=0)


class Cell(Protocol):
    """One or several columns of a table, with the computation of their numbers for one group."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns, in the order of the header."""
        ...

    def of(self, rows: Any, how: Any) -> Mapping[str, Any]:
        """Name in the CSV header -> number, computed from the rows of one group.

        A column with an interval gives three numbers: `<name>`, `<name>_low`, `<name>_high`.

        Args:
            rows: the rows of the frame, or the records, of the group.
            how: the bootstrap settings (`Bootstrap`), for cells with a bootstrap interval.
        """
        ...


@dataclass(frozen=True)
class Groups:
    """Grouping of records, for a table that is made of records and not of a frame."""

    by: tuple[str | Column, ...]
    """Key columns; a bare name is one of `columns.SHARED`."""
    of: Callable[[Any], Iterable[Group]]
    """Maps the records to groups, in the order of the table's rows."""


class _OneColumn:
    """A cell that fills one column, declared by the cell's own name, label, meaning and unit."""

    name: str
    label: str
    meaning: str
    unit: str = ""
    has_interval: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[Column, ...]:
        column = Column(self.name, self.label, self.meaning, self.unit, self.has_interval)
        return (column,)


@dataclass(frozen=True)
class Count(_OneColumn):
    """Cell: number of rows that a mask selects."""

    name: str
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        return {self.name: count(self.among(rows))}


@dataclass(frozen=True)
class Share(_OneColumn):
    """Cell: share of the selected rows whose value is 1, with its Wilson interval.

    An unknown value (NaN) counts as not 1. Where that is wrong, let the mask `among` leave such
    rows out (`rows_known`).
    """

    has_interval = True
    name: str
    values: Values
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        values = values_of(_under(self.among, rows), self.values)
        return interval_columns(self.name, wilson(count(values == 1), len(values)))


@dataclass(frozen=True)
class Mean(_OneColumn):
    """Cell: mean, or another statistic, of the known values of the selected rows, without interval.

    The sum of no values is 0; any other statistic of no values is NaN.
    """

    name: str
    values: Values
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""
    statistic: str = "mean"
    """Name of a method of `pandas.Series`: mean, median, std, min, max or sum."""

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        values = pd.Series(values_of(keep(rows, self.among(rows)), self.values))
        return {self.name: getattr(values, self.statistic)()}


@dataclass(frozen=True)
class Boot(_OneColumn):
    """Cell: mean of the known values of the selected rows, with a bootstrap interval that resamples
    clusters."""

    has_interval = True
    name: str
    values: Values
    cluster: str
    """Column that names the cluster of each row (an item, a chain); all rows of a cluster are
    drawn together."""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""

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
"""Columns of statistics of a score or flag against a label, named as in
`statistics.against_label`."""


@dataclass(frozen=True)
class AgainstLabel:
    """Cell: statistics of a score, or of flags, against a label (`statistics.against_label`)."""

    columns: tuple[Column, ...]
    """Columns to fill; each has the name of its statistic, unless `named` says otherwise."""
    label: Values
    """True label of each row, 1 or 0; rows whose label is unknown (NaN) are left out."""
    cluster: str
    """Column that names the cluster of each row (a question, a chain); all rows of a cluster are
    drawn together."""
    score: Values | None = None
    """Score of each row, for statistics such as AUROC."""
    flag: Values | None = None
    """Verdict of each row, 1 or 0, for statistics such as κ and accuracy."""
    strata: str | None = None
    """Column that names the stratum of each row; None compares all rows with each other."""
    among: Mask = every_row
    named: Mapping[str, str] = field(default_factory=dict)
    """Column name -> statistic in it, for columns that are not named after their statistic."""
    totals: Totals = drawn_together
    """Bootstrap totals that intervals are computed from (`statistics.against_label`)."""

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
    """Cell: columns copied from the first row of a group, for groups of one row or of rows that
    agree in these columns."""

    columns: tuple[Column, ...]

    def of(self, rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
        first = rows.iloc[0]
        return {name: first[name] for column in self.columns for name in column.names}


@dataclass(frozen=True)
class Number(_OneColumn):
    """Cell: one number or text, without an interval, that a function computes from a group."""

    name: str
    compute: Callable[[Any], Any]
    label: str = ""
    meaning: str = ""
    unit: str = ""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        return {self.name: self.compute(rows)}


@dataclass(frozen=True)
class Numbers:
    """Cell: several columns that one function computes from the rows of a group."""

    columns: tuple[Column, ...]
    compute: Callable[[Any, Any], Mapping[str, Any]]
    """Maps the rows of a group and the bootstrap settings to column name -> number; columns that
    it does not return stay empty."""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        return self.compute(rows, how)


@dataclass(frozen=True)
class Lines:
    """Several rows of a table for each group, computed by one function."""

    columns: tuple[Column, ...]
    compute: Callable[[Any, Any], Iterable[Mapping[str, Any]]]
    """Maps the rows of a group and the bootstrap settings to rows of the table, without the group's
    keys."""
    among: Mask = every_row
    """Rows of the frame that take part; a group without such a row has no lines."""


def waterfall(fate: str, columns: tuple[Column, ...]) -> Lines:
    """Lines that count where the rows of a group went: `total`, each reason for leaving a row out
    (sorted by name), and `included`; the reasons and `included` add up to `total`.

    Args:
        fate: column that says what became of each row: `included`, or why it was left out.
        columns: the columns `reason` and `n`, as the table declares them.
    """

    def compute(rows: pd.DataFrame, how: Bootstrap) -> Iterator[Mapping[str, Any]]:
        counts = Counter(rows[fate])
        included = counts.pop("included", 0)
        reasons = [("total", len(rows)), *sorted(counts.items()), ("included", included)]
        yield from ({"reason": reason, "n": n} for reason, n in reasons)

    return Lines(columns, compute)


def levels(values: Values, known: Iterable[Any], statistic: str, among: Mask = every_row) -> Lines:
    """Lines that count the values of a column: for each value, how many rows have it and their
    share.

    Args:
        known: the values that get a line, in order, whether or not a row has them.
        statistic: text of the column `statistic` in these lines.
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
"""Columns of the lines that `levels` makes."""


@dataclass(frozen=True)
class Table:
    """Specification of `tables/<name>.csv`: the frame it is made of, how rows are grouped, and the
    columns.

    Each group of the frame's rows gives one row of `cells`, or several rows of `lines`. A study
    whose frames would be too large makes its tables of records; `by` is then a `Groups`.
    """

    name: str
    """Name of the CSV file, without its ending."""
    of: str | tuple[str, ...]
    """Name of the frame that the table is made of: a frame of the run, or an earlier table. Several
    frames are combined by `prepare`."""
    by: Sequence[str | Column] | Groups = ()
    """Key columns that rows are grouped by; a bare name is one of `columns.SHARED`. Without keys
    the whole frame is one group."""
    cells: Sequence[Cell] = ()
    """Columns after the keys, each computed from the rows of one group."""
    lines: Sequence[Lines] = ()
    """Several rows per group, as a rule in place of `cells`. The rows of one `Lines` stand
    together, over all groups, before those of the next."""
    prepare: Callable[..., pd.DataFrame] | None = None
    """Maps the frames named in `of` to the one frame that is grouped."""
    among: Mask = every_row
    """Rows of the frame that take part; a group without such a row has no row in the table."""
    pool: Sequence[str] = ()
    """Columns of `by` that are also pooled. For each of them, and for every combination of them,
    the table has further rows with `OVERALL` in place of the pooled value."""
    apart: str = ""
    """Column that splits the frame into parts, which are grouped and pooled separately and stand
    one below the other in the table."""
    layout: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Maps the table to text under a paper's own headings, as the paper prints it."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Column -> pandas dtype, where the values alone do not give it: whole numbers of which some
    are unknown, for example."""
    caption: str = ""
    """Caption on the page; a table without a caption is not on the page."""
    folded: str = ""
    """Summary line under which the page folds the table away; empty shows the table open."""
    draw: Callable[[pd.DataFrame], Picture] | None = None
    """Draws a figure from the finished table."""

    @property
    def _by(self) -> Sequence[str | Column]:
        return self.by.by if isinstance(self.by, Groups) else self.by

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns, by which rows are grouped."""
        return tuple(x if isinstance(x, str) else x.name for x in self._by)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every declared column, keys first, in the order of the header.

        Raises:
            KeyError: a key is neither declared here nor one of `columns.SHARED`.
        """
        keys = [SHARED[x] if isinstance(x, str) else x for x in self._by]
        declared = [c for part in (*self.cells, *self.lines) for c in part.columns]
        return tuple(by_name([*keys, *declared]).values())

    @property
    def header(self) -> list[str]:
        """Names of the columns of the CSV file, with those of the intervals."""
        return [name for column in self.columns for name in column.names]

    def make(self, *sources: Any, how: Bootstrap | None = None) -> pd.DataFrame:
        """The finished table; an empty one still has all columns.

        Args:
            sources: the frames (or the records) that `of` names, in that order.
            how: bootstrap settings; None takes the defaults of `Bootstrap`.

        Raises:
            ValueError: there are several sources and no `prepare` that combines them; or a cell
                gives a number for a column that it does not declare.
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

    def filled(self, rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
        """The given rows as a frame with the declared header.

        Columns that a row lacks are NaN. Numbers for columns that are not declared, as in a row
        made for another table, are left out.
        """
        ready = isinstance(rows, pd.DataFrame)
        return pd.DataFrame(rows if ready else list(rows), columns=self.header)

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


def _no_rows(frame: Any, how: Any) -> Iterable[Mapping[str, Any]]:
    return ()


def computed_table(
    name: str,
    columns: Sequence[str | Column],
    of: str = "",
    compute: Callable[[Any, Any], Iterable[Mapping[str, Any]]] = _no_rows,
    **more: Any,
) -> Table:
    """A table without keys, whose rows one function computes from the whole frame, because no
    grouping of the frame gives them: rows per pair of measures, tests corrected over all rows.

    Args:
        columns: all columns in order; a bare name is one of `columns.SHARED`.
        of: name of the frame.
        compute: maps the frame and the bootstrap settings to rows. A table without it gets its rows
            by `Table.filled`.
        more: further fields of `Table`.
    """
    declared = tuple(SHARED[x] if isinstance(x, str) else x for x in columns)
    return Table(name, of, lines=[Lines(declared, compute)], **more)


def excerpt(
    name: str,
    table: Table,
    columns: Sequence[str] = (),
    *,
    keys: Sequence[str] = (),
    among: Mask = every_row,
    layout: Callable[[pd.DataFrame], pd.DataFrame] | None = None,
) -> Table:
    """A table that selects rows and columns of another table, for a paper's layout.

    Args:
        name: name of the new table.
        table: the table to select from.
        columns: columns to keep beside the keys, without their intervals; none given keeps all
            columns, with intervals.
        keys: columns whose values together identify a row; none given takes the keys of `table`.
        among: selects rows of `table`.
        layout: maps the selection to the paper's text.
    """
    declared, by = by_name(table.columns), [*(keys or table.keys)]
    own = [replace(declared[column], interval=False) for column in columns]
    kept = own or [column for column in table.columns if column.name not in by]
    cells = (Kept(tuple(kept)),)
    return Table(name, table.name, [declared[key] for key in by], cells, among=among, layout=layout)


def make_tables(
    tables: Iterable[Table], frames: Mapping[str, Any], how: Bootstrap | None = None
) -> dict[str, pd.DataFrame]:
    """Makes every table, in order, and returns them by name.

    Args:
        tables: specifications; a table may be made of an earlier one.
        frames: name -> frame (or records), for the names in `Table.of`.
        how: bootstrap settings of all tables.
    """
    made: dict[str, pd.DataFrame] = {}
    for table in tables:
        needed = (table.of,) if isinstance(table.of, str) else table.of
        # where a frame and an earlier table share a name, the frame is meant
        sources = (frames[name] if name in frames else made[name] for name in needed)
        made[table.name] = table.make(*sources, how=how)
    return made


def in_layout(
    specifications: Iterable[Table], tables: Mapping[str, pd.DataFrame]
) -> list[PaperTable]:
    """The tables of a run whose specification has a paper's layout: their numbers, and the text
    that the paper prints."""
    return [
        PaperTable(table.name, tables[table.name], table.layout(tables[table.name]))
        for table in specifications
        if table.layout and table.name in tables
    ]


def declared(tables: Iterable[Table]) -> tuple[Columns, dict[str, Columns]]:
    """The column declarations of a study's tables, as its page and `docs/columns.md` show them.

    Returns:
        Column name -> the declaration that most tables use; and table name -> the columns that
        this table declares differently. A column whose common declaration is the one in
        `columns.SHARED` is not in the first mapping.
    """
    declarations: dict[str, Counter[Column]] = {}
    every = list(tables)
    for column in (c for table in every for c in table.columns):
        # declarations are compared without `interval`, which each table chooses for itself
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
    """The frame with copies of all its rows, in which named columns have the value `under`.

    There is a copy for each combination of the named columns. Grouped by these columns, every row
    then counts once in its own group and once in each pool.
    """
    parts = [frame]
    for name in names:
        parts += [part.assign(**{name: under}) for part in list(parts)]
    return pd.concat(parts, ignore_index=True)


def values_of(rows: Any, values: Values) -> np.ndarray:
    """The values of rows of a frame, or of records, as an array of floats; NaN where unknown."""
    if not isinstance(values, str):
        return np.asarray(values(rows), dtype=float)
    if isinstance(rows, pd.DataFrame):
        return numbers(rows[values])
    return np.array([record[values] for record in rows], dtype=float)


def _under(mask: Mask, rows: Any) -> Any:
    """The rows that a mask selects. Records, which are no frame, support no mask but
    `every_row`."""
    return rows if mask is every_row else keep(rows, mask(rows))


def _apart(frame: Any, name: str) -> list[Any]:
    """The frame split by the values of a column, in the order of their first rows; unsplit without
    a column name."""
    return [part for _, part in groups(frame, [name])] if name else [frame]
