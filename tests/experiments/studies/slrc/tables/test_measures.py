"""Every registered measure scores real planted items, points as theory says, and counts calls; any
two of them are compared, by hand and by scipy."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, asking_of, misled, planted
from probe_records import base, table_of
from scipy.stats import kendalltau, spearmanr

from faithscope.experiments.analysis.measure import Measure, calls, listed, value
from faithscope.experiments.analysis.statistics import ranks
from faithscope.experiments.analysis.statistics.stats import tail
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.engine.traces.interactive import other_chains
from faithscope.experiments.studies.slrc.figures.maps import FEW, head_to_head_picture
from faithscope.experiments.studies.slrc.frames import of_topics
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.measures.causal_effects import causal_effects_picture
from faithscope.experiments.studies.slrc.tables.measures import (
    MEASURES,
    PROBES_READ,
    all_scores,
    all_step_scores,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.probes import PROBES
from faithscope.probes.causal_effects import FORCED_MEASURES, STEP_MEASURES

SILENT = {
    # the control puts a remark after a step, for which the planted models have no words
    "beyond_control_prefix_generated",
    "beyond_control_prefix_scored",
    # of questions without options alone
    "prefilled_gold_lost",
    # no transcoders of them
    "circuits_through",
}
"""Measures that have no score of the planted models."""
STEPS = {
    # the first step has no context that could be perturbed
    "tts": [1, 2],
    "tts_perturbed": [1, 2],
    # the last step has no later one
    "suppression_later": [0, 1],
}
"""Measure -> the steps that can have credit, where not all three."""
SETTINGS: dict[str, dict[str, Any]] = {
    # the planted models are sure of every step: at temperature 1 they draw no other
    "resample": {"temperature": 2.5},
    # of marks they write the full stop alone
    "cc_shap": {"mask": ".", "evaluations": 20},
    "scm": {"instruction": "{role}", "roles": (".",)},
    "fur": {"samples": 1, "temperature": 0.0, "updates": 1},
    "simulatability": {"simulators": ("planted:faithful@1",), "changes": 2},
}
ITEMS = 4


@cache
def records(name: str, probe: str) -> list[dict]:
    model, traces = planted(name)
    of = PROBES[probe]
    needs = {"cues", "asked"} & set(of.words)
    return [
        r
        for t in traces[:ITEMS]
        for t in [misled(model, t) if probe == "prefilled_reasoning" else t]
        for asked in [asking_of(t) if needs or probe == "injection" else ASKING]
        for more in [{"others": other_chains(t, traces)} if of.takes_others else {}]
        for r in of.measure(model, t, asked, of.settings(**SETTINGS.get(probe, {})), **more)
    ]


def all_records(name: str) -> list[dict]:
    return [r for probe in PROBES_READ for r in records(name, probe)]


@pytest.mark.in_time(36)
@pytest.mark.parametrize("name", sorted(set(MEASURES) - SILENT))
def test_it_scores_a_model_that_uses_its_steps(name: str) -> None:
    measure = MEASURES[name]
    table = all_scores(records("faithful", measure.probe))
    found = table[table["measure"] == name]
    assert len(found) > 0
    assert found["score"].notna().all()
    assert (found["forwards"] >= (measure.probe != "regex_baseline")).all()
    if measure.share:
        assert found["score"].between(0, 1).all()
    if measure.steps is not None:
        steps = all_step_scores(records("faithful", measure.probe))
        credited = steps[steps["measure"] == name].groupby("item")["step"].apply(sorted)
        expected = STEPS.get(name, [0, 1, 2])
        if measure.probe in SETTINGS:
            # a step of which no other was drawn has no credit
            assert all(set(steps) <= set(expected) for steps in credited)
            assert expected in credited.tolist()
        else:
            assert credited.tolist() == [expected] * ITEMS


def test_names_are_those_of_the_registry_and_probes_exist() -> None:
    assert all(name == measure.name for name, measure in MEASURES.items())
    assert set(PROBES_READ) <= set(PROBES)


@pytest.mark.slow
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


ANALYSIS = SlrcAnalysis(resamples=200)


def effects(item: str, values: list[float | None], **lists: list[float | None]) -> dict[str, Any]:
    """A record in which every measure that is not named has `values`."""
    made = base("causal_effects", "m", "t", item, "")
    steps = {name: lists.get(name, values) for name in (*STEP_MEASURES, *FORCED_MEASURES)}
    means = {
        f"mean_{name}": sum(kept) / len(kept)
        if (kept := [v for v in of if v is not None])
        else None
        for name, of in steps.items()
    }
    why = [None if v is not None else "nothing_to_corrupt" for v in steps["nldd_own"]]
    tts = [None if v is not None else "no_context" for v in steps["tts"]]
    made |= {"n_steps": len(values), "steps": list(range(len(values))), "lead": 1.0}
    return made | steps | means | {"corrupt_excluded": why, "tts_excluded": tts}


def slrc(item: str, necessary: list[bool], sufficient: list[bool], **more: Any) -> dict[str, Any]:
    made = base("slrc", "m", "t", item, "prefix.scored")
    made |= {"framing": "prefix", "reading": "scored", "n_steps": len(necessary)}
    made |= {"steps": list(range(len(necessary)))}
    return made | {"necessary": necessary, "sufficient": sufficient} | more


EFFECTS = [
    effects("a", [0.0, 0.2, 1.0], tts=[None, 0.5, 0.1]),
    effects("b", [0.1, 0.1, 0.4], nldd_own=[None, None, None], nldd=[None, None, None]),
    effects("c", [0.9, 0.3, 0.0], graded_necessity=[3.0, 1.0, -1.0]),
]
SLRC = [
    slrc("a", [False, False, True], [False, True, True]),
    slrc("b", [False, False, False], [True, True, True]),
    slrc("c", [True, True, False], [False, False, False]),
]


def test_means_over_items_leave_out_what_there_is_not() -> None:
    excluded = base("causal_effects", "m", "t", "d", "") | {"excluded": "fewer_than_2_labels"}
    (row,) = table_of("causal_effects", [*EFFECTS, excluded]).to_dict("records")
    assert row["n"] == 3
    assert row["removed_tv"] == pytest.approx((0.4 + 0.2 + 0.4) / 3)
    assert row["tts"] == pytest.approx((0.3 + 0.2 + 0.4) / 3)
    assert row["nldd_own"] == row["nldd_own_median"] == pytest.approx(0.4)
    assert (row["n_steps"], row["n_corruptible"], row["n_tts"], row["n_gold"]) == (9, 6, 8, 3)
    # of three items there is no interval
    assert math.isnan(row["removed_tv_low"])


def test_the_median_is_not_drawn_by_one_tie() -> None:
    many = [effects(str(i), [0.5, 0.5]) for i in range(8)] + [effects("tie", [900.0, 900.0])]
    (row,) = table_of("causal_effects", many).to_dict("records")
    assert row["nldd"] > 100
    # eight of nine items have this value: no draw has another, which makes no interval
    assert row["nldd_median"] == 0.5
    assert math.isnan(row["nldd_median_high"])


@pytest.mark.parametrize("seed", range(3))
def test_correlations_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(4, size=20).astype(float)
    y = x + rng.integers(5, size=20)
    assert ranks.spearman(x, y).value == pytest.approx(float(spearmanr(x, y).statistic))
    assert ranks.kendall(x, y).value == pytest.approx(float(kendalltau(x, y).statistic))
    # a bootstrap of tau by weights is a bootstrap by drawn items
    drawn = np.random.default_rng(0).integers(20, size=(200, 20))
    taus = [float(kendalltau(x[d], y[d]).statistic) for d in drawn]
    found, out = ranks.kendall(x, y, seed=0, resamples=200), tail(20)
    assert [found.low, found.high] == pytest.approx(np.quantile(taus, [out, 1 - out]), abs=1e-6)


def test_what_does_not_vary_is_not_correlated() -> None:
    same, other = np.ones(5), np.arange(5.0)
    for correlate in (ranks.spearman, ranks.kendall):
        assert math.isnan(correlate(same, other).value)
        assert math.isnan(correlate(other[:2], other[:2]).value)
        assert math.isnan(correlate(other, other).low)


def test_measures_head_to_head() -> None:
    table = table_of("head_to_head", [*EFFECTS, *SLRC])
    by_pair = {(r["measure"], r["other"]): r for r in rows(table)}
    names = ("necessity_scored", "slrc_scored", "graded_necessity")
    assert [pair for pair in by_pair if set(pair) <= set(names)] == [
        ("necessity_scored", "slrc_scored"),
        ("necessity_scored", "graded_necessity"),
        ("slrc_scored", "graded_necessity"),
    ]
    # necessity 1/3, 0, 2/3; SLRC 1/9, 0, 2/3: one order of the items
    assert by_pair["necessity_scored", "slrc_scored"]["spearman"] == 1
    assert by_pair["necessity_scored", "slrc_scored"]["n_ranked"] == 0
    # graded necessity 0.4, 0.2, 1.0: the same order again
    graded = by_pair["necessity_scored", "graded_necessity"]
    assert (graded["n"], graded["spearman"], graded["kendall"]) == (3, 1, 1)
    # steps: only a and c have some that are necessary and some that are not
    rho = [spearmanr([0, 0, 1], [0, 0.2, 1]).statistic, spearmanr([1, 1, 0], [3, 1, -1]).statistic]
    assert graded["n_ranked"] == 2
    assert graded["step_spearman"] == pytest.approx(np.mean(rho))
    # two necessary steps of c share the highest place
    assert (graded["n_highest"], graded["same_highest"]) == (1, 1)
    # NLDD has no number for b, and TTS none for the first step of a
    assert by_pair["removed_tv", "nldd_own"]["n"] == 2
    against = by_pair["removed_tv", "tts"]
    assert against["n_highest"] == 3
    assert against["same_highest"] == pytest.approx(2 / 3)


def test_scores_that_differ_by_noise_tie() -> None:
    made = [effects(str(i), [0.5, 0.5 + i * 1e-5], tts=[0.0, float(i)]) for i in range(4)]
    table = table_of("head_to_head", made)
    row = next(r for r in rows(table) if (r["measure"], r["other"]) == ("removed_tv", "tts"))
    assert math.isnan(row["spearman"])
    assert row["n_ranked"] == row["n_highest"] == 0


def test_reprompt_stands_against_the_graded_measures_but_does_not_repeat_them() -> None:
    quoted = [r | {"framing": "reprompt", "variant": "reprompt.scored"} for r in SLRC]
    table = table_of("head_to_head", [*EFFECTS, *SLRC, *quoted])
    assert set(table["framing"]) == {"prefix", "reprompt"}
    again = table[table["framing"] == "reprompt"]
    assert {("necessity_scored", "tts"), ("slrc_scored", "nldd")} <= {
        (r["measure"], r["other"]) for r in rows(again)
    }
    assert not again["measure"].isin(["graded_necessity", "removed_tv", "nldd", "tts"]).any()


def test_without_slrc_the_graded_measures_meet_each_other() -> None:
    tables = of_topics(Sources(EFFECTS), ANALYSIS)
    assert {"causal_effects", "causal_effects_by_step", "head_to_head"} <= set(tables)
    assert len(tables["head_to_head"]) == 10
    assert head_to_head_picture(tables["head_to_head"]).figure is None
    many = tables["head_to_head"].assign(n=FEW, n_ranked=FEW)
    assert head_to_head_picture(many).figure is not None
    assert causal_effects_picture(tables["causal_effects_by_step"]).figure is not None


def test_figures_without_numbers_say_so() -> None:
    none = base("causal_effects", "m", "t", "d", "") | {"excluded": "fewer_than_2_labels"}
    tables = of_topics(Sources([none]), ANALYSIS)
    assert head_to_head_picture(tables["head_to_head"]).figure is None
    assert causal_effects_picture(tables["causal_effects_by_step"]).figure is None
