"""Another prompt, another model on the same items (SLRC, 2.6, 3.2), and groups of models (Table 1):
by hand, and by the paper's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from printed_cells import half_unit, printed, value
from probe_records import slrc_outcome, table_of

from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis


def records(changed: int) -> list[dict]:
    """Records of 10 items with one necessary step in 4 of them, and in `changed` with the
    variant."""
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
    for side in ("standard", "changed", "difference"):
        assert necessity[f"{side}_low"] <= necessity[side] <= necessity[f"{side}_high"]
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
    assert "prompt_interventions" not in tables_of(standard, analysis=SlrcAnalysis(resamples=5))
    assert table_of("prompt_interventions", standard).empty


def of_model(model: str, necessary: int, sufficient: int = 0, items: int = 10) -> list[dict]:
    """Items of 10 steps, so many of which are necessary, and sufficient alone."""
    steps, alone = ([i < n for i in range(10)] for n in (necessary, sufficient))
    return [slrc_outcome(model, "t", str(i), steps, alone, i < 9) for i in range(items)]


def test_a_pair_is_compared_on_the_items_that_both_models_have():
    records = [*of_model("general", 1), *of_model("trained", 9, items=8), *of_model("other", 5)]
    variant = [r | {"task": "t:why"} for r in of_model("general", 3)]
    pairs = {"lab": ("general", "trained"), "none": ("general", "absent")}
    table = table_of("model_pairs", [*records, *variant], 100, pairs=pairs)
    assert set(table["pair"]) == {"lab"}
    assert set(table["task"]) == {"t"}
    row = table.set_index("measure").loc["necessity"]
    assert (row["model"], row["other"], row["n"]) == ("general", "trained", 8)
    assert (row["first"], row["second"], row["difference"]) == pytest.approx((0.1, 0.9, 0.8))
    # every item is alike, which is no certainty
    assert row["difference_low"] < 0.8 < row["difference_high"]


def test_each_model_of_a_group_counts_once():
    records = [*of_model("a", 8, 2, items=40), *of_model("b", 2, 4), *of_model("c", 5)]
    groups = {"two": ("a", "b", "absent"), "none": ("absent",)}
    (row,) = table_of("model_groups", records, 100, groups=groups).to_dict("records")
    assert (row["group"], row["n_models"], row["n"]) == ("two", 2, 50)
    assert (row["necessity"], row["sufficiency"]) == pytest.approx((0.5, 0.3))
    assert row["slrc"] == pytest.approx(0.5 * (1 - 0.3))
    for name in ("necessity", "sufficiency", "slrc"):
        # every item of a model is alike, so that no draw differs
        assert math.isnan(row[f"{name}_low"])


def test_a_group_varies_with_the_items_of_all_its_models():
    rng = np.random.default_rng(0)
    records = [
        slrc_outcome(model, "t", str(i), (rng.random(5) < p).tolist(), [False] * 5, True)
        for model, p in (("a", 0.2), ("b", 0.6))
        for i in range(200)
    ]
    groups = {"both": ("a", "b"), "one": ("a",)}
    both, one = table_of("model_groups", records, 1000, groups=groups).to_dict("records")
    width = both["necessity_high"] - both["necessity_low"]
    # half of the root of the summed variances .16 / 1000 and .24 / 1000, 1.96 times to each side
    assert width == pytest.approx(2 * 1.96 * 0.5 * (0.16 / 1000 + 0.24 / 1000) ** 0.5, rel=0.15)
    assert one["necessity_low"] < 0.2 < one["necessity_high"]


def test_the_papers_row_of_small_models_fits_slrc_of_the_means():
    small = "Small models (0.8–8B avg)"
    for task in ("SST-2", "GSM8K"):
        cells = {c["column"]: c for c in printed("slrc", "table1", model=small, task=task)}
        necessary, sufficient = (int(cells[x]["value"]) for x in ("Nec%", "Suf%"))
        steps, alone = ([i < n for i in range(100)] for n in (necessary, sufficient))
        records = [slrc_outcome("m", "t", str(i), steps, alone, True) for i in range(2)]
        (row,) = table_of("model_groups", records, 10, groups={small: ("m",)}).to_dict("records")
        assert abs(row["slrc"] - value(cells["SLRC"])) <= half_unit(cells["SLRC"])


def test_without_groups_or_pairs_in_the_config_there_are_no_such_tables():
    records = of_model("a", 8)
    assert not {"model_groups", "model_pairs"} & tables_of(records, analysis=SlrcAnalysis()).keys()
    how = SlrcAnalysis(resamples=5, groups={"g": ("a",)}, pairs={"p": ("a", "a")})
    made = tables_of(records, analysis=how)
    assert made["model_groups"]["n_models"].tolist() == [1]
    assert where(made["model_pairs"], measure="necessity")["difference"].tolist() == [0]
