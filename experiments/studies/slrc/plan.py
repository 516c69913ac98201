"""The units of a run of SLRC: those of any run over traces."""

from faithscope.experiments.engine.traces.plan import plan

__all__ = ["plan"]
