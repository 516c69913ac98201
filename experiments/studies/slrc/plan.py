"""The plan of a run over traces."""

from faithscope.experiments.engine.traces.plan import plan

__all__ = ["plan"]
