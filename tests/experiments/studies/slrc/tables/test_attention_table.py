"""Attention tables on hand-made records, and the thresholds of the paper's Table 4."""

from __future__ import annotations

import math

import pytest

from faithscope.experiments.studies.slrc.measures.attention import (
    signal,
)


@pytest.mark.parametrize(
    ("gap", "word"),
    [(0.07, "semantic"), (0.19, "semantic"), (0.06, "borderline"), (0.05, "positional")],
)
def test_signals_are_those_of_table_4(gap: float, word: str) -> None:
    assert signal(gap) == word
    assert signal(-gap) == "positional"
    assert signal(math.nan) == ""
