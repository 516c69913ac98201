"""Cells of tables: columns, each declared where its numbers are computed, and masks of rows.

    Count("n_included", INCLUDED, "pairs that count", "Complete, judged, in contrast.")
    Share("rf", "rf", INCLUDED, "RF", "Share of the pairs that count with RF = 1.")

A `Cell` computes its numbers for all groups of rows of a table at once: here a count, and a share
with the ends of its interval. `Lines` yield several rows per group. `analysis.tables` makes tables
of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
import scipy

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means_of_groups
from faithscope.experiments.analysis.statistics.stats import (
    CONFIDENCE,
    FEWEST,
    NOTHING,
    ROUNDING,
    bootstrapped,
    clustered_means,
    clustered_shares,
    over,
    wilson,
)
from faithscope.experiments.analysis.tidy import columns as interval_columns
from faithscope.experiments.analysis.tidy import (
    columns_of,
    count,
    keep,
    numbers,
    only,
    with_interval,
)

EACH_ROW = "each row"
"""Value of `cluster` with which every row is a unit, for intervals as a paper prints them."""
Mask = Callable[[Any], Any]
"""Frame -> (rows,) whether each row takes part."""
Values = str | Callable[[Any], Any]
"""Name of a column of the frame, "" for that of the cell's own name, or a function that maps the
rows to one value each."""


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


def INCLUDED(frame: pd.DataFrame) -> np.ndarray:
    """Mask of the records that are not excluded (column `excluded`)."""
    return frame["excluded"].isna().to_numpy()


@dataclass(frozen=True)
class Groups:
    """The rows of a table's frame, and the group that each of them belongs to."""

    whole: pd.DataFrame
    codes: np.ndarray
    """(rows,) number of each row's group, from 0; of the rows that take part."""
    n: int
    """Number of groups, which are the rows of the table; some may have no row of the frame."""
    how: Bootstrap
    """Bootstrap settings, for cells with a bootstrap interval."""
    mask: np.ndarray | None = None
    """Which rows of `whole` take part; None is all of them."""

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows that take part, with all columns. Most cells need few: see `column`."""
        return self.whole if self.mask is None else keep(self.whole, self.mask)

    def column(self, name: str) -> pd.Series:
        """One column of the rows that take part."""
        values: Any = self.whole[name]
        return values if self.mask is None else values.loc[self.mask]

    def values(self, values: Values) -> np.ndarray:
        """The values of the rows that take part as an array of floats; NaN where unknown."""
        if isinstance(values, str):
            return numbers(self.column(values))
        return values_of(self.frame, values)

    def units(self, items: str) -> np.ndarray:
        """The unit of each row that is drawn as a whole (`Bootstrap.units`)."""
        known = only(self.whole, [name for name in (items, "dataset") if name in self.whole])
        return self.how.units(known if self.mask is None else keep(known, self.mask), items)

    def among(self, mask: Mask) -> Groups:
        """The same groups with only the rows that a mask selects."""
        if mask is every_row:
            return self
        chosen = np.asarray(mask(self.frame), dtype=bool)
        return Groups(self.frame, self.codes[chosen], self.n, self.how, chosen)

    def numbered_units(self, items: str) -> np.ndarray:
        """(rows,) number of each row's unit (`units`), in the order of their first rows."""
        alone = not self.how.of_items and items in self.whole
        return pd.factorize(self.column(items) if alone else self.units(items))[0]

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """The places of each group's rows in the frame."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(1, self.n))
        return np.split(order, ends)[: self.n]

    @cached_property
    def parts(self) -> list[pd.DataFrame]:
        """The rows of each group as a frame."""
        return [self.frame.iloc[_as_slice(rows)] for rows in self.rows]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(groups,) sums of values, one per row of the frame."""
        return np.bincount(self.codes, weights=values, minlength=self.n)


def _as_slice(rows: np.ndarray) -> np.ndarray | slice:
    """Ascending places as a slice where none is left out, which takes rows without a copy."""
    together = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1
    return slice(int(rows[0]), int(rows[-1]) + 1) if together else rows


class Cell(Protocol):
    """One or several columns of a table, with the computation of their numbers."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns, in the order of the header."""
        ...

    def over(self, groups: Groups) -> Mapping[str, Sequence[Any] | np.ndarray]:
        """Name in the CSV header -> one number per group, for all groups of a table at once.

        A column with an interval gives three: `<name>`, `<name>_low`, `<name>_high`.
        """
        ...


