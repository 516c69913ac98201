"""How readers see numbers: one dialect for pages, figures, tables and the terminal.

No other file of `experiments` formats a number with decimals for readers; `test_numerals.py` holds
that. A share is a percentage in sentences and verdicts (`57 %`) and a fraction in tables and beside
correlations (`0.57`); a p-value, which can never be 1 or more in earnest, has no zero before the
point (`p < .001`). A negative number has a minus sign, not a hyphen. An interval has a width: one
whose ends are equal is not written.
"""

from __future__ import annotations

import math

DASH = "–"
"""What stands for a number that is not known."""


def decimal(value: float, digits: int = 2, *, plus: bool = False) -> str:
    """A number with a fixed number of decimals: `0.57`, `−0.57`, `∞`; a dash for NaN.

    Args:
        plus: whether a number that is not negative has a plus sign.
    """
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    shown = f"{abs(value):.{digits}f}"
    return f"{_sign(value, float(shown) == 0, plus)}{shown}"


def significant(value: float, digits: int = 2, *, plus: bool = False) -> str:
    """A number with so many significant digits at most, with commas between thousands and without
    an exponent: `0.0034`, `1,200`; a dash for NaN."""
    if not math.isfinite(value) or value == 0:
        return decimal(value, 0, plus=plus)
    # a number of more digits before the point keeps them
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    shown = f"{abs(value):,.{places}f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return f"{_sign(value, False, plus)}{shown}"


def money(dollars: float) -> str:
    """An amount of dollars, without their sign: `1,234.50`."""
    return f"{dollars:,.2f}"


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage: `57 %`; a dash for NaN."""
    return DASH if math.isnan(share) else f"{hundredths(share, digits)} %"


def hundredths(share: float, digits: int = 0) -> str:
    """A share in per cent, without the sign, for a place that says the unit itself."""
    return decimal(100 * share, digits)


def interval(low: float, high: float, digits: int = 2, *, plus: bool = False) -> str:
    """An interval: `[0.40, 0.62]`; empty where it is not known or has no width."""
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    return f"[{decimal(low, digits, plus=plus)}, {decimal(high, digits, plus=plus)}]"


def percent_interval(low: float, high: float) -> str:
    """An interval of shares: `40–62 %`; empty where it is not known or has no width."""
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    ends = hundredths(low), hundredths(high)
    return f"{' to '.join(ends) if low < 0 else '–'.join(ends)} %"


def estimate(value: float, low: float, high: float, digits: int = 2, *, plus: bool = False) -> str:
    """A number with its interval, if it has one: `0.57 [0.40, 0.62]`."""
    ends = interval(low, high, digits, plus=plus)
    return f"{decimal(value, digits, plus=plus)} {ends}".rstrip()


def p_value(p: float) -> str:
    """A p-value with its letter: `p = .012`, `p < .001`."""
    if p < 0.001:
        return "p < .001"
    return f"p = {decimal(p, 3).removeprefix('0')}"


def _sign(value: float, is_zero: bool, plus: bool) -> str:
    if value < 0 and not is_zero:
        return "−"
    return "+" if plus else ""
