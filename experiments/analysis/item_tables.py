"""Tables over items as data: which records a row is of, and what stands in it.

    item_table(grouped(probe), COUNTED, means({"depth": "peak_depth"}))

is a table with a row per model and task: how many items, and the mean of their `peak_depth` with
its bootstrap interval. A row has the keys of its group and then what every `Stat` says of the
group's records. Every item counts once; intervals of means are percentile bootstraps over items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.records import (
    Place,
    Record,
    Records,
    by_probe,
    once,
    place_of,
)
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import NOTHING, Estimate
from faithscope.experiments.analysis.tidy import columns, mean, mean_present, with_interval
from faithscope.probes import PROBES, Settings

PLACES = 5
"""Equal parts of the reasoning into which steps are pooled by their relative place."""
Score = Callable[[Record], Any]
Fields = Mapping[str, str | Score] | Sequence[str]
"""Column -> the field of a record, or what is computed of the record; None where it has none. Or
names that columns and fields share."""
Group = tuple[dict[str, Any], Sequence[Record]]
"""The keys of a row, and the records that it is of."""


@dataclass(frozen=True)
class Analysis:
    """What tables are made with, besides records."""

    seed: int = 0
    resamples: int = stats.RESAMPLES
    """Behind every bootstrap interval."""
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
class Groups:
    """How records are put into rows: the names of the keys, and the rows."""

    keys: tuple[str, ...]
    of: Callable[[Sequence[Record]], Iterable[Group]]


@dataclass(frozen=True)
class Stat:
    """Columns of a row, and what they hold, given the records of the row."""

    names: tuple[str, ...]
    of: Callable[[Sequence[Record], Analysis], Mapping[str, Any]]


@dataclass(frozen=True)
class Curve:
    """Columns of as many rows as a group has points, layers say, and what they hold at each."""

    names: tuple[str, ...]
    of: Callable[[Sequence[Record], Analysis], Sequence[Mapping[str, Any]]]


Make = Callable[[Sequence[Record], Analysis], pd.DataFrame]
"""How a table is made of records."""


def item_table(groups: Groups, *of: Stat) -> Make:
    """A row per group."""

    def make(records: Sequence[Record], analysis: Analysis) -> pd.DataFrame:
        rows = [
            key | {name: x for stat in of for name, x in stat.of(same, analysis).items()}
            for key, same in groups.of(records)
        ]
        return pd.DataFrame(rows, columns=[*groups.keys, *(n for stat in of for n in stat.names)])

    return make


def curve_table(
    groups: Groups,
    points: tuple[str, ...],
    at: Callable[[Record], Sequence[tuple[Any, ...]]],
    *of: Stat | Curve,
) -> Make:
    """A row per group and point.

    Args:
        points: the columns that tell points apart.
        at: the values of `points`, given a record of the group: all have the same.
    """

    def make(records: Sequence[Record], analysis: Analysis) -> pd.DataFrame:
        rows = []
        for key, same in groups.of(records):
            where = at(same[0])
            lines = [
                [x] * len(where) if isinstance(x, Mapping) else x
                for x in (part.of(same, analysis) for part in of)
            ]
            for point, *cells in zip(where, *lines, strict=True):
                named = dict(zip(points, point, strict=True))
                rows.append(key | named | {n: x for cell in cells for n, x in cell.items()})
        names = [*groups.keys, *points, *(n for part in of for n in part.names)]
        return pd.DataFrame(rows, columns=names)

    return make


def grouped(
    probe: str,
    fields: Mapping[str, str] | None = None,
    *,
    rank: Callable[[Record], Any] | None = None,
    counts: Callable[[Record], bool] = lambda r: not r.get("excluded"),
    alike: tuple[str, ...] = (),
) -> Groups:
    """What a probe measured, by model, task and further fields, in an order of names alone.

    Args:
        fields: column -> field of the record.
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
        names = ("model", "task", *fields)
        return [(dict(zip(names, key, strict=True)), Records(same)) for key, same in groups.items()]

    return Groups(("model", "task", *fields), of)


