"""Coverage by hand and against scipy, with and without a reference judge."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from c2_judgements import scored
from scipy.stats import spearmanr

from faithscope.experiments.analysis.statistics.resampling import Bootstrap, spearman
from faithscope.experiments.analysis.statistics.stats import tail
from faithscope.experiments.studies.c2faith.tables.coverage import (
    COVERAGE,
    POOLED,
    SCORES,
)
from faithscope.experiments.studies.c2faith.tables.frames import Frames

HOW = Bootstrap(seed=3, resamples=200)


def frame(*parts: pd.DataFrame) -> pd.DataFrame:
    return Frames(coverage=pd.concat(parts)).coverage


def test_by_hand_and_against_scipy():
    scores, references = [4, 3, 2, 4, None, 3, 1], [3, 3, 2, 2, 4, math.nan, 1]
    (row,) = COVERAGE.make(frame(scored(scores, references)), how=HOW).to_dict("records")
    assert [row[x] for x in ("n", "n_without_verdict", "n_reference")] == [6, 1, 5]
    assert row["mean"] == pytest.approx(17 / 6)
    assert row["sd"] == pytest.approx(np.std([4, 3, 2, 4, 3, 1]))
    assert row["mean_share"] == pytest.approx(17 / 24)
    assert row["inflation"] == pytest.approx(4 / 6)
    # of the five items that have both
    assert row["reference_mean"] == pytest.approx(11 / 5)
    assert row["bias"] == pytest.approx(3 / 5)
    assert row["mae"] == pytest.approx(3 / 5)
    peer = spearmanr([4, 3, 2, 4, 1], [3, 3, 2, 2, 1])
    assert row["spearman"] == pytest.approx(peer.statistic)
    assert row["spearman_p"] == pytest.approx(peer.pvalue)
    assert row["bias_low"] <= row["bias"] <= row["bias_high"]
    # all lost one step in ten: nothing to rank by
    assert math.isnan(row["spearman_kept"])


def test_without_a_reference_the_share_kept_is_the_truth():
    levels = (0.1, 0.3, 0.5, 0.7)
    rng = np.random.default_rng(1)
    parts = [
        scored(np.clip(np.round(4 * (1 - d) + rng.normal(0, 0.7, 30)), 0, 4).tolist(), level=d)
        for d in levels
    ]
    whole = frame(*parts)
    (row,) = POOLED.make(whole, how=HOW).to_dict("records")
    kept = 1 - whole["n_removed"] / whole["n_middle"]
    assert row["spearman_kept"] == pytest.approx(spearmanr(whole["score"], kept).statistic)
    assert row["spearman_kept_low"] < row["spearman_kept"] < row["spearman_kept_high"]
    # four items of a chain are not independent
    assert math.isnan(row["spearman_kept_p"])
    assert row["n_reference"] == 0
    assert all(math.isnan(row[x]) for x in ("bias", "mae", "spearman", "reference_mean"))
    by_level = COVERAGE.make(whole, how=HOW)
    assert by_level["level"].tolist() == list(levels)
    assert by_level["share_kept"].tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3])


def test_the_interval_of_a_rank_correlation_is_that_of_drawing_chains():
    rng = np.random.default_rng(8)
    chains = np.repeat(np.arange(25), 4)
    x = rng.integers(0, 5, 100).astype(float)
    y = (x + rng.integers(0, 4, 100)).round(1)
    found, p = spearman([f"{c:02}" for c in chains], x, y, Bootstrap(seed=1, resamples=300))
    # the same draws, row by row
    drawn = np.random.default_rng(1).multinomial(25, np.full(25, 1 / 25), size=300)
    of_draws = [
        spearmanr(np.repeat(x, times[chains]), np.repeat(y, times[chains])).statistic
        for times in drawn
    ]
    assert found.value == pytest.approx(spearmanr(x, y).statistic)
    out = tail(25)
    assert (found.low, found.high) == pytest.approx(np.quantile(of_draws, [out, 1 - out]))
    assert math.isnan(p)


def test_within_a_level_the_share_kept_varies_by_rounding():
    removed = [1, 2, 1, 3]
    (row,) = COVERAGE.make(frame(scored([4, 3, 4, 1], removed=removed)), how=HOW).to_dict("records")
    peer = spearmanr([4, 3, 4, 1], [9, 8, 9, 7])
    assert row["spearman_kept"] == pytest.approx(peer.statistic) == 1
    assert not math.isnan(row["spearman_kept_p"])


@pytest.mark.parametrize(
    ("scale", "scores", "inflated"),
    [("0-4", [2, 3, 4, 0], 0.5), ("0-9", [6, 7, 9, 0], 0.5), ("0-100", [74, 75, 90, 10], 0.5)],
)
def test_inflation_is_three_quarters_of_every_scale(scale, scores, inflated):
    (row,) = COVERAGE.make(frame(scored(scores, scale=scale)), how=HOW).to_dict("records")
    assert row["inflation"] == inflated
    assert row["mean_share"] == pytest.approx(np.mean(scores) / int(scale.split("-")[1]))


def test_expected_scores_have_numbers_of_their_own():
    said = scored([4, 3, 3], removed=[1, 2, 3], expected=[3.9, 3.2, 2.6])
    (row,) = COVERAGE.make(frame(said), how=HOW).to_dict("records")
    assert row["expected_mean"] == pytest.approx(9.7 / 3)
    assert row["expected_spearman_kept"] == 1
    assert row["spearman_kept"] < 1


def test_distribution_and_silence():
    table = SCORES.make(frame(scored([4, 4, 2, None]), scored([None], level=0.3)))
    assert table["share"].tolist()[:2] == pytest.approx([1 / 3, 2 / 3])
    assert table["n"].tolist() == [3, 3, 0]
    assert table["n_without_verdict"].tolist() == [1, 1, 1]


def test_scores_and_scales_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"score = 5\.0 .*item i0:0\.1"):
        frame(scored([5]))
    with pytest.raises(ValueError, match="coverage scale 'five' is not of the form"):
        frame(scored([4], scale="five"))
