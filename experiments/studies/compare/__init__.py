"""Behaviour, internals and judges on the same traces: which measure to trust, and its cost."""

from faithscope.experiments.config.study import Study

STUDY = Study("compare", at=__name__, reads_runs=True)
