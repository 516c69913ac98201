"""The report of one measure as data: its frames, tables, figures, section of the page, and scores.

A measure has two files: its computation in `faithscope.probes`, and its report in `measures`.
Frames, tables, figures, page and comparison are made from all reports and name no measure;
`step_reports` and `figures.per_pair` hold what several reports share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.item_view import Drawn
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.stored_records import Place, Record
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.label_probes.values import (
    AppliedScore,
    FittedDirection,
    RunLabels,
)
from faithscope.probes import PROBES, Settings

ALONG = np.linspace(0, 1, 11)
"""Shares of the reasoning at which lines along it are drawn together."""
Sizes = Mapping[str, Mapping[str, Any]]
"""Model -> `parameters` and `active_parameters`; models of unknown size are missing."""


@dataclass(frozen=True)
class SlrcAnalysis(Bootstrap):
    """Bootstrap settings, and the other settings and arrays that this study's tables need besides
    frames; passed to every cell."""

    arrays: Callable[[str], Iterable[tuple[Place, Mapping[str, np.ndarray]]]] = lambda probe: ()
    """Maps a probe to the stored arrays of each item, sorted by model and task."""
    settings: Callable[[str], Settings] = lambda probe: PROBES[probe].settings()
    """Maps a probe to the settings that the run used for it."""
    taxonomy: TaxonomyConfig = field(default_factory=TaxonomyConfig)
    sizes: Sizes = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name of a group -> its models (`report.groups`)."""
    pairs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Name of a pair -> its two models (`report.pairs`)."""
    is_planned: Callable[[Key], bool] = lambda key: True
    """Whether the run planned a unit of work; a probe has none beyond its limit of items."""
    labels: Callable[[], RunLabels] = RunLabels
    """Returns the labels of the run's chains and steps by name."""
    directions: dict[str, list[FittedDirection]] | None = None
    """Takes the directions that tables fit, by probe; None drops them."""
    failed: Failures | None = None
    """Takes the tables and scores of measures that cannot be made, with their reasons; None lets
    the first of them raise its error."""


@dataclass(frozen=True)
class Topic:
    """Tables and figures of one section of the page; several topics may share a section."""

    section: Section | Callable[[TaxonomyConfig], Section]
    tables: tuple[Table, ...] = ()
    figures: tuple[str, ...] = ()
    when: Callable[[Any], bool] = lambda frames: True
    """Whether a run has the topic's tables, decided from its frames (`tables.sources.Sources`),
    which hold excluded records, too."""
    configured: Callable[[SlrcAnalysis], bool] = lambda how: True
    """Whether the run's settings ask for the topic's tables."""
    over_steps: bool = True
    """Whether the tables are about steps, and so made separately for each unit of removal."""


def asked(*probes: str) -> Callable[[Any], bool]:
    """Makes a test for whether all of the given probes have records."""
    return lambda frames: set(probes) <= frames.probes


@dataclass(frozen=True)
class Monitor:
    """Features of a record, or of its arrays, for classifiers of traces; fixed here before any
    label is seen."""

    name: str
    read: Callable[[Record, Mapping[str, Any]], Sequence[float]]
    """Feature vector of one item; the same length for all items of a model."""
    of_arrays: bool = False
    """Whether `read` uses the arrays beside the record."""


class Outcomes(NamedTuple):
    """Yes-or-no outcomes of a chain, from its records that hold values."""

    names: tuple[str, ...]
    read: Callable[[Sequence[Record]], Mapping[str, bool]]
    """Maps the records of one chain to some of the outcomes; whether each is so."""


@dataclass(frozen=True)
class MeasureReport:
    """The whole report of one measure; its computation is in `faithscope.probes`."""

    probe: str
    section: Section | None = None
    """The measure's section of the page; several measures may share one. None if the study's page
    shows the measure in a section of its own."""
    tables: tuple[Table, ...] = ()
    frames: tuple[Frame, ...] = ()
    measures: tuple[Measure, ...] = ()
    """Scores by which the measure is compared with others, with their direction."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reason for leaving an item out -> the reason in words."""
    over_steps: bool = True
    """Whether the tables are about steps (see `Topic.over_steps`)."""
    further: tuple[Topic, ...] = ()
    """Further sections of the page, with their tables and figures."""
    item_scores: Callable[[pd.DataFrame, SlrcAnalysis], Iterable[AppliedScore]] | None = None
    """Scores of chains and steps that only the settings of a run ask for, from the frame of the
    probe's records; comparisons read them beside `measures`."""
    monitor: Monitor | None = None
    of_trace: Callable[[Record, Mapping[str, Any]], Iterable[Drawn]] | None = None
    """Draws one record and its arrays for the explorer of single traces; None draws nothing."""
    outcomes: Outcomes | None = None
    """Outcomes of a chain. Judges are compared with them as with labels, and label probes read
    them."""
    answer_lines: Callable[[Record, Mapping[str, Any]], Mapping[str, np.ndarray]] | None = None
    """Lines of one record and its arrays -> how far the chain's answer is there after the shares
    `ALONG` of the reasoning; judges of prefixes are drawn beside them, and the first is the one
    that they are compared with."""
    answer_line_of: Callable[[pd.DataFrame], Iterable[Mapping[str, Any]]] | None = None
    """The same from the measure's table, as rows of such a line."""

    in_short: Callable[[Mapping[str, pd.DataFrame]], str] | None = None
    """Returns what the run's tables show of the measure, in a sentence: the first line of the page
    of a run without SLRC. Empty where they show nothing of it."""

    def topics(self) -> list[Topic]:
        """The measure's tables as a topic of its section; its only figure has the measure's
        name."""
        if self.section is None:
            return [*self.further]
        when = asked(self.probe)
        own = Topic(self.section, self.tables, (self.probe,), when, over_steps=self.over_steps)
        return [own, *self.further]

    @property
    def every_table(self) -> tuple[Table, ...]:
        """The tables of the measure and of its further sections."""
        return (*self.tables, *(table for topic in self.further for table in topic.tables))
