"""The stages of a run of this study."""

from faithscope.experiments.engine.traces.stages import STAGES

__all__ = ["STAGES"]