def one_row(cells: Iterable[Cell], rows: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    """The numbers of several cells for all rows of a frame together."""
    groups = Groups(rows, np.zeros(len(rows), dtype=int), 1, how)
    return {name: x for cell in cells for name, (x,) in cell.over(groups).items()}


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

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = np.asarray(self.among(groups.frame), dtype=bool)
        return {self.name: np.bincount(groups.codes[chosen], minlength=groups.n)}


@dataclass(frozen=True)
class Distinct(_OneColumn):
    """Cell: number of different values of a column in the rows that a mask selects."""

    name: str
    values: str
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        n = chosen.column(self.values).groupby(chosen.codes).nunique()
        return {self.name: n.reindex(range(groups.n), fill_value=0).to_numpy()}


@dataclass(frozen=True)
class Share(_OneColumn):
    """Cell: share of the selected rows whose value is 1, with its Wilson interval.

    An unknown value (NaN) counts as not 1. Where that is wrong, let the mask `among` leave such
    rows out (`rows_known`).
    """

    has_interval = True
    name: str
    values: Values = ""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    weights: str = ""
    """Column with the weight of each row; "" counts all alike."""
    cluster: str = ""
    """Column that names the cluster of each row, the unit of the interval; "" is its item
    (`Bootstrap.units`). With weights or clusters the interval is that of as many rows of one weight
    as tell as much (`stats.clustered_shares`)."""

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        ones = (chosen.values(self.values or self.name) == 1).astype(float)
        weights = numbers(chosen.column(self.weights)) if self.weights else np.ones(len(ones))
        units = chosen.numbered_units(self.cluster or "item")
        estimates = clustered_shares(ones, weights, units, chosen.codes, groups.n)
        return with_bounds(self.name, *estimates)


@dataclass(frozen=True)
class ShareOfItems(Share):
    """Cell: mean over clusters (items, chains) of the share of the selected rows of each whose
    value is 1, so that a cluster counts once, however many rows it has.

    Its interval is that of `stats.clustered_means`: Wilson's where every share is 0 or 1, and
    shorter where shares vary less.
    """

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        ones = chosen.values(self.values or self.name) == 1
        weights = numbers(chosen.column(self.weights)) if self.weights else np.ones(len(ones))
        codes, pairs = _clusters(chosen, self.cluster)
        below = np.bincount(pairs, weights)
        shares = over(np.bincount(pairs, ones * weights), below)
        units = np.zeros(len(codes), dtype=int)
        units[pairs] = chosen.numbered_units(self.cluster or "item")
        known = below > 0
        estimates = clustered_means(shares[known], units[known], codes[known], groups.n)
        return with_bounds(self.name, *estimates)


def _clusters(groups: Groups, cluster: str) -> tuple[np.ndarray, np.ndarray]:
    """The group of every cluster of a group, and the number of every row's cluster among these."""
    names = groups.column(cluster)
    if isinstance(names.dtype, pd.CategoricalDtype) and not names.hasnans:
        texts = names.cat.categories.astype(str)
        if texts.is_unique and texts.is_monotonic_increasing:
            # as many numbers as categories, in the order of the texts, without a text per row
            return _pairs(groups.codes, names.cat.codes.to_numpy(dtype=int))
    return _numbered(groups.codes, names.astype(str).to_numpy())


def _numbered(codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The group of every pair of a group and a name, and the number of every row's pair."""
    return _pairs(codes, pd.factorize(names, sort=True)[0])


def _pairs(codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_numbered` for names that are numbers from 0."""
    least = int(names.max(initial=0)) + 1
    pairs, of_rows = np.unique(codes * least + names, return_inverse=True)
    return pairs // least, of_rows


@dataclass(frozen=True)
class Mean(_OneColumn):
    """Cell: mean, or another statistic, of the known values of the selected rows, without interval.

    The sum of no values is 0; any other statistic of no values is NaN.
    """

    name: str
    values: Values = ""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""
    statistic: str = "mean"
    """Name of a method of `pandas.Series`: mean, median, std, min, max or sum."""
    weights: str = ""
    """Column with the weight of each row in a mean; "" counts all alike."""

    def __post_init__(self) -> None:
        if self.weights and self.statistic != "mean":
            raise ValueError(f"cell {self.name}: a {self.statistic} takes no weights")

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        values = chosen.values(self.values or self.name)
        if self.statistic == "mean":
            weights = numbers(chosen.column(self.weights)) if self.weights else None
            known = [rows[~np.isnan(values[rows])] for rows in chosen.rows]
            means = [
                _mean(values[rows], weights if weights is None else weights[rows]) for rows in known
            ]
            return {self.name: np.array(means)}
        of_groups = pd.Series(values).groupby(chosen.codes).agg(self.statistic)
        nothing = 0.0 if self.statistic == "sum" else np.nan
        return {self.name: of_groups.reindex(range(groups.n), fill_value=nothing).to_numpy()}


def _mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """The mean, exact in floating point where all weights are alike; NaN of no values."""
    if weights is None or not len(weights) or not np.ptp(weights):
        return math.fsum(values) / len(values) if len(values) else math.nan
    return float(np.average(values, weights=weights))


@dataclass(frozen=True)
class Total(_OneColumn):
    """Cell: sum of the known values of the selected rows, as a whole number."""

    name: str
    values: Values = ""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        values = np.nan_to_num(chosen.values(self.values or self.name))
        return {self.name: chosen.sums(values).astype(int)}


@dataclass(frozen=True)
class Boot(_OneColumn):
    """Cell: mean of the known values of the selected rows, with a percentile interval of a
    bootstrap."""

    has_interval = True
    name: str
    values: Values = ""
    cluster: str = ""
    """Column that names the cluster of each row, of which all rows are drawn together; "" is its
    item (`Bootstrap.units`)."""
    among: Mask = every_row
    label: str = ""
    meaning: str = ""
    unit: str = ""
    then: Callable[[np.ndarray], np.ndarray] | None = None
    """Applied to the mean and to the ends of its interval (exp, for a mean of logarithms)."""

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        values = chosen.values(self.values or self.name)
        units: np.ndarray | None = chosen.units(self.cluster or "item")
        if not self.cluster and _alone(chosen.codes, units):
            units = None
        *estimates, _ = means_of_groups(values, units, chosen.codes, groups.n, groups.how)
        if self.then is not None:
            estimates = [self.then(x) for x in estimates]
        return with_bounds(self.name, *estimates)


def _alone(codes: np.ndarray, units: np.ndarray) -> bool:
    """Whether no unit has two rows in one group."""
    return len(_numbered(codes, units)[0]) == len(units)


@dataclass(frozen=True)
class StudentMean(Boot):
    """Cell: mean of the known values of the selected rows, with Student's t interval of the means
    of clusters, for few clusters whose values are near a normal distribution, such as seeds; a
    plain bootstrap of five leaves out the truth three times as often as it says. No interval for
    fewer than `stats.FEWEST` clusters, or for equal ones."""

    def over(self, groups: Groups) -> Mapping[str, np.ndarray]:
        chosen = groups.among(self.among)
        chosen = chosen.among(lambda of: ~np.isnan(values_of(of, self.values or self.name)))
        values = chosen.values(self.values or self.name)
        codes, pairs = _clusters(chosen, self.cluster)
        means = over(np.bincount(pairs, values), np.bincount(pairs))
        n = np.bincount(codes, minlength=groups.n)
        value = over(np.bincount(codes, means, groups.n), n)
        left = np.bincount(codes, (means - value[codes]) ** 2, groups.n)
        error = np.sqrt(over(left, n * (n - 1.0)))
        known = (n >= FEWEST) & (error > ROUNDING)
        half = np.where(
            known, scipy.stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(n - 1, 1)) * error, np.nan
        )
        return with_bounds(self.name, value, value - half, value + half)


def boots(columns: Mapping[Column, Values] | Iterable[Column], **more: Any) -> tuple[Boot, ...]:
    """A `Boot` per column, of the values beside it, or of those in the frame's column of its name.

    Args:
        more: further fields of `Boot`.
    """
    of = columns if isinstance(columns, Mapping) else {c: c.name for c in columns}
    return tuple(
        Boot(c.name, x, label=c.label, meaning=c.meaning, unit=c.unit, **more)
        for c, x in of.items()
    )


def means(columns: Mapping[Column, Values] | Iterable[Column], **more: Any) -> tuple[Mean, ...]:
    """A `Mean` per column, as `boots`."""
    of = columns if isinstance(columns, Mapping) else {c: c.name for c in columns}
    return tuple(
        Mean(c.name, x, label=c.label, meaning=c.meaning, unit=c.unit, **more)
        for c, x in of.items()
    )


@dataclass(frozen=True)
class Bootstrapped:
    """Cell: numbers that a statistic computes from an array of values, with bootstrap intervals
    that draw rows, or groups of rows whose items are not independent."""

    numbers: tuple[Column, ...]
    """Columns, one per number that `statistic` gives."""
    values: Callable[[pd.DataFrame], np.ndarray]
    """Maps the rows of a group to an array whose first axis is the rows."""
    statistic: Callable[[np.ndarray], np.ndarray]
    """Maps such an array, or one with resampled rows, to the numbers."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(replace(column, interval=True) for column in self.numbers)

    def over(self, groups: Groups) -> Mapping[str, list[Any]]:
        lines = []
        for rows in groups.parts:
            drawn = bootstrapped(
                self.values(rows),
                self.statistic,
                units=groups.how.units(rows),
                seed=groups.how.seed,
                resamples=groups.how.resamples,
            )
            named = zip(self.numbers, drawn or [NOTHING] * len(self.numbers), strict=True)
            lines.append(columns_of({c.name: estimate for c, estimate in named}))
        return {name: [line[name] for line in lines] for c in self.columns for name in c.names}


def boot_medians(columns: Mapping[Column, str]) -> tuple[Among, ...]:
    """A cell per column: median of the known values of a field, with a bootstrap interval."""

    def values(rows: pd.DataFrame, field: str) -> np.ndarray:
        return numbers(rows[field])[:, None]

    return tuple(
        Among(
            rows_known(field),
            (Bootstrapped((c,), partial(values, field=field), partial(np.median, axis=0)),),
        )
        for c, field in columns.items()
    )


@dataclass(frozen=True)
class Among:
    """Cell: other cells computed on the rows that a mask selects."""

    mask: Mask
    cells: tuple[Cell, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for cell in self.cells for column in cell.columns)

    def over(self, groups: Groups) -> Mapping[str, Sequence[Any] | np.ndarray]:
        chosen = groups.among(self.mask)
        return {name: x for cell in self.cells for name, x in cell.over(chosen).items()}


@dataclass(frozen=True)
class Kept:
    """Cell: columns copied from the first row of a group, for groups of one row or of rows that
    agree in these columns."""

    columns: tuple[Column, ...]

    def over(self, groups: Groups) -> Mapping[str, list[Any]]:
        first = groups.frame.iloc[[rows[0] for rows in groups.rows]]
        return {name: first[name].tolist() for column in self.columns for name in column.names}


@dataclass(frozen=True)
class Number(_OneColumn):
    """Cell: one number or text, without an interval, that a function computes from a group."""

    name: str
    compute: Callable[[Any], Any]
    label: str = ""
    meaning: str = ""
    unit: str = ""

    def over(self, groups: Groups) -> Mapping[str, list[Any]]:
        return {self.name: [self.compute(rows) for rows in groups.parts]}


@dataclass(frozen=True)
class Numbers:
    """Cell: several columns that one function computes from the rows of a group."""

    columns: tuple[Column, ...]
    compute: Callable[[Any, Any], Mapping[str, Any]]
    """Maps the rows of a group and the bootstrap settings to column name -> number; columns that
    it does not return stay empty."""
    among: Mask | None = None
    """Rows that take part; the columns of a group without such a row stay empty."""

    def over(self, groups: Groups) -> Mapping[str, list[Any]]:
        parts = groups.among(self.among or every_row).parts
        there = [len(rows) > 0 or self.among is None for rows in parts]
        pairs = zip(parts, there, strict=True)
        lines = [self.compute(rows, groups.how) if some else {} for rows, some in pairs]
        names = dict.fromkeys(name for line in lines for name in line)
        return {name: [line.get(name, math.nan) for line in lines] for name in names}


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


def values_of(rows: pd.DataFrame, values: Values) -> np.ndarray:
    """The values of the rows of a frame as an array of floats; NaN where unknown."""
    if isinstance(values, str):
        return numbers(rows[values])
    return np.asarray(values(rows), dtype=float)


def with_bounds(
    name: str, value: np.ndarray, low: np.ndarray, high: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of an estimate per group, named as in `tidy.with_interval`."""
    return dict(zip(with_interval(name), (value, low, high), strict=True))


def selected(mask: Mask, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a frame that a mask selects."""
    return rows if mask is every_row else keep(rows, mask(rows))
