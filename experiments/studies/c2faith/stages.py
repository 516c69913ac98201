"""The stages of a run of this study."""

from faithscope.experiments.config.study import Stage, by_name

_JUDGES = ("judge.model", "judge.readings")
STAGES = by_name(
    Stage("acausal"),
    Stage("judge_generated", keys=_JUDGES),
    Stage("judge_scored", keys=_JUDGES),
    Stage("broken_step", keys=("internals.model",)),
)
