"""The stages of a run of this study."""

from faithscope.experiments.config.study import Stage, by_name

STAGES = by_name(
    Stage("acausal"),
    Stage("judge_generated"),
    Stage("judge_scored"),
    Stage("broken_step"),
)
