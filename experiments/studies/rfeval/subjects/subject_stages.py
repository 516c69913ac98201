"""What is done with the models that are measured: outputs, tests, log-probs, a look inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from faithscope import interp
from faithscope.experiments.config.api import ApiSection
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.inside.looking import look_inside
from faithscope.experiments.studies.rfeval.inside.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.pairs import code_of
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
from faithscope.experiments.studies.rfeval.units import (
    INSIDE,
    LOG_PROBS,
    OUTPUTS,
    TESTS,
    Batches,
    Pair,
    RfUnits,
)
from faithscope.interp.errors import UserError
from faithscope.interp.memory import free

if TYPE_CHECKING:
    from faithscope.interp.backends import Backend
    from faithscope.interp.language import Speaks

Written = Mapping[Condition, tuple[Forced, Sequence[int]]]
"""What each output was written after, and its ids."""
_WRITTEN = tuple(OUTPUTS.values())
"""The stages in which outputs are written."""
Look = Callable[[interp.Model, Pair, Written], Records]


class SubjectStages(Worker[Pair]):
    """What one worker does with the models that are measured."""

    def __init__(self, whole: RfUnits, batches: Batches, store: Store, meter: Meter) -> None:
        self.whole, config = whole, whole.config
        stages = (*OUTPUTS.values(), TESTS, LOG_PROBS, INSIDE)
        super().__init__(batches, stages, config.spend, config.token_budget, store, meter)

    def label(self, item: Pair, stage: str) -> str:
        return stage.removeprefix("rf_").replace("_", " ")

    def asked(self) -> Mapping[str, ApiSection]:
        return {
            name: subject.asked
            for name, subject in self.whole.subjects.items()
            if subject.asked and any(super(SubjectStages, self).lacking(name, s) for s in _WRITTEN)
        }

    def check(self) -> None:
        super().check()
        required = self.whole.config.tests.run == "required"
        untested = any(TESTS in self.missing(pair) for pair in self.items)
        if required and untested and (why := unavailable()):
            raise UserError(f"tests.run is required, and code items cannot be run here: {why}")

    def lacking(self, model: str, stage: str) -> list[Pair]:
        """Programs that were stored untested, for there was no sandbox, are tested where one is."""
        lacking = super().lacking(model, stage)
        return lacking + self._untested(model) if stage == TESTS else lacking

    def _untested(self, model: str) -> list[Pair]:
        return [
            pair
            for batch in self.batches[model]
            for pair in batch
            if TESTS in pair.units
            and self.index.is_done(pair.key(TESTS), pair.units[TESTS])
            and any(r["outcome"] == NO_SANDBOX for r in self.index.records(pair.key(TESTS)))
            and not unavailable()
        ]

    def do(self, model: str) -> None:
        # what the model before it held, where it ended in an error
        free()
        subject = self.whole.subjects[model]
        if subject.asked is not None:
            self._ask(subject)
            self._test(model)
            return
        held = self._write(subject)
        self._test(model)
        looks: dict[str, Look] = {LOG_PROBS: self._stances, INSIDE: self._inside}
        for stage, look in looks.items():
            if self.lacking(model, stage):
                held = held or self._load(subject)
                self._read(subject, held, stage, look)
        del held
        free()

    def _ask(self, subject: Subject) -> None:
        """The outputs that are missing of a model behind an API."""
        wanted = [w for batch in self.batches[subject.name] for w in self._wanted(batch)]
        if wanted:
            self._begin_writing(subject.name, wanted)
            seed, words = self.whole.config.seed, self.whole.words
            writer = self.apis[subject.name]
            write_closed(writer, subject, wanted, words, seed, self._keep_output)

    def _load(self, subject: Subject) -> interp.Model:
        return subject.file.marked(self.load(subject.name, subject, subject.trust_remote_code))

    def _write(self, subject: Subject) -> interp.Model | None:
        """The outputs that are missing; gives the weights, where they were read for it."""
        name = subject.name
        if not any(self.lacking(name, stage) for stage in _WRITTEN):
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
        name, config = subject.name, self.whole.config
        self.store.note_model(name, {f"generation_{k}": v for k, v in backend.describe().items()})
        writer = Generating(
            subject, backend, speaks, self.whole.words, config.seed, self._keep_output
        )
        batches = self.batches[name]
        if not isinstance(speaks, interp.Model):
            # servers, and vLLM, make their own batches
            wanted = [w for batch in batches for w in self._wanted(batch)]
            self._begin_writing(name, wanted)
            writer.write(list(writer.starts(wanted)))
            return

        def left(starts: Sequence[Start]) -> list[Start]:
            return [s for s in starts if s.stage in self.missing(s.pair)]

        for batch in batches:
            if wanted := self._wanted(batch):
                self._begin_writing(name, wanted)
                if starts := list(writer.starts(wanted)):
                    self.together(
                        speaks,
                        starts,
                        lambda part: writer.write(left(part)),
                        lambda start, error: self._keep_output(start.pair, start.stage, [], error),
                        left,
                    )

    def _wanted(self, batch: Sequence[Pair]) -> list[tuple[Pair, Condition]]:
        return [
            (pair, condition)
            for pair in batch
            for condition, stage in OUTPUTS.items()
            if stage in self.missing(pair)
        ]

    def _test(self, name: str) -> None:
        config = self.whole.config
        limits = Limits(**config.tests.model_dump(exclude={"run"}))
        todo = self.lacking(name, TESTS)
        why = unavailable() if todo else ""
        if why:
            self.meter.say(
                "code is not run, and its answers are left to the judges until the run is gone on "
                f"with where there is a sandbox: {why}"
            )
        for pair in todo:
            assert pair.of.tests is not None
            self.begin(name, pair, TESTS)
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
                self.keep(pair, TESTS, error)
            else:
                if outputs is not None:
                    self.keep(pair, TESTS, storable(records))

    def _read(self, subject: Subject, model: interp.Model, stage: str, look: Look) -> None:
        """What the weights are read for once the outputs are there."""

        def measure(pair: Pair) -> Records:
            outputs: Written = {
                condition: (
                    start_of(model, subject, pair, condition, self.whole.words),
                    record["ids"],
                )
                for condition, record in (records_of(self.index, pair) or {}).items()
                if record["finish"] != NO_ROOM
            }
            return look(model, pair, outputs)

        pairs = self.lacking(subject.name, stage)
        written = [p for p in pairs if records_of(self.index, p) is not None]
        self.each(model, written, stage, measure)

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

    def _begin_writing(self, name: str, wanted: Sequence[tuple[Pair, Condition]]) -> None:
        pair, condition = wanted[0]
        self.begin(name, pair, OUTPUTS[condition])

    def _keep_output(
        self, pair: Pair, stage: str, records: Records, error: Exception | None
    ) -> None:
        seconds = self.since_last()
        records = [r | {"elapsed": round(seconds, 4)} for r in records]
        self.keep(pair, stage, error or records, seconds)
