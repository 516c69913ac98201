"""Label mass, flips within the noise floor, sycophancy, error detection and RIS, by hand."""

from __future__ import annotations

import math

import pytest
from figure_fit import drawing_problems
from probe_records import agreement, noticing, slrc_outcome, table_of
from scipy.stats import binomtest

from faithscope.experiments.analysis.traces.exclusions import exclusions_table
from faithscope.experiments.engine.tallies.reasons import LOW_MASS
from faithscope.experiments.studies.slrc.figures.figures import label_mass_picture
from faithscope.experiments.studies.slrc.stages import STAGES
from faithscope.experiments.studies.slrc.tables.outcomes import (
    label_masses,
    ris,
)


def without_low_mass(made: list[dict], least: float) -> list[dict]:
    """The records as a run with this `report.least_label_mass` reads them."""
    stored = {"report": {"least_label_mass": least}}
    reasons = [STAGES[r["probe"]].leaves_out(r, stored, frozenset) for r in made]
    return [r | {"excluded": why} for r, why in zip(made, reasons, strict=True)]


def records(*masses: float | None) -> list[dict]:
    made = []
    for i, mass in enumerate(masses):
        place = {"model": "m", "task": "gsm8k", "item": f"q{i}", "seed": 0}
        made.append(place | {"probe": "trace", "variant": "", "excluded": None})
        for reading in ("generated", "scored"):
            of_reading = {"probe": "slrc", "variant": f"prefix.{reading}", "excluded": None}
            if reading == "scored":
                of_reading["label_mass"] = mass
            made.append(place | of_reading)
    return made


def test_items_of_low_mass_leave_the_scored_reading_alone_and_are_counted():
    marked = without_low_mass(records(0.9, 0.0, 0.09, 0.1), 0.1)
    left_out = [(r["item"], r["variant"]) for r in marked if r["excluded"]]
    assert left_out == [("q1", "prefix.scored"), ("q2", "prefix.scored")]
    counts = exclusions_table(marked)
    scored = counts[counts["stage"] == "slrc.prefix.scored"]
    assert dict(zip(scored["reason"], scored["n"], strict=True)) == {
        "total": 4,
        LOW_MASS: 2,
        "included": 2,
    }


def test_another_threshold_needs_no_other_records():
    kept = records(0.9, 0.0, 0.09, None)
    assert not any(r["excluded"] for r in without_low_mass(kept, 0.0))
    assert sum(r["excluded"] == LOW_MASS for r in without_low_mass(kept, 0.5)) == 2


def test_the_table_has_every_scored_record_also_those_left_out():
    table = label_masses(without_low_mass(records(0.9, 0.05, None), 0.1))
    assert table["label_mass"].tolist() == [0.9, 0.05]
    assert table["left_out"].tolist() == [False, True]


def test_the_figure_has_a_strip_per_task_and_one_legend():
    of_tasks = [{**r, "task": task} for task in "ab" for r in records(0.9, 0.05)]
    figure = label_mass_picture(label_masses(without_low_mass(of_tasks, 0.1))).figure
    assert figure is not None
    assert drawing_problems(figure) == []
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["counted", "left out"]


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
    """API models give no logits, and older records have no margins."""
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


def test_ris_by_hand():
    assert ris(0.861, 0.5) == pytest.approx(0.4305)
    assert ris(0.869, 0.0) == 0.869
    assert ris(0.5, 1.0) == 0


def test_sycophancy_stands_beside_agreement_with_its_own():
    said = [(True, True), (True, True), (False, True), (False, False), (None, True), (True, None)]
    records = [agreement("m", "t", str(i), wrong, own) for i, (wrong, own) in enumerate(said)]
    (row,) = table_of("sycophancy", records).to_dict("records")
    assert (row["n"], row["n_unparsed"], row["reading"]) == (4, 2, "scored")
    assert row["sycophancy"] == 2 / 4
    assert row["own_agreement"] == 3 / 4
    assert row["difference"] == pytest.approx(1 / 4)
    assert row["sycophancy_low"] == pytest.approx(
        binomtest(2, 4).proportion_ci(method="wilson").low
    )
    twice = [r | {"item": f"{r['item']}{copy}"} for copy in "ab" for r in records]
    (row,) = table_of("sycophancy", twice).to_dict("records")
    low = binomtest(4, 8).proportion_ci(method="wilson").low
    assert row["sycophancy_low"] == pytest.approx(low)


def test_a_model_that_says_yes_to_everything_is_seen():
    records = [agreement("m", "t", str(i), True, True) for i in range(30)]
    (row,) = table_of("sycophancy", records).to_dict("records")
    assert row["sycophancy"] == 1
    assert row["difference"] == 0


def test_items_that_were_never_asked_are_in_no_rate():
    records = [agreement("m", "t", "0", True, True)]
    records.append(records[0] | {"item": "1", "excluded": "no_wrong_answer", "agrees_wrong": None})
    records.append({**records[0], "item": "2", "variant": "", "excluded": "no_words_for_it"})
    (row,) = table_of("sycophancy", records).to_dict("records")
    assert (row["n"], row["n_unparsed"]) == (1, 0)


def test_error_detection_less_false_alarms():
    said = [(True, False, True), (True, True, True), (False, False, True), (True, True, False)]
    records = [noticing("m", "t", str(i), *x) for i, x in enumerate(said)]
    records.append(noticing("m", "t", "9", None, False))
    every, right = table_of("error_detection", records).to_dict("records")
    assert (every["chains"], every["n"], every["n_unparsed"]) == ("all", 4, 1)
    assert (every["detection"], every["false_alarm"]) == (3 / 4, 2 / 4)
    assert every["youden"] == pytest.approx(1 / 4)
    assert every["balanced_accuracy"] == pytest.approx((3 / 4 + 1 - 2 / 4) / 2)
    assert (right["chains"], right["n"]) == ("right", 3)
    assert (right["detection"], right["false_alarm"]) == (2 / 3, 1 / 3)
    twice = [r | {"item": f"{r['item']}{copy}"} for copy in "ab" for r in records]
    every, _ = table_of("error_detection", twice).to_dict("records")
    assert every["balanced_accuracy_low"] == pytest.approx((1 + every["youden_low"]) / 2)
