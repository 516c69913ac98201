"""The plan of a run of judges on given chains: its units, inputs and costs; reads no weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faithscope.experiments.config.base import ConfigError, expanded, named
from faithscope.experiments.engine.forms import TaskForm, as_files, trace_forms
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judging import Judged, Judging, of_cases, put_to
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.plan import PROMPTS, RunPlan, below
from faithscope.experiments.engine.tallies.input_report import InputReport, Truncation
from faithscope.experiments.engine.traces.given import cuts_of
from faithscope.experiments.engine.units import NOTHING_ASKED, Key
from faithscope.experiments.studies.judge.chains import (
    FILE,
    JudgedChain,
    as_lines_of_json,
    judged_chain,
)
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.experiments.studies.judge.units import cases

if TYPE_CHECKING:
    from faithscope.experiments.engine.models.asking import Asker
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store


@dataclass(frozen=True)
class JudgePlan(RunPlan[JudgeStudyConfig, Judged]):
    """Everything that a run judges, in working order."""

    source: str
    """File that the chains were read from, and its format."""
    chains: tuple[JudgedChain, ...]
    forms: Mapping[str, TaskForm]

    @property
    def batch_size(self) -> int:
        return self.config.judge.batch_size

    def lines(self, index: Index) -> list[str]:
        judge, steps = self.config.judge, sum(len(chain.places) for chain in self.chains)
        header = ("judge", "form", "chains", "asks left")
        to_ask = self.judging.pending(index, {model: self.of(model) for model in judge.model})
        return [
            f"chains      {len(self.chains)} with {steps} steps, of {self.source}",
            "",
            *self.table(index, header, lambda item: len(item.case.asks) * len(item.units)),
            *spending_lines(to_ask, judge, self.config.spend),
        ]

    def known_exclusions(self) -> Mapping[Key, str]:
        """Units of chains without any step to judge, which no judge is asked about."""
        nothing = [i for i in self.items if not i.case.asks]
        return {i.key(stage): NOTHING_ASKED for i in nothing for stage in i.units}

    def inputs(self) -> dict[str, str | None]:
        """Input files of a run: the chains that are judged, and the prompt files."""
        return {FILE: as_lines_of_json(self.chains), **below(PROMPTS, as_files(self.forms))}

    @property
    def judging(self) -> Judging[Judged]:
        """What judges are asked: every case."""
        return of_cases(self.config.judge, self.config.seed, self.config.judge.model)

    def work(self, store: Store, shard: Shard) -> Asker[Judged]:
        # The module imports torch, which a dry run does without.
        from faithscope.experiments.engine.models.asking import Asker

        batches = self.batches(self.config.judge.model, shard)
        return Asker(self.judging, self.config, batches, store)


def plan(config: JudgeStudyConfig) -> JudgePlan:
    """Plans a judge run: reads the chains and prompts, and names every unit of work.

    Raises:
        ConfigError: no chains are named, or a form there is not.
        UserError: a file of chains that cannot be read, or a row that does not fit.
    """
    forms = named("forms", "form", config.forms, trace_forms(expanded(config.prompts)))
    if config.traces.path is None:
        raise ConfigError(
            [
                "traces.path: missing; give the chains that are to be judged: "
                "--set traces.path=FILE, or the folder of a run (faithscope docs given)"
            ]
        )
    t, read = config.traces, config.traces.read(config.seed)
    by_them = [c for c in read.chains if not t.written_by or c.model in t.written_by]
    source, cuts = f"{read.file} ({read.format})", cuts_of(read, config.traces.limit)
    if others := len(read.chains) - len(by_them):
        written_by = f"traces.written_by={', '.join(t.written_by)}"
        what = "chains by other models"
        cuts.append(Truncation(what, 0, others, written_by, "traces.written_by=[]"))
    if not by_them:
        raise ConfigError([f"traces.written_by: no chain is left of {source}; name who wrote some"])
    chains = tuple(judged_chain(chain, config.steps) for chain in by_them)
    asked = tuple(cases(forms.values(), chains))
    judges, seed = config.judge, config.seed
    items = tuple(i for judge in judges.model for i in put_to(judge, judges, seed, asked))
    return JudgePlan(config, items, source, chains, forms, input_report=InputReport(tuple(cuts)))
