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
    size = whole.config.generate.batch_size
    batches = {m: shard.mine(whole.of(m), size) for m in whole.subjects}
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
