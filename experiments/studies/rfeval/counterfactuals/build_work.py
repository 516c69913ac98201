"""Work through a plan of building: ask the writer for r′, or the validator what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.models.judges import replied
from faithscope.experiments.engine.models.preparing import Preparing
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.requests import WRITING, Phase, Request
from faithscope.experiments.studies.rfeval.programs.sandbox import unavailable
from faithscope.experiments.studies.rfeval.records import about
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Reply, Writing


class BuildWork(Preparing[Request]):
    """One phase of building, by one worker."""

    LEFT_OUT = "its item"

    def __init__(
        self,
        config: RFEvalConfig,
        phase: Phase,
        how: JudgeConfig,
        items: Sequence[Request],
        given_up: Mapping[str, str],
        store: Store,
        shard: Shard,
    ) -> None:
        self.of_run, self.phase = config, phase
        super().__init__(config, items[0].model, items, phase, how, given_up, store, shard)

    def check(self) -> None:
        super().check()
        needed = self.of_run.tests.run == "required" and any(i.of.tests for i in self.items)
        if needed and (why := unavailable()):
            raise UserError(f"tests.run is required, and code items cannot be run here: {why}")

    def asked_later(self) -> Mapping[str, JudgeConfig]:
        # a key that is missing must not be found out after the writing is paid for
        later = [*self.of_run.judge.model]
        if self.phase == WRITING:
            later.append(str(self.of_run.counterfactual.validator))
        return dict.fromkeys(later, self.of_run.judge)

    def asks_of(self, item: Request) -> Sequence[Ask | Writing]:
        return (item.ask,)

    def records(
        self, model: str, item: Request, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        """What writer or validator was asked and what came back, word for word."""
        (reply,) = replies
        writer, judge = (model, None) if self.phase == WRITING else (None, model)
        record = about(item.of, None, self.phase, "", self.config.seed, judge)
        record |= {"writer": writer, "values": dict(reply.values)}
        if isinstance(item.ask, Ask):
            record["form_sha256"] = item.ask.form.sha256
        return storable([record | {"asked": item.ask.prompt, **replied(reply)}])
