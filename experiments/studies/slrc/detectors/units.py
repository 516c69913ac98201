"""The units of work that detectors need of one model and one question, besides those of probes and
judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.models.judges import decides
from faithscope.experiments.engine.traces.stages import TRACE
from faithscope.experiments.engine.traces.writers import writing
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.slrc.config import DetectorsConfig, RunConfig
from faithscope.experiments.studies.slrc.detectors.shuffling import Shuffled, shuffled
from faithscope.experiments.studies.slrc.stages import EDITED, SHUFFLED, WRITTEN
from faithscope.experiments.studies.slrc.units import ChainItem
from faithscope.interventions.trace import Question

STEP_JUDGE, FAITHFUL_JUDGE = "step_judge", "faithful_judge"
JUDGES = (STEP_JUDGE, FAITHFUL_JUDGE)
"""Forms of judges that detectors read."""
VERSIONS = {SHUFFLED: 1, EDITED: 2}
"""Stage -> version of its records, raised when their meaning changes
(`probes.probe.Probe.version`)."""
EDITS = ("mistake", "paraphrase", "distortion")
"""Kinds of edit that a judge writes for a step: a mistake, a paraphrase, a distorted meaning."""


@cache
def edit_prompts() -> Mapping[str, str]:
    """Kind of edit -> prompt for the judge model that writes it."""
    file = resources.files(__package__ or "").joinpath("prompts.yaml")
    return yaml.safe_load(file.read_text("utf-8"))


def settings_of(config: RunConfig) -> DetectorsConfig:
    """The settings of a run's detectors; the defaults for a run without any."""
    return config.detectors or DetectorsConfig()


def reordered(question: Question, config: RunConfig) -> Shuffled:
    """The question with shuffled options, as the run asks it again."""
    return shuffled(question, config.seed, settings_of(config).paper_compat)


def with_units(config: RunConfig, items: Iterable[ChainItem]) -> Iterator[ChainItem]:
    """The items with the units that the detectors of a run need."""
    if config.detectors is None:
        yield from items
        return
    names = _Names(config)
    for item in items:
        yield item.with_units(dict(names.of(item)))


class _Names:
    """Builds the ids of units, each a hash of everything that decides the unit's result."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.shared = UnitIds(schema=SCHEMA, seed=config.seed)
        if config.writer is not None:
            assert config.judges is not None
            how, steps = dict(edit_prompts()), settings_of(config).edits.steps
            by = decides(config.writer, config.judges, config.seed)
            self.written = UnitIds(**by, prompts=how, steps=steps)

    def of(self, item: ChainItem) -> Iterator[tuple[str, str]]:
        trace = item.units[TRACE]
        if self._shuffles(item):
            asked = item.of.cot_prompt(reordered(item.question, self.config).question)
            yield SHUFFLED, self._other(SHUFFLED, trace=trace, asked=asked)
        if self.config.writer is not None:
            written = self.written.of(trace=trace)
            yield WRITTEN, written
            of_task = {
                "cue": item.of.answer_cue,
                "reprompt": item.of.necessity_prompt(item.question, "\0"),
                **writing(self.config).decides_of_probes(),
            }
            yield EDITED, self._other(EDITED, trace=trace, written=written, **of_task)

    def _shuffles(self, item: ChainItem) -> bool:
        given = item.given
        if item.question.sent is not None:
            # no task's words stand in it, in which other options could
            return False
        # If the chain was written for another prompt, the answer could change for that reason, too.
        asked = given and given.chain.prompt in (None, item.of.cot_prompt(item.question))
        may = given is None or (asked and settings_of(self.config).shuffle_given)
        return item.question.kind == "choice" and bool(may)

    def _other(self, stage: str, **decides: Any) -> str:
        return self.shared.of(stage=stage, **versions(measure=VERSIONS[stage]), **decides)