def by_place(groups: Groups, fields: Fields, *of: Stat) -> Make:
    """A row per group and fifth of the reasoning: step i of T stands at (i - 1/2) / T.

    `position` is the middle of the fifth. An item counts once in it, with the mean of its steps
    there: `n` items with `n_steps`.

    Args:
        fields: column -> a value per step, None where a step has none.
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

    parts = Groups((*groups.keys, "position"), split)
    return item_table(parts, ITEMS_AND_STEPS, means(tuple(fields)), *of)


def steps_in(n_steps: int, part: int) -> list[int]:
    """The steps, from 0, that stand in one of the `PLACES` parts of a reasoning of so many."""
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * PLACES) == part]


def plain(**of: Callable[[Sequence[Record]], Any]) -> Stat:
    """Column -> what it holds, without an interval."""
    return Stat(tuple(of), lambda same, analysis: {name: f(same) for name, f in of.items()})


def first(*fields: str) -> Stat:
    """What is the same in all records of a row, as the number of layers."""
    return Stat(fields, lambda same, analysis: {name: same[0][name] for name in fields})


def averages(fields: Fields) -> Stat:
    """Means over the items that have the number, without intervals."""
    return Stat(
        tuple(fields),
        lambda same, analysis: {
            name: mean([x for x in values if x is not None])
            for name, values in _columns(same, fields).items()
        },
    )


def means(
    fields: Fields, then: Callable[[float], float] | None = None, *, median: bool = False
) -> Stat:
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

    return Stat(tuple(with_interval(*fields)), of)


def shares(of: Mapping[str, Callable[[Sequence[Record]], Iterable[bool]]]) -> Stat:
    """Shares of outcomes of the records of a row, pooled, with Wilson intervals."""
    return Stat(
        tuple(with_interval(*of)),
        lambda same, analysis: {
            k: x
            for name, f in of.items()
            for k, x in columns(name, stats.share(list(f(same)))).items()
        },
    )


def drawn(
    names: tuple[str, ...],
    values: Callable[[Sequence[Record]], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray],
) -> Stat:
    """Numbers that a statistic makes of (items, …) values, with bootstrap intervals."""

    def of(same: Sequence[Record], analysis: Analysis) -> dict[str, float]:
        estimates = analysis.estimates(values(same), statistic)
        return {
            k: x for n, e in zip(names, estimates, strict=True) for k, x in columns(n, e).items()
        }

    return Stat(tuple(with_interval(*names)), of)


def curve(
    name: str,
    values: Callable[[Sequence[Record]], np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray] = lambda x: x.mean(0),
) -> Curve:
    """One number per point, that a statistic makes of (items, …) values, with its interval."""
    return Curve(
        tuple(with_interval(name)),
        lambda same, analysis: [
            columns(name, e) for e in analysis.estimates(values(same), statistic)
        ],
    )


def mean_curves(fields: Mapping[str, str]) -> tuple[Curve, ...]:
    """Means over items of lists with a value per point: column -> field."""
    return tuple(
        curve(name, lambda same, field=field: np.array([r[field] for r in same]))
        for name, field in fields.items()
    )


def average_curves(fields: Mapping[str, str]) -> tuple[Curve, ...]:
    """The same without intervals."""
    return tuple(
        Curve(
            (name,),
            lambda same, analysis, name=name, field=field: [
                {name: mean(list(at))} for at in zip(*(r[field] for r in same), strict=True)
            ],
        )
        for name, field in fields.items()
    )


def among(select: Callable[[Sequence[Record]], Sequence[Record]], *of: Stat) -> Stat:
    """The same of a part of the records, or of others that belong to them."""

    def part(same: Sequence[Record], analysis: Analysis) -> dict[str, Any]:
        chosen = select(same)
        return {name: x for stat in of for name, x in stat.of(chosen, analysis).items()}

    return Stat(tuple(name for stat in of for name in stat.names), part)


def of_fields(record: Record, fields: Fields) -> dict[str, Any]:
    """Column -> its value of one record."""
    by_column = fields if isinstance(fields, Mapping) else dict(zip(fields, fields, strict=True))
    return {n: record[f] if isinstance(f, str) else f(record) for n, f in by_column.items()}


def layers(record: Record) -> list[tuple[int, float]]:
    """Every layer, from 1, and its depth: the layer over the number of layers."""
    n = record["n_layers"]
    return [(layer, layer / n) for layer in range(1, n + 1)]


LAYERS_OF_ALL = (("layer", "depth"), layers)
"""The points of `curve_table` where a record has a value for every layer."""
COUNTED = plain(n=len)
ITEMS_AND_STEPS = plain(n=len, n_steps=lambda same: sum(r["n_steps"] for r in same))


def _columns(same: Sequence[Record], fields: Fields) -> dict[str, list[Any]]:
    rows = [of_fields(r, fields) for r in same]
    return {name: [row[name] for row in rows] for name in fields}


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
