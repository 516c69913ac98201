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
computes its numbers for all groups at once; `Lines` yield several rows per group. `make_tables`
makes a study's tables in order, so a table may be made of one before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Cell, Groups, Lines, Mask, every_row, selected
from faithscope.experiments.analysis.columns import SHARED, Column, Columns, by_name
from faithscope.experiments.analysis.failures import Failures, kept
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import groups, only, rows, with_columns

OVERALL = "overall"
"""Value of a pooled column in the rows that pool all its values."""


@dataclass(frozen=True)
class Table:
    """Specification of `tables/<name>.csv`: the frame it is made of, how rows are grouped, and the
    columns.

    Each group of the frame's rows gives one row of `cells`, or several rows of `lines`.
    """

    name: str
    """Name of the CSV file, without its ending."""
    of: str | tuple[str, ...]
    """Name of the frame that the table is made of: a frame of the run, or an earlier table. Several
    frames are combined by `prepare`."""
    by: Sequence[str | Column] = ()
    """Key columns that rows are grouped by; a bare name is one of `columns.SHARED`. Without keys
    the whole frame is one group."""
    cells: Sequence[Cell] = ()
    """Columns after the keys, each computed from the rows of one group."""
    lines: Sequence[Lines] = ()
    """Several rows per group, as a rule in place of `cells`. The rows of one `Lines` stand
    together, over all groups, before those of the next."""
    along: Sequence[str | Column] = ()
    """Further key columns, such as layers or places of steps, whose values are sorted within each
    group of `by`."""
    alike: Sequence[str] = ()
    """Columns that must have one value in each group of `by`, such as the number of layers."""
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
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Column -> pandas dtype, where the values alone do not give it: whole numbers of which some
    are unknown, for example."""
    caption: str = ""
    """Caption on the page; a table without a caption is not on the page."""
    folded: str = ""
    """Summary line under which the page folds the table away; empty shows the table open."""
    draw: Callable[[pd.DataFrame], Picture] | None = None
    """Draws a figure from the finished table."""
    rare: bool = False
    """Whether a run has the table only if it has rows: most runs ask for nothing of it."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the key columns, by which rows are grouped."""
        return _names((*self.by, *self.along))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every declared column in the order of the header: keys, the first cell (the size of the
        row), the other cells as declared, and of these the counts (`n_…`) last.

        Raises:
            KeyError: a key is neither declared here nor one of `columns.SHARED`.
        """
        keys = [SHARED[x] if isinstance(x, str) else x for x in (*self.by, *self.along)]
        cells = [c for cell in self.cells for c in cell.columns]
        ordered = sorted(cells[1:], key=lambda column: column.name.startswith("n_"))
        of_lines = [c for part in self.lines for c in part.columns]
        return tuple(by_name([*keys, *cells[:1], *ordered, *of_lines]).values())

    @property
    def header(self) -> list[str]:
        """Names of the columns of the CSV file, with those of the intervals."""
        return [name for column in self.columns for name in column.names]

    def make(self, *sources: Any, how: Bootstrap | None = None) -> pd.DataFrame:
        """The finished table; an empty one still has all columns.

        Args:
            sources: the frames that `of` names, in that order.
            how: bootstrap settings; None takes the defaults of `Bootstrap`.

        Raises:
            ValueError: there are several sources and no `prepare` that combines them; a cell gives
                a number for a column that it does not declare; or the rows of a group differ in a
                column of `alike`, so that records of two models, or of two settings, are mixed.
        """
        how = how or Bootstrap()
        if self.prepare is None and len(sources) != 1:
            raise ValueError(f"table {self.name!r} is made of one frame, not of {len(sources)}")
        made: list[Mapping[str, Any]] = []
        there = any(map(len, sources))
        if there and len(whole := self.prepare(*sources) if self.prepare else sources[0]):
            made = list(self._rows(selected(self.among, whole), how))
        if lost := {name for row in made for name in row} - set(self.header):
            raise ValueError(f"table {self.name!r} declares no column {min(lost)!r}")
        return pd.DataFrame(made, columns=self.header).astype(dict(self.dtypes))

    def filled(self, rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
        """The given rows as a frame with the declared header.

        Columns that a row lacks are NaN. Numbers for columns that are not declared, as in a row
        made for another table, are left out.
        """
        ready = isinstance(rows, pd.DataFrame)
        return pd.DataFrame(rows if ready else list(rows), columns=self.header)

    def _rows(self, frame: pd.DataFrame, how: Bootstrap) -> Iterator[Mapping[str, Any]]:
        for part in _apart(frame, self.apart):
            if self.cells or not self.lines:
                keys, of_keys = self._groups(part, every_row, how)
                cells = self.cells if keys else ()
                columns = {name: x for cell in cells for name, x in cell.over(of_keys).items()}
                numbers = [x.tolist() if isinstance(x, np.ndarray) else x for x in columns.values()]
                for key, *row in zip(keys, *numbers, strict=True):
                    yield key | dict(zip(columns, row, strict=True))
            for lines in self.lines:
                keys, of_keys = self._groups(part, lines.among, how)
                for key, of_key in zip(keys, of_keys.parts, strict=True):
                    yield from (key | dict(line) for line in lines.compute(of_key, how))

    def _groups(
        self, frame: pd.DataFrame, among: Mask, how: Bootstrap
    ) -> tuple[list[dict[str, Any]], Groups]:
        """The keys of each group, in the order of the table's rows, and the rows of the groups."""
        chosen = selected(among, frame)
        chosen = pooled(chosen, *self.pool) if self.pool else chosen
        if not self.keys:
            return [{}], Groups(chosen, np.zeros(len(chosen), dtype=int), 1, how)
        if self.along:
            outer = numbered(chosen, _names(self.by))
            order = only(chosen, _names(self.along)).reset_index(drop=True)
            order.insert(0, "group", outer)
            by = ["group", *_names(self.along)]
            chosen = chosen.iloc[order.sort_values(by, kind="stable").index]
        if "excluded" in chosen and chosen["excluded"].notna().all():
            # records that were left out may lack what the others are grouped by
            chosen = with_columns(chosen, *self.keys)
        codes = numbered(chosen, self.keys)
        first = np.unique(codes, return_index=True)[1]
        keys = rows(chosen[list(self.keys)].iloc[first])
        self._check_alike(chosen)
        return keys, Groups(chosen, codes, len(keys), how)

    def _check_alike(self, frame: pd.DataFrame) -> None:
        for name in self.alike:
            for key, of_key in groups(frame, _names(self.by)):
                several = {x if np.isscalar(x) else tuple(x) for x in of_key[name].tolist()}
                if len(several) > 1:
                    raise ValueError(
                        f"{self.of} of {' on '.join(map(str, key.values()))}: records of "
                        f"{sorted(several, key=str)} {name.removeprefix('n_')}; the records of two "
                        "models are mixed: run again under another name"
                    )


