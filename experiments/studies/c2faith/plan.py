"""The units of work of a C2-Faith run: every judgement, and every look inside; reads no weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.base import ConfigError, expanded
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.data.question_groups import Asked, Grouping, grouped
from faithscope.experiments.data.saved import MANIFEST
from faithscope.experiments.engine.folder import has_records
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.hours import asking_lines
from faithscope.experiments.engine.models.judges import writing_as
from faithscope.experiments.engine.models.judging import Judged, Judging, of_cases
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.plan import BENCHMARK, PROMPTS, PreparingPlan, RunPlan, below
from faithscope.experiments.engine.tallies.input_report import (
    NO_LIMIT,
    InputReport,
    Truncation,
    truncated_by,
)
from faithscope.experiments.studies.c2faith.benchmark.build import Basis
from faithscope.experiments.studies.c2faith.benchmark.items import perfect
from faithscope.experiments.studies.c2faith.benchmark.prm800k import read_prm800k
from faithscope.experiments.studies.c2faith.benchmark.saved import (
    Benchmark,
    differences,
    first_chains,
)
from faithscope.experiments.studies.c2faith.benchmark.writing import (
    Rewrite,
    Unwritten,
    most_draws,
    written,
)
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.forms_of_config import settings_of
from faithscope.experiments.studies.c2faith.inside import DATASET
from faithscope.experiments.studies.c2faith.prompts import TaskForm, as_files
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS
from faithscope.experiments.studies.c2faith.units import INSIDE, Inside, Units
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Writing

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.studies.c2faith.work import C2Work, WritingWork


@dataclass(frozen=True)
class C2Plan(RunPlan[C2FaithConfig, Judged | Inside]):
    """All work of a run, in the order in which it is done."""

    benchmark: Benchmark
    forms: Mapping[str, TaskForm]
    """Every form that a judge or the reference is asked, by name."""

    @property
    def batch_size(self) -> int:
        return self.config.judge.batch_size

    def lines(self, index: Index, who: str = "judge") -> list[str]:
        """Dry-run lines: items, how many of them are left for each model, and what asking
        takes.

        Args:
            who: those that are asked, at the head of the table of spending.
        """
        chains = self.benchmark.made_of["chains"]["n"]
        items = {m: [i for i in self.of(m) if isinstance(i, Judged)] for m in self.config.models}
        asks = self.judging.pending(index, items)
        scored = self.judging.pending(index, items, "scored")
        return [
            f"benchmark   {chains} chains: {len(self.benchmark.causal)} with a broken step, "
            f"{len(self.benchmark.coverage)} with steps left out",
            "",
            *self.table(index),
            *asking_lines(asks, scored, self.config.judge, self.config.spend, who),
        ]

    def inputs(self) -> dict[str, str]:
        """Files of all that is asked: items and forms."""
        items = below(BENCHMARK, self.benchmark.saved.texts)
        return items | below(PROMPTS, as_files(self.forms))

    @property
    def judging(self) -> Judging[Any]:
        """What judges and the reference are asked: every case."""
        return of_cases(self.config.judge, self.config.seed, self.config.models)

    def work(self, store: Store, shard: Shard) -> C2Work:
        # the worker imports torch, which a dry run need not wait for
        from faithscope.experiments.studies.c2faith.work import C2Work

        batches = self.batches(self.config.models, shard)
        return C2Work(self.judging, self.config, batches, store, after_judging=(INSIDE,))


@dataclass(frozen=True)
class WritingPlan(PreparingPlan[C2FaithConfig, Rewrite]):
    """Steps that a run still wants rewritten before its benchmark is whole: all of them first, and
    then, draw by draw, those whose rewriting was refused."""

    judging: C2Plan
    """Plan of the judging that follows, as if each rewrite were its step."""
    draw: int = 1
    """Number of the draw that the requests are of."""

    @property
    def how(self) -> JudgeConfig:
        return writing_as(self.config.judge, self.config.perturb.temperature)

    @property
    def prepares(self) -> str:
        return f"steps are rewritten by {self.config.perturb.writer} (perturb.acausal)"

    def lines(self, index: Index) -> list[str]:
        left, writer, draws = self.left(index), self.config.perturb.writer, most_draws(self.config)
        which = f" {writer}, draw {self.draw}" if self.draw > 1 else f" {writer}"
        more = f"            what is refused is asked for up to {draws} times in all"
        asks: dict[str, list[Writing]] = {str(writer): [i.ask for i in left]}
        return [
            f"first       {len(left)} of {len(self.items)} steps are to be rewritten by{which}",
            *([more] if draws > 1 else []),
            *spending_lines(asks, self.how, self.config.spend, "writer"),
            "",
            "then        about this, were each rewrite as long as its step, none refused",
            *self.judging.lines(index, "judge, about"),
        ]

    def work(self, store: Store, shard: Shard) -> WritingWork:
        from faithscope.experiments.studies.c2faith.work import WritingWork

        return WritingWork(self, store, shard)


def plan(config: C2FaithConfig) -> C2Plan | WritingPlan:
    """Reads the chains, perturbs them and names every unit; or plans what is to be written before
    that.

    Raises:
        ConfigError: data that cannot be read or holds no perfect chain, or a form there is not.
        UserError: the saved benchmark is not what the config would make now.
    """
    # a form or text that cannot be asked is reported before anything is read, or paid for
    units = Units(config)
    benchmark = _benchmark(config)
    if isinstance(benchmark, Unwritten):
        b = benchmark
        judging = _judging(units, b.expected)
        input_report = judging.input_report
        return WritingPlan(config, b.items, b.given_up, judging, b.draw, input_report=input_report)
    return _judging(units, benchmark)


def _judging(units: Units, benchmark: Benchmark) -> C2Plan:
    """Plan of all that a run would ask about these items, whether or not they are its own."""
    forms, items = units.forms | units.references, tuple(units.items(benchmark))
    groups = _groups(benchmark)
    report = _input_report(units.config, benchmark)
    input_report = replace(report, notes=(*report.notes, *groups.notes), groups=groups.of)
    return C2Plan(units.config, items, benchmark, forms, input_report=input_report)


def _groups(benchmark: Benchmark) -> Grouping:
    """The groups of chains whose problems are the same or nearly so, and of the items made of
    them, by each name that they have in tables."""
    made: dict[str, set[str]] = defaultdict(set)
    problems: dict[str, str] = {}
    for of in (*benchmark.causal, *benchmark.coverage):
        problems[of.chain] = of.problem
        made[of.chain] |= {of.chain, of.id, *(f"{of.id}.{c}" for c in CONDITIONS)}
    found = grouped((Asked(c, DATASET, p) for c, p in problems.items()), "", chains=True)
    of_chains = found.of.get(DATASET, {})
    named = {name: group for chain, group in of_chains.items() for name in made[chain]}
    return found._replace(of={DATASET: named})


def _input_report(config: C2FaithConfig, benchmark: Benchmark) -> InputReport:
    """Account of the solutions that became no chain, and of the chains that got no causal item."""
    n, lost = benchmark.made_of["chains"]["n"], benchmark.left_out
    imperfect = [o.reason for o in lost if o.stage == "selection" and o.reason != "limit"]
    beyond = sum(o.reason == "limit" for o in lost)
    limit = Truncation("perfect chains", n, n + beyond, f"data.limit={config.data.limit}", NO_LIMIT)
    return InputReport(
        (
            *truncated_by("solutions are perfect chains", n + beyond, imperfect),
            *((limit,) if beyond else ()),
            *truncated_by(
                "chains get a broken step",
                len(benchmark.causal),
                [o.reason for o in lost if o.stage == "causal"],
            ),
        )
    )


def basis_of(config: C2FaithConfig) -> Basis:
    """The perfect chains of a run, the files they came from, and the settings that perturb them."""
    d = config.data
    solutions, sources = read_prm800k(expanded(d.path), d.splits)
    selection = perfect(solutions, d.least, d.answered, d.one_per_problem)
    if not selection.chains:
        counts = ", ".join(f"{n} {why}" for why, n in selection.counts.items() if why != "kept")
        raise ConfigError([f"data: no perfect chain among {len(solutions)} solutions ({counts})"])
    return Basis(selection, sources, settings_of(config), d.limit)


def _benchmark(config: C2FaithConfig) -> Benchmark | Unwritten:
    saved = config.run_dir / BENCHMARK
    used = has_records(config.run_dir) and (saved / MANIFEST).is_file()
    earlier = Benchmark.load(saved) if used else None
    built = _built(config, earlier)
    if isinstance(built, Unwritten):
        return built
    if earlier is not None and (changes := differences(earlier, built)):
        raise UserError(
            f"{saved}: is not what the config makes now ({'; '.join(changes[:3])}); use another "
            "name (--set name=…), or delete the run folder"
        )
    return built


def _built(config: C2FaithConfig, earlier: Benchmark | None) -> Benchmark | Unwritten:
    if config.data.benchmark is not None:
        whole = Benchmark.load(Path(config.data.benchmark).expanduser())
        return first_chains(whole, config.data.limit)
    basis = basis_of(config)
    if config.perturb.acausal == "llm":
        return written(config, basis, Index.of(config.run_dir), earlier)
    return basis.by_rule()
