"""Correlations over models against scipy, by hand, and on what the paper prints."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from faithscope.experiments.studies.slrc.tables.model_correlations import (
    CORRELATED,
    LEAST,
    correlation,
    model_correlations_table,
)
from faithscope.experiments.studies.slrc.tables.models import SCORES

X = [0.1, 0.4, 0.5, 0.9, 0.3, 0.35]
Y = [0.2, 0.1, 0.6, 0.7, 0.25, 0.5]


def models(n: int, seed: int = 0, **columns) -> pd.DataFrame:
    """So many models with scores that were drawn."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.random(n) for name in SCORES})
    fixed = {"framing": "reprompt", "reading": "generated", "open": True, "tasks": "t"}
    sizes = {x: 10.0 ** rng.integers(7, 12, n) for x in ("parameters", "active_parameters")}
    return table.assign(model=[f"m{i:02}" for i in range(n)], **(fixed | sizes | columns))


def test_coefficients_and_p_values_are_those_of_scipy():
    pearson, spearman = correlation(X, Y, "pearson"), correlation(X, Y, "spearman")
    assert (pearson.r.value, pearson.p) == pytest.approx(tuple(stats.pearsonr(X, Y)))
    assert (spearman.r.value, spearman.p) == pytest.approx(tuple(stats.spearmanr(X, Y)))
    interval = stats.pearsonr(X, Y).confidence_interval(0.95)
    assert (pearson.r.low, pearson.r.high) == pytest.approx(tuple(interval))


def test_the_interval_of_spearman_is_wider_by_bonett_and_wright():
    rho = correlation(X, Y, "spearman").r
    half = 1.959964 * math.sqrt((1 + rho.value**2 / 2) / (len(X) - 3))
    assert rho.low == pytest.approx(math.tanh(math.atanh(rho.value) - half), abs=1e-6)
    assert rho.high == pytest.approx(math.tanh(math.atanh(rho.value) + half), abs=1e-6)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_few_models_are_permuted_in_every_way(method):
    """Twice the smaller tail of all 720 orders of six models."""
    rank = stats.rankdata if method == "spearman" else np.asarray
    x, y = rank(X), rank(Y)
    dealt = np.array([np.corrcoef(x, order)[0, 1] for order in permutations(y)])
    found = correlation(X, Y, method)
    tails = (dealt >= found.r.value - 1e-12).mean(), (dealt <= found.r.value + 1e-12).mean()
    assert found.p_permutation == pytest.approx(min(1, 2 * min(tails)))


def test_a_model_that_turns_it_is_seen():
    x, y = [0.1, 0.2, 0.3, 0.4, 5.0], [0.4, 0.3, 0.2, 0.1, 5.0]
    found = correlation(x, y, "pearson")
    assert found.r.value > 0.95
    assert found.without_one[0] == pytest.approx(-1)
    assert found.without_one[1] > 0.95


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_no_correlation_of_few_points_or_of_constants(method):
    for x, y in (([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), ([1.0] * 5, list(range(5))), ([], [])):
        found = correlation(x, y, method)
        assert math.isnan(found.r.value)
        assert math.isnan(found.p)
        assert math.isnan(found.p_permutation)


def test_every_pair_of_every_way_has_both_methods():
    table = pd.concat([models(6), models(6, framing="prefix")])
    found = model_correlations_table(table)
    assert len(found) == 2 * len(CORRELATED) * 2
    assert set(found["n"]) == {6}
    one = found.query("framing == 'prefix' and x == 'slrc' and y == 'log_parameters'")
    mine = models(6)
    expected = stats.pearsonr(mine["slrc"], np.log10(mine["parameters"])).statistic
    assert one["r"].iloc[0] == pytest.approx(expected)
    assert found["caution"].str.contains("only 6 models").all()


def test_too_few_models_have_no_numbers_and_say_so():
    found = model_correlations_table(models(LEAST - 1))
    numbers = found.select_dtypes("number").drop(columns="n")
    assert numbers.isna().all(axis=None)
    assert set(found["caution"]) == {"3 models: too few to correlate, 4 are the least"}
    assert set(model_correlations_table(models(1))["caution"].str[:8]) == {"1 model:"}


def test_models_without_a_score_are_left_out_of_its_pairs_alone():
    table = models(6)
    table.loc[:2, "error_detection"] = math.nan
    found = model_correlations_table(table)
    n = {(r["x"], r["y"]): r["n"] for r in found.to_dict("records")}
    assert n["slrc", "sycophancy"] == 6
    assert n["ris", "error_detection"] == 3


def test_cautions():
    said = set(model_correlations_table(models(12))["caution"])
    assert said == {""}
    table = models(12, tasks=["t"] * 11 + ["t u"])
    said = set(model_correlations_table(table)["caution"])
    assert said == {"the models were measured on different tasks"}
    said = model_correlations_table(models(12, slrc=0.5)).query("x == 'slrc'")["caution"]
    assert set(said) == {"one of the two does not vary"}


PAPER = {
    # Table 5, billions in all and active; percent of necessity and sufficiency of each task in
    # Table 1 and Extended Data Table 5
    "GPT-OSS-120B": (117, 5, [(0.3, 98.9), (10.9, 88.9)]),
    "MiniMax-M2.5": (230, 10, [(37.1, 60.7), (28.4, 70.5)]),
    "Qwen3.5-122B": (122, 10, [(0.0, 98.5)]),
    "Kimi-K2.5": (1000, 32, [(16.5, 79.5), (1.4, 90.9), (39.0, 61.0)]),
    "DeepSeek-V3.2": (
        *(685, 37),
        [(10.8, 96.7), (3.6, 93.4), (2.4, 55.7), (4.0, 78.9), (3.8, 63.8), (2.4, 64.5)],
    ),
    "Nemotron-Ultra": (
        *(253, 253),
        [(6.4, 68.0), (88.7, 11.1), (75.5, 31.1), (73.2, 24.1), (69.3, 28.6), (66.9, 30.4)],
    ),
}


def test_paper_numbers_of_scale():
    """ "Neither total parameters, active parameters … predicts faithfulness" (3.2).

    True of all parameters. Active ones would by the normal test (r = .82, p = .045): it takes
    the permutations, or a look at what Nemotron alone does, to see that they do not.
    """
    mean = [np.mean([n / 100 * (1 - s / 100) for n, s in tasks]) for *_, tasks in PAPER.values()]
    table = models(len(PAPER), slrc=mean).assign(
        parameters=[1e9 * total for total, _, _ in PAPER.values()],
        active_parameters=[1e9 * active for _, active, _ in PAPER.values()],
    )
    found = model_correlations_table(table).query("method == 'pearson'").set_index("y")
    total, active = found.loc["log_parameters"], found.loc["log_active_parameters"]
    assert total["r"] == pytest.approx(-0.01, abs=0.005)
    assert active["r"] == pytest.approx(0.82, abs=0.005)
    assert active["p_value"] < 0.05 < active["p_permutation"]
    assert active["r_without_one_least"] == pytest.approx(0.06, abs=0.005)
