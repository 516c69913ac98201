"""The stages of a training run."""

from __future__ import annotations

from faithscope.experiments.config.study import Stage, by_name

TRAINING, BATTERY = "training", "battery"
STAGES = by_name(Stage(TRAINING), Stage(BATTERY, needs=(TRAINING,)))
