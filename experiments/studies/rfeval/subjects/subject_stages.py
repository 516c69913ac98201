"""Stages of the models that are measured: outputs, tests, log-probs, a look inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from faithscope import interp
from faithscope.experiments.config.api import ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.engine.models.writing import HowWritten, Spoken, Start, TextWorker, Unit
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.judging.scored_stances import scored_stances
from faithscope.experiments.studies.rfeval.pairs import code_of
from faithscope.experiments.studies.rfeval.records import (
    NO_ROOM,
    NO_SANDBOX,
    UNTESTED,
    Record,
    about,
    closed_record,
    output_record,
    outputs_of,
    records_of,
    tests_record,
    writing_of,
)
from faithscope.experiments.studies.rfeval.subjects.inside import look_inside
from faithscope.experiments.studies.rfeval.subjects.programs import Limits, checker_of, unavailable
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced, forced, output_of
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
from faithscope.interp.generation import Generation
from faithscope.probes.judge.form import Reply, Writing

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks

Written = Mapping[Condition, tuple[Forced, Sequence[int]]]
"""Condition -> the conversation that the output was written after, and its ids."""
Look = Callable[[interp.Model, Pair, Written], Records]
_CONDITION_OF: dict[str, Condition] = {stage: condition for condition, stage in OUTPUTS.items()}


class SubjectStages(TextWorker[Pair, Forced]):
    """One worker's share of the stages of measured models."""

    texts = tuple(OUTPUTS.values())

    def __init__(self, whole: RfUnits, batches: Batches, store: Store, meter: Meter) -> None:
        self.whole, config = whole, whole.config
        stages = (*self.texts, TESTS, LOG_PROBS, INSIDE)
        super().__init__(batches, stages, config.spend, config.token_budget, store, meter)

    def label(self, item: Pair, stage: str) -> str:
        return stage.removeprefix("rf_").replace("_", " ")

    def asked(self) -> Mapping[str, ApiSection]:
        return {
            name: subject.asked
            for name, subject in self.whole.subjects.items()
            if subject.asked and any(map(self.lacking_texts, self.batches[name]))
        }

    def check(self) -> None:
        super().check()
        tests = self.whole.config.tests
        untested = any(TESTS in self.missing(pair) for pair in self.items)
        if tests.run == "required" and untested and (why := unavailable(tests)):
            raise UserError(f"tests.run is required, and code items cannot be run here: {why}")

    def lacking(self, model: str, stage: str) -> list[Pair]:
        """Adds programs that were stored untested for want of a sandbox, if there is one now."""
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
            and not unavailable(self.whole.config.tests)
        ]

    def do(self, model: str) -> None:
        if self.whole.subjects[model].asked is not None:
            self.write_by_api(model, [pair for batch in self.batches[model] for pair in batch])
            self._test(model)
            return
        loaded = self.write(model)
        self._test(model)
        looks: dict[str, Look] = {LOG_PROBS: self._stances, INSIDE: self._inside}
        for stage, look in looks.items():
            if self.lacking(model, stage):
                loaded = loaded or self.load_subject(model)
                self._read(model, loaded, stage, look)

    def backend(self) -> BackendSection:
        return self.whole.config.generate

    def how_written(self, model: str) -> HowWritten:
        """Decoding is greedy, ended by the family's end tokens alone (C.1)."""
        subject = self.whole.subjects[model]
        # a base model may have no template, where marks mean nothing: see `ModelFile.marked`
        base = subject.model_copy(update={"marks": None})
        return HowWritten(
            base if subject.regime == "Base" else subject,
            subject.max_new_tokens,
            self.whole.config.seed,
            repetition_penalty=subject.repetition_penalty,
            trust_remote_code=subject.trust_remote_code,
            vllm=subject.for_vllm,
        )

    def marked(self, model: str, speaks: Spoken) -> Spoken:
        return self.whole.subjects[model].marked(speaks)

    def prompt(self, speaks: Speaks, unit: Unit[Pair]) -> Forced:
        pair, stage = unit
        subject = self.whole.subjects[pair.model]
        r_prime = pair.of.r_prime if stage == OUTPUTS["intervened"] else ""
        about = (subject.system, subject.effort, subject.framing)
        return forced(speaks, pair.of.asked, r_prime, *about)

    def text_records(
        self, speaks: Speaks, start: Start[Pair, Forced], text: Generation, by: Mapping[str, str]
    ) -> Records:
        prompt, finished = start.prompt, text.finish == "stop"
        record = output_record(
            self._about((start.item, start.stage)),
            prompt,
            self.whole.subjects[start.item.model].framing,
            text,
            speaks.decode(text.ids),
            output_of(speaks, prompt, text.ids, finished),
            output_of(speaks, prompt, text.ids, finished, paper_compat=True),
            by,
        )
        return [record]

    def no_room(self, unit: Unit[Pair], prompt: Forced, error: UserError) -> Records:
        framing = self.whole.subjects[unit[0].model].framing
        record = output_record(self._about(unit), prompt, framing)
        return [record | {"finish": NO_ROOM, "problem": str(error)}]

    def conversation(self, unit: Unit[Pair]) -> Writing:
        pair, stage = unit
        system = self.whole.subjects[pair.model].system
        return writing_of(pair, _CONDITION_OF[stage], system)

    def reply_records(self, unit: Unit[Pair], writing: Writing, reply: Reply) -> Records:
        return [closed_record(self._about(unit), reply, writing.system)]

    def keep(
        self,
        item: Pair,
        stage: str,
        result: Records | Exception,
        seconds: float | None = None,
    ) -> None:
        if stage in self.texts and not isinstance(result, Exception):
            seconds = self.since_last()
            result = [r | {"elapsed": round(seconds, 4)} for r in result]
        super().keep(item, stage, result, seconds)

    def _about(self, unit: Unit[Pair]) -> Record:
        pair, stage = unit
        return about(pair.of, pair.model, stage, _CONDITION_OF[stage], self.whole.config.seed)

    def _test(self, name: str) -> None:
        todo = [p for p in self.lacking(name, TESTS) if records_of(self.index, p)]
        why = unavailable(self.whole.config.tests) if todo else ""
        if why:
            self.meter.say(
                "code is not run, and its answers are left to the judges until the run is gone on "
                f"with where there is a sandbox: {why}"
            )
        for pair in todo:
            self.begin(name, pair, TESTS)
            result: Records | Exception
            try:
                result = storable([self._tested(pair, c, why) for c in CONDITIONS])
            except Exception as error:
                result = error
            self.keep(pair, TESTS, result)

    def _tested(self, pair: Pair, condition: Condition, why: str) -> Record:
        """Record of the tests of one output.

        Args:
            why: why programs cannot be checked here; "" if they can.
        """
        config, tests = self.whole.config, pair.of.tests
        outputs = outputs_of(self.index, pair, config.paper_compat)
        assert tests is not None
        assert outputs is not None
        output = outputs[condition]
        of = about(pair.of, pair.model, TESTS, condition, config.seed)
        of |= {"condition": condition, **UNTESTED}
        if not output.usable:
            return of | {"outcome": "not_run", "detail": f"the output is {output.outcome}"}
        if why:
            return of | {"outcome": NO_SANDBOX, "detail": why}
        limits = Limits(**config.tests.model_dump(exclude={"run", "checker"}))
        report = checker_of(config.tests).run_tests(tests, code := code_of(output), limits)
        record = tests_record(of, code, report)
        if record["outcome"] == "test_broken":
            self.meter.say(
                f"{pair.item}: its own test does not run here, and the answer is left to the "
                f"judges: {record['detail'][-200:]}"
            )
        return record

    def _read(self, name: str, model: interp.Model, stage: str, look: Look) -> None:
        """Carries out a stage that needs the weights and the stored outputs of each pair."""

        def measure(pair: Pair) -> Records:
            outputs: Written = {
                condition: (self.prompt(model, (pair, OUTPUTS[condition])), record["ids"])
                for condition, record in (records_of(self.index, pair) or {}).items()
                if record["finish"] != NO_ROOM
            }
            return look(model, pair, outputs)

        written = [p for p in self.lacking(name, stage) if records_of(self.index, p)]
        self.each(model, written, stage, measure)

    def _stances(self, model: interp.Model, pair: Pair, outputs: Written) -> Records:
        config = self.whole.config
        return [
            about(pair.of, pair.model, LOG_PROBS, condition, config.seed)
            | {"condition": condition, **stance}
            for condition, (start, ids) in outputs.items()
            for stance in scored_stances(model, pair.of, start, ids)
        ]

    def _inside(self, model: interp.Model, pair: Pair, outputs: Written) -> Records:
        config = self.whole.config
        if len(outputs) < len(CONDITIONS):
            return []
        records = look_inside(model, pair.of, outputs, config.inside)
        return [about(pair.of, pair.model, INSIDE, r["variant"], config.seed) | r for r in records]
