"""Helpers for tidy tables: choose rows, iterate over rows and groups, write estimates."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.stats import Estimate


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows in which every named column has the value, or one of a set of values."""
    mask = pd.Series(True, index=table.index)
    for name, value in values.items():
        mask &= table[name].isin(list(value) if isinstance(value, set | dict | list) else [value])
    return keep(table, mask)


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings from column to value."""
    names = [str(name) for name in table.columns]
    columns = values_of(table, *names)
    each = zip(*columns, strict=True) if columns else [()] * len(table)
    return [dict(zip(names, values, strict=True)) for values in each]


def values_of(table: pd.DataFrame, *names: str) -> list[list[Any]]:
    """The values of some columns, a list each."""
    return [_values(table[name]) for name in names]


def _values(column: Any) -> list[Any]:
    """The values of a column; pandas would take each text out of its Arrow array by itself."""
    strings = isinstance(column.dtype, pd.StringDtype)
    return list(column.to_numpy(dtype=object) if strings else column)


def distinct(table: pd.DataFrame, *names: str) -> list[dict[str, Any]]:
    """The distinct combinations of values in the named columns, in the order of the table."""
    values = table[list(names)].itertuples(index=False)
    return [dict(zip(names, row, strict=True)) for row in dict.fromkeys(map(tuple, values))]


def groups(
    table: pd.DataFrame, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yields (values of the named columns, rows with these values), in the order of the table."""
    for key, of_key in table.groupby(list(names), sort=False, dropna=False):
        yield dict(zip(names, cast(tuple, key), strict=True)), of_key


def with_columns(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The table with the named columns; one that it lacks is NaN throughout."""
    return table.assign(**{name: math.nan for name in names if name not in table.columns})


def in_order(table: pd.DataFrame, **orders: Sequence[Any]) -> pd.DataFrame:
    """The table with the named columns as categories in the given order, sorted by model and task,
    then by these columns; equal rows stay in their order."""
    whole = with_columns(table, *orders)
    known = {n: pd.Categorical(whole[n], categories=list(of)) for n, of in orders.items()}
    return whole.assign(**known).sort_values(["model", "task", *orders], kind="stable")


def keep(table: pd.DataFrame, mask: Any) -> pd.DataFrame:
    """The rows of a table that a boolean mask selects."""
    chosen = table.loc[mask]
    assert isinstance(chosen, pd.DataFrame)
    return chosen


def only(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """A copy of the table with only the named columns, in that order."""
    chosen = table[list(names)]
    assert isinstance(chosen, pd.DataFrame)
    return chosen.copy(deep=False)  # pandas copies values once one of the two is changed


def count(mask: Any) -> int:
    """The number of true values in a mask."""
    return int(np.count_nonzero(mask))


def numbers(values: Any) -> np.ndarray:
    """A column as an array of floats."""
    return values.to_numpy(dtype=float)


def summed(
    rows: Iterable[Mapping[str, Any]], by: Sequence[str], counts: Sequence[str] = ("n",)
) -> pd.DataFrame:
    """A table with the sums of `counts` per combination of `by`, in the order of the rows."""
    table = pd.DataFrame(list(rows), columns=[*by, *counts])
    return pd.DataFrame(table.groupby(list(by), sort=False)[list(counts)].sum()).reset_index()


def check_rows(
    what: str, table: pd.DataFrame, columns: Sequence[str], key: Sequence[str] = ()
) -> None:
    """Check that a table has the columns and unique keys that an analysis needs.

    Raises:
        ValueError: one of `columns` is missing, or two rows have the same `key`.
    """
    if missing := [c for c in columns if c not in table.columns]:
        raise ValueError(f"{what}: no column {missing[0]!r}; it needs {', '.join(columns)}")
    twice = table.duplicated(subset=list(key)) if key else np.zeros(len(table), dtype=bool)
    if twice.any():
        first = table.loc[twice, list(key)].iloc[0].to_dict()
        raise ValueError(f"{what}: two rows of {first}; keep one of them")


def typed(
    table: pd.DataFrame, columns: Sequence[str], floats: Collection[str]
) -> dict[str, pd.Series]:
    """The named columns, those in `floats` as floats, others as text with "" for missing values."""
    typed_columns = {}
    for name in columns:
        values = table[name].reset_index(drop=True)
        is_float = name in floats
        text = values.where(values.notna(), "").astype(str)
        typed_columns[name] = pd.Series(pd.to_numeric(values), dtype=float) if is_float else text
    return typed_columns


def with_interval(*names: str) -> list[str]:
    """Column names of estimates: `x`, `x_low`, `x_high` for each name."""
    return [column for x in names for column in (x, f"{x}_low", f"{x}_high")]


def columns(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate as the columns of `with_interval`."""
    values = (estimate.value, estimate.low, estimate.high)
    return dict(zip(with_interval(name), values, strict=True))


def renamed(row: Mapping[str, Any], name: str, to: str) -> dict[str, float]:
    """The columns of an estimate of a row, renamed; NaN if the row lacks them."""
    names = zip(with_interval(name), with_interval(to), strict=True)
    return {new: row.get(old, math.nan) for old, new in names}


def columns_of(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of named statistics: those of `with_interval` for an estimate, else a single one."""
    table_columns: dict[str, Any] = {}
    for name, x in statistics.items():
        table_columns |= columns(name, x) if isinstance(x, Estimate) else {name: x}
    return table_columns


def all_columns(estimates: Mapping[str, Estimate], names: Iterable[str]) -> dict[str, float]:
    """The columns (`with_interval`) of several named estimates."""
    return {k: v for name in names for k, v in columns(name, estimates[name]).items()}


def present(values: Iterable[Any]) -> list[Any]:
    """The values that are not None."""
    return [v for v in values if v is not None]


def mean_present(values: Iterable[Any]) -> float | None:
    """The mean of the values that are not None; None if all are."""
    present = [float(v) for v in values if v is not None]
    return mean(present) if present else None


def mean(values: Sequence[float]) -> float:
    """The mean, exact in floating point; NaN of no values."""
    return math.fsum(values) / len(values) if values else math.nan
