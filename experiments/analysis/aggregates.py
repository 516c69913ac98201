"""Cells and groupings for tables that are made of records instead of frames.

    item_table("peaks", grouped(probe), COUNTED, means({PEAK_DEPTH: "peak_depth"}))

This table has one row per model and task, with the number of items and the mean of their
`peak_depth` with its bootstrap interval. Every item counts once; intervals of means are percentile
bootstraps over items.

These tables use records because a run of 5,000 items has 900,000 branches: building a frame of them
would take longer than all tables do, and 100 kB of memory per item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Lines, Mask, Values, every_row
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.records import Place, Record, Records, by_probe, once, place_of
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import (
    NOTHING,
    Estimate,
    weighted_share,
    wilson,
)
from faithscope.experiments.analysis.tables import Group, Groups, Table
from faithscope.experiments.analysis.tidy import columns, count, keep, mean, numbers
from faithscope.experiments.analysis.tidy import columns as interval_columns
from faithscope.probes import PROBES, Settings
from faithscope.probes.record import mean_of_steps

RECORDS = "records"
"""Name of a run's records in `Table.of`."""
PLACES = 5
"""Number of equal parts of the reasoning, in which steps are pooled by their relative position."""
Score = Callable[[Record], Any]
"""Function that computes a value from one record."""
Fields = Mapping[Column, str | Score] | Sequence[Column]
"""Column -> name of a field of the records, or a function of the record; the value is None where a
record has none. A sequence of columns means the fields of the same names."""


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


Cell = Any


@dataclass(frozen=True)
class Analysis(Bootstrap):
    """Bootstrap settings with access to a run's arrays and probe settings, passed to every cell."""

    arrays: Callable[[str], Iterable[tuple[Place, Mapping[str, np.ndarray]]]] = lambda probe: ()
    """Maps a probe to the stored arrays of each item, sorted by model and task."""
    settings: Callable[[str], Settings] = lambda probe: PROBES[probe].settings()
    """Maps a probe to the settings that the run used for it."""

    def estimates(
        self, values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]
    ) -> list[Estimate]:
        """Bootstrap estimates of a statistic, with the seed and number of resamples of this
        analysis (`stats.bootstrapped`)."""
        return stats.bootstrapped(values, statistic, seed=self.seed, resamples=self.resamples)


@dataclass(frozen=True)
class Curve:
    """Cell of a `curve_table`: columns with one value per point (a layer, for example)."""

    columns: tuple[Column, ...]
    of: Callable[[Sequence[Record], Analysis], Sequence[Mapping[str, Any]]]
    """Maps the records of a group to a list with, for each point, column name -> number."""


def item_table(name: str, groups: Groups, *cells: Cell, **look: Any) -> Table:
    """A table of records with one row per group.

    Args:
        look: fields of `Table` that say how the page shows it (`caption`, `folded`, `draw`).
    """
    return Table(name, RECORDS, groups, cells, **look)


def curve_table(
    name: str,
    groups: Groups,
    points: tuple[Column, ...],
    at: Callable[[Record], Sequence[tuple[Any, ...]]],
    *cells: Cell | Curve,
    **look: Any,
) -> Table:
    """A table of records with one row per group and point of a curve.

    Args:
        points: the columns that identify a point (layer and depth, for example).
        at: maps a record to the values of `points`, one tuple per point; all records of a group
            must have the same points.
        cells: columns of the table; a `Curve` has a value per point, the value of any other cell is
            repeated in every row of its group.
        look: fields of `Table` that say how the page shows it (`caption`, `folded`, `draw`).
    """

    def compute(same: Sequence[Record], analysis: Analysis) -> Iterable[Mapping[str, Any]]:
        where = at(same[0])
        parts = [cell.of(same, analysis) for cell in cells]
        lines = [[x] * len(where) if isinstance(x, Mapping) else x for x in parts]
        for point, *of_point in zip(where, *lines, strict=True):
            named = {p.name: x for p, x in zip(points, point, strict=True)}
            yield named | {name: x for part in of_point for name, x in part.items()}

    lines = Lines((*points, *(c for cell in cells for c in cell.columns)), compute)
    return Table(name, RECORDS, groups, lines=[lines], **look)


