"""Accuracy against faithfulness: planted associations, identities, statsmodels' own formulas."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from rf_frames import drawn, frame, judged
from scipy import stats

from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics.accuracy import (
    accuracy_association,
    accuracy_cells,
    weighted_pearson,
    weighted_spearman,
)
from faithscope.experiments.studies.rfeval.metrics.chains import scored


def cells(slope: float, effect: float, noise: float = 0.05, seed: int = 0) -> pd.DataFrame:
    """RF with a slope within cells, and an effect of the model that goes with its accuracy."""
    rng = np.random.default_rng(seed)
    rows = []
    for m, t in itertools.product(range(12), range(7)):
        own = rng.normal(0, 0.1)
        accuracy = 0.3 + 0.03 * m + 0.02 * t + own
        rf = 0.4 + slope * own + effect * 0.03 * m + rng.normal(0, noise)
        row = {"reader": "o3", "model": f"m{m}", "task": TASKS[t], "condition": "intervened"}
        rows.append(row | {"n": int(rng.integers(200, 1000)), "accuracy": accuracy, "rf": rf})
    return pd.DataFrame(rows)


def found(of: pd.DataFrame) -> dict[str, dict]:
    table = accuracy_association(of, resamples=200)
    return {row["statistic"]: row for row in table.to_dict("records")}


def test_an_effect_of_the_model_alone_vanishes_once_it_is_held_fixed() -> None:
    said = found(cells(slope=0, effect=2))
    assert said["slope"]["value_low"] > 0
    assert said["slope_fixed_effects"]["p"] > 0.05
    for name in ("pearson", "spearman"):
        assert said[name]["value_low"] < 0 < said[name]["value_high"]
        assert said[name]["p"] > 0.05


def test_a_slope_within_cells_stays() -> None:
    said = found(cells(slope=0.5, effect=-2))
    assert said["slope"]["value"] < 0
    assert said["slope_fixed_effects"]["value"] == pytest.approx(0.5, abs=0.15)
    assert said["pearson"]["value_low"] > 0.3
    assert said["spearman"]["p"] < 0.001


def test_statsmodels_formula_agrees_and_pearsons_p_is_that_of_the_slope() -> None:
    of = cells(slope=0.1, effect=1)
    said = found(of)
    fit = smf.wls("rf ~ accuracy + C(model) + C(task)", of, weights=of["n"]).fit()
    slope = said["slope_fixed_effects"]
    assert slope["value"] == pytest.approx(fit.params["accuracy"])
    assert slope["p"] == pytest.approx(fit.pvalues["accuracy"])
    assert slope["df"] == said["pearson"]["df"] == fit.df_resid == 84 - 12 - 7
    assert [slope["value_low"], slope["value_high"]] == pytest.approx(
        fit.conf_int().loc["accuracy"].tolist()
    )
    assert said["pearson"]["p"] == pytest.approx(slope["p"])


def test_with_equal_weights_the_correlations_are_scipys() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30)).round(1)
    ones = np.ones(30)
    assert weighted_pearson(x, y, ones) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert weighted_spearman(x, y, ones) == pytest.approx(stats.spearmanr(x, y).statistic)
    twice = np.r_[x, x[:10]], np.r_[y, y[:10]]
    weights = np.r_[np.full(10, 2.0), np.ones(20)]
    assert weighted_pearson(x, y, weights) == pytest.approx(np.corrcoef(*twice)[0, 1])
    assert math.isnan(weighted_pearson(x, np.ones(30), ones))


def test_too_few_cells_are_said_to_be() -> None:
    one = found(cells(0, 1).iloc[:1])
    assert {row["reason"] for row in one.values()} == {"too few cells"}
    assert math.isnan(one["pearson"]["value"])
    flat = cells(0, 1).assign(accuracy=0.5)
    assert found(flat)["slope_fixed_effects"]["reason"] == "the effects leave no difference"
    assert found(flat)["spearman"]["reason"] == "the effects leave no difference"


def test_cells_hold_the_included_pairs() -> None:
    rows = [judged(), judged("B B B", "A A A B"), judged("A A A", "A A A A")]
    table = accuracy_cells(scored(frame(*rows, judged(intervened_right=None))))
    by = table.set_index("condition")
    assert by["n"].tolist() == [3, 3]
    assert by.loc["baseline", "accuracy"] == 1
    assert by.loc["intervened", "accuracy"] == 0.5
    assert by.loc["intervened", "n_without_answer"] == 1
    assert by["rf"].tolist() == pytest.approx([2 / 3] * 2)
    many = accuracy_association(accuracy_cells(scored(drawn())), resamples=20)
    assert len(many) == 8
    assert many["n_cells"].unique().tolist() == [21]
