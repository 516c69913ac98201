"""A table of a paper in its own layout: its numbers, and how the paper prints them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper, twice: as data, and as the paper prints it."""

    name: str
    data: pd.DataFrame
    """Fractions, one column per number."""
    printed: pd.DataFrame
    """Text, under the paper's headings."""


def percent(value: float) -> str:
    """`14.8`: percent with one decimal."""
    return or_dash(lambda v: f"{100 * v:.1f}", value)


def fraction(value: float) -> str:
    """`.146`: three decimals, no leading zero."""
    return or_dash(lambda v: f"{v:.3f}".removeprefix("0") if v < 1 else f"{v:.3f}", value)


def whole(value: float) -> str:
    return or_dash(lambda v: f"{v:.0f}", value)


def or_dash(say: Callable[[float], str], value: float) -> str:
    return "—" if math.isnan(value) else say(value)
