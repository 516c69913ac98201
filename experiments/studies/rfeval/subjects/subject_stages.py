"""What is done with the models that are measured: outputs, tests, log-probs, a look inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from faithscope import interp
from faithscope.experiments.engine.judges import checked_apis
from faithscope.experiments.engine.loading import load_for_run
from faithscope.experiments.engine.models_in_turn import in_turn
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.spending import budget_of
from faithscope.experiments.engine.store import Store, storable
from faithscope.experiments.engine.units import why_failed
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.inside.looking import look_inside
from faithscope.experiments.studies.rfeval.inside.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.pairs import code_of
from faithscope.experiments.studies.rfeval.plan import (
    INSIDE,
    LOG_PROBS,
    OUTPUTS,
    TESTS,
    Pair,
    RfPlan,
)
from faithscope.experiments.studies.rfeval.programs.sandbox import Limits, run_tests, unavailable
from faithscope.experiments.studies.rfeval.records import (
    NO_ROOM,
    NO_SANDBOX,
    about,
    outputs_of,
    records_of,
    stance_record,
    tests_record,
    untested_record,
)
from faithscope.experiments.studies.rfeval.subjects.closed import write_closed
from faithscope.experiments.studies.rfeval.subjects.generating import (
    Generating,
    Start,
    backend_of,
    start_of,
)
from faithscope.experiments.studies.rfeval.subjects.injection import Forced
from faithscope.experiments.studies.rfeval.subjects.subjects import Subject
from faithscope.interp.errors import UserError
from faithscope.interp.memory import free, within_memory

if TYPE_CHECKING:
    from faithscope.interp.backends import Backend
    from faithscope.interp.language import Speaks
    from faithscope.probes.judge.api import ApiJudge

Batches = Mapping[str, list[list[Pair]]]
"""Model -> the pairs that are one worker's, by batches."""
Written = Mapping[Condition, tuple[Forced, Sequence[int]]]
"""What each output was written after, and its ids."""
Look = Callable[[interp.Model, Pair, Written], Records]


