"""Measures held against each other: numbers of peers, and planted truths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import permutation_test, spearmanr
from sklearn.metrics import (
    cohen_kappa_score,
    matthews_corrcoef,
)
from statsmodels.stats.multitest import multipletests
from synthetic_comparison import HOW, joined_of

from faithscope.experiments.analysis.comparison.agreement import (
    agreement_table,
    verdicts,
)
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.tidy import rows


def gwet(left: np.ndarray, right: np.ndarray) -> float:
    """AC1 by its definition, category by category (Gwet 2008, eq. 4 to 6)."""
    agreed = float(np.mean([a == b for a, b in zip(left, right, strict=True)]))
    shares = [(np.mean(left == k) + np.mean(right == k)) / 2 for k in (0, 1)]
    chance = sum(p * (1 - p) for p in shares) / (2 - 1)
    return float((agreed - chance) / (1 - chance))


def test_agreement_equals_that_of_peers() -> None:
    rng = np.random.default_rng(3)
    x, y, z = rng.normal(size=(3, 60))
    y = x + y
    z = np.where(np.arange(60) % 5 == 0, math.nan, -x + z)
    joined = joined_of({"x": ("logit", x), "y": ("internal", y), "z": ("judged", z)})
    table = agreement_table(joined, HOW, 0.05)
    called, _ = verdicts(joined)
    for row in rows(table):
        both = joined.oriented[[row["measure"], row["other"]]].dropna().to_numpy()
        peer: Any = spearmanr(both[:, 0], both[:, 1])
        assert row["n"] == len(both)
        assert row["spearman"] == pytest.approx(peer.statistic)
        assert row["spearman_low"] < row["spearman"] < row["spearman_high"]
        a, b = called[[row["measure"], row["other"]]].dropna().to_numpy().T
        assert row["kappa"] == pytest.approx(cohen_kappa_score(a, b))
        assert row["phi"] == pytest.approx(matthews_corrcoef(a, b))
        assert row["ac2"] == pytest.approx(gwet(a, b))
    assert table["q"].to_numpy() == pytest.approx(multipletests(table["p"], method="fdr_bh")[1])
    assert table["discovered"].to_numpy().all()


def test_every_pair_of_patterns_of_gaps_is_counted_over_what_both_have() -> None:
    rng = np.random.default_rng(7)
    values = {
        name: ("logit", np.where(rng.random(40) < share, math.nan, rng.normal(size=40)))
        for name, share in (("a", 0.0), ("b", 0.2), ("c", 0.5), ("d", 0.9))
    }
    joined = joined_of(values)
    table = {(r["measure"], r["other"]): r for r in rows(agreement_table(joined, HOW, 0.05))}
    for one, other in itertools.combinations(values, 2):
        both = joined.wide()[[one, other]].dropna()
        row = table[one, other]
        assert row["n"] == len(both)
        if len(both) >= 5:
            peer: Any = spearmanr(both[one], both[other])
            assert row["spearman"] == pytest.approx(peer.statistic)
        else:
            assert math.isnan(row["spearman"])
            assert row["reason"]


def test_few_draws_do_not_hide_what_agrees_and_unrelated_measures_are_not_discovered() -> None:
    n, rng = 120, np.random.default_rng(9)
    shared = rng.normal(size=n)
    pair = {f"s{i}": ("logit", shared + rng.normal(scale=0.5, size=n)) for i in range(2)}
    noise = {f"n{i}": ("judged", rng.normal(size=n)) for i in range(28)}
    # 435 pairs at 200 draws: of no single pair could q be less than 2 / 201 × 435
    table = agreement_table(joined_of(pair | noise), HOW, 0.05)
    found = [(r["measure"], r["other"]) for r in rows(table.loc[table["discovered"]])]
    assert ("s0", "s1") in found
    assert len(found) <= 3
    # five questions say little, however well they agree: of 120 orders two are as far out
    few = agreement_table(joined_of({k: ("logit", np.arange(5.0)) for k in "ab"}), HOW, 0.05)
    assert few["p"].iloc[0] == pytest.approx(2 / 120, rel=0.3)


@pytest.mark.slow
def test_p_values_of_agreement_are_those_of_a_permutation_test() -> None:
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=(14, 3)), 1)  # with ties
    x[:, 1] += 0.8 * x[:, 0]
    clusters = np.arange(14).astype(str)
    p = pairs_of.within(x, np.zeros(14), clusters, 0).p
    for i, j in itertools.combinations(range(3), 2):
        peer = permutation_test(
            (x[:, i],), lambda v, j=j: spearmanr(v, x[:, j])[0], permutation_type="pairings",
            n_resamples=2_000, rng=np.random.default_rng(1),
        )  # fmt: skip
        assert (p[i, j], p[j, i]) == pytest.approx((peer.pvalue, peer.pvalue), abs=0.03)
    # two models that answer each question alike hold as many questions as one
    twice = pairs_of.within(np.concatenate([x, x]), np.repeat([0, 1], 14), np.tile(clusters, 2), 0)
    assert twice.p == pytest.approx(p, abs=1e-9)
    # questions of which none has rows in the same models as another cannot be exchanged
    answered = [of for k in (1, 2, 3) for of in itertools.combinations("abc", k)]
    asked = np.repeat(np.arange(7), [len(of) for of in answered]).astype(str)
    lonely = pairs_of.within(rng.normal(size=(12, 2)), np.concatenate(answered), asked, 0)
    assert (lonely.p == 1).all()
    assert np.isnan([lonely.low, lonely.high]).all()


@pytest.mark.slow
@pytest.mark.in_time(1)
@pytest.mark.parametrize("n", [12, 30, 100])
def test_measures_that_know_nothing_of_each_other_are_not_beyond_chance(n: int) -> None:
    """However far apart they put the models, and however few values they have."""
    models, said = ("a", "b", "c"), 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(3, n, 20)) + rng.normal(size=(n, 20)) + 2 * rng.normal(
            size=(3, 1, 20)
        )  # fmt: skip
        scores[..., ::3] = scores[..., ::3] > 1
        scores[..., 1::3] *= rng.random((3, n, 7)) < 0.2
        both = rng.normal(size=(3, n)) + scores[..., 2]
        values = {f"x{i}": ("logit", scores[..., i].ravel()) for i in range(20)}
        joined = joined_of(values | {"copy": ("judged", both.ravel())}, models=models)
        table = agreement_table(joined, HOW, 0.05).set_index(["measure", "other"])
        said += table["discovered"].sum() - table.loc[("x2", "copy"), "discovered"]
        assert n == 12 or table.loc[("x2", "copy"), "discovered"]
    assert said <= 1  # of 3 × 209 pairs


def test_agreement_of_models_that_is_none_of_traces_is_flagged() -> None:
    base = np.repeat([0.0, 10.0, 20.0], 30)
    inside = np.tile(np.arange(30) / 10, 3)
    joined = joined_of(
        {"x": ("logit", base + inside), "y": ("logit", base - inside)}, models=("a", "b", "c")
    )
    (row,) = rows(agreement_table(joined, HOW, 0.05))
    assert row["spearman"] > 0.7
    assert row["within"] == pytest.approx(-1)
    assert row["across"] == pytest.approx(1)
    assert row["reversed"]


@pytest.mark.slow
def test_agreement_within_models_is_of_the_traces_that_both_have_and_the_models_that_vary() -> None:
    n, rng = 300, np.random.default_rng(8)
    x, y = rng.normal(size=(2, 2 * n))
    # a model's low scores by one measure lack the other, the other model's high ones: what is left
    # lies high in one model and low in the other, by both
    model = np.repeat([0, 1], n)
    gone = np.where(model == 0, x < 0, x > 0) & (np.arange(2 * n) % 10 > 0)
    kept = np.where(gone, math.nan, y)
    low = np.where(model == 0, y < 0, y > 0) & (np.arange(2 * n) % 10 > 0)
    values = {"x": ("logit", np.where(low, math.nan, x)), "y": ("logit", kept)}
    (row,) = rows(agreement_table(joined_of(values, models=("a", "b")), HOW, 0.05))
    both = ~gone & ~low
    peers: list[Any] = [spearmanr(x[both & (model == m)], y[both & (model == m)]) for m in (0, 1)]
    assert max(abs(peer.statistic) for peer in peers) < 0.35
    assert min(p.statistic for p in peers) <= row["within"] <= max(p.statistic for p in peers)
    assert row["n_within"] == 2
    # where one is constant in a model, the model says nothing of the two
    same = np.where(model == 0, x, 0.0)
    stuck = {"x": ("logit", same), "y": ("logit", np.where(model == 0, x, y))}
    (row,) = rows(agreement_table(joined_of(stuck, models=("a", "b")), HOW, 0.05))
    assert row["within"] == pytest.approx(1)
    assert row["n_within"] == 1