def _names(columns: Sequence[str | Column]) -> tuple[str, ...]:
    return tuple(x if isinstance(x, str) else x.name for x in columns)


def numbered(frame: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """(rows,) number of each row's group by the named columns, from 0 in the order of the frame."""
    by = frame.groupby(list(names), sort=False, dropna=False, observed=True)
    return by.ngroup().to_numpy()


def _no_rows(frame: Any, how: Any) -> Iterable[Mapping[str, Any]]:
    return ()


def computed_table(
    name: str,
    columns: Sequence[str | Column],
    of: str | tuple[str, ...] = "",
    compute: Callable[[Any, Any], Iterable[Mapping[str, Any]]] = _no_rows,
    **more: Any,
) -> Table:
    """A table without keys, whose rows one function computes from the whole frame, because no
    grouping of the frame gives them: rows per pair of measures, tests corrected over all rows.

    Args:
        columns: all columns in order; a bare name is one of `columns.SHARED`.
        of: name of the frame, or of several that `prepare` combines.
        compute: maps the frame and the bootstrap settings to rows. A table without it gets its rows
            by `Table.filled`.
        more: further fields of `Table`.
    """
    declared = tuple(SHARED[x] if isinstance(x, str) else x for x in columns)
    return Table(name, of, lines=[Lines(declared, compute)], **more)


def make_tables(
    tables: Iterable[Table],
    frames: Mapping[str, Any],
    how: Bootstrap | None = None,
    failed: Failures | None = None,
    before: Mapping[str, pd.DataFrame] | None = None,
) -> dict[str, pd.DataFrame]:
    """Makes every table, in order, and returns them by name.

    Args:
        tables: specifications; a table may be made of an earlier one.
        frames: name -> frame, for the names in `Table.of`.
        how: bootstrap settings of all tables.
        failed: takes the tables that cannot be made, with their reasons; without it the first of
            them raises its error.
        before: tables made before these, which are returned, too.
    """
    made = dict(before or {})
    for table in tables:
        needed = (table.of,) if isinstance(table.of, str) else table.of
        # where a frame and an earlier table share a name, the frame is meant
        sources = (frames[name] if name in frames else made[name] for name in needed)
        with kept(failed, "table", table.name):
            one = table.make(*sources, how=how)
            if len(one) or not table.rare:
                made[table.name] = one
    return made


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


def _apart(frame: pd.DataFrame, name: str) -> list[pd.DataFrame]:
    """The frame split by the values of a column, in the order of their first rows; unsplit without
    a column name."""
    return [part for _, part in groups(frame, [name])] if name else [frame]
