"""The stages of a run of this study."""

from faithscope.experiments.studies.faithcot.units import STAGES

__all__ = ["STAGES"]
