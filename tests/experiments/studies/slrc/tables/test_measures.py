"""Every registered measure scores real planted items, points as theory says, and counts calls."""

from __future__ import annotations

import math
from functools import cache

import pytest
from planted_traces import ASKING, planted

from faithscope.experiments.analysis.measure import Measure, calls, listed, value
from faithscope.experiments.studies.slrc.tables.measures import (
    MEASURES,
    PROBES_READ,
    all_scores,
    all_step_scores,
)
from faithscope.probes import PROBES

SILENT = {"beyond_control_prefix_generated", "beyond_control_prefix_scored"}
"""The control puts a remark after a step, for which the planted models have no words."""
FROM_THE_SECOND = {"tts", "tts_perturbed"}
"""The first step has no context that could be perturbed."""
ITEMS = 4


@cache
def records(name: str, probe: str) -> list[dict]:
    model, traces = planted(name)
    of = PROBES[probe]
    return [r for t in traces[:ITEMS] for r in of.measure(model, t, ASKING, of.settings())]


def all_records(name: str) -> list[dict]:
    return [r for probe in PROBES_READ for r in records(name, probe)]


@pytest.mark.parametrize("name", sorted(set(MEASURES) - SILENT))
def test_it_scores_a_model_that_uses_its_steps(name: str) -> None:
    measure = MEASURES[name]
    table = all_scores(records("faithful", measure.probe))
    found = table[table["measure"] == name]
    assert len(found) > 0
    assert found["score"].notna().all()
    assert (found["forwards"] >= 1).all()
    if measure.share:
        assert found["score"].between(0, 1).all()
    if measure.steps is not None:
        steps = all_step_scores(records("faithful", measure.probe))
        credited = steps[steps["measure"] == name].groupby("item")["step"].apply(list)
        assert credited.tolist() == [[1, 2] if name in FROM_THE_SECOND else [0, 1, 2]] * ITEMS


def test_names_are_those_of_the_registry_and_probes_exist() -> None:
    assert all(name == measure.name for name, measure in MEASURES.items())
    assert set(PROBES_READ) <= set(PROBES)


def test_the_scores_of_twins_are_what_was_planted() -> None:
    means = {
        name: all_scores(all_records(name)).groupby("measure")["score"].mean().to_dict()
        for name in ("faithful", "hint")
    }
    faithful, hint = means["faithful"], means["hint"]
    assert faithful["regenerate_prefix_generated"] == 1
    assert faithful["corrupt_prefix_scored"] == pytest.approx(1 / 3)
    assert faithful["regenerate_tv_prefix_scored"] == pytest.approx(1, abs=0.01)
    assert hint["regenerate_prefix_generated"] == hint["slrc_prefix_generated"] == 0
    assert hint["sufficiency_prefix_generated"] == 1
    assert hint["tracing_p_before"] == pytest.approx(1, abs=0.01)
    assert faithful["step_information_corrupted"] == pytest.approx(math.log(2) / 3, abs=0.01)
    for name in ("graded_necessity", "removed_tv"):
        slrc_s = {"removed_tv": "remove_tv", "graded_necessity": "remove_log_odds"}[name]
        assert faithful[name] == pytest.approx(faithful[f"{slrc_s}_prefix_scored"], abs=1e-3)
    assert faithful["tts"] > 0.5
    assert hint["tts"] == pytest.approx(0, abs=0.01)
    assert hint["nldd_own"] == pytest.approx(0, abs=0.02)
    assert hint["step_information"] == pytest.approx(0, abs=0.01)


def test_a_calls_count_is_of_the_measure_alone() -> None:
    table = all_scores(all_records("faithful")).groupby("measure")["forwards"].first().to_dict()
    n = 3
    assert table["necessity_prefix_generated"] == 1 + n
    assert table["slrc_reprompt_scored"] == 1 + 2 * n
    assert table["order_sensitivity_prefix_scored"] == 1 + 3
    assert table["regenerate_prefix_scored"] == 1 + 2 * n
    assert table["attention_reasoning"] == 1
    assert table["information_gain_pointwise"] == 2
    # nothing, a corrupted text and both other steps in the place of each
    assert table["step_information"] == 1 + 4 * n
    assert table["step_information_corrupted"] == 1 + n
    assert table["attention_gap"] == 1 + 3
    assert table["tracing_spearman"] == 7 * n + 1
    assert table["graded_necessity"] == table["nldd"] == 1 + n
    assert table["tts"] == 4 * (n - 1)
    assert table["tts_intact"] == 2 * n


def test_excluded_records_have_no_score() -> None:
    made = [r | {"excluded": "baseline_unparsed"} for r in records("faithful", "rigidity")]
    assert all_scores(made).empty
    assert all_scores(made).columns.tolist()[-3:] == ["family", "score", "forwards"]


def test_an_entry_reads_the_records_that_it_names() -> None:
    measure = Measure(
        "drop",
        "p",
        "logit",
        value("mean"),
        calls(2, 3),
        where={"variant": "b"},
        steps=listed("drops"),
    )
    a = {"variant": "a", "mean": 1.0, "n_steps": 2}
    b = {"variant": "b", "mean": 2.0, "n_steps": 2, "steps": [0, 3], "drops": [0.5, None]}
    of = measure.records([a, b])
    assert of == [b]
    assert measure.score(of) == 2.0
    assert measure.forwards(of) == 8
    assert measure.steps is not None
    assert measure.steps(of) == {0: 0.5}
