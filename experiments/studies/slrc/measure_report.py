"""What a reader gets of one measure, as data: frames, tables, figures, a section, scores.

A measure is two files: its computation in `faithscope.probes`, its report in `measures`. Frames,
tables, figures, page and comparison are made of reports and name none of them; `measure_helpers`
holds what several reports are put together from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faithscope.experiments.analysis import cells
from faithscope.experiments.analysis.comparison.details import Drawn
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record, by_probe
from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.slrc.config import TaxonomyConfig

Sizes = Mapping[str, Mapping[str, Any]]
"""By model: `parameters`, `active_parameters`; a model whose size nobody told is not there."""


@dataclass(frozen=True)
class SlrcAnalysis(cells.Analysis):
    """What the tables of this study are made with, besides records."""

    taxonomy: TaxonomyConfig = field(default_factory=TaxonomyConfig)
    sizes: Sizes = field(default_factory=dict)
    is_planned: Callable[[Key], bool] = lambda key: True
    """Whether the run has a unit of work: a probe has none beyond its own limit of items."""


@dataclass(frozen=True)
class Topic:
    """Tables and figures of one section of the page; several topics may share a section."""

    section: Section | Callable[[TaxonomyConfig], Section]
    tables: tuple[Table, ...] = ()
    figures: tuple[str, ...] = ()
    when: Callable[[Sequence[Record]], bool] = lambda records: True
    """Whether a run has its tables, given all records, excluded ones too."""
    over_steps: bool = True
    """Whether its tables are about steps: they are then made for each unit of removal apart."""


def asked(*probes: str) -> Callable[[Sequence[Record]], bool]:
    """Whether all of these probes have records."""
    return lambda records: set(probes) <= by_probe(records).keys()


@dataclass(frozen=True)
class Monitor:
    """Numbers of a record, or of its arrays, that a classifier of traces may be trained on: fixed
    here, before any label is seen."""

    name: str
    read: Callable[[Record, Mapping[str, Any]], Sequence[float]]
    """Feature vector of one item; the same length for all items of a model."""
    of_arrays: bool = False
    """Whether it reads the arrays beside the record."""


@dataclass(frozen=True)
class MeasureReport:
    """All of one measure that is not its computation: what readers of a run get of it."""

    probe: str
    section: Section | None = None
    """Where on the page it is shown; several measures may share one. None where the study's page
    shows it in a section of its own."""
    tables: tuple[Table, ...] = ()
    frames: tuple[Frame, ...] = ()
    measures: tuple[Measure, ...] = ()
    """The scores by which it is compared with others, and which way they point."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why items are left out -> in words."""
    over_steps: bool = True
    """Whether its tables are about steps, as `Topic.over_steps` says."""
    monitor: Monitor | None = None
    of_trace: Callable[[Record, Mapping[str, Any]], Iterable[Drawn]] | None = None
    """One record and its arrays -> what is drawn of them where single traces are explored."""

    def topics(self) -> list[Topic]:
        """The measure's tables under its section; it has one figure, which is named for it."""
        if self.section is None:
            return []
        when = asked(self.probe)
        return [Topic(self.section, self.tables, (self.probe,), when, self.over_steps)]
