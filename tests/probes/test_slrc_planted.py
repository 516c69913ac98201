"""Every SLRC measure against models whose answer provably follows, or ignores, the steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from planted_traces import ASKING, planted

from faithscope.experiments.data.planted.data import ANSWER_CUE
from faithscope.experiments.data.planted.questions import questions
from faithscope.probes import Record
from faithscope.probes.slrc import SlrcSettings, slrc

ITEMS = 8
STEPS = 3


@cache
def measured(name: str) -> list[Record]:
    """SLRC records of a planted model's own reasoning on `ITEMS` questions."""
    model, traces = planted(name)
    records = []
    for trace in traces[:ITEMS]:
        assert len(trace.counted_steps) == STEPS
        quoting = f"{trace.question.text} {{}}".format
        asking = replace(
            ASKING, necessity_prompt=quoting, sufficiency_prompt=quoting, reprompt_cue=ANSWER_CUE
        )
        records += slrc(model, trace, asking, SlrcSettings(answer_tokens=4))
    return records


def shares(name: str, field: str, reading: str, framing: str = "prefix") -> list[float]:
    """Per step (or shuffle), the mean of a field over the items."""
    rows = [r[field] for r in measured(name) if (r["framing"], r["reading"]) == (framing, reading)]
    assert len(rows) == ITEMS
    return [sum(column) / len(column) for column in zip(*rows, strict=True)]


both = pytest.mark.parametrize("reading", ["generated", "scored"])
framings = pytest.mark.parametrize("framing", ["prefix", "reprompt"])


@pytest.mark.in_time(2)
@pytest.mark.parametrize("name", ["faithful", "hint", "hint_no_deletions", "select"])
def test_baselines_are_right(name):
    for r in measured(name):
        assert r["correct"], (name, r["variant"], r["item"])
        assert r["corruptible"] == [True] * STEPS


@both
def test_faithful_frozen_corruption_credits_the_last_step_and_regeneration_all(reading):
    assert shares("faithful", "corrupt_flips", reading) == [0, 0, 1]
    assert shares("faithful", "regenerate_flips", reading) == [1, 1, 1]


@framings
@both
def test_faithful_answer_comes_from_the_last_step_read(framing, reading):
    first, second, last = shares("faithful", "necessary", reading, framing)
    assert (first, second) == (0, 0)
    assert last >= 0.6
    alone = shares("faithful", "sufficient", reading, framing)
    assert alone[2] == 1
    assert max(alone[:2]) <= 0.5
    assert min(shares("faithful", "reordered", reading, framing)) > 0


@framings
@both
def test_nothing_flips_a_hint_follower(framing, reading):
    for field in ("necessary", "reordered", "corrupt_flips"):
        assert set(shares("hint", field, reading, framing)) == {0}, field
    assert set(shares("hint", "sufficient", reading, framing)) == {1}
    if framing == "prefix":
        assert set(shares("hint", "regenerate_flips", reading)) == {0}


@both
def test_removal_alone_is_wrong_about_a_model_that_never_saw_a_gap(reading):
    assert min(shares("hint_no_deletions", "necessary", reading)) >= 0.5
    assert max(shares("hint_no_deletions", "sufficient", reading)) <= 0.5
    for field in ("corrupt_flips", "regenerate_flips", "reordered"):
        assert max(shares("hint_no_deletions", field, reading)) <= 0.15, field


@both
def test_select_follows_the_step_that_the_question_names(reading):
    rows = [r for r in measured("select") if (r["framing"], r["reading"]) == ("prefix", reading)]
    named = {q.id: int(q.text.split()[-2]) - 1 for q in questions("select", ITEMS, seed=0)}
    assert len(set(named.values())) > 1
    for r in rows:
        assert r["corrupt_flips"] == [i == named[r["item"]] for i in range(STEPS)]


def test_graded_readings_tell_the_twins_apart():
    for field in ("corrupted_tv", "regenerated_tv"):
        assert max(shares("hint", field, "scored")) < 0.05
    assert shares("faithful", "corrupted_tv", "scored")[2] > 0.95
    assert min(shares("faithful", "regenerated_tv", "scored")) > 0.95
    assert shares("faithful", "corrupted_log_odds", "scored")[2] > 5
    assert max(map(abs, shares("hint", "corrupted_log_odds", "scored"))) < 2
