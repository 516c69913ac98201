"""Work through a plan of RFEval: have outputs written, test and read them, have them judged."""

from __future__ import annotations

from faithscope.experiments.engine.planfile import Shard, failures, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.rfeval.judging.pairs_judged import RfJudging
from faithscope.experiments.studies.rfeval.judging.steps_judged import StepJudging
from faithscope.experiments.studies.rfeval.plan import TESTS, RfPlan
from faithscope.experiments.studies.rfeval.programs.sandbox import unavailable
from faithscope.experiments.studies.rfeval.subjects.subject_stages import Measuring
from faithscope.interp.errors import UserError


class RfWork:
    """One worker's part of a run: the models one after the other, then the judges."""

    has_outputs = True

    def __init__(self, whole: RfPlan, store: Store, shard: Shard) -> None:
        self.whole, self.store, self.index = whole, store, store.index
        size = whole.config.generate.batch_size
        self.batches = {m: shard.mine(whole.of(m), size) for m in whole.subjects}
        self.pairs = [p for of in self.batches.values() for batch in of for p in batch]
        self.meter = Meter()
        self.judging = RfJudging(whole, self.batches, store, self.meter)
        self.by_step = [
            StepJudging(whole, self.batches, judge, store, self.meter)
            for judge in whole.config.per_step.judge
        ]
        self.measuring = Measuring(whole, self.batches, store, self.meter)
        self.problems: list[str] = []
        self.stopped = ""

    def go(self) -> None:
        """Do all that is missing: models, judges, judges step by step.

        Raises:
            UserError: before anything is written: a model behind an API lacks its key, package,
                address or price, or the sandbox that the config requires is not there. Else: no
                model, or no judge, could be used.
        """
        asking = (self.judging, *self.by_step)
        problems: dict[str, UserError] = {}
        for work in (self.measuring, *asking):
            try:
                work.check()
            except UserError as error:
                problems |= {line: error for line in str(error).split("\n")}
        if errors := list(dict.fromkeys(problems.values())):
            raise errors[0] if len(errors) == 1 else UserError("\n".join(problems))
        if self.whole.config.tests.run == "required" and self._code() and (why := unavailable()):
            raise UserError(f"tests.run is required, and code items cannot be run here: {why}")
        self.measuring.announce()
        for work in asking:
            work.announce()
        try:
            self.measuring.go()
            self.judging.go()
            for work in self.by_step:
                self._in_steps(work)
        finally:
            all_of_it = (self.measuring, *asking)
            self.problems += [p for w in all_of_it for p in w.problems]
            self.stopped = "; ".join(dict.fromkeys(w.stopped for w in all_of_it if w.stopped))

    def _in_steps(self, work: StepJudging) -> None:
        """A judge that cannot be used here leaves the others theirs."""
        try:
            work.go()
        except UserError as error:
            self.problems.append(str(error))
            self.meter.say(f"left out: {error}")

    def failures(self) -> list[str]:
        return [
            f"{p.model} · {p.task} · {p.item} · {stage}: {reason}"
            for p in self.pairs
            for stage, reason in failures(self.index, p)
        ]

    def done(self) -> str:
        finished = sum(not missing(self.index, p) for p in self.pairs)
        return f"{finished} of {len(self.pairs)} items are done"

    def _code(self) -> bool:
        return any(TESTS in missing(self.index, p) for p in self.pairs)
