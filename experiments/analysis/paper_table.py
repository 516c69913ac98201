"""A table of a paper in its own layout: its numbers, and how the paper prints them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper, both as numbers and as the text that the paper prints."""

    name: str
    data: pd.DataFrame
    """The numbers; shares are fractions of 1."""
    printed: pd.DataFrame
    """The cells as text, in the paper's layout, under its headings."""
    title: str = ""
    """One line that says what the paper shows there."""


def percent(value: float) -> str:
    """A share as percent with one decimal, `14.8`; `—` for NaN."""
    return or_dash(lambda v: f"{100 * v:.1f}", value)


def fraction(value: float) -> str:
    """A number with three decimals and no leading zero, `.146`; `—` for NaN."""
    return or_dash(lambda v: f"{v:.3f}".removeprefix("0") if v < 1 else f"{v:.3f}", value)


def whole(value: float) -> str:
    """A number without decimals, `15`; `—` for NaN."""
    return or_dash(lambda v: f"{v:.0f}", value)


def or_dash(say: Callable[[float], str], value: float) -> str:
    """The text that `say` gives for a number; `—` for NaN."""
    return "—" if math.isnan(value) else say(value)
