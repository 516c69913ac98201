"""The order of models in tables and figures, and numbers as sentences show them."""

from __future__ import annotations

import math

from faithscope.experiments.data.planted.plants import PLANTS


def planted_variant(model: str) -> str | None:
    """The variant in a planted model's name (`faithful` in `planted:faithful`); None for others."""
    scheme, _, name = model.rpartition(":")
    return name if scheme == "planted" and name in PLANTS else None


def model_order(model: str) -> tuple[int, str]:
    """Sort key of models: planted ones first, the faithful one before its decorative twin."""
    variant = planted_variant(model)
    return (list(PLANTS).index(variant) if variant else len(PLANTS), model)


def percent(value: float) -> str:
    """A share as a percentage without decimals; a dash for NaN."""
    return "–" if math.isnan(value) else f"{100 * value:.0f} %"