def grouped(
    probe: str,
    fields: Mapping[str | Column, str] | None = None,
    *,
    rank: Callable[[Record], Any] | None = None,
    counts: Callable[[Record], bool] = lambda r: not r.get("excluded"),
    alike: tuple[str, ...] = (),
) -> Groups:
    """Groups the records of a probe by model, task and further fields, sorted by model, task and
    item.

    Args:
        probe: name of the probe.
        fields: column, or the name of one of `columns.SHARED` -> field of the record.
        rank: sort key of the groups of one model and task; without it groups stand in the order of
            their first items.
        counts: selects the records that take part; by default those that are not excluded.
        alike: fields that must be the same in all records of a group, such as the number of layers.

    Raises:
        ValueError: a field of `alike` differs, so records of two models, or of two settings, are
            mixed. Raised when the groups are made.
    """
    fields = fields or {}

    def of(records: Sequence[Record]) -> list[Group]:
        return once(records, of, lambda: grouped_anew(records))

    def grouped_anew(records: Sequence[Record]) -> list[Group]:
        chosen = sorted(filter(counts, by_probe(records).get(probe, ())), key=place_of)
        if order := rank:
            chosen.sort(key=lambda r: (r["model"], r["task"], order(r)))
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for r in chosen:
            key = (r["model"], r["task"], *(r[field] for field in fields.values()))
            groups.setdefault(key, []).append(r)
        for (model, task, *_), same in groups.items():
            for field in alike:
                if len(values := {_hashable(r[field]) for r in same}) > 1:
                    raise ValueError(
                        f"{probe} of {model} on {task}: records of {sorted(values)} "
                        f"{field.removeprefix('n_')}; the records of two models are mixed: run "
                        "again under another name"
                    )
        names = ("model", "task", *(x if isinstance(x, str) else x.name for x in fields))
        return [(dict(zip(names, key, strict=True)), Records(same)) for key, same in groups.items()]

    return Groups(("model", "task", *fields), of)


def by_place(name: str, groups: Groups, fields: Fields, **look: Any) -> Table:
    """A table with one row per group and fifth of the reasoning; step i of T stands at
    (i - 1/2) / T.

    The column `position` is the middle of the fifth. An item counts once per fifth, with the mean
    over its steps there; `n` counts the items and `n_steps` their steps.

    Args:
        fields: columns with their fields, each a list with one value per step (None where a step
            has none).
        look: fields of `Table` that say how the page shows it (`caption`, `folded`, `draw`).
    """

    def split(records: Sequence[Record]) -> Iterable[Group]:
        for key, same in groups.of(records):
            for part in range(PLACES):
                here = [(r, at) for r in same if (at := steps_in(r["n_steps"], part))]
                items: list[Record] = [
                    {"n_steps": len(at)}
                    | {
                        name: mean_of_steps(*(of and [of[i] for i in at] for of in lists))
                        for name, values in of_fields(r, fields).items()
                        for lists in [(values, r.get("inclusion"))]
                    }
                    for r, at in here
                ]
                if items:
                    yield key | {"position": (part + 0.5) / PLACES}, items

    parts = Groups((*groups.by, POSITION), split)
    return item_table(name, parts, *ITEMS_AND_STEPS, means(tuple(fields)), **look)


def steps_in(n_steps: int, part: int) -> list[int]:
    """Indices of the steps that lie in one of the `PLACES` parts of a reasoning of `n_steps`
    steps; steps and parts count from 0."""
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * PLACES) == part]


def first(*columns: Column) -> Numbers:
    """Cell: fields copied from the first record, for fields in which all records of a group agree
    (the number of layers, for example)."""
    return Numbers(columns, lambda same, analysis: {c.name: same[0][c.name] for c in columns})


def averages(fields: Fields) -> Numbers:
    """Cell: mean of each field over the items that have it, without an interval."""
    return Numbers(
        tuple(fields),
        lambda same, analysis: {
            name: mean([x for x in values if x is not None])
            for name, values in _columns(same, fields).items()
        },
    )


def means(
    fields: Fields, then: Callable[[float], float] | None = None, *, median: bool = False
) -> Numbers:
    """Cell: mean of each field over the items that have it, with bootstrap intervals.

    Args:
        then: applied to the mean and to the ends of its interval (exp, for a mean of logarithms).
        median: whether to take medians instead of means.
    """
    statistic = np.median if median else np.mean

    def of(same: Sequence[Record], analysis: Analysis) -> dict[str, float]:
        estimates = {}
        for name, values in _columns(same, fields).items():
            estimates |= columns(name, _over(values, statistic, analysis, then))
        return estimates

    return Numbers(with_intervals(*fields), of)


def drawn(
    of: tuple[Column, ...],
    values: Callable[[Sequence[Record]], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray],
) -> Numbers:
    """Cell: numbers that a statistic computes from an array of values, with bootstrap intervals.

    Args:
        of: columns, one per number that `statistic` gives.
        values: maps the records of a group to an array whose first axis is the items.
        statistic: maps such an array, or one with resampled items, to the numbers.
    """

    def compute(same: Sequence[Record], analysis: Analysis) -> dict[str, float]:
        estimates = zip(of, analysis.estimates(values(same), statistic), strict=True)
        return {name: x for c, e in estimates for name, x in columns(c.name, e).items()}

    return Numbers(with_intervals(*of), compute)


