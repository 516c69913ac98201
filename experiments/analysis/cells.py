"""Cells of tables: columns, each declared where its numbers are computed, and masks of rows.

    Count("n_included", INCLUDED, "pairs that count", "Complete, judged, in contrast.")
    Share("rf", "rf", INCLUDED, "RF", "Share of the pairs that count with RF = 1.")

A `Cell` maps the rows of one group to the numbers of one row of a table: here a count, and a share
with the ends of its interval. `Lines` yield several rows per group. `analysis.tables` makes tables
of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.against_label import (
    Totals,
    against_label,
    drawn_together,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.statistics.stats import weighted_share, wilson
from faithscope.experiments.analysis.tidy import columns as interval_columns
from faithscope.experiments.analysis.tidy import columns_of, count, keep, numbers

Mask = Callable[[Any], Any]
"""Frame -> (rows,) whether each row takes part."""
Values = str | Callable[[Any], Any]
"""Name of a column of the frame, or a function that maps the rows to values, as a rule one each."""


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
    weights: Callable[[Any], np.ndarray | None] | None = None
    """Function that maps the rows to a weight for each of `values`, or to None if all count alike.
    The interval is then that of as many values of one weight as tell as much
    (`stats.weighted_share`)."""

    def of(self, rows: Any, how: Bootstrap) -> Mapping[str, Any]:
        chosen = selected(self.among, rows)
        values = values_of(chosen, self.values)
        weights = self.weights(chosen) if self.weights else None
        if weights is None:
            return interval_columns(self.name, wilson(count(values == 1), len(values)))
        return interval_columns(self.name, weighted_share(values == 1, weights))


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


def values_of(rows: Any, values: Values) -> np.ndarray:
    """The values of rows of a frame, or of records, as an array of floats; NaN where unknown."""
    if not isinstance(values, str):
        return np.asarray(values(rows), dtype=float)
    if isinstance(rows, pd.DataFrame):
        return numbers(rows[values])
    return np.array([record[values] for record in rows], dtype=float)


def selected(mask: Mask, rows: Any) -> Any:
    """The rows that a mask selects. Records, which are no frame, support no mask but
    `every_row`."""
    return rows if mask is every_row else keep(rows, mask(rows))
