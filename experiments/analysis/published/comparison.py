"""Comparison of one printed table with the numbers of runs: a row per cell, with its verdict.

The rule, which every output states (`RULE`): a cell is *within* if the printed number, as the range
that its rounding allows, meets the range around ours. That range is our 95 % interval, for a share
at least the exact one of as many yes-or-no cases; where the paper names its number of cases, it is
widened by the paper's own sampling, since the difference of two samples varies more than either (by
√2 if they are of equal size). A number without an interval has no verdict, but for counts, which do
not come of a sample. A word is compared with the words that the intervals of its numbers allow.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import scipy

from faithscope.experiments.analysis.published.cells import Cell
from faithscope.experiments.analysis.published.deviations import Deviation
from faithscope.experiments.analysis.published.paper import Ours, Paper, Published, Tables
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import keep, rows
from faithscope.experiments.config.api import same_model

WITHIN, OUTSIDE, NOT_COMPARABLE = "within", "outside", "not comparable"
NOT_MEASURED, NO_MEASURE, POOLED, DOUBTFUL, DEVIATES, OTHER_QUANTITY, UNCLEAR, TOO_FEW = (
    "not measured",
    "no measure of ours",
    "pooled over others",
    "doubtful in the paper",
    "the run deviates",
    "another quantity",
    "several rows of ours",
    "too few cases",
)
"""Reasons why a cell is not comparable. With the first three no number of ours is of the cell: one
that pools over other models or tasks than the paper's is shown, and does not count as measured."""
RULE = (
    "within: the printed number, with what its rounding allows, meets the range around ours; "
    "outside: it does not. The range is our 95 % interval, widened by the paper's own sampling "
    "where the paper gives its number of cases; where it does not, about one cell in six would be "
    "outside even if the paper were repeated exactly, with as many cases. A number or word that "
    "comes of too few cases for an interval has no verdict; a count may differ by one. within says "
    "that the data do not contradict the paper, no more: a run of few cases has wide ranges, which "
    "meet much."
)
"""The rule of the verdicts, as every output states it."""
SKEWED = 30
"""Number of cases below which a mean of fractions is taken to vary as one of yes and no: so few
cannot show that some are far from the others."""
UNCHECKED = "unchecked data"
"""Says of a number that its run read data from a file that nothing compares with the paper's."""
SUBJECTS = ("model", "judge")
"""Our key columns that name who is measured."""
MEASURED = (
    *("unit", "published", "ours", "low", "high", "range_low", "range_high", "difference"),
    *("n", "planned", "published_n", "verdict", "reason", "why", "rule", "meets_others"),
    "data",
    *("decimals", "section", "run"),
)
"""Columns of the comparison after table, keys and heading. Numbers stand in the printed unit.
`meets_others` is the share of the other printed numbers under the same heading that our range
meets, too: where it is high, `within` tells little. `data` is empty or `UNCHECKED`."""


@dataclass(frozen=True)
class NumbersOfRun:
    """Our numbers for one printed table, out of one run."""

    run: str
    """Name of the run, for readers."""
    table: pd.DataFrame
    """Our rows for the table (`numbers_for`)."""
    deviations: Sequence[Deviation] = ()
    """Deviations of the run from the paper's config."""
    planned: Mapping[tuple[str, str], int] | None = None
    """(model, task) -> number of items that the run planned."""

    @property
    def decides(self) -> str:
        """The deviations that make all cells of the run incomparable, as text."""
        return "; ".join(d.line for d in self.deviations if d.decides)

    @property
    def pools_over_others(self) -> str:
        """The deviations in a list that every cell pools over, as text."""
        return "; ".join(d.line for d in self.deviations if d.pools)


class Verdict(NamedTuple):
    """Outcome of one cell."""

    verdict: str
    reason: str = ""
    """Short reason why a cell is not comparable, one of the constants above."""
    why: str = ""
    rule: str = ""
    """Rule that was used: `both samples`, `our interval`, `count` or `word`."""
    low: float = math.nan
    high: float = math.nan
    """Range around our number that the printed one had to meet, in the printed unit."""


def rows_for(published: Published, tables: Tables) -> pd.DataFrame:
    """All our rows for a printed table; an empty frame where the run has none."""
    of = published.of
    table = tables.get(of) if isinstance(of, str) else of(tables)
    if table is None or table.empty:
        return pd.DataFrame()
    table = published.make(table) if published.make else table
    return keep(table, published.among(table))


