"""Figures of one trace, for a notebook: `faithscope.plot.step_map(…)`.

They are those of the pages: what is drawn carries its caption and its numbers.
"""

from __future__ import annotations

from faithscope.experiments.studies.slrc.figures.item_figures import (
    pattern_map,
    step_map,
    token_view,
    tracing_curve,
)

__all__ = ["pattern_map", "step_map", "token_view", "tracing_curve"]
