"""What a reader gets of one measure, as data: frames, tables, figures, a section, scores; and its
figures, a panel per model and task, or one panel with a curve of each.

A measure is two files: its computation in `faithscope.probes`, its slice here. Frames, tables,
figures, page and comparison are made of slices and name none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import (
    GREY,
    LINES,
    Style,
    along_reasoning,
    share_rise,
    share_ticks,
)
from faithscope.experiments.analysis.charts import curve, panels
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.details import Drawn
from faithscope.experiments.analysis.item_tables import Analysis
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.records import Record, by_probe
from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.short_names import pair_names, pairs_of
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.slrc.sections import TaxonomyConfig

Sizes = Mapping[str, Mapping[str, Any]]
"""By model: `parameters`, `active_parameters`; a model whose size nobody told is not there."""


@dataclass(frozen=True)
class SlrcAnalysis(Analysis):
    """What the tables of this study are made with, besides records."""

    taxonomy: TaxonomyConfig = field(default_factory=TaxonomyConfig)
    sizes: Sizes = field(default_factory=dict)
    is_planned: Callable[[Key], bool] = lambda key: True
    """Whether the run has a unit of work: a probe has none beyond its own limit of items."""


@dataclass(frozen=True)
class Table:
    """`tables/<name>.csv`, and what is drawn of it."""

    name: str
    make: Callable[[Any, SlrcAnalysis], pd.DataFrame]
    """Of the records; of the table that `of` names, if it names one."""
    caption: str = ""
    """On the page; "" for a table that is not there."""
    folded: str = ""
    """On the page, the words that it is folded under; "" for one that lies open."""
    draw: Callable[[pd.DataFrame], Picture] | None = None
    over_steps: bool = True
    """Whether it is about steps: then it is made for each unit of removal apart."""
    of: str = ""
    """A table of the same topic, before it, that it is made of."""


@dataclass(frozen=True)
class Topic:
    """Tables and figures of one section of the page; several topics may share a section."""

    section: Section | Callable[[TaxonomyConfig], Section]
    tables: tuple[Table, ...] = ()
    figures: tuple[str, ...] = ()
    when: Callable[[Sequence[Record]], bool] = lambda records: True
    """Whether a run has its tables, given all records, excluded ones too."""


def asked(*probes: str) -> Callable[[Sequence[Record]], bool]:
    """Whether all of these probes have records."""
    return lambda records: set(probes) <= by_probe(records).keys()


@dataclass(frozen=True)
class Monitor:
    """What of a record, or of its arrays, a classifier of traces may be trained on: fixed here,
    before any label is seen."""

    name: str
    read: Callable[[Record, Mapping[str, Any]], Sequence[float]]
    """As many numbers for every item of a model."""
    of_arrays: bool = False
    """Whether it reads the arrays beside the record."""


@dataclass(frozen=True)
class Slice:
    """All of one measure that is not its computation."""

    probe: str
    section: Section | None = None
    """Where on the page it is shown; several measures may share one. None where the study's page
    shows it in a section of its own."""
    tables: tuple[Table, ...] = ()
    frames: tuple[Frame, ...] = ()
    measures: tuple[Measure, ...] = ()
    """The scores by which it is compared with others, and which way they point."""
    columns: tuple[Column, ...] = ()
    """Of its tables, where the name does not say all."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why items are left out -> in words."""
    monitor: Monitor | None = None
    of_trace: Callable[[Record, Mapping[str, Any]], Iterable[Drawn]] | None = None
    """What is drawn of one record and its arrays, where single traces are explored."""

    def topics(self) -> list[Topic]:
        """Its tables under its section; a measure has one figure, which is named for it."""
        if self.section is None:
            return []
        return [Topic(self.section, self.tables, (self.probe,), asked(self.probe))]


def per_step(*names: str, **more: Callable[[Record, int], Any]) -> Callable[[Record], Iterator]:
    """Rows of a frame, one for each counted step of a record that is not excluded.

    Args:
        names: lists of the record with a value per step.
        more: column -> its value, given the record and the place of the step.
    """

    def rows(record: Record) -> Iterator[dict[str, Any]]:
        if record.get("excluded"):
            return
        for i, step in enumerate(record["steps"]):
            row = {"position": i + 1, "step": step, "answer": record.get("answer")}
            row |= {name: values[i] if (values := record[name]) else None for name in names}
            yield row | {name: of(record, i) for name, of in more.items()}

    return rows


def effects_of(*edits: str) -> dict[str, str]:
    """Column -> the record's field of it, of what each edit did to the answer: how often it
    changed, how far its distribution moved, what it lost."""
    fields = {"flip_rate": "flips", "tv": "tv", "log_odds": "log_odds"}
    return {f"{edit}{name}": f"{edit}{field}" for edit in edits for name, field in fields.items()}


LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)
PLACE = "place of the step in the reasoning"
Draw = Callable[[pd.DataFrame], Figure | None]


def picture(
    name: str, title: str, caption: str, draw: Draw, absent: str = "No item was measured."
) -> Callable[[pd.DataFrame], Picture]:
    """A figure of a table; nothing is drawn of an empty one."""
    return lambda table: Picture(
        name, title, caption, table, draw(table) if len(table) else None, absent
    )


def per_pair(
    x: str,
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    finish: Callable[[Axes], object],
    apart: float = 0.0,
) -> Draw:
    """A panel per model and task, and in it a curve per measure, with its band.

    Args:
        x: the column across.
        styles: by column.
        labels: of the axes, once for the figure.
        apart: by how much curves are moved aside, where those that say the same would hide others.
    """

    def draw(table: pd.DataFrame) -> Figure | None:
        def panel(ax: Axes, pair: tuple[str, str]) -> None:
            of_pair = where(table, model=pair[0], task=pair[1])
            for i, (name, style) in enumerate(styles.items()):
                aside = apart * (i - (len(styles) - 1) / 2)
                line = of_pair.dropna(subset=[name]).assign(**{x: lambda t, d=aside: t[x] + d})
                interval = "band" if f"{name}_low" in line else ""
                # without markers, dashes tell apart curves that say the same
                dashes = "-" if style.marker else ("-", "--", "-.", ":")[i % 4]
                curve(ax, line, x, name, style, interval=interval, ms=3, lw=1.3, ls=dashes)
            finish(ax)

        pairs = pairs_of(table)
        return panels(pairs, panel, pair_names(pairs, "\n"), height=2.1, labels=labels)

    return draw


def of_pairs(ax: Axes, table: pd.DataFrame, x: str, y: str) -> Axes:
    """A curve per model and task over one axis, each with its band."""
    pairs = pairs_of(table)
    for i, (pair, name) in enumerate(zip(pairs, pair_names(pairs), strict=True)):
        style = Style(*LINES[i % len(LINES)], name)
        curve(ax, where(table, model=pair[0], task=pair[1]), x, y, style, lw=1)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def shares_along(ax: Axes) -> Axes:
    """Shares from 0 to 1, by the relative place of a step."""
    return along_reasoning(share_rise(ax))


def over_depth(ax: Axes) -> Axes:
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    return ax