def numbers_for(published: Published, tables: Tables) -> pd.DataFrame | None:
    """Our rows that are measured and pooled as in a printed table; None where the run has none."""
    table = rows_for(published, tables)
    chosen = table if table.empty else keep(table, published.compared(table, tables))
    return chosen if len(chosen) else None


def beside(
    paper: Paper, published: Published, cells: Iterable[Cell], runs: Sequence[NumbersOfRun] = ()
) -> pd.DataFrame:
    """The cells of one printed table with our numbers, a row each, in the order of the paper.

    Where several runs measure a cell, the one shown has no deviation that decides, then most cases.
    Rows of ours whose model or judge the paper does not have follow, without a published number.

    Args:
        cells: cells of the paper; those of other tables are passed over.
        runs: our numbers, as the runs were given.
    """
    of_table = [cell for cell in cells if cell.table == published.name]
    indices = [_Index(paper, published, run) for run in runs]
    lines = [_line(published, cell, indices) for cell in of_table]
    for line, cell in zip(lines, of_table, strict=True):
        line["meets_others"] = _meets_others(line, cell, of_table)
    lines += [line for index in indices for line in index.others(of_table)]
    keys = list(dict.fromkeys(key for cell in of_table for key in cell.keys))
    table = pd.DataFrame(lines, columns=["table", *keys, "column", *MEASURED])
    return table.astype(dict.fromkeys(("n", "planned", "published_n", "decimals"), "Int64"))


def verdict(
    cell: Cell,
    value: Any,
    low: float = math.nan,
    high: float = math.nan,
    n: float = math.nan,
    words: Collection[str] | None = None,
) -> Verdict:
    """Whether our number agrees with a printed one that is beyond doubt.

    Args:
        value: our number in the printed unit, or our word.
        low: lower end of our 95 % interval in the printed unit; NaN without one.
        high: upper end.
        n: our number of cases.
        words: the words that the intervals of our numbers allow; None where these are unknown.
    """
    if isinstance(cell.value, str):
        if not words:
            return _without_interval("the word", n)
        agrees = cell.value.casefold() in {word.casefold() for word in words}
        return Verdict(WITHIN if agrees else OUTSIDE, rule="word")
    assert cell.value is not None
    if cell.unit == "n":
        agrees = abs(round(value, cell.decimals) - cell.value) <= 1.001 * 10.0**-cell.decimals
        return Verdict(WITHIN if agrees else OUTSIDE, rule="count", low=value, high=value)
    if not low < high:
        return _without_interval("the number", n)
    low, high = _at_least_exact(value, low, high, n, cell.scale)
    both = bool(cell.n) and n > 0
    wider = math.sqrt(1 + n / cell.n) if cell.n and both else 1.0
    low, high = value - (value - low) * wider, value + (high - value) * wider
    agrees = _meets(cell, low, high)
    rule = "both samples" if both else "our interval"
    return Verdict(WITHIN if agrees else OUTSIDE, rule=rule, low=low, high=high)


def _without_interval(what: str, n: float) -> Verdict:
    few = "" if math.isnan(n) else f" (n = {int(n)})"
    why = f"{what} has no interval: too few cases vary{few}, or none is computed for it"
    return Verdict(NOT_COMPARABLE, TOO_FEW, why)


def _at_least_exact(
    value: float, low: float, high: float, n: float, scale: int
) -> tuple[float, float]:
    """The ends of an interval, and for a share at least those of Clopper and Pearson (Biometrika
    26, 1934): Wilson's cover too seldom near 0 and 1. A share is what counts whole cases, and of
    fewer than `SKEWED` cases every percentage."""
    if not (0 <= value <= scale and n > 0):
        return low, high
    k = value / scale * n
    whole = abs(k - round(k)) < 1e-6
    if not whole and (scale == 1 or n >= SKEWED):
        return low, high
    k, out = round(k) if whole else k, (1 - CONFIDENCE) / 2
    least = scipy.stats.beta.ppf(out, k, n - k + 1) if k > 0 else 0.0
    most = scipy.stats.beta.ppf(1 - out, k + 1, n - k) if k < n else 1.0
    return min(low, float(least) * scale), max(high, float(most) * scale)


