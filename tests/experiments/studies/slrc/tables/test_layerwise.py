"""Rigidity and information flow over items, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from probe_records import base, table_of
from scipy.stats import binomtest

from faithscope.experiments.studies.slrc.measures.flow import (
    flow_picture,
)
from faithscope.experiments.studies.slrc.measures.rigidity import (
    newly_stable,
    rigidity_picture,
)


def settled(item: str, layer: int, option: int | None, is_option: bool) -> dict[str, Any]:
    return base("rigidity", "m", "t", item, "") | {
        "lens": "logit",
        "n_layers": 4,
        "stable_layer": layer,
        "depth": layer / 4,
        "log_prob": [-4.0, -3.0, -2.0, -float(layer)],
        "top_is_option": is_option,
        "option_stable_layer": option,
        "option_depth": None if option is None else option / 4,
    }


def flowed(item: str, cosine: list[float]) -> dict[str, Any]:
    return base("flow", "m", "t", item, "") | {
        "n_layers": len(cosine),
        "cosine": cosine,
        "token_cosine": [x / 2 for x in cosine],
        "peak_layer": 1 + cosine.index(max(cosine)),
        "peak_depth": (1 + cosine.index(max(cosine))) / len(cosine),
        "peak_value": max(cosine),
    }


STABLE = [
    settled("0", 1, 1, True),
    settled("1", 1, None, False),
    settled("2", 3, 2, True),
    settled("3", 4, 3, True),
]


def test_rigidity_over_items() -> None:
    (row,) = table_of("rigidity", STABLE).to_dict("records")
    assert (row["n"], row["n_layers"], row["n_options"]) == (4, 4, 3)
    assert (row["stable_layer"], row["median_layer"]) == (9 / 4, 2)
    assert (row["depth"], row["median_depth"]) == (9 / 16, 0.5)
    assert row["depth_low"] == row["stable_layer_low"] / 4 < row["depth"] < row["depth_high"]
    by = [row[f"stable_by_{p}"] for p in (25, 50, 75)]
    assert by == [0.5, 0.5, 0.75]
    assert row["stable_by_75_low"] == pytest.approx(
        binomtest(3, 4).proportion_ci(method="wilson").low
    )
    assert row["top_is_option"] == 0.75
    assert (row["option_layer"], row["option_depth"]) == (2, 0.5)


def test_rigidity_by_layer_adds_up() -> None:
    table = table_of("rigidity_by_layer", STABLE)
    assert table["layer"].tolist() == [1, 2, 3, 4]
    assert table["stable"].tolist() == [0.5, 0.5, 0.75, 1]
    assert table["option_stable"].tolist() == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert table["log_prob"].tolist() == [-4, -3, -2, -9 / 4]
    assert newly_stable(table)["share"].tolist() == [0.5, 0, 0.25, 0.25]
    assert rigidity_picture(newly_stable(table)).figure is not None


def test_without_answers_to_tell_apart_there_is_no_number_of_them() -> None:
    (row,) = table_of("rigidity", [settled("0", 2, None, False)]).to_dict("records")
    assert row["n_options"] == 0
    assert math.isnan(row["option_layer"])
    assert row["stable_layer_low"] == row["stable_layer_high"] == 2


def test_the_mean_curve_and_the_items_peak_at_different_layers() -> None:
    records = [flowed("0", [0.9, 0.5, 0.1]), flowed("1", [0.0, 0.5, 0.7])]
    (row,) = table_of("flow", records).to_dict("records")
    assert (row["peak_layer"], row["peak_value"]) == (2, 0.5)
    assert (row["item_peak_layer"], row["item_peak_value"]) == (2, pytest.approx(0.8))
    assert row["peak_depth"] == pytest.approx(2 / 3)
    assert (row["item_peak_value_low"], row["item_peak_value_high"]) == pytest.approx((0.7, 0.9))
    table = table_of("flow_by_layer", records)
    assert table["cosine"].tolist() == pytest.approx([0.45, 0.5, 0.4])
    assert table["token_cosine"].tolist() == pytest.approx([0.225, 0.25, 0.2])
    assert flow_picture(table).figure is not None
