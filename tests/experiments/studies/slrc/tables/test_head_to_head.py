"""Graded effects over items, and every two measures against each other, by hand and by scipy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from probe_records import base, table_of
from scipy.stats import kendalltau, spearmanr

from faithscope.experiments.analysis.statistics import ranks
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.slrc.figures.maps import head_to_head_picture
from faithscope.experiments.studies.slrc.measures.causal_effects import (
    causal_effects_picture,
)
from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.head_to_head import head_to_head_table
from faithscope.experiments.studies.slrc.tables.results import of_topics
from faithscope.probes.causal_effects import STEP_MEASURES

ANALYSIS = SlrcAnalysis(resamples=200)


def effects(item: str, values: list[float | None], **lists: list[float | None]) -> dict[str, Any]:
    """A record in which every measure that is not named has `values`."""
    made = base("causal_effects", "m", "t", item, "")
    steps = {name: lists.get(name, values) for name in STEP_MEASURES}
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
    assert row["removed_tv_low"] <= row["removed_tv"] <= row["removed_tv_high"]


def test_the_median_is_not_drawn_by_one_tie() -> None:
    many = [effects(str(i), [0.5, 0.5]) for i in range(8)] + [effects("tie", [900.0, 900.0])]
    (row,) = table_of("causal_effects", many).to_dict("records")
    assert row["nldd"] > 100
    assert row["nldd_median"] == row["nldd_median_high"] == 0.5


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
    found = ranks.kendall(x, y, seed=0, resamples=200)
    assert [found.low, found.high] == pytest.approx(np.quantile(taus, [0.025, 0.975]), abs=1e-6)


def test_what_does_not_vary_is_not_correlated() -> None:
    same, other = np.ones(5), np.arange(5.0)
    for correlate in (ranks.spearman, ranks.kendall):
        assert math.isnan(correlate(same, other).value)
        assert math.isnan(correlate(other[:2], other[:2]).value)
        assert correlate(other, other).low == 1


def test_measures_head_to_head() -> None:
    table = head_to_head_table([*EFFECTS, *SLRC], ANALYSIS)
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
    table = head_to_head_table(made, ANALYSIS)
    row = next(r for r in rows(table) if (r["measure"], r["other"]) == ("removed_tv", "tts"))
    assert math.isnan(row["spearman"])
    assert row["n_ranked"] == row["n_highest"] == 0


def test_reprompt_stands_against_the_graded_measures_but_does_not_repeat_them() -> None:
    quoted = [r | {"framing": "reprompt", "variant": "reprompt.scored"} for r in SLRC]
    table = head_to_head_table([*EFFECTS, *SLRC, *quoted], ANALYSIS)
    assert set(table["framing"]) == {"prefix", "reprompt"}
    again = table[table["framing"] == "reprompt"]
    assert {("necessity_scored", "tts"), ("slrc_scored", "nldd")} <= {
        (r["measure"], r["other"]) for r in rows(again)
    }
    assert not again["measure"].isin(["graded_necessity", "removed_tv", "nldd", "tts"]).any()


def test_without_slrc_the_graded_measures_meet_each_other() -> None:
    tables = of_topics(EFFECTS, ANALYSIS)
    assert {"causal_effects", "causal_effects_by_step", "head_to_head"} <= set(tables)
    assert len(tables["head_to_head"]) == 10
    assert head_to_head_picture(tables["head_to_head"]).figure is not None
    assert causal_effects_picture(tables["causal_effects_by_step"]).figure is not None


def test_figures_without_numbers_say_so() -> None:
    none = base("causal_effects", "m", "t", "d", "") | {"excluded": "fewer_than_2_labels"}
    tables = of_topics([none], ANALYSIS)
    assert head_to_head_picture(tables["head_to_head"]).figure is None
    assert causal_effects_picture(tables["causal_effects_by_step"]).figure is None
