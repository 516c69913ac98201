"""A figure with its numbers, saved as files or embedded in a page."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from faithscope.experiments.analysis.axes import LARGE, SMALL, plain_ticks
from faithscope.experiments.analysis.colours import in_page
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.files import remove, write_atomically

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": LARGE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": LARGE,
    "figure.labelsize": LARGE,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    # Names of models and tasks are plain text, whatever characters they hold.
    "text.parse_math": False,
    "svg.hashsalt": "faithscope",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


_PROMISE = re.compile(
    r"([,;]? (each )?with (its |their )?|[.;] )95 % (Wilson |bootstrap )?(intervals?|bands)"
    r"( over \w+)?( that[^.;]*)?( in black)?(?=[ .;,])"
)
"""What a caption says of its intervals."""


@dataclass(frozen=True)
class Picture:
    """One figure with its numbers, or the reason why it was not drawn."""

    name: str
    """Name of the saved files, without their endings."""
    title: str
    """Title on the page, as a rule the question that the figure answers."""
    caption: str
    data: pd.DataFrame
    """The numbers that are drawn, saved as CSV."""
    figure: Figure | None
    """The drawn figure; None where there is nothing to draw."""
    absent: str = ""
    """Why there is no figure, in a sentence for the page."""
    zoom: float = 1.0
    """How many times larger the figure is on a page than its inches say."""
    text: pd.DataFrame | None = None
    """The picture as a small table of texts, for a terminal; None for one that only pages show."""

    @property
    def said(self) -> str:
        """The caption, without its promise of intervals where the numbers have none."""
        ends = [name for name in self.data if str(name).endswith("_low")]
        if not ends or self.data[ends].notna().to_numpy().any():
            return self.caption
        said = _PROMISE.sub("", self.caption)
        none = " No interval is drawn: there are too few items for one."
        return said if said == self.caption else said + none

    @property
    def sheets(self) -> list[Figure]:
        """The figure, in several sheets if it would be too tall for a page of a paper."""
        return [] if self.figure is None else [self.figure, *getattr(self.figure, "further", ())]


def save(picture: Picture, folder: Path) -> None:
    """Write `<name>.png`, `.pdf` and `.csv`, and `<name>-2.png` and so on for further sheets; a
    picture without a figure writes no file."""
    stale = re.compile(
        rf"{re.escape(picture.name)}(-\d+)?\.(png|pdf)|{re.escape(picture.name)}\.csv"
    )
    for path in [p for p in folder.iterdir() if stale.fullmatch(p.name)]:
        remove(path)
    if not picture.sheets:
        return
    for name, figure in zip(_names(picture), picture.sheets, strict=True):
        with mpl.rc_context(STYLE):
            _lay_out(figure)
            # without date and library version in the metadata the same numbers give the same bytes
            png, pdf = io.BytesIO(), io.BytesIO()
            figure.savefig(png, format="png", dpi=300, metadata={"Software": None})
            nobody = {"CreationDate": None, "Producer": None, "Creator": None}
            figure.savefig(pdf, format="pdf", dpi=300, metadata=nobody)
            FigureCanvasAgg(figure)  # without the raster, which the figure would keep
        write_atomically(folder / f"{name}.png", png.getvalue())
        write_atomically(folder / f"{name}.pdf", pdf.getvalue())
    write_atomically(folder / f"{picture.name}.csv", to_csv(picture.data))


def _names(picture: Picture) -> list[str]:
    more = range(2, len(picture.sheets) + 1)
    return [picture.name, *(f"{picture.name}-{number}" for number in more)]


def _lay_out(figure: Figure) -> None:
    """Lays the figure out once; otherwise every saved file would repeat the layout pass."""
    if figure.get_layout_engine() is not None:
        plain_ticks(figure)
        with _fine(figure):
            figure.draw_without_rendering()
        figure.set_layout_engine(None)


@contextmanager
def _fine(figure: Figure) -> Iterator[None]:
    """A context in which letters are as wide as in drawings of lines: the pixels of a raster round
    their widths, and one of a tall figure would take half a gigabyte."""
    coarse = figure.get_dpi()
    FigureCanvasSVG(figure)
    figure.set_dpi(72)
    yield
    figure.set_dpi(coarse)
    FigureCanvasAgg(figure)


def _whole(figure: Figure) -> Bbox:
    """The figure's frame in inches, and what the layout had no room for, as long names beside an
    axis."""
    with _fine(figure):
        return Bbox.union([figure.bbox_inches, figure.get_tightbbox().padded(0.02)])


_PLACES = re.compile(r"(\.\d\d)\d+")
"""Decimals of a place: a thousandth of a point is in no picture."""
_LIGHTER = (
    (r"; stroke-linejoin: miter", ""),
    (r">\s+<", "><"),
    (r"(?<!\s)[^\S\n]*\n\s*([A-Zz])\s*", r"\1"),
    (r"(?<!\s)[^\S\n]*\n\s*\"", '"'),
    (r"font-family: 'DejaVu Sans'(, [^;\"]*)?;? ?", ""),
    (r" transform=\"rotate\(-0 [^)\"]*\)\"", ""),
)
"""Patterns and what they become in the text of a drawing, which is then half as long."""


def _lighter(text: str) -> str:
    # numbers that readers see, between tags, keep their digits
    text = re.sub(r"<[^<>]*>", lambda tag: _PLACES.sub(r"\1", tag[0]), text)
    for pattern, shorter in _LIGHTER:
        text = re.sub(pattern, shorter, text)
    return _ungrouped(text)


def _ungrouped(text: str) -> str:
    """A drawing without the names of groups that nothing refers to, and without the groups that
    then say nothing: a fifth of it."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r'<g id="([^"]*)"', lambda m: m[0] if m[1] in used else "<g", text)
    parts, plain = list[str](), list[bool]()
    for part in re.split(r"(<g(?: [^<>]*)?>|<g/>|</g>)", text):
        if part == "</g>":
            part = "" if plain.pop() else part
        elif part in {"<g>", "<g/>"} or (part.startswith("<g ") and not part.endswith("/>")):
            if part != "<g/>":
                plain.append(part == "<g>")
            part = part.removeprefix("<g>").removeprefix("<g/>")
        parts.append(part)
    return "".join(parts)


REM_PER_INCH = 7.8
"""Width on the page, in rem, of one inch of a figure; its text is then as large as that of
tables."""
LEAST, LEAST_REM = 0.8, 36
"""Share of its width, and width in rem, to which a figure shrinks; in a narrower window it
scrolls."""


def svg(picture: Picture) -> str:
    """The figure as inline SVG that follows the colours of the page around it.

    The background becomes transparent, and colours become CSS variables of the page. Ids carry the
    figure's name, so that one page can hold several figures.

    Raises:
        ValueError: the picture has no figure.
    """
    if picture.figure is None:
        raise ValueError(f"figure {picture.name!r} was not drawn: {picture.absent}")
    names = _names(picture)
    return "".join(_svg(picture, of, name) for name, of in zip(names, picture.sheets, strict=True))


def _svg(picture: Picture, figure: Figure, name: str) -> str:
    file = io.StringIO()
    with mpl.rc_context(STYLE):
        _lay_out(figure)
        whole = _whole(figure)
        of_file = {"transparent": True, "metadata": {"Date": None}, "bbox_inches": whole}
        figure.savefig(file, format="svg", dpi=160, **of_file)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.S)
    text = _lighter(text)
    # images are numbered because two with the same pixels have the same id; nothing refers to them
    number = itertools.count()
    text = re.sub(r'\bid="image[0-9a-f]+"', lambda _: f'id="image{next(number)}"', text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    width = round(whole.width * REM_PER_INCH, 2)
    most, least = round(picture.zoom * width, 2), min(round(LEAST * width, 2), LEAST_REM)
    size = f"max-width: {most}rem; min-width: {least}rem"
    named = f'role="img" aria-labelledby="{picture.name}-title" fill="currentColor" style="{size}"'
    text = re.sub(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', rf"<svg {named} \1>", text, count=1)
    for colour, ink in in_page().items():
        text = text.replace(colour.lower(), ink)
    return text
