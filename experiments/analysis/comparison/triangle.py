"""The picture that a comparison opens with: behaviour, log-probabilities, internals and judges as a
triangle of correlations, for a page, for a column of a paper, and as text for a terminal.

The names of the four stand on the diagonal. A cell below it is of the two kinds whose names are
above it and at its right. What is beyond chance is coloured and filled, and nothing else is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from faithscope.experiments.analysis.axes import LARGE, SMALL, WIDTHS
from faithscope.experiments.analysis.colours import FAMILY_NAMES, GREEN, GREY, PURPLE
from faithscope.experiments.analysis.comparison.headline import KINDS
from faithscope.experiments.analysis.comparison.trust import LEVEL
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import count, keep, mean, only, rows, where
from faithscope.experiments.numerals import decimal, interval

WORDS = {kind: FAMILY_NAMES[family] for kind, family in KINDS.items()}
"""Kind of evidence -> its name for readers."""
COLOURS = {1: GREEN, -1: PURPLE, 0: GREY}
"""Sign of a correlation that is beyond chance -> its colour; 0 of one that is not shown to be."""
SHARED = "†"
"""Mark of two measures that are made of the same forward passes or replies."""
ZOOM = 1.2
"""How many times larger the picture is on a page: its numbers are as large as the page's text."""
CELL, INSIDE, KEY = 0.92, 0.065, 1.92
"""Inches of a cell's width, of the margin in it, and of the place of the key at the right."""
HEAD, LINE, GAP = 0.24, 0.135, 0.05
"""Inches of the row of the first name, of a line of text in a cell, and around what is in it."""
BESIDE = 10
"""Characters of a number and of what stands beside it that fit in one line of a cell."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Mark:
    """A correlation on the axis of a cell, from −1 to 1."""

    value: float
    sign: int = 0
    """1 or −1 if it is beyond chance, else 0."""
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Entry:
    """What a cell says of two kinds of evidence, in one framing or in all."""

    number: str
    beside: str
    """What stands in the line of the number: how many traces."""
    below: str
    marks: Sequence[Mark]
    told: bool
    """Whether something of it is beyond chance."""
    framing: str = ""

    @property
    def lines(self) -> list[str]:
        """The entry as lines for a terminal; `●` marks what is beyond chance."""
        number = f"{self.number} {'●' if self.told else '○'}  {self.beside}"
        return [x for x in (self.framing, number.rstrip(), self.below) if x]

    @property
    def fits(self) -> bool:
        """Whether `beside` fits beside the number; else it has a line of its own."""
        return not self.beside or len(self.number) + len(self.beside) <= BESIDE

    @property
    def height(self) -> float:
        """Inches of the entry in a cell."""
        return LINE * (3 + bool(self.framing) + (not self.fits)) + GAP


Cells = Mapping[Pair, Sequence[Entry]]
"""Two kinds of evidence, in the order of `WORDS` -> what is said of them; nothing if not known."""


def beyond(row: Mapping[str, Any]) -> int:
    """The sign of a row of table `headline` that is beyond chance after correction; else 0."""
    return (1 if row["rho"] > 0 else -1) if row["p_corrected"] <= LEVEL else 0


def headline_picture(headline: pd.DataFrame) -> Picture:
    """The primary measures of the four kinds, correlated: table `headline` as a triangle."""
    known = headline.dropna(subset=["rho"])
    framed = len(set(known["framing"]) - {""}) > 1
    cells = {(r["one"], r["two"]): list(_entries(known, r, framed)) for r in rows(known)}
    shown = [e for of in cells.values() for e in of]
    names = ["one", "two", "framing", "measure", "other", "n", "rho", "rho_low", "rho_high"]
    caption = [
        "Spearman's ρ of the primary measures, inside each model and task, each turned so that "
        "more is more faithful; its interval and its place between −1 and 1; n traces."
    ]
    for kind in WORDS:
        sides = (where(known, one=kind)["measure"], where(known, two=kind)["other"])
        if measures := dict.fromkeys(name for side in sides for name in side):
            caption.append(f"{WORDS[kind].capitalize()}: {', '.join(measures)}.")
    caption += _key(
        {mark.sign for e in shown for mark in e.marks}, "after correction for all tests"
    )
    if any(m.low * m.high > 0 and not m.sign for e in shown for m in e.marks):
        caption.append("Intervals are of single tests: one that leaves out 0 may be chance.")
    if any(e.framing == BOTH for e in shown):
        caption.append("Both framings: the two rank the traces just alike, and are one test.")
    if count(known["one_probe"].eq(True)):
        caption.append(
            f"{SHARED} Both measures are read off the same forward passes and share their noise, "
            "so that the pair is not counted above."
        )
    title = "Behaviour, log-probabilities, internals and judges, two by two"
    return _picture("headline", title, caption, only(known, [*names, "p", "p_corrected"]), cells)


BOTH = "both framings"


def _entries(known: pd.DataFrame, pair: Mapping[str, Any], framed: bool) -> Iterator[Entry]:
    """The entries of a pair of kinds; framings that are one test are one entry."""
    of = rows(where(known, one=pair["one"], two=pair["two"]))
    same = len(of) > 1 and len({(r["rho"], r["n"]) for r in of}) == 1 and bool(of[-1]["tested_as"])
    for row in of[:1] if same else of:
        sign = beyond(row)
        mark = Mark(row["rho"], sign, row["rho_low"], row["rho_high"])
        dagger = f" {SHARED}" if row["one_probe"] is True else ""
        ends = f"{interval(mark.low, mark.high)}{dagger}"
        name = (BOTH if same else row["framing"]) if framed else ""
        about = (decimal(mark.value, plus=True), f"n {int(row['n']):,}", ends)
        yield Entry(*about, [mark], bool(sign), name)


def unknown(headline: pd.DataFrame) -> Iterator[str]:
    """Sentences on the pairs of kinds that were not tested, one for each reason."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows(keep(headline, headline["p"].isna())):
        known = count(where(headline, one=row["one"], two=row["two"])["p"].notna())
        name = f"{WORDS[row['one']]} and {WORDS[row['two']]}"
        name += f" ({row['framing']})" if known else ""
        reasons.setdefault(row["reason"], {})[name] = None
    for reason, names in reasons.items():
        yield f"Not tested: {', '.join(names)} ({reason})."


