"""Tables of rigidity, flow, attention, knockout and patching, and their figures, on hand-made
records."""

from __future__ import annotations

import math
from typing import Any

import pytest
from matplotlib.figure import Figure
from probe_records import base, table_of
from scipy.stats import binomtest

from faithscope.experiments.studies.slrc.measures.attention import signal
from faithscope.experiments.studies.slrc.measures.flow import flow_picture
from faithscope.experiments.studies.slrc.measures.knockout import against_removal, knockout_picture
from faithscope.experiments.studies.slrc.measures.patching import patching_picture
from faithscope.experiments.studies.slrc.measures.rigidity import newly_stable, rigidity_picture
from faithscope.experiments.studies.slrc.tables.measures import all_scores, all_step_scores


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
    by = [row[f"stable_by_{p}"] for p in (25, 50, 75)]
    assert by == [0.5, 0.5, 0.75]
    assert math.isnan(row["depth_low"])
    assert row["stable_by_75_low"] == pytest.approx(
        binomtest(3, 4).proportion_ci(method="wilson").low
    )
    twice = [r | {"item": f"{r['item']}{copy}"} for copy in "ab" for r in STABLE]
    (eight,) = table_of("rigidity", twice).to_dict("records")
    assert eight["depth_low"] == eight["stable_layer_low"] / 4 < row["depth"] < eight["depth_high"]
    assert eight["stable_by_75_low"] == pytest.approx(
        binomtest(6, 8).proportion_ci(method="wilson").low
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
    assert row["stable_layer"] == 2
    # of one item an interval would be a point
    assert math.isnan(row["stable_layer_low"])
    assert math.isnan(row["stable_layer_high"])


def test_the_mean_curve_and_the_items_peak_at_different_layers() -> None:
    records = [flowed("0", [0.9, 0.5, 0.1]), flowed("1", [0.0, 0.5, 0.7])]
    (row,) = table_of("flow", records).to_dict("records")
    assert (row["peak_layer"], row["peak_value"]) == (2, 0.5)
    assert (row["item_peak_layer"], row["item_peak_value"]) == (2, pytest.approx(0.8))
    assert row["peak_depth"] == pytest.approx(2 / 3)
    assert math.isnan(row["item_peak_value_low"])
    table = table_of("flow_by_layer", records)
    assert table["cosine"].tolist() == pytest.approx([0.45, 0.5, 0.4])
    assert table["token_cosine"].tolist() == pytest.approx([0.225, 0.25, 0.2])
    assert flow_picture(table).figure is not None


@pytest.mark.parametrize(
    ("gap", "word"),
    [(0.07, "semantic"), (0.19, "semantic"), (0.06, "borderline"), (0.05, "positional")],
)
def test_signals_are_those_of_table_4(gap: float, word: str) -> None:
    assert signal(gap) == word
    assert signal(-gap) == "positional"
    assert signal(math.nan) == ""


def without_attention(
    item: str, flips: list[bool], removed: list[bool], **changes: Any
) -> dict[str, Any]:
    """An item whose distribution moves all the way where its answer changes."""
    return {
        "probe": "knockout",
        "model": "m",
        "task": "t",
        "item": item,
        "variant": "answer.all",
        "queries": "answer",
        "window": "all",
        "first_layer": 1,
        "last_layer": 6,
        "n_layers": 6,
        "n_steps": len(flips),
        "flips": flips,
        "tv": [float(f) for f in flips],
        "log_odds": [4.0 if f else None for f in flips],
        "removed_flips": removed,
        "removed_tv": [float(f) for f in removed],
        "removed_log_odds": [2.0 * f for f in removed],
        "forced_log_odds": [None] * len(flips),
        "removed_forced_log_odds": [None] * len(flips),
    } | changes


KNOCKED_OUT = [
    without_attention("a", [False, True], [True, True]),
    without_attention("b", [False, False, False, True], [False, False, False, True]),
    without_attention("c", [False], [False]) | {"excluded": "fewer_than_2_labels"},
]


def test_every_item_counts_once_and_what_there_is_not_is_left_out() -> None:
    (row,) = table_of("knockout", KNOCKED_OUT, 50).to_dict("records")
    assert (row["n"], row["n_steps"]) == (2, 6)
    assert row["flip_rate"] == row["tv"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert row["removed_flip_rate"] == pytest.approx((1 + 1 / 4) / 2)
    assert row["log_odds"] == 4
    assert row["beyond_knockout"] == pytest.approx((1 / 2 + 0) / 2)
    assert row["agreement"] == pytest.approx((1 / 2 + 1) / 2)
    assert math.isnan(row["flip_rate_low"])


def test_rows_begin_with_later_and_with_all_layers() -> None:
    window = {"window": "1-3", "last_layer": 3}
    records = [
        without_attention("a", [True], [True], **changes)
        for changes in (window, {"queries": "later"})
    ]
    records += [
        without_attention("a", [True], [True]),
        without_attention("a", [True], [True], queries="later", **window),
    ]
    table = table_of("knockout", records, 5)
    assert list(zip(table["queries"], table["window"], strict=True)) == [
        ("later", "all"),
        ("later", "1-3"),
        ("answer", "all"),
        ("answer", "1-3"),
    ]


def test_the_figure_has_a_point_for_every_place_and_kind() -> None:
    table = table_of(
        "knockout_by_step",
        [*KNOCKED_OUT, without_attention("d", [True], [True], queries="later")],
        5,
    )
    ax = against_removal(Figure().add_subplot(), table)
    later, answer = (c.get_offsets() for c in ax.collections)
    assert later.tolist() == [[1, 1]]
    assert sorted(answer.tolist()) == [[0, 0], [0.5, 0], [0.5, 0.5], [1, 1]]
    assert knockout_picture(table).figure is not None
    assert knockout_picture(table.iloc[:0]).figure is None


def patched(item: str, difference: list[float | None], shares: list[float], **changes: Any) -> dict:
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


PATCHED = [
    patched("a", [None, 0.1, 3.0], [0.5, 0.0]),
    patched("b", [-1.0, 2.0], [1.0, 0.25]),
    patched("c", [1.0], [0.0, 0.0]) | {"excluded": "no_aligned_corruption"},
]


def test_shares_weigh_steps_by_their_difference_and_take_its_sign() -> None:
    (row,) = table_of("patching", PATCHED, 50).to_dict("records")
    assert (row["n"], row["n_steps"], row["n_corrupted"], row["n_patched"]) == (2, 5, 4, 3)
    assert row["difference"] == pytest.approx((0.1 + 3 + 1 + 2) / 4)
    # 1.5 of 3 and 3 of 3 at layer 2
    assert row["share_max"] == pytest.approx(4.5 / 6)
    assert (row["peak_layer"], row["peak_depth"]) == (2, 0.5)
    assert row["share_mean"] == pytest.approx((4.5 / 6 + 0.75 / 6) / 2)
    by_layer = table_of("patching_by_layer", PATCHED, 50)
    assert by_layer["layer"].tolist() == [2, 4]
    assert by_layer["share"].tolist() == pytest.approx([4.5 / 6, 0.75 / 6])


def test_places_are_apart_in_the_map() -> None:
    table = table_of("patching_map", PATCHED, 20)
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
    (row,) = table_of("patching", [patched("a", [0.1, -0.2], [0.0, 0.0])], 10).to_dict("records")
    assert row["n_patched"] == 0
    assert math.isnan(row["share_max"])
    empty = table_of("patching_map", [patched("a", [0.1, -0.2], [0.0, 0.0])], 10)
    assert patching_picture(empty).figure is None


def test_a_step_is_credited_with_the_most_that_any_layer_gives_back() -> None:
    scores = all_scores(PATCHED).set_index("item")
    assert scores.loc["a", "score"] == pytest.approx((0 + 1.5) / 2)
    assert scores.loc["a", "forwards"] == 1 + 2 + 1 * 2
    steps = all_step_scores(PATCHED)
    assert steps[steps["item"] == "b"]["score"].tolist() == [-1.0, 2.0]
