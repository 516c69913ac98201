"""The drawing at the head of a measure's page: a chain of boxes, what is done to them, an arrow to
the answer. One template for all; `docs/measures/heads.yaml` says what stands in it.

The colours are variables of the page (`analysis/colours.py`), so a drawing is light or dark as the
page is.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MARKS = {
    "removed": "removed",
    "filled": "replaced by filler",
    "changed": "changed",
    "rewritten": "written anew by the model",
    "unseen": "stays, but cannot be looked at",
    "added": "added",
    "read": "read inside the model",
    "patched": "its states exchanged with those of another run",
    "steered": "written anew while a direction is added inside the model",
}
"""First word of a box -> what it says is done, in words."""
WIDTH, HEIGHT, GAP, TOP = 84, 36, 12, 30
"""Of a box, of the space between two, and of the space above them for arcs."""
STYLE = {
    "": "fill:var(--card);stroke:var(--ink)",
    "removed": "fill:var(--card);stroke:var(--quiet)",
    "filled": "fill:var(--card);stroke:var(--ink);stroke-width:2;stroke-dasharray:1 4",
    "changed": "fill:var(--line);stroke:var(--ink)",
    "rewritten": "fill:var(--card);stroke:var(--accent);stroke-dasharray:6 3",
    "unseen": "fill:var(--card);stroke:var(--ink)",
    "added": "fill:var(--card);stroke:var(--accent);stroke-width:2",
    "read": "fill:var(--card);stroke:var(--plot-3);stroke-width:3",
    "patched": "fill:var(--line);stroke:var(--plot-3);stroke-width:3",
    "steered": "fill:var(--card);stroke:var(--plot-3);stroke-width:3;stroke-dasharray:6 3",
}
"""Mark of a box -> ground and outline; no colour is one of results, that of internals is theirs."""
SHOWN = {"filled": "· · ·", "changed": "{}′", "added": "+ {}"}
"""Mark of a box -> what stands in it, of its label."""


def drawing(boxes: Sequence[str], asks: str) -> str:
    """An SVG element of a chain and of what is asked at its end."""
    parted = [_parted(box) for box in [*boxes, asks]]
    *chain, (last_mark, last) = parted
    middle = TOP + HEIGHT / 2
    drawn, middles, x = [], [], 2.0
    for mark, label in chain:
        wide = _width(label)
        drawn.append(_box(x, mark, label, wide))
        drawn.append(_line(x + wide, middle, x + wide + GAP, middle))
        middles.append(x + wide / 2)
        x += wide + GAP
    # the answer stands further off, behind an arrow
    end = x + 14
    wide = _width(last)
    drawn.append(_line(x - GAP, middle, end - 2, middle, " marker-end='url(#tip)'"))
    drawn.append(_box(end, last_mark, last, wide, HEIGHT / 2))
    for start, (mark, _) in zip(middles, chain, strict=True):
        if mark == "unseen":
            drawn.append(_arc(start, end + wide / 2))
    used = [mark for mark in MARKS if mark in {m for m, _ in parted}]
    legend, below = [], TOP + HEIGHT + 22
    for mark in used:
        legend.append(
            f'<rect x="2" y="{below - 10}" width="18" height="12" rx="2" style="{STYLE[mark]}"/>'
            + (_strike(2, below - 10, 18, 12) if mark == "removed" else "")
            + (_cross(11, below - 4, 4) if mark == "unseen" else "")
            + f'<text x="28" y="{below}" class="said">{MARKS[mark]}</text>'
        )
        below += 18
    above = 0 if "unseen" in used else TOP - 3
    width, height = end + wide + 2, below - 8 - above
    told = ", ".join(f"{label} {MARKS[mark]}" if mark else label for mark, label in chain)
    return (
        f'<svg class="chain" role="img" viewBox="0 {above} {width:g} {height:g}" width="{width:g}" '
        f'aria-label="{escape(f"{told}; then: {last}")}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" style="fill:var(--ink)"/></marker>'
        f"</defs>{''.join(drawn)}{''.join(legend)}</svg>"
    )


def _parted(box: str) -> tuple[str, str]:
    """The mark of a box, or none, and its label."""
    first, _, rest = box.partition(" ")
    return (first, rest) if first in MARKS and rest else ("", box)


def _width(label: str) -> float:
    return max(WIDTH, 8 * len(label) + 24)


def _box(x: float, mark: str, label: str, width: float, round_by: float = 4) -> str:
    shown = escape(SHOWN.get(mark, "{}").format(label))
    text = (
        f'<text x="{x + width / 2:g}" y="{TOP + HEIGHT / 2 + 5:g}" '
        f'text-anchor="middle">{shown}</text>'
    )
    rect = (
        f'<rect x="{x:g}" y="{TOP}" width="{width:g}" height="{HEIGHT}" rx="{round_by:g}" '
        f'style="{STYLE[mark]}"/>'
    )
    return rect + text + (_strike(x, TOP, width, HEIGHT) if mark == "removed" else "")


def _strike(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<path d="M{x:g} {y + height:g} l{width:g} {-height:g}" '
        'style="stroke:var(--ink);stroke-width:2"/>'
    )


def _line(x: float, y: float, x2: float, y2: float, more: str = "") -> str:
    return f'<path d="M{x:g} {y:g} L{x2:g} {y2:g}" style="stroke:var(--ink)"{more}/>'


def _arc(start: float, end: float) -> str:
    """What the answer would look at, cut."""
    x = (start + end) / 2
    path = f"M{end:g} {TOP} C{end:g} 2 {start:g} 2 {start:g} {TOP}"
    dashed = f'<path d="{path}" style="fill:none;stroke:var(--quiet);stroke-dasharray:4 3"/>'
    return dashed + _cross(x, 9, 6)


def _cross(x: float, y: float, half: float) -> str:
    lines = (
        f"M{x - half:g} {y - half:g} l{2 * half} {2 * half} m0 -{2 * half} l-{2 * half} {2 * half}"
    )
    return f'<path d="{lines}" style="stroke:var(--ink);stroke-width:2"/>'