class Measuring:
    """One worker's part of it, a model in memory at a time."""

    STAGES = (*OUTPUTS.values(), TESTS, LOG_PROBS, INSIDE)

    def __init__(self, whole: RfPlan, batches: Batches, store: Store, meter: Meter) -> None:
        self.whole, self.batches, self.store, self.meter = whole, batches, store, meter
        self.index = store.index
        self.problems: list[str] = []
        self.stopped = ""
        self._handles: dict[tuple[str, str], int] = {}
        self._last = 0.0
        self._apis: dict[str, ApiJudge] = {}

    def check(self) -> None:
        """See that every model behind an API can be asked for what is missing.

        Raises:
            UserError: keys, packages, addresses or prices are missing; a line for each model.
        """
        asked = {
            name: subject.asked
            for name, subject in self.whole.subjects.items()
            if subject.asked and any(self.lacking(name, s) for s in OUTPUTS.values())
        }
        self._apis = checked_apis(asked, budget_of(self.whole.config.spend, self.store, asked))

    def announce(self) -> None:
        """Tell the meter what is to come."""
        for model in self.batches:
            short = model.rpartition("/")[2]
            for stage in self.STAGES:
                if n := len(self._left(model, stage)):
                    label = f"{short} · {stage.removeprefix('rf_').replace('_', ' ')}"
                    tiny = model.startswith("planted:")
                    self._handles[model, stage] = self.meter.expect(label, n, stage, tiny)

    def go(self) -> None:
        """Everything that is missing of every model.

        Raises:
            UserError: no model could be used.
        """
        todo = [m for m in self.batches if any(self._left(m, s) for s in self.STAGES)]
        in_turn(self, todo, self._all_of, self.meter, self.store)

    def lacking(self, model: str, stage: str) -> list[Pair]:
        """The pairs of a model that lack a stage, in order."""
        pairs = (p for batch in self.batches[model] for p in batch)
        return [p for p in pairs if stage in missing(self.index, p)]

    def _left(self, model: str, stage: str) -> list[Pair]:
        """`lacking`; and programs stored untested where there was no sandbox, if here is one."""
        lacking = self.lacking(model, stage)
        return lacking + self._untested(model) if stage == TESTS else lacking

    def _untested(self, model: str) -> list[Pair]:
        found = []
        for pair in (p for batch in self.batches[model] for p in batch):
            if TESTS in pair.units and self.index.is_done(pair.key(TESTS), pair.units[TESTS]):
                records = self.index.records(pair.key(TESTS))
                if any(r["outcome"] == NO_SANDBOX for r in records) and not unavailable():
                    found.append(pair)
        return found

    def _all_of(self, name: str) -> None:
        # what the model before it held, where it ended in an error
        free()
        subject = self.whole.subjects[name]
        if subject.asked is not None:
            self._ask(subject)
            self._test(name)
            return
        model = self._write(subject)
        self._test(name)
        looks: dict[str, Look] = {LOG_PROBS: self._stances, INSIDE: self._inside}
        for stage, look in looks.items():
            if self.lacking(name, stage):
                model = model or self._load(subject)
                self._read(subject, model, stage, look)
        del model
        free()

    def _ask(self, subject: Subject) -> None:
        """The outputs that are missing of a model behind an API."""
        wanted = [w for batch in self.batches[subject.name] for w in self._wanted(batch)]
        if wanted:
            self._begin_first(subject.name)
            seed, words = self.whole.config.seed, self.whole.words
            writer = self._apis[subject.name]
            write_closed(writer, subject, wanted, words, seed, self._keep)

    def _load(self, subject: Subject) -> interp.Model:
        budget = self.whole.config.token_budget
        model = load_for_run(
            subject.name,
            subject,
            budget,
            self.meter,
            self.store,
            trust_remote_code=subject.trust_remote_code,
        )
        return subject.file.marked(model)

    def _write(self, subject: Subject) -> interp.Model | None:
        """The outputs that are missing; gives the weights, where they were read for it."""
        name = subject.name
        if not any(self.lacking(name, stage) for stage in OUTPUTS.values()):
            return None
        how = self.whole.config.generate
        backend, speaks = backend_of(subject, how, self._load)
        try:
            self._write_by(subject, backend, speaks)
        finally:
            # vLLM would keep most of the device from what reads the same weights after it
            backend.close()
        return speaks if isinstance(speaks, interp.Model) else None

    def _write_by(self, subject: Subject, backend: Backend, speaks: Speaks) -> None:
        name = subject.name
        self.store.note_model(name, {f"generation_{k}": v for k, v in backend.describe().items()})
        made = Generating(
            subject, backend, speaks, self.whole.words, self.whole.config.seed, self._keep
        )
        batches = self.batches[name]
        if not isinstance(speaks, interp.Model):
            # servers, and vLLM, make their own batches
            self._begin_first(name)
            made.write(list(made.starts([w for batch in batches for w in self._wanted(batch)])))
            return
        for batch in batches:
            if wanted := self._wanted(batch):
                self._begin_first(name)
                self._together(made, speaks, list(made.starts(wanted)))

    def _together(self, made: Generating, model: interp.Model, starts: list[Start]) -> None:
        """A batch here; where it fails, one by one: one bad item must not take its batch along."""

        def work() -> None:
            made.write([s for s in starts if s.stage in missing(self.index, s.pair)])

        try:
            within_memory(model, work, self._on_less(model.name))
        except UserError:
            raise
        except Exception as error:
            left = [s for s in starts if s.stage in missing(self.index, s.pair)]
            if len(left) <= 1:
                for start in left:
                    self._keep(start.pair, start.stage, [], error)
                return
            for start in left:
                self._together(made, model, [start])

    def _wanted(self, batch: Sequence[Pair]) -> list[tuple[Pair, Condition]]:
        return [
            (pair, condition)
            for pair in batch
            for condition, stage in OUTPUTS.items()
            if stage in missing(self.index, pair)
        ]

    def _test(self, name: str) -> None:
        config = self.whole.config
        limits = Limits(**config.tests.model_dump(exclude={"run"}))
        todo = self._left(name, TESTS)
        why = unavailable() if todo else ""
        if why:
            self.meter.say(
                "code is not run, and its answers are left to the judges until the run is gone on "
                f"with where there is a sandbox: {why}"
            )
        for pair in todo:
            assert pair.of.tests is not None
            self._begin(name, TESTS)
            outputs = outputs_of(self.index, pair, config.paper_compat)
            records: Records = []
            try:
                for condition, output in (outputs or {}).items():
                    of = about(pair.of, name, TESTS, condition, config.seed)
                    if not output.usable:
                        told = f"the output is {output.outcome}"
                        records.append(untested_record(of, condition, "not_run", told))
                        continue
                    if why:
                        records.append(untested_record(of, condition, NO_SANDBOX, why))
                        continue
                    code = code_of(output)
                    report = run_tests(pair.of.tests, code, limits)
                    records.append(tests_record(of, condition, code, report))
                    if records[-1]["outcome"] == "test_broken":
                        self.meter.say(
                            f"{pair.item}: its own test does not run here, and the answer is left "
                            f"to the judges: {report.runs[-1].detail[-200:]}"
                        )
            except Exception as error:
                self._keep(pair, TESTS, [], error)
            else:
                if outputs is not None:
                    self._keep(pair, TESTS, storable(records), None)

    def _read(self, subject: Subject, model: interp.Model, stage: str, look: Look) -> None:
        """What the weights are read for once the outputs are there."""
        for pair in self.lacking(subject.name, stage):
            if (written := records_of(self.index, pair)) is None:
                continue
            self._begin(subject.name, stage)
            try:
                outputs: Written = {
                    condition: (
                        start_of(model, subject, pair, condition, self.whole.words),
                        record["ids"],
                    )
                    for condition, record in written.items()
                    if record["finish"] != NO_ROOM
                }
                found = within_memory(
                    model,
                    lambda pair=pair, outputs=outputs: storable(look(model, pair, outputs)),
                    self._on_less(model.name),
                )
            except Exception as error:
                self._keep(pair, stage, [], error)
            else:
                self._keep(pair, stage, found, None)

    def _stances(self, model: interp.Model, pair: Pair, outputs: Written) -> Records:
        config, made = self.whole.config, []
        for condition, (start, ids) in outputs.items():
            of = about(pair.of, pair.model, LOG_PROBS, condition, config.seed)
            scored = scored_stances(model, pair.of, start, ids, config.naming)
            made += [stance_record(of, condition, one) for one in scored]
        return made

    def _inside(self, model: interp.Model, pair: Pair, outputs: Written) -> Records:
        config = self.whole.config
        if len(outputs) < len(CONDITIONS):
            return []
        found = look_inside(model, pair.of, outputs, config.inside, config.naming)
        return [about(pair.of, pair.model, INSIDE, r["variant"], config.seed) | r for r in found]

    def _begin_first(self, name: str) -> None:
        stage = next(s for s in OUTPUTS.values() if (name, s) in self._handles)
        self._begin(name, stage)

    def _begin(self, name: str, stage: str) -> None:
        self.meter.begin(self._handles[name, stage])
        self._last = time.perf_counter()

    def _keep(
        self, pair: Pair, stage: str, records: list[dict[str, Any]], error: Exception | None
    ) -> None:
        failed = None
        if error is not None:
            failed = why_failed(error)
            self.meter.say(f"failed: {pair.item} · {stage}: {failed}")
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        if stage in OUTPUTS.values():
            records = [r | {"elapsed": round(seconds, 4)} for r in records]
        self.store.add(pair.units[stage], pair.key(stage), records, failed, seconds)
        self.meter.at(self._handles[pair.model, stage])
        self.meter.advance(seconds=seconds)
        if isinstance(error, torch.AcceleratorError):
            raise UserError(
                f"{pair.model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )

    def _on_less(self, name: str):
        def note(budget: int) -> None:
            line = f"{name}: out of memory; goes on with a token budget of {budget}"
            self.meter.say(line)
            self.store.note(line)

        return note
