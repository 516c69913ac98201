"""What a package can add to C2-Faith; `config.study.Addition.load` returns one of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from faithscope.experiments.config.study import additions_to
from faithscope.experiments.engine.models.judging import Case
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm


@dataclass(frozen=True)
class C2Addition:
    """Asks that vary ordinary asks of a run; each differs from one of these, its twin.

    They are asked in batches of their own after the ordinary ones, and are in no table but those
    that the addition itself makes of `C2Results.varied`.
    """

    name: str
    """Name of the variation: units of its asks have `FORM+NAME` for a task, records have it as
    `varied`, and the frame of a run with its judgements has it, too."""
    cases: Callable[[C2FaithConfig], Callable[[TaskForm, Benchmark], Iterator[Case]]]
    """Maps a config to a function that yields the varied asks of a form (`units.case`)."""
    again: Callable[[C2FaithConfig, Case, str], Case]
    """Makes a varied ask once more from its twin and its id, where it failed and left no record."""
    words: Callable[[Mapping[str, Any]], tuple[str, str]]
    """Maps a record of a varied ask to words for its heading, and a clause on what was varied."""


@cache
def varying() -> Mapping[str, C2Addition]:
    """The installed additions by the names of their variations."""
    loaded = (addition.load() for addition in additions_to("c2faith").values())
    return {addition.name: addition for addition in loaded}


def twin_of(ask: str) -> str:
    """Id of the ordinary ask, from that of a varied one (`TWIN+WORDS`)."""
    return ask.rpartition("+")[0]
