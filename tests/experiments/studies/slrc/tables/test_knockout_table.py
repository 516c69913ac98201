"""Knockout tables on hand-made records."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from probe_records import table_of

from faithscope.experiments.studies.slrc.measures.knockout import (
    against_removal,
    knockout_picture,
)


def made(item: str, flips: list[bool], removed: list[bool], **changes: Any) -> dict[str, Any]:
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
    } | changes


RECORDS = [
    made("a", [False, True], [True, True]),
    made("b", [False, False, False, True], [False, False, False, True]),
    made("c", [False], [False]) | {"excluded": "fewer_than_2_labels"},
]


def test_every_item_counts_once_and_what_there_is_not_is_left_out() -> None:
    (row,) = table_of("knockout", RECORDS, 50).to_dict("records")
    assert (row["n"], row["n_steps"]) == (2, 6)
    assert row["flip_rate"] == row["tv"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert row["removed_flip_rate"] == pytest.approx((1 + 1 / 4) / 2)
    assert row["log_odds"] == 4
    assert row["beyond_knockout"] == pytest.approx((1 / 2 + 0) / 2)
    assert row["agreement"] == pytest.approx((1 / 2 + 1) / 2)
    assert row["flip_rate_low"] <= row["flip_rate"] <= row["flip_rate_high"]


def test_rows_begin_with_later_and_with_all_layers() -> None:
    window = {"window": "1-3", "last_layer": 3}
    records = [made("a", [True], [True], **changes) for changes in (window, {"queries": "later"})]
    records += [made("a", [True], [True]), made("a", [True], [True], queries="later", **window)]
    table = table_of("knockout", records, 5)
    assert list(zip(table["queries"], table["window"], strict=True)) == [
        ("later", "all"),
        ("later", "1-3"),
        ("answer", "all"),
        ("answer", "1-3"),
    ]


def test_the_figure_has_a_point_for_every_place_and_kind() -> None:
    table = table_of("knockout_by_step", [*RECORDS, made("d", [True], [True], queries="later")], 5)
    ax = against_removal(Figure().add_subplot(), table)
    later, answer = (c.get_offsets() for c in ax.collections)
    assert later.tolist() == [[1, 1]]
    assert sorted(answer.tolist()) == [[0, 0], [0.5, 0], [0.5, 0.5], [1, 1]]
    assert knockout_picture(table).figure is not None
    assert knockout_picture(table.iloc[:0]).figure is None
