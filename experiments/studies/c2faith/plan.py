"""The units of work of a C2-Faith run: every judgement, and every look inside; reads no weights."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config import ConfigError
from faithscope.experiments.config.api import API
from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA, has_records, make_folder, write_atomically
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.judges import decides
from faithscope.experiments.engine.planfile import StoredPlan, is_finished
from faithscope.experiments.engine.spending import spending_lines
from faithscope.experiments.engine.unit import Planned, stored
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.listing import columns, total
from faithscope.experiments.studies.c2faith.asked import forms_of, injections_of, reference_forms
from faithscope.experiments.studies.c2faith.asks import Condition, ask_of, cases
from faithscope.experiments.studies.c2faith.benchmark import Settings
from faithscope.experiments.studies.c2faith.build import by_rule
from faithscope.experiments.studies.c2faith.chains import Selection, perfect
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.injection import (
    Injected,
    drawn_chains,
    inject,
    variants,
)
from faithscope.experiments.studies.c2faith.inside import not_inside
from faithscope.experiments.studies.c2faith.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.prm800k import Source, read_prm800k
from faithscope.experiments.studies.c2faith.prompts import TaskForm, as_files
from faithscope.experiments.studies.c2faith.saved import (
    MANIFEST,
    Benchmark,
    differences,
    first_chains,
    load,
    save,
)
from faithscope.experiments.studies.c2faith.writing import WritingPlan, written
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
INTERNALS = "c2_internals"
"""The task, as stored, of looking inside a model."""
STAGES: dict[Reading, str] = {"generated": "judge_generated", "scored": "judge_scored"}
INSIDE = "broken_step"
INJECTED = "+injected"
"""Behind the form's name, in the task of an ask with something put into its chain."""


@dataclass(frozen=True)
class Judged(Planned):
    """One ask put to one judge."""

    model: str
    task: str
    """The form's name, `INJECTED` behind it where something was put into the chain."""
    ask: Ask
    of: CausalItem | CoverageItem
    condition: Condition | None
    """None for coverage."""
    units: dict[str, str]
    """Stage -> unit id: one for each way of reading the verdict."""
    injected: Injected | None = None
    """What was put into the chain, of the asks that hold something that was."""

    @property
    def item(self) -> str:
        return self.ask.id


