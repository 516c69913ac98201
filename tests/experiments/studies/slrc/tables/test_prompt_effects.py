"""Another prompt for the same questions: differences by hand (SLRC, 2.6)."""

from __future__ import annotations

import pytest
from probe_records import slrc_outcome, table_of

from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.results import tables


def records(changed: int) -> list[dict]:
    """Of 10 standard items one step in two is necessary in 4; with the variant in `changed`."""
    made = []
    for i in range(10):
        made.append(slrc_outcome("m", "t", str(i), [i < 4, False], [True, False], i < 9))
        made.append(
            slrc_outcome("m", "t:why", str(i), [i < changed, False, False], [False] * 3, i < 7)
        )
    # measured under one prompt only: in no comparison
    return [*made, slrc_outcome("m", "t", "10", [True, True], [True, True], True)]


def test_differences_by_hand():
    table = table_of("prompt_interventions", records(9), 200)
    assert (table["task"] == "t").all()
    assert (table["variant"] == "why").all()
    by_measure = {r["measure"]: r for r in table.to_dict("records")}
    assert list(by_measure) == ["necessity", "sufficiency", "accuracy", "steps"]
    necessity = by_measure["necessity"]
    assert (necessity["n"], necessity["standard"], necessity["changed"]) == (10, 4 / 20, 9 / 30)
    assert necessity["difference"] == pytest.approx(0.1)
    assert necessity["difference_low"] <= 0.1 <= necessity["difference_high"]
    assert necessity["beyond_threshold"] == "yes"
    assert by_measure["sufficiency"]["difference"] == pytest.approx(-0.5)
    assert by_measure["accuracy"]["difference"] == pytest.approx(-0.2)
    assert by_measure["steps"]["standard"] == 2
    assert by_measure["steps"]["changed"] == 3
    assert by_measure["steps"]["beyond_threshold"] == ""


def test_the_papers_threshold_is_five_points():
    table = table_of("prompt_interventions", records(7), 20)
    row = table[table["measure"] == "necessity"].iloc[0]
    assert abs(row["difference"]) == pytest.approx(1 / 30)
    assert row["beyond_threshold"] == "no"


def test_without_a_variant_there_is_no_table():
    standard = [r for r in records(7) if r["task"] == "t"]
    assert "prompt_interventions" not in tables(standard, analysis=SlrcAnalysis(resamples=5))
    assert table_of("prompt_interventions", standard).empty