def families_picture(agreement: pd.DataFrame) -> Picture:
    """All measures of the four kinds, correlated: table `agreement` as a triangle.

    Pairs that are one test count once. Pairs of one probe stand for two kinds that have no others.
    """
    kinds = {family: kind for kind, family in KINDS.items()}
    tested = keep(agreement, agreement["p"].notna() & agreement["tested_as"].eq(""))
    tested = keep(tested, tested["family"].isin(kinds) & tested["other_family"].isin(kinds))
    tested = keep(tested, tested["family"] != tested["other_family"])
    of: dict[Pair, list[dict[str, Any]]] = {}
    for row in rows(tested):
        pair = sorted((kinds[row["family"]], kinds[row["other_family"]]), key=list(WORDS).index)
        of.setdefault((pair[0], pair[1]), []).append(row)
    cells = {pair: [_of_all(every)] for pair, every in of.items()}
    signs = {mark.sign for of in cells.values() for entry in of for mark in entry.marks}
    shared = any(SHARED in entry.number for of in cells.values() for entry in of)
    caption = [
        "Pairs of measures of two kinds that rank the traces of a model and task alike, or the "
        "opposite way, beyond chance, of all that were tested; the mean of their ρ; and every ρ "
        "between −1 and 1.",
        *_key(signs, "at the rate of false discoveries that is kept"),
        *([f"{SHARED} All of one probe, made of the same numbers: not counted above."] * shared),
    ]
    names = ["measure", "family", "other", "other_family", "n", "within", "p", "q", "discovered"]
    title = "All measures of behaviour, log-probabilities, internals and judges"
    return _picture("families", title, caption, only(tested, names), cells)


def _of_all(pairs: Sequence[dict[str, Any]]) -> Entry:
    """The entry of two kinds of evidence, of all pairs of their measures."""
    apart = [row for row in pairs if not row["one_probe"]]
    of = apart or pairs
    found = sum(bool(row["discovered"]) for row in of)
    number = f"{found:,} of {len(of):,}{'' if apart else f' {SHARED}'}"
    mean_rho = f"mean ρ {decimal(mean([row['within'] for row in of]), plus=True)}"
    return Entry(number, "", mean_rho, [Mark(r["within"], _sign(r)) for r in of], found > 0)


def _sign(row: Mapping[str, Any]) -> int:
    return (1 if row["within"] > 0 else -1) if row["discovered"] else 0


def _key(signs: set[int], how: str) -> Iterator[str]:
    """What the colours say of what is drawn."""
    words = {1: "green: alike", -1: "purple: the opposite way"}
    if there := [words[sign] for sign in (1, -1) if sign in signs]:
        rest = "; grey and hollow: not shown to be" if 0 in signs else ""
        yield f"Coloured and filled is what is beyond chance {how} ({', '.join(there)}){rest}."
    elif signs:
        yield f"Nothing is coloured: no ρ is beyond chance {how}."


def _picture(name: str, title: str, caption: Iterable[str], data: Any, cells: Cells) -> Picture:
    kinds = [kind for kind in WORDS if any(kind in pair for pair in cells)]
    figure, text = (_figure(cells, kinds), _text(cells, kinds)) if cells else (None, None)
    none = "no two kinds of evidence have enough traces in common."
    return Picture(name, title, " ".join(caption), data, figure, none, ZOOM, text)


