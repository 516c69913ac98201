"""A figure with its numbers, saved as files or embedded in a page."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import BLUE, PURPLE
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.files import write_atomically

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.markersize": 5,
    # Names of models and tasks are plain text, whatever characters they hold.
    "text.parse_math": False,
    "svg.hashsalt": "faithscope",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Picture:
    """One figure with its numbers, or the reason why there is none."""

    name: str
    title: str
    caption: str
    data: pd.DataFrame
    figure: Figure | None
    absent: str = ""


def save(picture: Picture, folder: Path) -> None:
    """Write `<name>.png`, `.pdf` and `.csv`; a picture without a figure writes no file."""
    paths = {suffix: folder / f"{picture.name}.{suffix}" for suffix in ("png", "pdf", "csv")}
    if picture.figure is None:
        for path in paths.values():
            path.unlink(missing_ok=True)
        return
    with mpl.rc_context(STYLE):
        _lay_out(picture.figure)
        # No date and no library version in the metadata: the same numbers give the same bytes.
        png, pdf = io.BytesIO(), io.BytesIO()
        picture.figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
        nobody = {"CreationDate": None, "Producer": None, "Creator": None}
        picture.figure.savefig(pdf, format="pdf", dpi=160, metadata=nobody)
    write_atomically(paths["png"], png.getvalue())
    write_atomically(paths["pdf"], pdf.getvalue())
    write_atomically(paths["csv"], to_csv(picture.data))


def _lay_out(figure: Figure) -> None:
    """Lay out the figure once; otherwise every saved file repeats the layout pass."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine(None)


REM_PER_INCH = 6.9
"""Size on the page, in rem, of an inch of a figure; its letters are then as large as in tables."""
LEAST_REM = 36
"""Least width, in rem, to which a large figure shrinks; in a narrower window it is scrolled."""


def svg(picture: Picture) -> str:
    """The figure as inline SVG that follows the colours of the page around it.

    Black becomes `currentColor`, the background becomes transparent, and colours that would be lost
    on a dark background become CSS variables of the page. Ids carry the figure's name, so that one
    page can hold several figures.

    Raises:
        ValueError: the picture has no figure.
    """
    if picture.figure is None:
        raise ValueError(f"figure {picture.name!r} was not drawn: {picture.absent}")
    file = io.StringIO()
    with mpl.rc_context(STYLE):
        _lay_out(picture.figure)
        picture.figure.savefig(
            file, format="svg", dpi=160, transparent=True, metadata={"Date": None}
        )
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.S)
    # nothing refers to an image, and two of the same pixels would have the same id
    number = itertools.count()
    text = re.sub(r'\bid="image[0-9a-f]+"', lambda _: f'id="image{next(number)}"', text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", text)
    width = round(picture.figure.get_figwidth() * REM_PER_INCH, 2)
    size = f"max-width: {width}rem; min-width: {min(width, LEAST_REM)}rem"
    named = f'role="img" aria-labelledby="{picture.name}-title" fill="currentColor" style="{size}"'
    text = re.sub(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', rf"<svg {named} \1>", text, count=1)
    inks = {"#000000": "currentColor", BLUE: "var(--plot-blue)", PURPLE: "var(--plot-purple)"}
    for colour, ink in inks.items():
        text = text.replace(colour.lower(), ink)
    return text
