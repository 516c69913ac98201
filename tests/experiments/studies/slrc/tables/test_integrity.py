"""Sycophancy, error detection and RIS, by hand."""

from __future__ import annotations

import pytest
from probe_records import agreement, noticing, table_of
from scipy.stats import binomtest

from faithscope.experiments.studies.slrc.tables.integrity import (
    ris,
)


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
    low = binomtest(2, 4).proportion_ci(method="wilson").low
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
    assert every["balanced_accuracy_low"] == pytest.approx((1 + every["youden_low"]) / 2)
