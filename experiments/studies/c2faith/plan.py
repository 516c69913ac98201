"""The units of work of a C2-Faith run: every judgement, and every look inside; reads no weights."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.saved import MANIFEST
from faithscope.experiments.engine.folder import has_records
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import StoredPlan, is_finished
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.c2faith.asked import settings_of
from faithscope.experiments.studies.c2faith.benchmark.build import by_rule
from faithscope.experiments.studies.c2faith.benchmark.items import Selection, perfect
from faithscope.experiments.studies.c2faith.benchmark.prm800k import Source, read_prm800k
from faithscope.experiments.studies.c2faith.benchmark.saved import (
    Benchmark,
    differences,
    first_chains,
)
from faithscope.experiments.studies.c2faith.benchmark.writing import (
    Rewrite,
    Unwritten,
    most_draws,
    writing_as,
    written,
)
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm, as_files
from faithscope.experiments.studies.c2faith.units import Inside, Judged, Units
from faithscope.experiments.studies.c2faith.work import WritingWork
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Writing

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.studies.c2faith.work import C2Work

FOLDER = "benchmark"
"""Below the run folder: the items, as saved."""
FORMS = "prompts"
"""Below the run folder: the forms that were asked, as a folder of prompts."""


@dataclass(frozen=True)
class C2Plan:
    """All that is to be judged, in the order it is worked on."""

    config: C2FaithConfig
    benchmark: Benchmark
    items: tuple[Judged | Inside, ...]
    forms: Mapping[str, TaskForm]
    """Every form that someone is asked, by name."""

    def of(self, model: str) -> list[Judged | Inside]:
        return [i for i in self.items if i.model == model]

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return StoredPlan.of(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        return "\n".join([f"run folder  {self.config.run_dir}", *self.cost_lines()])

    def cost_lines(self, who: str = "judge") -> list[str]:
        """Its items, how many of them are left for each model, and what asking APIs would use.

        Args:
            who: those that are asked, at the head of the table of spending.
        """
        index = Index.of(self.config.run_dir)
        counts = Counter((i.model, i.task) for i in self.items)
        left = Counter((i.model, i.task) for i in self.items if not is_finished(index, i))
        chains = self.benchmark.made_of["chains"]["n"]
        lines = [
            f"benchmark   {chains} chains: {len(self.benchmark.causal)} with a broken step, "
            f"{len(self.benchmark.coverage)} with steps left out",
            "",
        ]
        rows = [(*pair, n, left[pair]) for pair, n in counts.items()]
        lines += columns([("model", "task", "items", "left"), *rows, total(rows)])
        asks: dict[str, list[Ask | Writing]] = {
            m: [i.ask for i in self.of(m) if isinstance(i, Judged) and not is_finished(index, i)]
            for m in self.config.models
        }
        return lines + spending_lines(asks, self.config.judge, self.config.spend, who)

    @property
    def prepares(self) -> str:
        """Nothing: the units are what the run is for."""
        return ""

    def write_inputs(self, store: Store) -> None:
        """Keep what is asked, items and forms."""
        with store.shared():
            self.benchmark.saved.save(store.run_dir / FOLDER)
            folder = make_folder(store.run_dir / FORMS)
            for name, text in as_files(self.forms).items():
                path = folder / name
                if has_records(store.run_dir) and path.is_file() and path.read_text() != text:
                    print(f"note: {path}: is another form now, and is asked again", file=sys.stderr)
                write_atomically(path, text)

    def work(self, store: Store, shard: Shard) -> C2Work:
        # it brings torch, which a dry run need not wait for
        from faithscope.experiments.studies.c2faith.work import C2Work

        return C2Work(self.config, self.items, store, shard)


@dataclass(frozen=True)
class WritingPlan:
    """Every step that a run still wants rewritten before its benchmark is whole: all of them, and
    once that is done those whose rewriting was refused, draw by draw."""

    config: C2FaithConfig
    items: tuple[Rewrite, ...]
    given_up: Mapping[str, str]
    """Id -> why, of those that are not asked again."""
    judging: C2Plan
    """What is asked then, were each rewrite its step (`before_replies`)."""
    draw: int = 1
    """Which draw all of them are."""

    @property
    def prepares(self) -> str:
        return f"steps are rewritten by {self.config.perturb.writer} (perturb.acausal)"

    def write_inputs(self, store: Store) -> None:
        """Nothing: the benchmark is kept once it is whole."""

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder, until the judgements are planned."""
        return StoredPlan.of(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        """What a run would do first, and about what then, for `--dry-run`."""
        index = Index.of(self.config.run_dir)
        left = [i for i in self.items if i.item not in self.given_up and not is_finished(index, i)]
        writer = self.config.perturb.writer
        which = f" {writer}, draw {self.draw}" if self.draw > 1 else f" {writer}"
        draws = most_draws(self.config)
        more = f"            what is refused is asked for up to {draws} times in all"
        lines = [
            f"run folder  {self.config.run_dir}",
            f"first       {len(left)} of {len(self.items)} steps are to be rewritten by{which}",
            *([more] if draws > 1 else []),
        ]
        asks: dict[str, list[Writing]] = {str(writer): [i.ask for i in left]}
        lines += spending_lines(asks, writing_as(self.config), self.config.spend, "writer")
        lines += ["", "then        about this, were each rewrite as long as its step, none refused"]
        return "\n".join(lines + self.judging.cost_lines("judge, about"))

    def work(self, store: Store, shard: Shard) -> WritingWork:
        from faithscope.experiments.studies.c2faith.work import WritingWork

        return WritingWork(self.config, self.items, self.given_up, store, shard)


def plan(config: C2FaithConfig) -> C2Plan | WritingPlan:
    """Read the chains, perturb them, and name every unit; or what is to be written before that.

    Raises:
        ConfigError: data that cannot be read or holds no perfect chain, or a form there is not.
        UserError: the saved benchmark is not what the config would make now.
    """
    # what cannot be asked is told before anything is read, or paid for
    units = Units(config)
    benchmark = _benchmark(config)
    if isinstance(benchmark, Unwritten):
        b = benchmark
        then = _judging(units, b.expected)
        return WritingPlan(config, b.items, b.given_up, then, b.draw)
    return _judging(units, benchmark)


def _judging(units: Units, benchmark: Benchmark) -> C2Plan:
    """All that a run would ask about these items, whether or not they are its own."""
    forms = units.forms | units.references
    return C2Plan(units.config, benchmark, tuple(units.items(benchmark)), forms)


def chains_of(config: C2FaithConfig) -> tuple[Selection, tuple[Source, ...]]:
    """The perfect chains of a run, and the files they came from."""
    d = config.data
    path = None if d.path is None else Path(d.path).expanduser()
    solutions, sources = read_prm800k(path, d.splits)
    selection = perfect(solutions, d.least, d.answered, d.one_per_problem)
    if not selection.chains:
        counts = ", ".join(f"{n} {why}" for why, n in selection.counts.items() if why != "kept")
        raise ConfigError([f"data: no perfect chain among {len(solutions)} solutions ({counts})"])
    return selection, tuple(sources)


def _benchmark(config: C2FaithConfig) -> Benchmark | Unwritten:
    saved = config.run_dir / FOLDER
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
    selection, sources = chains_of(config)
    if config.perturb.acausal == "llm":
        return written(config, selection, sources, Index.of(config.run_dir), earlier)
    return by_rule(selection, sources, settings_of(config), config.data.limit)
