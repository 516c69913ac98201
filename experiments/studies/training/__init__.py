"""Training for reasoning that is used (SLRC, section 3.3), on real and on planted models."""

from faithscope.experiments.config.study import Study

STUDY = Study("training", at=__name__, unit="trainings")
