"""Two things that are done to tidy tables everywhere: pick rows, and go through them."""

from __future__ import annotations

from typing import Any

import pandas as pd


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
