"""Every colour and colour map of pages and figures, each with one meaning.

No other file names a colour. Colours that one page sets against each other stay apart for readers
with a colour blindness, and text stands out on light and on dark pages; `test_colours.py` holds
both. A figure goes with its page: its colours become the page's variables (`in_page`), which have a
light and a dark value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb
from matplotlib.typing import ColorType


class Style(NamedTuple):
    """Colour and marker of a series, and its name in the legend."""

    colour: str
    marker: str
    label: str


class Shade(NamedTuple):
    """One colour of a page, as it is on light and on dark pages."""

    light: str
    dark: str


PAGE = {
    "ground": Shade("#fbfaf7", "#15171a"),
    "card": Shade("#ffffff", "#1d2024"),
    "ink": Shade("#1d1f21", "#e6e4df"),
    "quiet": Shade("#5f6368", "#a4a8ad"),
    "line": Shade("#dcd9d2", "#383c42"),
    "accent": Shade("#00588c", "#7cc0f0"),
    "bar": Shade("#93a4b1", "#5d6f7c"),
    # an edit changed the answer (used), at times (some), never (ignored), or moved it the other way
    "used": Shade("#6b2800", "#ffceb1"),
    "used-ground": Shade("#f2a068", "#96480f"),
    "some-ground": Shade("#fdf4cc", "#35341d"),
    "ignored-ground": Shade("#d6e7f6", "#173b57"),
    "against-ground": Shade("#6f9fd0", "#2967a8"),
    # a sign: agreement, faithful, more; and disagreement, unfaithful, less
    "positive-ground": Shade("#5fb894", "#1f6b4f"),
    "negative-ground": Shade("#bf8fcb", "#7d4a8c"),
    # a check that passes or fails
    "good": Shade("#00664a", "#74d9b3"),
    "good-ground": Shade("#dbf1e8", "#052a22"),
    "bad": Shade("#7a1205", "#ffd0c6"),
    "bad-ground": Shade("#f0a99c", "#8f3322"),
}
"""Name of a page's variable -> its colour."""
ON_PAPER = {
    **{"ground": "#fff", "ink": "#000", "quiet": "#444", "line": "#bbb", "accent": "#000"},
    "bad-ground": "#fff",
}
"""Variables that differ where a page is printed; the others are as on a light page."""

BLUE, ORANGE, GREEN, PURPLE = "#1754EF", "#A84B00", "#046A53", "#742E74"
AMBER, SKY, GREY = "#C08A00", "#2A9CDE", "#858585"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY)
"""Colours of series that have no meaning beyond the legend, in their order."""
PALE = "#BBBBBB"
"""What stands behind the series, or has no value of its own."""
QUIET, PAPER, INK = "#5F6368", "#FEFEFE", "#000000"
"""Texts beside data, the ground of a figure, and its axes; they follow the page."""
INK_ON_DARK, INK_ON_PALE = "#FFFFFF", "#010101"
"""Texts on cells that are the same on light and dark pages. The latter is not quite black, which
follows the page and turns white on a dark one."""
MISSING = "#DDDDDD"
"""Cells of a map without a value."""

_ON_DARK = dict(
    zip(
        (*SERIES, PALE),
        ("#99A3FF", "#F3762B", "#3DBF7D", "#BA79AD", "#FFDD63", "#C0E8FE", "#B9B9B9", "#777777"),
        strict=True,
    )
)

SIGN = ("#4B1257", "#A66BB5", "#F7F7F7", "#5FB894", "#00452F")
"""Colour map from −1 (disagrees, unfaithful) over 0 to 1 (agrees, faithful)."""
USE = ("#D6E7F6", "#F7CFA8", "#E8833A", "#7D2F00")
"""Colour map from 0 (no edit changes the answer) to 1 (every edit does)."""
AMOUNT = ("#FFFFFF", "#C3CED6", "#7A8A97", "#1C2A35")
"""Colour map of amounts that are neither."""

MARKERS = "os^DvP*X"
LINES = [(c, m) for m in MARKERS[:5] for c in (BLUE, ORANGE, GREEN, PURPLE)]
"""Colours and markers of lines, one per model and task; a figure has at most this many."""
PLAIN = Style(BLUE, "o", "")
FAMILY = {
    "behavioural": Style(BLUE, "o", "behaviour"),
    "logit": Style(SKY, "s", "log-probabilities"),
    "internal": Style(GREEN, "^", "internals"),
    "judged": Style(ORANGE, "D", "judges"),
    "monitor": Style(PURPLE, "v", "monitor, trained"),
}
"""Family of measures -> its colour, marker and name."""
FAMILY_NAMES = {family: of.label for family, of in FAMILY.items() if family != "monitor"}
"""Family of measures -> the name that pages give it; without trained monitors."""
FAITHFUL, UNFAITHFUL = GREEN, PURPLE
"""What a label, a judge or a rule says of a chain."""


def styles_for(names: Iterable[str], labels: Mapping[str, str] | None = None) -> dict[str, Style]:
    """A colour and a marker for each name, in their order; the first 49 are all different.

    A name has one colour in several figures if all are given the same names, also those that a
    figure lacks.
    """
    return {
        name: Style(SERIES[i % 7], MARKERS[(i + i // 7) % 7], (labels or {}).get(name, name))
        for i, name in enumerate(names)
    }


def colour_map(stops: Sequence[str], missing: str = "none") -> Colormap:
    """The colour map through `stops`, with the colour `missing` for cells without a value."""
    return LinearSegmentedColormap.from_list("faithscope", list(stops)).with_extremes(bad=missing)


def ink_on(colour: ColorType) -> str:
    """The colour of text with most contrast on `colour`; both contrasts are equal at a relative
    luminance of .179 (WCAG 2.2). On a colour that follows the page, text does so as well."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] >= 0.179:
        return INK_ON_PALE
    return PAPER if colour in SERIES else INK_ON_DARK


def in_page() -> dict[str, str]:
    """Colour of a figure -> what it becomes in a page, which may be light or dark."""
    named = {INK: "currentColor", QUIET: "var(--quiet)", PAPER: "var(--card)"}
    return named | {c: f"var(--plot-{i})" for i, c in enumerate((*SERIES, PALE), start=1)}


def properties(dark: bool = False) -> str:
    """The variables of a page: CSS custom properties."""
    shades = PAGE | {f"plot-{i}": Shade(*of) for i, of in enumerate(_ON_DARK.items(), start=1)}
    return " ".join(f"--{name}: {shade[dark]};" for name, shade in shades.items())


def style_of_pages() -> str:
    """CSS that gives every page its variables: light, dark, and on paper."""
    printed = " ".join(f"--{name}: {colour};" for name, colour in ON_PAPER.items())
    return (
        f":root {{ {properties()} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {properties(dark=True)} }} }}\n"
        f"@media print {{ :root {{ {properties()} {printed} }} }}\n"
    )
