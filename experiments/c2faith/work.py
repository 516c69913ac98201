"""Work through a plan of C2-Faith: have steps rewritten, put every ask to every judge, read every
chain from inside.

One model is in memory at a time. What is stored is never asked again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import interp
from experiments.c2faith.inside import look_inside
from experiments.c2faith.plan import FOLDER, FORMS, INSIDE, STAGES, C2Plan, Judged
from experiments.c2faith.planned import Planned
from experiments.c2faith.prompts import as_files
from experiments.c2faith.records import judged_record
from experiments.c2faith.saved import save
from experiments.c2faith.writing import STAGE as WRITING
from experiments.c2faith.writing import Rewrite, WritingPlan, rewrite_record, writing_as
from experiments.config.judge import API, JudgeConfig, Reading
from experiments.judges import api_judge, open_judge
from experiments.runs.folder import make_folder, write_atomically
from experiments.runs.loading import load_for_run
from experiments.runs.planfile import Shard, failures, is_finished, missing
from experiments.runs.progress import Meter
from experiments.runs.store import Store, storable
from experiments.spending import budget_of
from interp.errors import UserError
from interp.memory import free, within_memory
from probes.judge.form import Ask, Judge, Reply, Writer, Writing
from probes.judge.spend import BudgetSpent

Records = list[dict[str, Any]]


Put = Judged | Rewrite
"""Something with an ask."""


def _name(ask: Ask | Writing) -> tuple[str, str]:
    """Different for every ask of a run."""
    return ("" if isinstance(ask, Writing) else ask.form.name, ask.id)


def _companies(items: Sequence[Any]) -> list[list[Any]]:
    """What of a batch is asked together: asks with something in their chains by themselves, or
    they would change the company of ordinary ones."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for item in items:
        parts[isinstance(item, Judged) and item.injected is not None].append(item)
    return [part for part in parts if part]