def _text(cells: Cells, kinds: Sequence[str]) -> pd.DataFrame:
    def lines(one: str, two: str) -> str:
        return "\n".join(line for entry in cells.get((one, two), ()) for line in entry.lines)

    columns = {WORDS[one]: [lines(one, two) for two in kinds[1:]] for one in kinds[:-1]}
    return pd.DataFrame({"": [WORDS[two] for two in kinds[1:]], **columns})


def _figure(cells: Cells, kinds: Sequence[str]) -> Figure:
    tall = [
        max((sum(e.height for e in cells.get((one, two), ())) for one in kinds[:i]), default=0)
        for i, two in enumerate(kinds)
    ]
    tops = [0.0, *itertools.accumulate([HEAD, *(max(h + GAP, 3 * LINE) for h in tall[1:])])]
    bottom = tops[-1] + 0.02
    figure = Figure(figsize=(WIDTHS["column"], bottom))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTHS["column"]), ylim=(bottom, 0))
    ax.axis("off")
    name: dict[str, Any] = {"fontsize": LARGE, "weight": "bold", "ha": "center", "va": "center"}
    for i, two in enumerate(kinds):
        wide = min(CELL, WIDTHS["column"] - i * CELL)
        middle = (i * CELL + wide / 2, (tops[i] + tops[i + 1]) / 2)
        ax.text(*middle, WORDS[two].replace("-", "-\n"), linespacing=1.05, **name)
        for j, one in enumerate(kinds[:i]):
            _cell(ax, cells.get((one, two), ()), j * CELL, tops[i], tops[i + 1] - tops[i])
    _legend(ax, {mark.sign for of in cells.values() for e in of for mark in e.marks})
    return figure


def _legend(ax: Axes, signs: set[int]) -> None:
    """What the dots and their axis mean, in the free corner."""
    words = {1: "alike, beyond chance", -1: "opposite, beyond chance", 0: "not shown"}
    y = LINE
    for sign in (sign for sign in words if sign in signs):
        _dot(ax, KEY, y, sign)
        ax.text(KEY + 0.08, y, words[sign], fontsize=SMALL, va="center")
        y += LINE
    ax.text(KEY - 0.03, y, "ρ on an axis from −1 to 1", fontsize=SMALL, va="center")


def _cell(ax: Axes, of: Sequence[Entry], left: float, top: float, tall: float) -> None:
    inner = (left + 0.015, top + 0.015), CELL - 0.03, tall - 0.03
    # a single ρ that is beyond chance colours its cell, one of many pairs of measures does not
    signs = {mark.sign for e in of if len(e.marks) == 1 for mark in e.marks} - {0}
    if len(signs) == 1:
        colour = COLOURS[signs.pop()]
        ax.add_patch(Rectangle(*inner, facecolor=colour, edgecolor="none", alpha=0.14))
    ax.add_patch(Rectangle(*inner, facecolor="none", edgecolor=GREY, lw=0.4))
    if not of:
        at = (left + CELL / 2, top + tall / 2)
        ax.text(*at, "not known", fontsize=SMALL, ha="center", va="center", style="italic")
    y = top + (tall - sum(entry.height for entry in of) + GAP) / 2
    for entry in of:
        _entry(ax, entry, left + INSIDE, y)
        y += entry.height


def _entry(ax: Axes, entry: Entry, left: float, top: float) -> None:
    small: dict[str, Any] = {"fontsize": SMALL, "va": "center"}
    y, right = top + LINE / 2, left + CELL - 2 * INSIDE
    if entry.framing:
        ax.text(left, y, entry.framing, style="italic", **small)
        y += LINE
    weight = "bold" if entry.told else "normal"
    ax.text(left, y, entry.number, fontsize=LARGE, weight=weight, va="center")
    if entry.fits:
        ax.text(right, y, entry.beside, ha="right", **small)
    for text in (entry.below,) if entry.fits else (entry.below, entry.beside):
        y += LINE
        ax.text(left, y, text, **small)
    middle, reach, y = (left + right) / 2, (right - left) / 2, y + 1.05 * LINE
    ax.plot([left, right], [y, y], color=GREY, lw=0.4)
    ax.plot([middle, middle], [y - 0.04, y + 0.04], color=GREY, lw=0.6)
    for mark in sorted(entry.marks, key=lambda m: abs(m.sign)):
        if mark.low == mark.low:
            ends = [middle + reach * max(-1, min(1, end)) for end in (mark.low, mark.high)]
            ax.plot(ends, [y, y], color=COLOURS[mark.sign], lw=1.6, solid_capstyle="butt")
        _dot(ax, middle + reach * mark.value, y, mark.sign)


def _dot(ax: Axes, x: float, y: float, sign: int) -> None:
    """The mark of a ρ: filled where it is beyond chance."""
    colour = COLOURS[sign]
    ax.plot(x, y, "o", ms=3.5, mfc=colour if sign else "none", mec=colour, mew=0.8)
