"""The stages of a run of this study: traces, probes, and judges."""

from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.traces.stages import STAGES as OF_TRACES
from faithscope.experiments.engine.traces.stages import TRACE

STAGES = {**OF_TRACES, **by_name(*(Stage(name, (TRACE,)) for name in READINGS))}
"""Stages by name; those of judges have the judge and the form behind a dot each."""