def curve(
    of: Column,
    values: Callable[[Sequence[Record]], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray] = lambda x: x.mean(0),
) -> Curve:
    """Curve: one number per point, with its bootstrap interval.

    Args:
        of: the column of the numbers.
        values: maps the records of a group to an array whose first axis is the items.
        statistic: maps such an array, or one with resampled items, to one number per point; by
            default the mean over items.
    """
    return Curve(
        with_intervals(of),
        lambda same, analysis: [
            columns(of.name, e) for e in analysis.estimates(values(same), statistic)
        ],
    )


def mean_curves(fields: Mapping[Column, str]) -> tuple[Curve, ...]:
    """Curves with intervals: mean over items, at each point, of fields that hold one value per
    point.

    Args:
        fields: column -> field of the records.
    """
    return tuple(
        curve(column, lambda same, field=field: np.array([r[field] for r in same]))
        for column, field in fields.items()
    )


def average_curves(fields: Mapping[Column, str]) -> tuple[Curve, ...]:
    """Curves without intervals: mean over items, at each point, of fields that hold one value per
    point.

    Args:
        fields: column -> field of the records.
    """
    return tuple(
        Curve(
            (column,),
            lambda same, analysis, name=column.name, field=field: [
                {name: mean(list(at))} for at in zip(*(r[field] for r in same), strict=True)
            ],
        )
        for column, field in fields.items()
    )


def among(select: Callable[[Sequence[Record]], Sequence[Record]], *cells: Cell) -> Numbers:
    """Cell: other cells computed on `select(records)`: a part of the group's records, or records
    that belong to them."""

    def part(same: Sequence[Record], analysis: Analysis) -> dict[str, Any]:
        chosen = select(same)
        return {name: x for cell in cells for name, x in cell.of(chosen, analysis).items()}

    return Numbers(tuple(c for cell in cells for c in cell.columns), part)


def total(name: str, label: str, meaning: str) -> Number:
    """Cell: sum over the items of the field that has the column's name."""
    return Number(name, lambda same: sum(r[name] for r in same), label, meaning)


def with_intervals(*columns: Column) -> tuple[Column, ...]:
    """The given columns, each with an interval."""
    return tuple(replace(column, interval=True) for column in columns)


def of_fields(record: Record, fields: Fields) -> dict[str, Any]:
    """Column name -> value in one record, for each of `fields`."""
    by_column = fields if isinstance(fields, Mapping) else {c: c.name for c in fields}
    return {c.name: record[f] if isinstance(f, str) else f(record) for c, f in by_column.items()}


def layers(record: Record) -> list[tuple[int, float]]:
    """(layer, depth) of every layer of a record's model: layers count from 1, depth is the layer
    over the number of layers."""
    n = record["n_layers"]
    return [(layer, layer / n) for layer in range(1, n + 1)]


DEPTH = Column("depth", meaning="The layer over the number of layers.")
LAYER_AND_DEPTH = (SHARED["layer"], DEPTH)
LAYERS_OF_ALL = (LAYER_AND_DEPTH, layers)
"""`points` and `at` of a `curve_table` whose records have a value for every layer."""
POSITION = Column("position", meaning="Relative place in the reasoning, 0 to 1.")
N_LAYERS = Column("n_layers", "layers", "Number of layers of the model.")
COUNTED = Count("n", label="items", meaning="Items that the row is of.")
N_STEPS = total("n_steps", "steps", "Steps that the row is of, over all its items.")
ITEMS_AND_STEPS = (COUNTED, N_STEPS)


def _columns(same: Sequence[Record], fields: Fields) -> dict[str, list[Any]]:
    rows = [of_fields(r, fields) for r in same]
    return {column.name: [row[column.name] for row in rows] for column in fields}


def _over(
    values: Iterable[float | None],
    statistic: Callable[..., Any],
    analysis: Analysis,
    then: Callable[[float], float] | None,
) -> Estimate:
    present = np.array([x for x in values if x is not None], dtype=float)
    present = present[~np.isnan(present)]
    if not len(present):
        return NOTHING
    (estimate,) = analysis.estimates(present[:, None], lambda x: statistic(x, axis=0))
    if then is None:
        return estimate
    return Estimate(then(estimate.value), then(estimate.low), then(estimate.high), estimate.n)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value
