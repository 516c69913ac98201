"""Patching tables and their figure on hand-made records."""

from __future__ import annotations

import math
from typing import Any

import pytest
from probe_records import table_of

from faithscope.experiments.studies.slrc.measures.patching import (
    patching_picture,
)
from faithscope.experiments.studies.slrc.tables.measures import all_scores, all_step_scores


def made(item: str, difference: list[float | None], shares: list[float], **changes: Any) -> dict:
    """An item in which every step moved the same share of its difference at each layer."""
    why = [
        "length_differs" if d is None else None if abs(d) >= 0.5 else "no_effect"
        for d in difference
    ]
    moved = [
        share * d if d is not None and w is None else None
        for share in shares
        for d, w in zip(difference, why, strict=True)
    ]
    return {
        "probe": "patching",
        "model": "m",
        "task": "t",
        "item": item,
        "variant": "step.residual.denoise",
        "place": "step",
        "site": "residual",
        "direction": "denoise",
        "layers": [2, 4],
        "n_layers": 4,
        "n_steps": len(difference),
        "n_patched": why.count(None),
        "steps": list(range(len(difference))),
        "answer": "a",
        "difference": difference,
        "not_patched": why,
        "moved": moved,
    } | changes


RECORDS = [
    made("a", [None, 0.1, 3.0], [0.5, 0.0]),
    made("b", [-1.0, 2.0], [1.0, 0.25]),
    made("c", [1.0], [0.0, 0.0]) | {"excluded": "no_aligned_corruption"},
]


def test_shares_weigh_steps_by_their_difference_and_take_its_sign() -> None:
    (row,) = table_of("patching", RECORDS, 50).to_dict("records")
    assert (row["n"], row["n_steps"], row["n_corrupted"], row["n_patched"]) == (2, 5, 4, 3)
    assert row["difference"] == pytest.approx((0.1 + 3 + 1 + 2) / 4)
    # 1.5 of 3 and 3 of 3 at layer 2
    assert row["share_max"] == pytest.approx(4.5 / 6)
    assert (row["peak_layer"], row["peak_depth"]) == (2, 0.5)
    assert row["share_mean"] == pytest.approx((4.5 / 6 + 0.75 / 6) / 2)
    by_layer = table_of("patching_by_layer", RECORDS, 50)
    assert by_layer["layer"].tolist() == [2, 4]
    assert by_layer["share"].tolist() == pytest.approx([4.5 / 6, 0.75 / 6])


def test_places_are_apart_in_the_map() -> None:
    table = table_of("patching_map", RECORDS, 20)
    # patched: the last of three steps (.83), and both of two (.25 and .75)
    found = {(r["layer"], round(r["position"], 1)): r["share"] for r in table.to_dict("records")}
    assert found == {
        (2, 0.3): 1,
        (4, 0.3): 0.25,
        (2, 0.7): 1,
        (4, 0.7): 0.25,
        (2, 0.9): 0.5,
        (4, 0.9): 0,
    }
    figure = patching_picture(table).figure
    assert figure is not None
    image = figure.axes[0].get_images()[0].get_array()
    assert image is not None
    assert image.tolist() == [[1, 1, 0.5], [0.25, 0.25, 0]]


def test_where_nothing_was_patched_there_is_no_share() -> None:
    (row,) = table_of("patching", [made("a", [0.1, -0.2], [0.0, 0.0])], 10).to_dict("records")
    assert row["n_patched"] == 0
    assert math.isnan(row["share_max"])
    empty = table_of("patching_map", [made("a", [0.1, -0.2], [0.0, 0.0])], 10)
    assert patching_picture(empty).figure is None


def test_a_step_is_credited_with_the_most_that_any_layer_gives_back() -> None:
    scores = all_scores(RECORDS).set_index("item")
    assert scores.loc["a", "score"] == pytest.approx((0 + 1.5) / 2)
    assert scores.loc["a", "forwards"] == 1 + 2 + 1 * 2
    steps = all_step_scores(RECORDS)
    assert steps[steps["item"] == "b"]["score"].tolist() == [-1.0, 2.0]
