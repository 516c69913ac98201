"""Detection by hand, against scikit-learn and scipy, and against the paper's own numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from c2_frames import table_of
from c2_judgements import ABSENT, HOW, frames, judged
from scipy.stats import binom, binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from faithscope.experiments.analysis.statistics.areas import area
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.tables.detection import (
    ALONE,
    DETECTION,
    MCNEMAR,
    mcnemar,
)
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.experiments.studies.c2faith.tables.reliability import RELIABILITY


def test_shares_by_hand_and_what_has_no_verdict_is_counted_not_guessed():
    table = DETECTION.make(frames(judged([0, 0, 1, ABSENT, 0], [1, 1, ABSENT, ABSENT, 0])), how=HOW)
    (row,) = table.to_dict("records")
    assert (row["n"], row["n_without_verdict"]) == (4, 1)
    assert (row["n_control"], row["n_control_without_verdict"]) == (3, 2)
    assert row["detection"] == 0.75
    assert row["fpr"] == pytest.approx(1 / 3)
    assert row["net"] == pytest.approx(0.75 - 1 / 3)
    assert row["std"] == pytest.approx(math.sqrt(0.75 * 0.25))
    wilson = binomtest(3, 4).proportion_ci(0.95, "wilson")
    assert row["detection_low"] == pytest.approx(wilson.low)
    assert row["detection_wilson_low"] == pytest.approx(wilson.low)
    assert math.isnan(row["auroc"])


def test_a_judge_that_says_nothing_has_a_row_without_numbers():
    (row,) = DETECTION.make(frames(judged([ABSENT] * 3, [ABSENT] * 2)), how=HOW).to_dict("records")
    assert (row["n"], row["n_without_verdict"], row["n_control_without_verdict"]) == (0, 3, 2)
    assert all(math.isnan(row[x]) for x in ("detection", "fpr_low", "net", "std", "auroc", "ece"))


def test_the_interval_is_that_of_a_binomial_where_a_chain_has_one_item():
    rng = np.random.default_rng(0)
    table = DETECTION.make(
        frames(judged((rng.random(450) > 0.83).astype(int).tolist(), [])), how=Bootstrap(1, 4000)
    )
    (row,) = table.to_dict("records")
    low, high = binom.ppf([0.025, 0.975], 450, row["detection"]) / 450
    assert row["detection_low"] == pytest.approx(low, abs=3 / 450)
    assert row["detection_high"] == pytest.approx(high, abs=3 / 450)


def test_net_discrimination_is_paired_by_chain():
    """A judge that says the same of both twins has no net, in every draw."""
    said = [0, 1, 0, 0, 1, 1, 0, 1, 1, 0]
    (same,) = DETECTION.make(frames(judged(said, said)), how=HOW).to_dict("records")
    assert (same["net"], same["net_low"], same["net_high"]) == (0, 0, 0)
    (apart,) = DETECTION.make(frames(judged(said, [1 - s for s in said])), how=HOW).to_dict(
        "records"
    )
    assert apart["net_high"] - apart["net_low"] > 0.5


def test_rows_in_another_order_give_the_same_numbers():
    table = judged([0, 0, 1, 0, 1, 0], [1, 0, 1, 1, ABSENT, 1])
    turned = table.iloc[::-1]
    pd.testing.assert_frame_equal(
        DETECTION.make(frames(table), how=HOW), DETECTION.make(frames(turned), how=HOW)
    )


def scored(n: int = 80) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    p = np.concatenate([rng.beta(3, 2, n), rng.beta(2, 3, n)])
    truth = np.repeat([1, 0], n)
    verdict = (p < 0.5).astype(int)
    return frames(judged(verdict[:n].tolist(), verdict[n:].tolist(), p=p.tolist())), truth, p


def test_auroc_brier_and_reliability_against_scikit_learn():
    table, truth, p = scored()
    (row,) = DETECTION.make(table, how=HOW).to_dict("records")
    assert row["auroc"] == pytest.approx(roc_auc_score(truth, p))
    assert row["brier"] == pytest.approx(brier_score_loss(truth, p))
    assert row["auroc_low"] < row["auroc"] < row["auroc_high"]
    bins = table_of(RELIABILITY, Frames(detection=table), HOW)
    bins = bins[bins["bin"] != OVERALL]
    share, mean = calibration_curve(truth, p, n_bins=10)
    assert bins["share_happened"].to_numpy() == pytest.approx(share)
    assert bins["mean_p"].to_numpy() == pytest.approx(mean)
    assert bins["n"].sum() == len(p)
    weighted = (bins["n"] * (bins["share_happened"] - bins["mean_p"]).abs()).sum() / len(p)
    assert row["ece"] == pytest.approx(weighted)


@pytest.mark.slow
def test_the_interval_of_auroc_is_near_that_of_drawing_chains():
    table, truth, p = scored(30)
    chains = table["chain"].to_numpy()
    found = area(chains, truth == 1, p).estimate()
    rng = np.random.default_rng(9)
    draws = []
    for _ in range(600):
        rows = np.concatenate([[c, c + 30] for c in rng.integers(30, size=30)])
        draws.append(roc_auc_score(truth[rows], p[rows]))
    assert (found.low, found.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.04)


def test_a_certain_judge_is_calibrated_and_falls_in_the_last_bin():
    table = frames(judged([0] * 4, [1] * 4, p=[1.0] * 4 + [0.0] * 4))
    (row,) = DETECTION.make(table, how=HOW).to_dict("records")
    assert (row["auroc"], row["brier"], row["ece"]) == (1, 0, 0)
    bins = table_of(RELIABILITY, Frames(detection=table), HOW)["bin"]
    assert bins.tolist() == [OVERALL, 0, 9]


def test_mcnemar_by_hand_with_bonferroni_over_the_pairs():
    right, wrong = 0, 1  # of perturbed items
    a = [right] * 20 + [wrong] * 10
    b = [right] * 10 + [wrong] * 20
    c = [*a[:-1], ABSENT]
    table = MCNEMAR.make(
        frames(judged(a, [], "a"), judged(b, [1] * 3, "b"), judged(c, [0] * 3, "c"))
    )
    perturbed = where(table, condition="perturbed")
    first = perturbed.to_dict("records")[0]
    assert (first["judge"], first["other"], first["n"]) == ("a", "b", 30)
    assert [first[x] for x in ("both_right", "only_judge", "only_other", "both_wrong")] == [
        *(10, 10, 0, 10)
    ]
    assert first["test"] == "exact"
    assert first["p"] == pytest.approx(binomtest(10, 10).pvalue)
    assert first["n_comparisons"] == 3
    assert first["p_bonferroni"] == pytest.approx(3 * first["p"])
    assert first["difference"] == pytest.approx(1 / 3)
    same = where(perturbed, other="c", judge="a").to_dict("records")[0]
    assert (same["p"], same["n"], same["n_without_verdict"]) == (1, 29, 1)
    # of control items 1 is right
    (control,) = where(table, condition="control").to_dict("records")
    assert (control["judge"], control["only_judge"], control["n_comparisons"]) == ("b", 3, 1)


def test_mcnemar_against_statsmodels():
    tables = pytest.importorskip(
        "statsmodels.stats.contingency_tables", reason="statsmodels is not installed"
    )
    for b, c in ((15, 27), (3, 5), (0, 4), (30, 30), (63, 9)):
        counts = [[50, b], [c, 7]]
        found = mcnemar(b, c)
        assert found["p_exact"] == pytest.approx(tables.mcnemar(counts, exact=True).pvalue)
        peer = tables.mcnemar(counts, exact=False, correction=True).pvalue
        # two equal counts: theirs takes the correction away twice
        if b != c:
            assert found["p_chi_squared"] == pytest.approx(peer)


def test_one_judge_alone_is_said_to_be_alone():
    (row,) = MCNEMAR.make(frames(judged([0, ABSENT], [], "a"))).to_dict("records")
    assert (row["reason"], row["n"], row["n_without_verdict"]) == (ALONE, 0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": [0, 2]}, "score = 2"),
        ({"score": [0, math.nan]}, "score = "),
        ({"outcome": ["parsed", "refused"]}, "score = "),
        ({"item": ["i0", "i0"]}, "two rows of"),
    ],
)
def test_frames_that_break_the_contract_are_refused(change, said):
    table = judged([0, 1], []).assign(**change)
    with pytest.raises(ValueError, match=said):
        Frames(detection=table)
    with pytest.raises(ValueError, match="no column 'p_flag'"):
        Frames(detection=table.drop(columns="p_flag"))
