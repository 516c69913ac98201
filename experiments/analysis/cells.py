"""Cells of tables that are made of records, and how records are put into rows.

    item_table("peaks", grouped(probe), COUNTED, means({PEAK_DEPTH: "peak_depth"}))

is a table with a row per model and task: how many items, and the mean of their `peak_depth` with
its bootstrap interval. Every item counts once; intervals of means are percentile bootstraps over
items. Records, not frames: a run of 5,000 items has 900,000 branches, of which a frame would take
longer to build, and 100 kB of memory an item, than all tables take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.records import Place, Record, Records, by_probe, once, place_of
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import NOTHING, Estimate
from faithscope.experiments.analysis.tables import (
    Cell,
    Count,
    Group,
    Groups,
    Lines,
    Number,
    Numbers,
    Table,
)
from faithscope.experiments.analysis.tidy import columns, mean, mean_present
from faithscope.probes import PROBES, Settings

RECORDS = "records"
"""What `Table.of` calls the records of a run."""
PLACES = 5
"""Equal parts of the reasoning into which steps are pooled by their relative place."""
Score = Callable[[Record], Any]
Fields = Mapping[Column, str | Score] | Sequence[Column]
"""Column -> the field of a record, or what is computed of the record; None where it has none. Or
columns that are called as the fields are."""


@dataclass(frozen=True)
class Analysis(Bootstrap):
    """What tables are made with, besides records."""

    arrays: Callable[[str], Iterable[tuple[Place, Mapping[str, np.ndarray]]]] = lambda probe: ()
    """Probe -> the raw numbers of each item, sorted by model and task."""
    settings: Callable[[str], Settings] = lambda probe: PROBES[probe].settings()
    """Probe -> what the run asked it with."""

    def estimates(
        self, values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]
    ) -> list[Estimate]:
        """`stats.bootstrapped` with the draws of this analysis."""
        return stats.bootstrapped(values, statistic, seed=self.seed, resamples=self.resamples)


@dataclass(frozen=True)
class Curve:
    """Columns of as many rows as a group has points, layers say."""

    columns: tuple[Column, ...]
    of: Callable[[Sequence[Record], Analysis], Sequence[Mapping[str, Any]]]
    """Records of a group -> at each point column name -> number."""


def item_table(name: str, groups: Groups, *cells: Cell, **look: Any) -> Table:
    """A row per group.

    Args:
        look: what the table says of itself on the page, as fields of `Table`.
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
    """A row per group and point.

    Args:
        points: the columns that tell points apart.
        at: the values of `points`, given a record of the group: all have the same.
        cells: what does not change from point to point stands in every row.
        look: what the table says of itself on the page, as fields of `Table`.
    """

    def compute(same: Sequence[Record], analysis: Analysis) -> Iterable[Mapping[str, Any]]:
        where = at(same[0])
        parts = [cell.of(same, analysis) for cell in cells]
        lines = [[x] * len(where) if isinstance(x, Mapping) else x for x in parts]
        for point, *numbers in zip(where, *lines, strict=True):
            named = {p.name: x for p, x in zip(points, point, strict=True)}
            yield named | {name: x for part in numbers for name, x in part.items()}

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
    """What a probe measured, by model, task and further fields, in an order of names alone.

    Args:
        fields: column, or the name of one of `columns.SHARED` -> field of the record.
        rank: sorts the groups of one model and task; without it they stand as they were asked.
        counts: which records of the probe take part.
        alike: fields that are the same in all records of one model, as its number of layers.

    Raises:
        ValueError: they are not, so that another model, or setting, stood under the name.
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
    """A row per group and fifth of the reasoning: step i of T stands at (i - 1/2) / T.

    `position` is the middle of the fifth. An item counts once in it, with the mean of its steps
    there: `n` items with `n_steps`.

    Args:
        fields: column -> a value per step, None where a step has none.
        look: what the table says of itself on the page.
    """

    def split(records: Sequence[Record]) -> Iterable[Group]:
        for key, same in groups.of(records):
            for part in range(PLACES):
                here = [(r, at) for r in same if (at := steps_in(r["n_steps"], part))]
                items: list[Record] = [
                    {"n_steps": len(at)}
                    | {
                        name: mean_present(values[i] for i in at)
                        for name, values in of_fields(r, fields).items()
                    }
                    for r, at in here
                ]
                if items:
                    yield key | {"position": (part + 0.5) / PLACES}, items

    parts = Groups((*groups.by, POSITION), split)
    return item_table(name, parts, *ITEMS_AND_STEPS, means(tuple(fields)), **look)


def steps_in(n_steps: int, part: int) -> list[int]:
    """The steps, from 0, that stand in one of the `PLACES` parts of a reasoning of so many."""
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * PLACES) == part]


def first(*columns: Column) -> Numbers:
    """Fields that all records of a row have alike, as the number of layers."""
    return Numbers(columns, lambda same, analysis: {c.name: same[0][c.name] for c in columns})


def averages(fields: Fields) -> Numbers:
    """Means over the items that have the number, without intervals."""
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
    """Means over the items that have the number, with bootstrap intervals.

    Args:
        then: what is done to the mean and its bounds: exp of a mean of logarithms.
        median: medians in the place of means.
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
    """Numbers that a statistic makes of (items, …) values, with bootstrap intervals."""

    def compute(same: Sequence[Record], analysis: Analysis) -> dict[str, float]:
        estimates = zip(of, analysis.estimates(values(same), statistic), strict=True)
        return {name: x for c, e in estimates for name, x in columns(c.name, e).items()}

    return Numbers(with_intervals(*of), compute)


