"""Judges on chains of thought that were written elsewhere: no model that reasons is needed."""

from faithscope.experiments.config.study import Study

STUDY = Study("judge", at=__name__)
