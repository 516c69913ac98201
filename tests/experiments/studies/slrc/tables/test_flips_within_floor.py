"""Flips that the noise of the dtype may have made are counted, and told apart."""

from __future__ import annotations

import math

import pytest
from probe_records import agreement, slrc_outcome, table_of


def outcome(item: str, floor: float | None, margins: list[float | None]) -> dict:
    made = slrc_outcome("m", "t", item, [True, True, False], [True, False, True], True)
    return made | {
        "noise_floor": floor,
        "n_packs": 2,
        "removed_margin": margins,
        "alone_margin": [0.1, 3.0, 0.1],
        "shuffled_margin": [],
    }


def test_flips_by_no_more_than_the_floor_are_counted_apart_and_kept():
    records = [outcome("1", 0.25, [0.25, 0.5, 0.0]), outcome("2", 0.5, [0.25, 0.125, None])]
    (row,) = table_of("slrc", records, 10).to_dict("records")
    # of four removals that flip, the second of the first item alone is beyond; of two steps
    # alone that do not give the answer back, both are
    assert (row["n_flips"], row["flips_within_floor"]) == (6, pytest.approx(3 / 6))
    assert row["necessity"] == pytest.approx(4 / 6)
    assert (row["noise_floor"], row["n_packs"]) == (0.375, 2)
    by_edit = table_of("edits", records, 10).set_index("edit")["flips_within_floor"]
    assert by_edit["remove"] == pytest.approx(3 / 4)
    assert by_edit["keep_only"] == 0


def test_without_a_floor_nothing_is_within_it():
    """Behind an API no logits are seen; older records have no margins."""
    records = [slrc_outcome("m", "t", "1", [True], [False], True), outcome("2", None, [0.1] * 3)]
    (row,) = table_of("slrc", records, 10).to_dict("records")
    assert row["n_flips"] == 0
    assert math.isnan(row["flips_within_floor"])
    assert row["necessity"] == pytest.approx(3 / 4)


def test_verdicts_within_the_floor():
    records = [agreement("m", "t", str(i), True, True) for i in range(2)]
    records[0] |= {"noise_floor": 0.5, "margin_wrong": 0.5, "margin_own": 2.0}
    (row,) = table_of("sycophancy", records).to_dict("records")
    assert (row["n"], row["within_floor"]) == (2, 0.5)
