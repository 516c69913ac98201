"""Models in the order in which readers meet them, and numbers as sentences have them."""

from __future__ import annotations

import math

from faithscope.experiments.data.planted.plants import PLANTS


def planted_variant(model: str) -> str | None:
    """`faithful` of `planted:faithful`; None for a model whose truth nobody knows."""
    scheme, _, name = model.rpartition(":")
    return name if scheme == "planted" and name in PLANTS else None


def model_order(model: str) -> tuple[int, str]:
    """Planted models first, the faithful one before its decorative twin."""
    variant = planted_variant(model)
    return (list(PLANTS).index(variant) if variant else len(PLANTS), model)


def percent(value: float) -> str:
    """A share for people: no decimals, and a dash for what was not measured."""
    return "–" if math.isnan(value) else f"{100 * value:.0f} %"
