"""The study of traces measured by probes, SLRC first among them; runs without `benchmark` are of
it."""

from faithscope.experiments.config.study import Study

STUDY = Study("slrc", at=__name__, unnamed=True)
