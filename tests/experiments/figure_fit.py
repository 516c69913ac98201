"""Whether a figure holds all that it draws, and each legend names a thing once."""

from __future__ import annotations

from collections import Counter

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text


def texts_of(figure: Figure | None) -> str:
    """All that is written in a figure."""
    assert figure is not None
    return "\n".join(t.get_text() for t in figure.findobj(match=lambda a: hasattr(a, "get_text")))


def drawing_problems(figure: Figure) -> list[str]:
    """Texts and legends that reach beyond the figure, where no file and no page shows them; names
    that a legend has twice."""
    figure.draw_without_rendering()
    undrawn: set[Text] = set()
    for axis in figure.findobj(Axis):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low <= tick.get_loc() <= high:
                undrawn |= {tick.label1, tick.label2}
    problems = []
    for legend in figure.findobj(Legend):
        names = Counter(text.get_text() for text in legend.get_texts())
        problems += [f"{name}, {n} times in a legend" for name, n in names.items() if n > 1]
    for artist in figure.findobj(lambda a: isinstance(a, Text | Legend)):
        text = artist.get_text() if isinstance(artist, Text) else "the legend"
        if not artist.get_visible() or artist in undrawn or not text.strip():
            continue
        extent, frame = artist.get_window_extent(), figure.bbox
        beyond = max(frame.x0 - extent.x0, frame.y0 - extent.y0, extent.x1 - frame.x1)
        if max(beyond, extent.y1 - frame.y1) > 0.01 * figure.dpi:
            problems.append(text)
    return problems
