"""Information tables on hand-made records, and the figure drawn of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from probe_records import base, slrc_outcome, table_of

from faithscope.experiments.studies.slrc.measures.information import information_picture

BY_KIND = ("removed", "corrupted", "replaced")


def made(item: str, surprisal: float, mi: list[float] | None, **changes: Any) -> dict[str, Any]:
    """A record whose every step is 1 nat more surprising without the question."""
    n = 4 if mi is None else len(mi)
    found = base("information", "m", "t", item, "") | {
        "n_steps": n,
        "no_comparison": None,
        "no_step_mi": None if mi else "fewer_than_2_labels",
        "surprisal": surprisal,
        "surprisal_without": surprisal + 1,
        "step_surprisal": [surprisal] * n,
        "step_surprisal_without": [surprisal + 1] * n,
        "pointwise_gain": 1.0,
        "pointwise_gain_total": 10.0,
        "entropy_gain": 0.5,
        "entropy_gain_total": 5.0,
        "paper_gain": -2.0,
        "paper_gain_per_token": -0.2,
        "step_mi": mi,
        "mean_mi": mi and sum(mi) / n,
        "informative": mi and sum(x > 0 for x in mi) / n,
        "largest_alone": mi and 0.5,
        "largest_share": mi and 0.25,
        "bound": mi and 0.5 * sum(x > 0 for x in mi) / n,
        "bound_given_rest": mi and 0.75 * sum(x > 0 for x in mi) / n,
    }
    return found | {f"step_mi_{kind}": mi for kind in BY_KIND} | changes


RECORDS = [
    made("a", 1.0, [0.0, 0.4]),
    made("b", 3.0, [0.2, 0.2, 0.0, 0.0], step_mi_corrupted=[None, 0.2, None, 0.4]),
    made("c", 2.0, None),
]


def row_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = table_of("information", records, 100).to_dict("records")
    return {str(k): v for k, v in row.items()}


def test_every_measure_is_over_the_items_that_have_it() -> None:
    row = row_of(RECORDS)
    assert (row["n"], row["n_compared"], row["n_step_mi"]) == (3, 3, 2)
    assert row["perplexity"] == pytest.approx(math.exp(2))
    assert row["perplexity_without"] == pytest.approx(math.exp(3))
    assert math.isnan(row["perplexity_low"])
    more = [r | {"item": f"{r['item']}{copy}"} for copy in "ab" for r in RECORDS]
    of_six = row_of(more)
    assert of_six["perplexity_low"] < of_six["perplexity"] < of_six["perplexity_high"]
    assert row["paper_gain"] == pytest.approx(-2)
    assert row["mean_mi"] == pytest.approx((0.2 + 0.1) / 2)
    # of the steps that could be corrupted
    assert row["mi_corrupted"] == pytest.approx((0.2 + 0.3) / 2)
    assert row["informative"] == pytest.approx(0.5)
    assert row["bound"] == pytest.approx(0.25)


def test_what_cannot_be_compared_is_left_out_and_counted() -> None:
    gone = dict.fromkeys(
        ("pointwise_gain", "surprisal_without", "step_surprisal_without", "paper_gain")
    )
    lost = made("d", 9.0, [0.1, 0.1], no_comparison="question_not_found", **gone)
    row = row_of([RECORDS[0], lost])
    assert (row["n"], row["n_compared"]) == (2, 1)
    assert row["perplexity"] == pytest.approx(math.exp(5))
    assert row["perplexity_without"] == pytest.approx(math.exp(2))
    table = table_of("information_by_step", [lost], 10)
    assert table["surprisal"].tolist() == pytest.approx([9, 9])
    assert table["gain"].isna().all()


def test_without_slrc_nothing_stands_beside_the_bound() -> None:
    row = row_of(RECORDS)
    assert row["n_slrc"] == 0
    assert math.isnan(row["slrc"])
    assert math.isnan(row["bound_held"])


def test_the_bound_is_held_against_the_slrc_of_the_same_items() -> None:
    scored = {"framing": "prefix", "reading": "scored"}
    beside = [
        # SLRC .5 x (1 - 0), its bound .25
        slrc_outcome("m", "t", "a", [True, False], [False, False], True, **scored),
        # none necessary, its bound .25
        slrc_outcome("m", "t", "b", [False] * 4, [True] * 4, True, **scored),
        # no step information, in another reading, of an item not asked here: none counts
        slrc_outcome("m", "t", "c", [True] * 4, [False] * 4, True, **scored),
        slrc_outcome("m", "t", "a", [True, True], [True, True], True),
        slrc_outcome("m", "t", "e", [True, True], [False, False], True, **scored),
    ]
    row = row_of([*RECORDS, *beside])
    assert row["n_slrc"] == 2
    assert row["necessity"] == pytest.approx(1 / 6)
    assert row["slrc"] == pytest.approx(1 / 6 * (1 - 4 / 6))
    assert row["bound_held"] == pytest.approx(1 / 2)


def test_steps_are_placed_by_where_they_stand() -> None:
    table = table_of("information_by_step", RECORDS, 50)
    # steps of a stand at .25 and .75, of b and c at .125, .375, .625, .875
    assert table["position"].tolist() == pytest.approx([0.1, 0.3, 0.7, 0.9])
    assert table["n"].tolist() == [2, 3, 3, 2]
    assert table["n_steps"].tolist() == [2, 3, 3, 2]
    assert table["mi"].tolist() == pytest.approx([0.2, 0.1, 0.2, 0.0])
    assert table["mi_corrupted"].tolist()[1:] == pytest.approx([0.1, 0.4, 0.4])
    assert table["gain"].tolist() == pytest.approx([1.0] * 4)
    picture = information_picture(table)
    assert picture.figure is not None
    assert [len(ax.lines) for ax in picture.figure.axes] == [2, 1]
