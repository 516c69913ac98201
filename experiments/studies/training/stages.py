"""The stages of a run of this study."""

from faithscope.experiments.config.study import Stage, by_name

TRAINING, BATTERY, MEASURING = "training", "battery", "measured"
STAGES = by_name(
    Stage(TRAINING), Stage(BATTERY, needs=(TRAINING,)), Stage(MEASURING, needs=(TRAINING,))
)
"""Stages of a training run: the training itself, the battery of edits of planted models, and the
run that measures the model or its adapter."""
