"""Two ways of measuring the same steps against each other."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    Style,
    panels,
    points,
    unit_square,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import pairs_of
from faithscope.experiments.analysis.tidy import rows, where, with_interval

BETWEEN_STYLES = {
    "generated~scored in prefix": Style(BLUE, "o", "in prefix"),
    "generated~scored in reprompt": Style(ORANGE, "s", "in reprompt"),
    "prefix~reprompt in generated": Style(GREEN, "^", "in generated"),
    "prefix~reprompt in scored": Style(PURPLE, "D", "in scored"),
}
_SIDES = {
    "generated~scored in prefix": ("prefix", "generated", "prefix", "scored"),
    "generated~scored in reprompt": ("reprompt", "generated", "reprompt", "scored"),
    "prefix~reprompt in generated": ("prefix", "generated", "reprompt", "generated"),
    "prefix~reprompt in scored": ("prefix", "scored", "reprompt", "scored"),
}


def contrast_table(slrc: pd.DataFrame, measure: str = "necessity") -> pd.DataFrame:
    """One measure taken in two ways, a row per model, task and comparison.

    Returns:
        `across` and `up` with their intervals: the left and the right side of `between`,
        and `difference` = up - across.
    """
    measured = {
        (r["model"], r["task"], r["framing"], r["reading"]): r
        for r in rows(slrc)
        if not math.isnan(r[measure])
    }
    table = []
    for pair in pairs_of(slrc):
        for between, sides in _SIDES.items():
            left, right = measured.get((*pair, *sides[:2])), measured.get((*pair, *sides[2:]))
            if left and right:
                row = {"model": pair[0], "task": pair[1], "between": between}
                for side, values in (("across", left), ("up", right)):
                    own = with_interval(side)
                    row |= {c: values[m] for c, m in zip(own, with_interval(measure), strict=True)}
                table.append(row | {"difference": right[measure] - left[measure]})
    columns = ["model", "task", "between", *with_interval("across", "up"), "difference"]
    return pd.DataFrame(table, columns=columns)


def contrast_picture(slrc: pd.DataFrame) -> Picture:
    """Necessity, generated against scored and prefix against reprompt."""
    data = contrast_table(slrc)

    def draw(ax: Axes, ways: tuple[str, str]) -> None:
        for between, style in BETWEEN_STYLES.items():
            own = where(data, between=between)
            if between.startswith("~".join(ways)) and len(own):
                points(ax, own, "across", "up", style)
        unit_square(ax).set(xlabel=f"necessity, {ways[0]}", ylabel=f"necessity, {ways[1]}")
        ax.set_aspect("equal")

    ways = [("generated", "scored"), ("prefix", "reprompt")]
    drawn = [w for w in ways if any(b.startswith("~".join(w)) for b in data["between"])]
    titles = [f"{across} against {up}" for across, up in drawn]
    widths = {1: 4.7, 2: 8.6}
    return Picture(
        "contrasts",
        "The same steps, measured in two ways",
        "Step necessity of every model and task with 95 % Wilson intervals. Points below the "
        "diagonal lose necessity in the way of measuring that is drawn upwards, points above it "
        "gain.",
        data,
        panels(drawn, draw, titles, height=3.3, widths=widths, shared=False),
        "Only one framing and one reading were run, so there is nothing to compare.",
    )
