"""The study of chains, which probes (SLRC first among them), judges and detectors measure in one
run; runs without `benchmark` are of it."""

from faithscope.experiments.config.study import Study

STUDY = Study("slrc", at=__name__, unnamed=True)
