"""Panels, shared failures, what the figures hang on: by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from test_c2_coverage import scored
from test_c2_detection import ABSENT, HOW, frames, judged
from test_c2_localisation import placed

from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.metrics.agreement import failure_overlap_table
from faithscope.experiments.studies.c2faith.metrics.detection import ALONE, detection_table
from faithscope.experiments.studies.c2faith.metrics.frames import Frames
from faithscope.experiments.studies.c2faith.metrics.panels import (
    missed_by_all_table,
    panel,
    panel_table,
)
from faithscope.experiments.studies.c2faith.metrics.sensitivity import (
    prompt_agreement_table,
    prompts_table,
)

NONE = Frames()
THREE = frames(
    judged([0, 0, 0, 1, 0, ABSENT], [1, 1, 1, 1], "a"),
    judged([0, 0, 1, 1, ABSENT, ABSENT], [1, 0, 1, 1], "b"),
    judged([0, 1, 1, 1, 1, ABSENT], [1, 0, 0, ABSENT], "c"),
)


def verdicts(rule: str, condition: str = "perturbed") -> list[float]:
    found = where(panel(THREE, "detection", rule), condition=condition)
    return found.set_index("item")["score"].sort_index().tolist()


def test_rules_of_a_panel():
    nan = pytest.approx(math.nan, nan_ok=True)
    assert verdicts("majority") == [0, 0, 1, 1, nan, nan]  # one against one is a tie
    assert verdicts("any") == [0, 0, 0, 1, 0, nan]
    assert verdicts("all") == [0, 1, 1, 1, 1, nan]
    assert verdicts("mean") == [0, 0, 1, 1, 0, nan]  # one half counts as broken
    assert verdicts("majority", "control") == [1, 0, 1, 1]


def test_the_panel_beside_its_best_judge():
    of = {"detection": THREE, "localisation": NONE.localisation, "coverage": NONE.coverage}
    table = panel_table(of, HOW)
    (any_,) = where(table, rule="any", measure="detection").to_dict("records")
    assert (any_["value"], any_["n"], any_["n_without_verdict"]) == (pytest.approx(4 / 5), 5, 1)
    assert (any_["best_judge"], any_["best_value"]) == ("a", pytest.approx(4 / 5))
    (fpr,) = where(table, rule="any", measure="fpr").to_dict("records")
    assert (fpr["value"], fpr["best_judge"], fpr["best_value"]) == (0.5, "a", 0)
    assert set(table["n_judges"]) == {3}
    assert set(table["rule"]) == {"majority", "mean", "any", "all"}


def test_probabilities_are_averaged_where_there_are_some():
    both = frames(
        judged([0, 1], [1, 1], "a", p=[0.9, 0.4, 0.2, 0.1]),
        judged([1, 1], [1, 1], "b", p=[0.3, 0.2, 0.2, 0.1]),
    )
    found = panel(both, "detection", "mean")
    assert sorted(found["p_flag"]) == pytest.approx([0.1, 0.2, 0.3, 0.6])
    row = detection_table(Frames(detection=found).detection, HOW).iloc[0]
    assert (row["detection"], row["auroc"]) == (0.5, 1.0)


def test_panels_of_places_and_of_scores():
    places = Frames(
        localisation=pd.concat(
            [
                placed([5, 5, -1, None], [], judge="a"),
                placed([5, 4, -1, None], [], judge="b"),
                placed([3, 3, 5, None], [], judge="c"),
            ]
        )
    ).localisation
    said = panel(places, "localisation", "majority")["predicted"].tolist()
    assert said[:2] == [5, pytest.approx(math.nan, nan_ok=True)]
    assert said[2] == -1
    scores = Frames(coverage=pd.concat([scored([4, 2]), scored([4, 3]).assign(judge="b")])).coverage
    assert panel(scores, "coverage", "mean")["score"].tolist() == [4, 2.5]
    of = {"detection": NONE.detection, "localisation": places, "coverage": scores}
    table = panel_table(of, HOW)
    exact = where(table, task="localisation", measure="exact").iloc[0]
    assert (exact["value"], exact["n"], exact["n_without_verdict"]) == (0.5, 2, 2)


def test_a_panel_of_one_says_so():
    silent = judged([ABSENT] * 2, [], "mute")
    alone = frames(judged([0, 1], [], "a"), silent)
    of = {"detection": alone, "localisation": NONE.localisation, "coverage": NONE.coverage}
    (row,) = panel_table(of, HOW).to_dict("records")
    assert (row["reason"], row["n_judges"]) == (ALONE, 1)


def test_the_sets_of_figure_6_and_what_all_miss():
    table = failure_overlap_table(THREE)
    assert table["missed_by"].tolist() == ["", "c", "b + c", "a + b + c"]
    assert table["n_items"].tolist() == [1, 1, 1, 1]
    assert set(table["n"]) == {4}
    assert set(table["n_without_verdict"]) == {2}
    # a misses 1 of 4, b 2 of 4, c 3 of 4
    assert table["share_independent"].iloc[-1] == pytest.approx(1 / 4 * 2 / 4 * 3 / 4)
    features = pd.DataFrame(
        {"item": ["i3"], "edit_type": ["minor_rewrite"], "method": ["llm"]}
        | {"relative_position": [0.5]}
    )
    (missed,) = missed_by_all_table(THREE, features).to_dict("records")
    assert (missed["item"], missed["n_judges"]) == ("i3", 3)
    assert missed["edit_type"] == "minor_rewrite"


def test_a_silent_judge_is_no_part_of_the_sets():
    with_mute = pd.concat([THREE, judged([ABSENT] * 6, [], "mute")])
    table = failure_overlap_table(frames(with_mute))
    assert set(table["n_voices_silent"]) == {1}
    assert set(table["among"]) == {"judges"}
    assert table["n_items"].tolist() == failure_overlap_table(THREE)["n_items"].tolist()
    (only_mute,) = failure_overlap_table(frames(judged([ABSENT], [], "mute"))).to_dict("records")
    assert (only_mute["n"], only_mute["n_voices"], only_mute["n_voices_silent"]) == (0, 0, 1)


def test_of_one_judge_its_readings_and_prompts_are_the_voices():
    written = judged([0, 0, 1, 1, ABSENT], [1, 1], "a")
    scored = judged([0, 1, 1, 0, 1], [1, 1], "a").assign(reading="scored")
    table = failure_overlap_table(frames(written, scored))
    assert table["missed_by"].tolist() == ["", "generated", "scored", "generated + scored"]
    assert set(table["among"]) == {"readings"}
    assert set(zip(table["reading"], table["prompt"], strict=True)) == {("", "c2")}
    assert (set(table["n_voices"]), set(table["n"])) == ({2}, {4})
    assert set(table["n_without_verdict"]) == {1}
    terse = written.assign(prompt="c2_terse")
    both = failure_overlap_table(frames(written, scored, terse))
    assert set(both["among"]) == {"readings and prompts"}
    assert "generated · c2 + generated · c2_terse" in set(both["missed_by"])
    assert set(failure_overlap_table(frames(written, terse))["among"]) == {"prompts"}
    # a judge that never spoke makes no panel of one that did
    mute = judged([ABSENT] * 5, [], "mute")
    beside = failure_overlap_table(frames(written, scored, mute))
    assert (set(beside["n_voices"]), set(beside["n_voices_silent"])) == ({2}, {1})
    assert beside["n_items"].tolist() == table["n_items"].tolist()
    alone = failure_overlap_table(frames(written))
    assert (set(alone["n_voices"]), set(alone["missed_by"])) == ({1}, {"", "a"})


def test_what_a_figure_hangs_on():
    said = frames(
        judged([0, 0, 0, 1], [1, 1, 1, 0]),
        judged([0, 1, 1, 1], [1, 1, 1, ABSENT]).assign(prompt="c2_terse"),
        judged([0, 0, 1, 1], [1, 1, 1, 1], p=[0.9, 0.8, 0.1, 0.2, 0.1, 0.2, 0.3, 0.3]),
    )
    table = prompts_table({"detection": detection_table(said, HOW)})
    over = where(table, over="prompt", reading="generated", measure="detection").iloc[0]
    assert (over["lowest"], over["lowest_at"], over["highest"]) == (0.25, "c2_terse", 0.75)
    assert (over["range"], over["n_variants"]) == (0.5, 2)
    between = where(table, over="reading", prompt="c2", measure="detection").iloc[0]
    assert between["range"] == pytest.approx(0.25)
    one = where(table, over="prompt", reading="scored", measure="detection").iloc[0]
    assert one["n_variants"] == 1
    assert math.isnan(one["range"])
    agreed = prompt_agreement_table({"detection": said})
    prompts = where(agreed, over="prompt", condition="perturbed").iloc[0]
    assert (prompts["first"], prompts["second"]) == ("c2", "c2_terse")
    assert (prompts["agreement"], prompts["n"]) == (0.5, 4)
    control = where(agreed, over="prompt", condition="control").iloc[0]
    assert (control["n"], control["n_without_verdict"]) == (3, 1)
    assert set(agreed["over"]) == {"prompt", "reading"}