@dataclass(frozen=True)
class Inside(Planned):
    """One chain read by a model whose insides are looked at, broken and as it was."""

    model: str
    of: CausalItem
    units: dict[str, str]
    task: str = INTERNALS

    @property
    def item(self) -> str:
        return self.of.id


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
        return stored(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        return "\n".join([f"run folder  {self.config.run_dir}", *self.told()])

    def told(self, who: str = "judge") -> list[str]:
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

    def lay_out(self, store: Store) -> None:
        """Keep what is asked, items and forms."""
        with store.shared():
            save(self.benchmark, store.run_dir / FOLDER)
            folder = make_folder(store.run_dir / FORMS)
            for name, text in as_files(self.forms).items():
                path = folder / name
                if has_records(store.run_dir) and path.is_file() and path.read_text() != text:
                    print(f"note: {path}: is another form now, and is asked again", file=sys.stderr)
                write_atomically(path, text)

    def work(self, store: Store, shard: Shard) -> C2Work:
        from faithscope.experiments.studies.c2faith.work import C2Work

        return C2Work(self, store, shard)

    def then(self) -> None:
        """Nothing: all is judged."""


def plan(config: C2FaithConfig) -> C2Plan | WritingPlan:
    """Read the chains, perturb them, and name every unit; or what is to be written before that.

    Raises:
        ConfigError: data that cannot be read or holds no perfect chain, or a form there is not.
        UserError: the saved benchmark is not what the config would make now.
    """
    # what cannot be asked is told before anything is read, or paid for
    units = _Units(config)
    benchmark = _benchmark(config)
    return benchmark if isinstance(benchmark, WritingPlan) else units.plan(benchmark)


def judging(config: C2FaithConfig, benchmark: Benchmark) -> C2Plan:
    """All that a run would ask about these items, whether or not they are its own."""
    return _Units(config).plan(benchmark)


def settings_of(config: C2FaithConfig) -> Settings:
    """How the chains of a run are perturbed."""
    p = config.perturb
    return Settings(config.seed, p.low, p.high, tuple(p.levels), tuple(p.rules))


def chains_of(config: C2FaithConfig) -> tuple[Selection, tuple[Source, ...]]:
    """The perfect chains of a run, and the files they came from."""
    d = config.data
    path = None if d.path is None else Path(d.path).expanduser()
    solutions, sources = read_prm800k(path, d.splits)
    selection = perfect(solutions, d.least, d.answered, d.one_per_problem)
    if not selection.chains:
        told = ", ".join(f"{n} {why}" for why, n in selection.counts.items() if why != "kept")
        raise ConfigError([f"data: no perfect chain among {len(solutions)} solutions ({told})"])
    return selection, tuple(sources)


def _benchmark(config: C2FaithConfig) -> Benchmark | WritingPlan:
    saved = config.run_dir / FOLDER
    used = has_records(config.run_dir) and (saved / MANIFEST).is_file()
    kept = load(saved) if used else None
    built = _built(config, kept)
    if isinstance(built, WritingPlan):
        return built
    if kept is not None and (told := differences(kept, built)):
        raise UserError(
            f"{saved}: is not what the config makes now ({'; '.join(told[:3])}); use another name "
            "(--set name=…), or delete the run folder"
        )
    return built


def _built(config: C2FaithConfig, kept: Benchmark | None) -> Benchmark | WritingPlan:
    if config.data.benchmark is not None:
        whole = load(Path(config.data.benchmark).expanduser())
        return first_chains(whole, config.data.limit)
    selection, sources = chains_of(config)
    if config.perturb.acausal == "llm":
        return written(config, selection, sources, Index.of(config.run_dir), kept)
    return by_rule(selection, sources, settings_of(config), config.data.limit)


class _Units:
    """Names the units of a run: the id is a hash of all that decides the result."""

    def __init__(self, config: C2FaithConfig) -> None:
        self.config = config
        self.forms, self.kinds = forms_of(config), injections_of(config)
        self.references = {f.form.name: f for f in reference_forms(config, self.forms).values()}

    @cached_property
    def weights(self) -> dict[str, str | None]:
        here = [m for m in self.config.models if not m.startswith(API)]
        return {m: fingerprint(m, self.config.judge.revision) for m in here}

    def plan(self, benchmark: Benchmark) -> C2Plan:
        items = tuple(self._items(benchmark))
        return C2Plan(self.config, benchmark, items, self.forms | self.references)

    def _items(self, benchmark: Benchmark) -> Iterator[Any]:
        c = self.config
        for model in c.models:
            mine = self.forms if model in c.judge.model else {}
            asked = dict(mine)
            if model == c.reference:
                asked |= self.references
            for form in asked.values():
                yield from self._judged(model, form, benchmark)
            if model in c.internals.model:
                ids = UnitIds(**self._decides(model), settings=c.internals.model_dump(mode="json"))
                for item in benchmark.causal:
                    if not_inside(item):
                        continue
                    yield Inside(model, item, {INSIDE: ids.of(item=vars(item))})
            # last, so that what they are added to is asked in the same company as without them
            for form in mine.values():
                yield from self._injected(model, form, benchmark)

    def _judged(self, model: str, form: TaskForm, benchmark: Benchmark) -> Iterator[Judged]:
        ids = self._ids(model, form)
        for of, condition in cases(benchmark, form):
            ask = ask_of(of, form, condition)
            units = {STAGES[r]: ids[r].of(**_about(ask)) for r in ids}
            yield Judged(model, form.form.name, ask, of, condition, units)

    def _injected(self, model: str, form: TaskForm, benchmark: Benchmark) -> Iterator[Judged]:
        told, seed, ids = self.config.injection, self.config.seed, self._ids(model, form)
        items = (*benchmark.causal, *benchmark.coverage)
        chains = drawn_chains((i.chain for i in items), told.chains, seed)
        for kind, demand in variants(self.kinds, told.demands):
            for of, condition in cases(benchmark, form):
                made = inject(of, form, condition, kind, demand, seed)
                if of.chain not in chains or made is None:
                    continue
                ask, injected = made
                decides = _about(ask) | {"injected": asdict(injected)}
                units = {STAGES[r]: ids[r].of(**decides) for r in ids}
                name = f"{form.form.name}{INJECTED}"
                yield Judged(model, name, ask, of, condition, units, injected=injected)

    def _ids(self, model: str, form: TaskForm) -> dict[Reading, UnitIds]:
        return {
            r: UnitIds(**self._decides(model), reading=r, form=form.form.sha256)
            for r in self.config.judge.readings_of(model)
        }

    def _decides(self, model: str) -> dict[str, Any]:
        weights = self.weights.get(model)
        of_judge = decides(model, self.config.judge)
        return {"schema": SCHEMA, "seed": self.config.seed, "weights": weights, **of_judge}


def _about(ask: Ask) -> dict[str, Any]:
    return {"ask": ask.id, "about": {"values": dict(ask.values), "high": ask.high}}
