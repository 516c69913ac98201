"""Attention tables on hand-made records, and the thresholds of the paper's Table 4."""

from __future__ import annotations

import math

import pytest
from probe_records import table_of

from faithscope.experiments.studies.slrc.measures.attention import (
    signal,
)
from faithscope.probes.attention import REGIONS


def made(item: str, real: float, gap: float) -> dict:
    shuffled = real - gap
    layers = {f"{name}_by_layer": [0.1, 0.1] for name in REGIONS}
    return (
        {"probe": "attention", "model": "m", "task": "t", "item": item}
        | {name: 0.1 for name in REGIONS if name != "reasoning"}
        | layers
        | {"real": real, "shuffled": shuffled, "gap": gap}
        | {"real_drop": 0.2, "shuffled_drop": 0.1, "gap_drop": 0.1}
        | {"reasoning_by_layer": [real, real], "shuffled_by_layer": [shuffled, shuffled]}
        | {"gap_by_layer": [gap, 2 * gap], "entropy": 1.0, "entropy_by_layer": [1.0, 1.0]}
        | {"n_layers": 2, "n_heads": 4, "question_found": True}
    )


@pytest.mark.parametrize(
    ("gap", "word"),
    [(0.07, "semantic"), (0.19, "semantic"), (0.06, "borderline"), (0.05, "positional")],
)
def test_signals_are_those_of_table_4(gap: float, word: str) -> None:
    assert signal(gap) == word
    assert signal(-gap) == "positional"
    assert signal(math.nan) == ""


def test_means_over_items_with_their_intervals() -> None:
    records = [made(str(i), 0.3 + 0.01 * i, 0.08) for i in range(5)]
    records.append(made("x", 0.9, 0.5) | {"excluded": "no_attention_rows"})
    (row,) = table_of("attention", records, 200).to_dict("records")
    assert row["n"] == 5
    assert row["real"] == pytest.approx(0.32)
    assert row["real_low"] < 0.32 < row["real_high"]
    assert (row["signal"], row["signal_drop"]) == ("semantic", "semantic")
    assert row["question_found"] == 5


def test_layers_count_from_one_to_the_whole_depth() -> None:
    table = table_of("attention_by_layer", [made("a", 0.3, 0.02)], 50)
    assert list(table["layer"]) == [1, 2]
    assert list(table["depth"]) == [0.5, 1.0]
    assert list(table["gap"]) == pytest.approx([0.02, 0.04])
