"""Failures that judges share, and how far figures depend on the prompt: by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from c2_frames import table_of
from c2_judgements import ABSENT, frames, judged

from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.tables.agreement import (
    FAILURE_OVERLAP,
    MISSED_BY_ALL,
)
from faithscope.experiments.studies.c2faith.tables.every_table import tables
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.experiments.studies.c2faith.tables.sensitivity import PROMPT_AGREEMENT

THREE = frames(
    judged([0, 0, 0, 1, 0, ABSENT], [1, 1, 1, 1], "a"),
    judged([0, 0, 1, 1, ABSENT, ABSENT], [1, 0, 1, 1], "b"),
    judged([0, 1, 1, 1, 1, ABSENT], [1, 0, 0, ABSENT], "c"),
)


def test_the_sets_of_figure_6_and_what_all_miss():
    table = FAILURE_OVERLAP.make(THREE)
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
    (missed,) = MISSED_BY_ALL.make(THREE, features).to_dict("records")
    assert (missed["item"], missed["n_judges"]) == ("i3", 3)
    assert missed["edit_type"] == "minor_rewrite"


def test_a_silent_judge_is_no_part_of_the_sets():
    with_mute = pd.concat([THREE, judged([ABSENT] * 6, [], "mute")])
    table = FAILURE_OVERLAP.make(frames(with_mute))
    assert set(table["n_raters_silent"]) == {1}
    assert set(table["among"]) == {"judges"}
    assert table["n_items"].tolist() == FAILURE_OVERLAP.make(THREE)["n_items"].tolist()
    (only_mute,) = FAILURE_OVERLAP.make(frames(judged([ABSENT], [], "mute"))).to_dict("records")
    assert (only_mute["n"], only_mute["n_raters"], only_mute["n_raters_silent"]) == (0, 0, 1)


def test_of_one_judge_its_readings_and_prompts_are_the_raters():
    written = judged([0, 0, 1, 1, ABSENT], [1, 1], "a")
    scored = judged([0, 1, 1, 0, 1], [1, 1], "a").assign(reading="scored")
    table = FAILURE_OVERLAP.make(frames(written, scored))
    assert table["missed_by"].tolist() == ["", "generated", "scored", "generated + scored"]
    assert set(table["among"]) == {"readings"}
    assert set(zip(table["reading"], table["prompt"], strict=True)) == {("", "c2")}
    assert (set(table["n_raters"]), set(table["n"])) == ({2}, {4})
    assert set(table["n_without_verdict"]) == {1}
    terse = written.assign(prompt="c2_terse")
    both = FAILURE_OVERLAP.make(frames(written, scored, terse))
    assert set(both["among"]) == {"readings and prompts"}
    assert "generated · c2 + generated · c2_terse" in set(both["missed_by"])
    assert set(FAILURE_OVERLAP.make(frames(written, terse))["among"]) == {"prompts"}
    # a judge that never spoke is no second voice
    mute = judged([ABSENT] * 5, [], "mute")
    beside = FAILURE_OVERLAP.make(frames(written, scored, mute))
    assert (set(beside["n_raters"]), set(beside["n_raters_silent"])) == ({2}, {1})
    assert beside["n_items"].tolist() == table["n_items"].tolist()
    alone = FAILURE_OVERLAP.make(frames(written))
    assert (set(alone["n_raters"]), set(alone["missed_by"])) == ({1}, {"", "a"})


def test_what_a_figure_hangs_on():
    said = frames(
        judged([0, 0, 0, 1], [1, 1, 1, 0]),
        judged([0, 1, 1, 1], [1, 1, 1, ABSENT]).assign(prompt="c2_terse"),
        judged([0, 0, 1, 1], [1, 1, 1, 1], p=[0.9, 0.8, 0.1, 0.2, 0.1, 0.2, 0.3, 0.3]),
    )
    table = tables(Frames(said), resamples=20)["c2_prompts"]
    over = where(table, over="prompt", reading="generated", measure="detection").iloc[0]
    assert (over["lowest"], over["lowest_at"], over["highest"]) == (0.25, "c2_terse", 0.75)
    assert (over["range"], over["n_variants"]) == (0.5, 2)
    between = where(table, over="reading", prompt="c2", measure="detection").iloc[0]
    assert between["range"] == pytest.approx(0.25)
    one = where(table, over="prompt", reading="scored", measure="detection").iloc[0]
    assert one["n_variants"] == 1
    assert math.isnan(one["range"])
    agreed = table_of(PROMPT_AGREEMENT, Frames(said))
    prompts = where(agreed, over="prompt", condition="perturbed").iloc[0]
    assert (prompts["first"], prompts["second"]) == ("c2", "c2_terse")
    assert (prompts["agreement"], prompts["n"]) == (0.5, 4)
    control = where(agreed, over="prompt", condition="control").iloc[0]
    assert (control["n"], control["n_without_verdict"]) == (3, 1)
    assert set(agreed["over"]) == {"prompt", "reading"}