class _Work(ABC):
    """What judging and writing share: batches, storing, the budget, a judge that fails."""

    has_outputs = True

    def __init__(
        self,
        whole: C2Plan | WritingPlan,
        models: Sequence[str],
        judge: JudgeConfig,
        stages: Mapping[str, Reading | None],
        store: Store,
        shard: Shard,
    ) -> None:
        self.config = whole.config
        self.judge = judge
        self.stages = stages
        """Stage -> how its verdicts are read; None where no judge is asked."""
        self.store = store
        self.index = store.index
        of = {m: [i for i in whole.items if i.model == m] for m in models}
        self.batches = {m: shard.mine(items, judge.batch_size) for m, items in of.items()}
        self.items = [i for b in self.batches.values() for batch in b for i in batch]
        self.meter = Meter()
        self.problems: list[str] = []
        self.stopped = ""
        self._handles: dict[tuple[str, str], int] = {}
        self._last = 0.0
        """When the last unit was stored."""

    def go(self) -> None:
        """Do all that is missing; where the budget is spent, what costs nothing."""
        todo = [m for m in self.batches if self._left(m)]
        for model in todo:
            self._announce(model)
        self.budget = budget_of(self.config.spend, self.store, todo)
        with self.meter:
            for model in todo:
                try:
                    self._all_of(model)
                except BudgetSpent as spent:
                    # models here cost nothing: they go on
                    self.stopped += f"{'; ' if self.stopped else ''}{spent}"
                    self.store.note(f"{spent} (unanswered: {spent.unanswered})")
                except UserError as error:
                    # A judge that cannot be used must not cost the night of the others.
                    if len(todo) == 1:
                        raise
                    self.problems.append(str(error))
                    self.meter.say(f"left out: {error}")
        if self.problems and len(self.problems) == len(todo):
            raise UserError("\n".join(self.problems))

    def failures(self) -> list[str]:
        return [
            f"{i.model} · {i.task} · {i.item} · {stage}: {reason}"
            for i in self.items
            for stage, reason in failures(self.index, i)
        ]

    def done(self) -> str:
        finished = sum(is_finished(self.index, i) for i in self.items)
        return f"{finished} of {len(self.items)} items are done"

    @abstractmethod
    def record(self, item: Any, reading: Reading, reply: Reply) -> dict[str, Any]:
        """What is stored of a reply."""

    def besides(self, model: interp.Model) -> None:
        """What is done with a model here once it has been asked everything."""
        return

    def held(self, name: str) -> JudgeConfig:
        """How the weights of a model here are held, and what its template must be able to."""
        return self.judge

    def _left(self, model: str) -> list[Any]:
        items = [i for batch in self.batches[model] for i in batch]
        return [i for i in items if not is_finished(self.index, i)]

    def _announce(self, model: str) -> None:
        short = model.rpartition("/")[2]
        for stage in self.stages:
            n = sum(stage in missing(self.index, i) for i in self._left(model))
            label = f"{short} · {stage.replace('_', ' ')}"
            tiny = model.startswith("planted:")
            self._handles[model, stage] = self.meter.expect(label, n, stage, tiny)

    def _all_of(self, name: str) -> None:
        asked: dict[str, Reading] = {s: r for s, r in self.stages.items() if r is not None}
        if name.startswith(API):
            judge = api_judge(name, self.judge, self.budget)
            for stage, reading in asked.items():
                self._ask(judge, stage, reading, self._lacking(name, stage))
            return
        held = self.held(name)
        model = load_for_run(name, held, self.config.token_budget, self.meter, self.store)
        for stage, reading in asked.items():
            judge = open_judge(model, reading, self.judge, self.config.seed)
            for batch in self.batches[name]:
                # the whole batch, though some may be stored: other company could change a reply
                for mine in _companies([i for i in batch if stage in i.units]):
                    if any(stage in missing(self.index, i) for i in mine):
                        self._ask_together(model, judge, stage, reading, mine)
        self.besides(model)
        del model
        free()

    def _lacking(self, name: str, stage: str) -> list[Any]:
        return [i for i in self._left(name) if stage in missing(self.index, i)]

    def _ask_together(
        self, model: interp.Model, judge: Judge, stage: str, reading: Reading, items: Sequence[Put]
    ) -> None:
        try:
            within_memory(
                model, lambda: self._ask(judge, stage, reading, items), self._on_less(model.name)
            )
        except UserError:
            raise
        except Exception as error:
            if len(items) == 1:
                self._keep(items[0], stage, [], error)
                return
            # one bad item must not take its batch with it
            for item in items:
                if stage in missing(self.index, item):
                    self._ask_together(model, judge, stage, reading, [item])

    def _ask(self, judge: Judge, stage: str, reading: Reading, items: Sequence[Put]) -> None:
        if not items:
            return
        self._begin(items[0].model, stage)
        by_ask = {_name(i.ask): i for i in items}

        def keep(ask: Any, reply: Reply) -> None:
            item = by_ask[_name(ask)]
            if stage not in missing(self.index, item):
                return
            failed = RuntimeError(reply.problem) if reply.outcome == "failed" else None
            records = [] if failed else [self.record(item, reading, reply)]
            self._keep(item, stage, records, failed)

        asks = [i.ask for i in items]
        if writings := [a for a in asks if isinstance(a, Writing)]:
            assert isinstance(judge, Writer), judge.name
            judge.write_all(writings, keep)
        if judged := [a for a in asks if isinstance(a, Ask)]:
            judge.ask_all(judged, keep)

    def _begin(self, model: str, stage: str) -> None:
        self.meter.begin(self._handles[model, stage])
        self._last = time.perf_counter()

    def _keep(self, item: Planned, stage: str, records: Records, error: Exception | None) -> None:
        failed = None
        if error is not None:
            failed = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            self.meter.say(f"failed: {item.task} · {item.item} · {stage}: {failed}")
        now = time.perf_counter()
        self.store.add(item.units[stage], item.key(stage), records, failed, now - self._last)
        self._last = now
        self.meter.advance()
        if isinstance(error, torch.AcceleratorError):
            raise UserError(
                f"{item.model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )

    def _on_less(self, name: str) -> Callable[[int], None]:
        def note(budget: int) -> None:
            line = f"{name}: out of memory; goes on with a token budget of {budget}"
            self.meter.say(line)
            self.store.note(line)

        return note


class C2Work(_Work):
    """One worker's part of judging."""

    def __init__(self, whole: C2Plan, store: Store, shard: Shard) -> None:
        config = whole.config
        stages: dict[str, Reading | None] = {s: r for r, s in STAGES.items()}
        super().__init__(whole, config.models, config.judge, stages | {INSIDE: None}, store, shard)
        self.benchmark = whole.benchmark
        self.forms = whole.forms

    def go(self) -> None:
        """Keep what is asked, items and forms; then judge."""
        run_dir = self.store.run_dir
        with self.store.shared():
            save(self.benchmark, run_dir / FOLDER)
            folder = make_folder(run_dir / FORMS)
            for name, text in as_files(self.forms).items():
                write_atomically(folder / name, text)
        super().go()

    def record(self, item: Judged, reading: Reading, reply: Reply) -> dict[str, Any]:
        return judged_record(item, reading, reply, self.config.seed)

    def held(self, name: str) -> JudgeConfig:
        if name in self.judge.model or name == self.config.reference:
            return self.judge
        # it is not asked to judge, and need not think as judges do
        return self.judge.model_copy(update={"thinking": self.config.internals.thinking})

    def besides(self, model: interp.Model) -> None:
        for item in self._lacking(model.name, INSIDE):
            self._begin(item.model, INSIDE)
            try:
                made = within_memory(
                    model,
                    lambda item=item: storable(look_inside(model, item.of, self.config.internals)),
                    self._on_less(model.name),
                )
            except Exception as error:
                self._keep(item, INSIDE, [], error)
            else:
                self._keep(item, INSIDE, made, None)


class WritingWork(_Work):
    """The rewriting of steps, by one worker."""

    has_outputs = False

    def __init__(self, whole: WritingPlan, store: Store, shard: Shard) -> None:
        writer = str(whole.config.perturb.writer)
        stages: dict[str, Reading | None] = {WRITING: "generated"}
        super().__init__(whole, [writer], writing_as(whole.config), stages, store, shard)

    def record(self, item: Rewrite, reading: Reading, reply: Reply) -> dict[str, Any]:
        return rewrite_record(item, reply, self.config.seed)