def _meets(cell: Cell, low: float, high: float) -> bool:
    """Whether a printed number, as the range that its rounding allows, meets a range."""
    assert isinstance(cell.value, float)
    slack = 0.5001 * 10.0**-cell.decimals
    return cell.value - slack <= high and cell.value + slack >= low


def _meets_others(line: Mapping[str, Any], cell: Cell, cells: Iterable[Cell]) -> float:
    """Share of the other printed numbers under a cell's heading that the line's range meets."""
    low, high = line.get("range_low", math.nan), line.get("range_high", math.nan)
    if math.isnan(low):
        return math.nan
    others = [
        other
        for other in cells
        if other is not cell
        and (other.column, other.unit) == (cell.column, cell.unit)
        and isinstance(other.value, float)
    ]
    if not others:
        return math.nan
    return sum(_meets(other, low, high) for other in others) / len(others)


class _Index:
    """The rows of one run by the keys of a printed table."""

    def __init__(self, paper: Paper, published: Published, run: NumbersOfRun) -> None:
        self.paper, self.published, self.run = paper, published, run
        self._by_keys: dict[Any, dict[tuple[str, ...], list[dict[str, Any]]]] = {}

    def rows_of(self, cell: Cell, ours: Ours) -> list[dict[str, Any]]:
        """Our rows beside a cell; of several names that our value may have, the first is meant."""
        keys = self.published.keys
        columns = {keys[k]: self.names(k, v) for k, v in cell.keys.items() if keys[k]}
        there = self._grouped(tuple(columns), ours)
        for wanted in _combinations(list(columns.values())):
            if wanted in there:
                return there[wanted]
        return []

    def names(self, key: str, printed: str) -> list[str]:
        """Our values for a printed name, in the form in which rows are looked up: those declared,
        then the run's own names of the same models."""
        declared = [plain(name) for name in self.paper.name_of(self.published, key, printed)]
        column = self.published.keys[key]
        if column not in SUBJECTS:
            return declared
        there = dict.fromkeys(map(plain, self.run.table[column]))
        others = [n for n in there if any(same_model(n, of) for of in declared)]
        return [*declared, *(n for n in others if n not in declared)]

    def others(self, cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
        """Lines for our rows whose model or judge the paper's table does not have, at the places
        that the table does have."""
        keys = self.published.keys
        subject = next((k for k, column in keys.items() if column in SUBJECTS), None)
        if subject is None:
            return
        known = {
            n for c in cells if subject in c.keys for n in self.names(subject, c.keys[subject])
        }
        column = keys[subject]
        strangers = [
            name
            for name in dict.fromkeys(map(plain, self.run.table[column]))
            if name not in known and name != OVERALL
        ]
        places: dict[Any, Cell] = {}
        for cell in (c for c in cells if subject in c.keys):
            rest = tuple((k, v) for k, v in cell.keys.items() if k != subject)
            places.setdefault((rest, cell.column), cell)
        for name in strangers:
            for cell in places.values():
                ours = self.published.ours(cell.column)
                if ours is None or self.published.why_without([cell.column]):
                    continue
                named = cell.keys.items()
                columns = {keys[k]: self.names(k, v)[0] for k, v in named if keys[k]}
                wanted = tuple((columns | {column: name}).values())
                for row in self._grouped(tuple(columns), ours).get(wanted, [])[:1]:
                    numbers = _numbers(self, cell, ours, row)
                    if not is_missing(numbers["ours"]):
                        yield {
                            **{"table": cell.table, **cell.keys, subject: name},
                            **{"column": cell.column, "unit": cell.unit, **numbers},
                            **{"decimals": cell.decimals, "section": cell.section},
                            **{"why": "the paper has no such row"},
                        }

    def _grouped(
        self, columns: tuple[str, ...], ours: Ours
    ) -> dict[tuple[str, ...], list[dict[str, Any]]]:
        key = (columns, id(ours.among))
        if key not in self._by_keys:
            groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
            for row in rows(keep(self.run.table, ours.among(self.run.table))):
                groups.setdefault(tuple(plain(row[c]) for c in columns), []).append(row)
            self._by_keys[key] = groups
        return self._by_keys[key]


def _line(published: Published, cell: Cell, indices: Sequence[_Index]) -> dict[str, Any]:
    """The row of one cell."""
    line: dict[str, Any] = {"table": cell.table, **cell.keys, "column": cell.column}
    line |= {"unit": cell.unit, "published": cell.value, "published_n": cell.n}
    line |= {"decimals": cell.decimals, "section": cell.section}
    why = published.why_without([cell.column, *cell.keys.values()])
    ours = published.ours(cell.column)
    if why or ours is None:
        return line | _said(
            Verdict(NOT_COMPARABLE, NO_MEASURE, why or "no measure of ours is this")
        )
    candidates = []
    for index in indices:
        of_run = index.rows_of(cell, ours)
        numbers = _numbers(index, cell, ours, of_run[0]) if of_run else {"ours": None}
        if not is_missing(numbers["ours"]):
            candidates.append(
                (bool(index.run.decides), -(numbers["n"] or 0), of_run, numbers, index)
            )
    if not candidates:
        why = "no run that was given measured this"
        return line | _said(Verdict(NOT_COMPARABLE, NOT_MEASURED, why))
    *_, of_run, numbers, index = min(candidates, key=lambda candidate: candidate[:2])
    line |= numbers
    if isinstance(cell.value, float):
        line["difference"] = numbers["ours"] - cell.value
    if len(of_run) > 1:
        of_all = {c for c in of_run[0] if len({plain(row[c]) for row in of_run}) > 1}
        why = f"{len(of_run)} rows of the run match, which differ in {', '.join(sorted(of_all))}"
        return line | _said(Verdict(NOT_COMPARABLE, UNCLEAR, why))
    if others := index.run.pools_over_others:
        return line | _said(Verdict(NOT_COMPARABLE, POOLED, others))
    if cell.doubt:
        return line | _said(Verdict(NOT_COMPARABLE, DOUBTFUL, cell.doubt))
    if published.incomparable:
        return line | _said(Verdict(NOT_COMPARABLE, OTHER_QUANTITY, published.incomparable))
    if index.run.decides:
        return line | _said(Verdict(NOT_COMPARABLE, DEVIATES, index.run.decides))
    if cell.unit == "n" and any(not d.states for d in index.run.deviations):
        why = "a count of cases, which depends on how many the run took"
        return line | _said(Verdict(NOT_COMPARABLE, OTHER_QUANTITY, why))
    n = math.nan if numbers["n"] is None else numbers["n"]
    words = ours.words_of(of_run[0]) if isinstance(cell.value, str) else None
    return line | _said(verdict(cell, numbers["ours"], numbers["low"], numbers["high"], n, words))


def _numbers(index: _Index, cell: Cell, ours: Ours, row: Mapping[str, Any]) -> dict[str, Any]:
    """Our number for a cell in the printed unit, with its interval, cases and run."""
    planned = (index.run.planned or {}).get((str(row.get("model")), str(row.get("task"))))
    unchecked = any(d.key.startswith("data.path") for d in index.run.deviations)
    of_run = {"planned": planned, "run": index.run.run, "data": UNCHECKED if unchecked else ""}
    return of_run | numbers_of(index.published, cell, ours, row)


def numbers_of(
    published: Published, cell: Cell, ours: Ours, row: Mapping[str, Any]
) -> dict[str, Any]:
    """Our number for a cell in the printed unit (`ours`), the ends of its interval and its number
    of cases."""
    n = row.get(ours.n or published.n)
    line: dict[str, Any] = {"n": None if is_missing(n) else int(n or 0)}
    value = row.get(ours.column)
    if cell.unit == "word":
        word = None if is_missing(value) else ours.words.get(str(value), str(value))
        return line | {"ours": word or None, "low": math.nan, "high": math.nan}
    ends = {end: row.get(f"{ours.column}_{end}", math.nan) for end in ("low", "high")}
    numbers = {"ours": value, **ends}
    return line | {
        name: math.nan if is_missing(x) else float(x or 0) * cell.scale
        for name, x in numbers.items()
    }


def _said(outcome: Verdict) -> dict[str, Any]:
    """A verdict as the columns of a line."""
    said = outcome._asdict()
    return {"range_low": said.pop("low"), "range_high": said.pop("high"), **said}


def _combinations(names: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Every choice of one name per key, those of first names first."""
    if not names:
        yield ()
        return
    for name in names[0]:
        for rest in _combinations(names[1:]):
            yield (name, *rest)


def plain(value: Any) -> str:
    """A key value as text, in which `0.30` and 0.3 are the same."""
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


def is_missing(value: Any) -> bool:
    """Whether a cell of a frame has no value."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
