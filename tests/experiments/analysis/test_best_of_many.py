"""The best of many, a wrong way and an equal are named only where chance does not explain them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import permutation_test
from sklearn.metrics import roc_auc_score
from synthetic_comparison import joined_of

from faithscope.experiments.analysis.comparison.combining import combined_table
from faithscope.experiments.analysis.comparison.compared import sentence_tables
from faithscope.experiments.analysis.comparison.conclusions import Sentence, answers
from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.comparison.prose import cautions
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    NOT_WITHIN,
    against_tables,
    targets,
)
from faithscope.experiments.analysis.comparison.trust import ONE_SCORE, trust_table
from faithscope.experiments.analysis.statistics.areas import area, behind
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.multiple import holm
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.compare.config import CompareReport

HOW = Bootstrap(0, 100)


def trusted(joined: Joined) -> pd.DataFrame:
    of_labels = targets(joined, 5, 0)
    against = against_tables(joined, of_labels, HOW, parts=False)["against"]
    return trust_table(against, of_labels, HOW).set_index("measure")


def said(joined: Joined) -> tuple[list[Sentence], list[str]]:
    of_labels = targets(joined, 5, 0)
    against = against_tables(joined, of_labels, HOW, parts=False)["against"]
    tables = sentence_tables(joined, of_labels, HOW, CompareReport(), against)
    return answers(tables, joined), cautions(tables, joined, of_labels)


@pytest.mark.slow
def test_p_values_are_those_of_a_permutation_test() -> None:
    rng = np.random.default_rng(0)
    n = 24
    scores = np.round(rng.normal(size=(n, 4)), 1)  # with ties
    positive = np.arange(n) < 11
    scores[positive, 1] += 0.9
    scores[rng.random(n) < 0.2, 2] = math.nan
    one = np.zeros(n)
    p = exchange_test(scores, positive, one, np.arange(n), 0)
    for j in (0, 1, 3):
        for side, of in (("greater", p.high), ("less", p.low)):
            peer = permutation_test(
                (positive.astype(float),),
                lambda y, j=j: float(roc_auc_score(y > 0, scores[:, j])),
                permutation_type="pairings",
                alternative=side,
                n_resamples=500,
                rng=np.random.default_rng(1),
            )
            assert of[j] == pytest.approx(peer.pvalue, abs=0.06)
    # the maximum of four is as far out more often than one, and at most four times as often
    assert (p.highest >= p.high - 1e-9).all()
    assert p.highest[1] <= 4.5 * p.high[1]
    # two models that answer each question alike hold as many questions as one
    twice = exchange_test(
        np.tile(scores, (2, 1)),
        np.tile(positive, 2),
        np.repeat([0, 1], n),
        np.tile(np.arange(n), 2),
        0,
    )
    assert twice.highest == pytest.approx(p.highest, abs=1e-9)
    # a label that varies in no stratum can be told from nothing
    none = exchange_test(scores, positive, positive.astype(int), np.arange(n), 0)
    assert np.isnan(none.highest).all()


def test_the_area_within_strata_is_that_of_their_pairs() -> None:
    rng = np.random.default_rng(1)
    strata, positive = np.repeat([0, 1, 2], 20), rng.random(60) < 0.4
    positive[strata == 2] = True  # has no pairs
    score = rng.normal(size=60) + 3 * strata
    parts = [(strata == s) for s in (0, 1)]
    pairs = [positive[of].sum() * (~positive[of]).sum() for of in parts]
    areas = [roc_auc_score(positive[of], score[of]) for of in parts]
    within = area(np.arange(60), positive, score, strata)
    assert within.value == pytest.approx(np.average(areas, weights=pairs))
    low, high = within.bounds(1.96)
    assert low < within.value < high
    turned = behind(within, area(np.arange(60), positive, -score, strata))
    assert turned.value == pytest.approx(2 * within.value - 1)
    assert area(np.arange(60), positive, score).value == pytest.approx(
        roc_auc_score(positive, score)
    )


def noise(rng: np.random.Generator, n: int, measures: int) -> dict[str, tuple[str, np.ndarray]]:
    families = ("logit", "internal", "judged")
    return {f"n{i}": (families[i % 3], rng.normal(size=n)) for i in range(measures)}


@pytest.mark.slow
def test_no_measure_of_sixty_that_know_nothing_is_named() -> None:
    n, named, wrong, naive = 60, 0, 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        label, scores = rng.random(n) < 0.5, rng.normal(size=(n, 60))
        p = exchange_test(scores, label, np.zeros(n), np.arange(n), 0)
        named += bool((p.highest <= 0.05).any())
        wrong += bool((np.array(holm(p.low.tolist())) <= 0.05).any())
        best = area(np.arange(n), label, scores[:, np.argmin(p.high)]).estimate()
        naive += best.low > 0.5
    assert naive >= 10  # by its own interval the best of sixty tells more often than not
    assert named <= 3
    assert wrong <= 3
    sentences, _ = said(joined_of(noise(rng, n, 20), label=label.astype(float)))
    assert not {s.claim for s in sentences} & {"best", "as_good", "wrong_way", "gain"}
    assert "none of 20 measures tells beyond chance" in sentences[0].words


@pytest.mark.slow
def test_a_measure_that_knows_the_model_is_not_the_best() -> None:
    """Label rates of .9 and .1 in two models; one measure tells the models apart, and no more."""
    rng = np.random.default_rng(3)
    n = 100
    label = (rng.random((2, n)) < np.array([[0.9], [0.1]])).astype(float)
    identity = np.array([[1.0], [0.0]]) + 0.1 * rng.normal(size=(2, n))
    values = {"identity": ("internal", identity.ravel())} | noise(rng, 2 * n, 5)
    # one more knows the model and is constant in it
    values["constant"] = ("logit", np.repeat([1.0, 0.0], n))
    joined = joined_of(values, models=("a", "b"), label=label.ravel())
    row = trusted(joined).loc["identity"]
    assert trusted(joined).loc["constant", "reason"] == ONE_SCORE
    assert row["pooled"] > 0.85
    assert abs(row["auroc"] - 0.5) < 0.15
    assert not row["told"]
    sentences, warned = said(joined)
    assert not [s for s in sentences if s.claim in ("best", "gain")]
    assert any("over all traces than within models" in text for text in warned)
    assert any("identity" in text for text in warned)
    combined = combined_table(targets(joined, 5, 0), HOW)
    of_all = combined.loc[combined["trained_on"] == "other questions"]
    assert (of_all["pooled"] - of_all["auroc"] > 0.1).all()
    # where no model has both kinds nothing is compared at all
    apart = joined_of(values, models=("a", "b"), label=np.repeat([1.0, 0.0], n))
    assert set(trusted(apart)["reason"]) == {NOT_WITHIN}
    assert np.isnan(trusted(apart)["auroc"].to_numpy(dtype=float)).all()


@pytest.mark.slow
def test_what_is_true_is_named_with_its_equal_and_what_points_the_wrong_way() -> None:
    rng = np.random.default_rng(5)
    label = np.arange(300) % 2 == 0
    true = 1.2 * label + rng.normal(size=300)
    values = noise(rng, 300, 8) | {"true": ("judged", true)}
    values |= {"copy": ("logit", true + 0.05 * rng.normal(size=300))}
    values |= {"worse": ("logit", 0.6 * label + rng.normal(size=300))}
    values |= {"wrong": ("internal", -1.2 * label + rng.normal(size=300))}
    sentences, _ = said(joined_of(values, label=label.astype(float)))
    of = {s.claim: s for s in sentences if s.claim}
    assert {"true", "copy"} <= set(of["best"].of) <= {"true", "copy", "worse"}
    assert "p &lt; .001" in of["best"].words
    assert len(of["as_good"].of) == 1
    assert set(of["as_good"].of) < {"true", "copy"}
    assert of["wrong_way"].of == ("wrong",)
    # one model: nothing is said of models
    assert not any("within models" in s.words or "model and task" in s.words for s in sentences)


@pytest.mark.slow
def test_gaps_that_could_be_why_a_measure_tells_keep_it_from_being_named() -> None:
    rng = np.random.default_rng(6)
    n = 300
    label = np.arange(n) % 2 == 0
    gone = rng.normal(size=n)
    # both kinds lack what speaks against the measure
    gone[(label & (gone < -1)) | (~label & (gone > 1))] = math.nan
    whole = 1.2 * label + rng.normal(size=n)
    few = np.where(rng.random(n) < 0.03, math.nan, whole)
    values = {"gone": ("judged", gone), "few": ("logit", few)} | noise(rng, n, 8)
    joined = joined_of(values, label=label.astype(float))
    trust = trusted(joined)
    assert trust.loc["gone", "reason"] == ""
    assert trust.loc["gone", "p_highest"] < 0.01
    assert trust.loc["gone", "least_low"] < 0.5
    assert not trust.loc["gone", "told"]
    assert trust.loc["few", "told"]
    best = next(s for s in said(joined)[0] if s.claim == "best")
    assert best.of == ("few",)
    assert "if all of these went against it" in best.words


def test_pairs_of_one_probe_are_counted_apart() -> None:
    rng = np.random.default_rng(7)
    shared = rng.normal(size=80)
    values = {n: ("logit", shared + 0.1 * rng.normal(size=80)) for n in ("a", "b", "c")}
    joined = joined_of(values)
    probes = joined.items["measure"].replace({"a": "one", "b": "one", "c": "two"})
    own = Joined(
        joined.items.assign(probe=probes),
        *(joined.steps, joined.traces, joined.joins, joined.features, joined.origins),
    )
    words = next(s.words for s in said(own)[0] if s.claim == "agreement")
    assert "Of 3 pairs of measures that vary, 3 rank traces alike beyond chance: 2 between" in words
    assert "1 within one probe" in words
    assert "a few of these may be chance" in words
    # every score of one stands beside every score of the other equally often
    crossed = {"a": np.arange(80) % 2, "b": np.arange(80) // 2 % 2}
    unlike = joined_of({n: ("logit", scores.astype(float)) for n, scores in crossed.items()})
    words = next(s.words for s in said(unlike)[0] if s.words.startswith("Of 1 pair"))
    assert ", 0 rank traces alike beyond chance" in words
    assert "may be chance" not in words