def curve(
    of: Column,
    values: Callable[[Sequence[Record]], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray] = lambda x: x.mean(0),
) -> Curve:
    """One number per point, that a statistic makes of (items, …) values, with its interval."""
    return Curve(
        with_intervals(of),
        lambda same, analysis: [
            columns(of.name, e) for e in analysis.estimates(values(same), statistic)
        ],
    )


def mean_curves(fields: Mapping[Column, str]) -> tuple[Curve, ...]:
    """Means over items of lists with a value per point: column -> field."""
    return tuple(
        curve(column, lambda same, field=field: np.array([r[field] for r in same]))
        for column, field in fields.items()
    )


def average_curves(fields: Mapping[Column, str]) -> tuple[Curve, ...]:
    """Means over items of lists with a value per point, without intervals: column -> field."""
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
    """Cells of a part of the group's records, or of others that belong to them."""

    def part(same: Sequence[Record], analysis: Analysis) -> dict[str, Any]:
        chosen = select(same)
        return {name: x for cell in cells for name, x in cell.of(chosen, analysis).items()}

    return Numbers(tuple(c for cell in cells for c in cell.columns), part)


def total(name: str, label: str, meaning: str) -> Number:
    """Sum over the items of the field that is called as the column is."""
    return Number(name, lambda same: sum(r[name] for r in same), label, meaning)


def with_intervals(*columns: Column) -> tuple[Column, ...]:
    """The columns with the ends of an interval beside each."""
    return tuple(replace(column, interval=True) for column in columns)


def of_fields(record: Record, fields: Fields) -> dict[str, Any]:
    """Name of the column -> its value of one record."""
    by_column = fields if isinstance(fields, Mapping) else {c: c.name for c in fields}
    return {c.name: record[f] if isinstance(f, str) else f(record) for c, f in by_column.items()}


def layers(record: Record) -> list[tuple[int, float]]:
    """Every layer, from 1, and its depth: the layer over the number of layers."""
    n = record["n_layers"]
    return [(layer, layer / n) for layer in range(1, n + 1)]


DEPTH = Column("depth", meaning="The layer over the number of layers.")
LAYER_AND_DEPTH = (SHARED["layer"], DEPTH)
LAYERS_OF_ALL = (LAYER_AND_DEPTH, layers)
"""The points of `curve_table` where a record has a value for every layer."""
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
