"""What is done to tidy tables everywhere: pick rows, go through them, write an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.stats import Estimate


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows in which every named column has the value, or one of a set of values."""
    keep = pd.Series(True, index=table.index)
    for name, value in values.items():
        keep &= table[name].isin(list(value) if isinstance(value, set | dict | list) else [value])
    found = table.loc[keep]
    assert isinstance(found, pd.DataFrame)
    return found


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Every row as a mapping from column to value."""
    names = [str(name) for name in table.columns]
    return [dict(zip(names, values, strict=True)) for values in table.itertuples(index=False)]


def distinct(table: pd.DataFrame, *names: str) -> list[dict[str, Any]]:
    """Every combination of values in the named columns, in the order of the table."""
    values = table[list(names)].itertuples(index=False)
    return [dict(zip(names, found, strict=True)) for found in dict.fromkeys(map(tuple, values))]


def with_interval(*names: str) -> list[str]:
    """The columns of estimates: `x`, `x_low`, `x_high` of each name."""
    return [column for x in names for column in (x, f"{x}_low", f"{x}_high")]


def columns(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate as the columns of `with_interval`."""
    values = (estimate.value, estimate.low, estimate.high)
    return dict(zip(with_interval(name), values, strict=True))


def present(values: Iterable[Any]) -> list[Any]:
    """Without the None of what was not made."""
    return [v for v in values if v is not None]


def mean_present(values: Iterable[Any]) -> float | None:
    """The mean of those that are not None; None of nothing."""
    kept = [float(v) for v in values if v is not None]
    return mean(kept) if kept else None


def mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return math.fsum(values) / len(values) if values else math.nan
