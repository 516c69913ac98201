"""The stages of a run of this study."""

from faithscope.experiments.config.study import Stage, by_name

STAGES = by_name(
    Stage("rf_baseline", measures=False),
    Stage("rf_intervened", measures=False),
    Stage("rf_tests"),
    Stage("rf_log_probs"),
    Stage("rf_inside"),
    Stage("rf_judged"),
    Stage("rf_steps"),
    Stage("rf_steps_scored"),
)
