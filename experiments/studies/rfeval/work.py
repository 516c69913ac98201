"""What a run of RFEval does: have outputs written, test and read them, have them judged."""

from __future__ import annotations

from faithscope.experiments.engine.phases import Phases
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.rfeval.judging.pairs_judged import RfJudging
from faithscope.experiments.studies.rfeval.judging.steps_judged import StepJudging
from faithscope.experiments.studies.rfeval.subjects.subject_stages import SubjectStages
from faithscope.experiments.studies.rfeval.units import RfUnits


def phases(whole: RfUnits, store: Store, shard: Shard) -> Phases:
    """One worker's part of a run: the models one after the other, then the judges."""
    size, judges = whole.config.generate.batch_size, whole.config.judge.model
    # a subject that judges comes last, and judges first, so that its weights are read once
    subjects = sorted(whole.subjects, key=lambda model: model in judges)
    batches = {model: shard.mine(whole.of(model), size) for model in subjects}
    meter = Meter()
    by_step = [
        StepJudging(whole, batches, judge, store, meter) for judge in whole.config.per_step.judge
    ]
    first = (
        SubjectStages(whole, batches, store, meter),
        RfJudging(whole, batches, store, meter),
    )
    # a judge that cannot be used step by step leaves the others theirs
    return Phases([*first, *by_step], needed=len(first))
