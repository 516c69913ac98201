"""Agreement against published examples, scikit-learn, and libraries where they are installed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from c2_judgements import ABSENT, frames, judged, scored
from sklearn.metrics import cohen_kappa_score

from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.engine.environment import install_command
from faithscope.experiments.studies.c2faith.tables.agreement import (
    AGREEMENT,
    CONSTANT,
    fleiss_kappa,
    krippendorff_alpha,
    quadratic_kappa,
)
from faithscope.experiments.studies.c2faith.tables.detection import ALONE
from faithscope.experiments.studies.c2faith.tables.frames import Frames

NOTHING = Frames()
# Fleiss' worked example as it stands in most textbooks: 10 subjects, 14 raters, 5 categories
FLEISS = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: 4 observers
NAN = math.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


def alpha_by_hand(verdicts: np.ndarray, level: str) -> float:
    """1 - observed / expected disagreement, pair by pair."""
    units = [row[~np.isnan(row)] for row in verdicts]
    units = [u for u in units if len(u) >= 2]
    pooled = np.concatenate(units)
    values, times = np.unique(pooled, return_counts=True)

    def apart(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        low, high = sorted((a, b))
        between = times[(values >= low) & (values <= high)].sum()
        ends = (times[values == low].sum() + times[values == high].sum()) / 2
        return float((between - ends) ** 2)

    observed = sum(sum(apart(a, b) for a in u for b in u) / (len(u) - 1) for u in units)
    expected = sum(apart(a, b) for a in pooled for b in pooled) / (len(pooled) - 1)
    return 1 - observed / expected


def test_fleiss_textbook_example():
    verdicts = np.array([np.repeat(range(5), counts) for counts in FLEISS])
    assert fleiss_kappa(verdicts) == pytest.approx(0.210, abs=0.0005)


def test_fleiss_against_statsmodels():
    peer = pytest.importorskip(
        "statsmodels.stats.inter_rater", reason="statsmodels is not installed"
    )
    assert fleiss_kappa(
        np.array([np.repeat(range(5), counts) for counts in FLEISS])
    ) == pytest.approx(peer.fleiss_kappa(np.array(FLEISS)))


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815)])
def test_alpha_by_hand_and_through_the_library_is_the_published_one(level, published):
    assert alpha_by_hand(KRIPPENDORFF, level) == pytest.approx(published, abs=0.0005)
    pytest.importorskip("krippendorff", reason="krippendorff (extra `judge`) is not installed")
    alpha, reason = krippendorff_alpha(KRIPPENDORFF, level)
    assert (alpha, reason) == (pytest.approx(published, abs=0.0005), "")
    assert alpha == pytest.approx(alpha_by_hand(KRIPPENDORFF, level))


def test_alpha_says_why_there_is_none(monkeypatch):
    assert krippendorff_alpha(np.array([[1, NAN], [NAN, 0]]), "nominal")[1] == (
        "no item with two verdicts"
    )
    assert krippendorff_alpha(np.ones((3, 2)), "nominal")[1] == CONSTANT
    monkeypatch.setitem(__import__("sys").modules, "krippendorff", None)
    alpha, reason = krippendorff_alpha(KRIPPENDORFF, "nominal")
    assert math.isnan(alpha)
    assert install_command("judge") in reason


def test_quadratic_kappa_weighs_by_the_scores_themselves():
    left, right = [0, 4, 4, 1, 0], [1, 4, 0, 1, 0]
    whole = list(range(5))
    peer = cohen_kappa_score(left, right, labels=whole, weights="quadratic")
    assert quadratic_kappa(left, right) == pytest.approx(peer)
    # 0, 1 and 4 are not three neighbours
    assert quadratic_kappa(left, right) != pytest.approx(
        cohen_kappa_score(left, right, weights="quadratic")
    )
    assert math.isnan(quadratic_kappa([2, 2], [2, 2]))


def test_pairs_and_all_together():
    a, b, c = [0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, ABSENT, 1]
    said = frames(judged(a, [1, 1], "a"), judged(b, [1, 0], "b"), judged(c, [1, 1], "c"))
    table = AGREEMENT.make(said, NOTHING.localisation, NOTHING.coverage)
    assert set(table["condition"]) == {"both", "perturbed", "control"}
    perturbed = where(table, condition="perturbed")
    first = where(perturbed, judge="a", other="b").set_index("statistic")
    assert first.loc["agreement", "value"] == pytest.approx(5 / 6)
    assert first.loc["cohen_kappa", "value"] == pytest.approx(cohen_kappa_score(a, b))
    (fleiss,) = where(perturbed, statistic="fleiss_kappa").to_dict("records")
    assert (fleiss["n"], fleiss["n_without_verdict"], fleiss["n_judges"]) == (5, 1, 3)
    (alpha,) = where(perturbed, statistic="krippendorff_alpha").to_dict("records")
    assert (alpha["n"], alpha["n_without_verdict"]) == (6, 0)
    constant = where(table, condition="control", judge="a", other="c", statistic="cohen_kappa")
    assert constant.iloc[0]["reason"] == CONSTANT


def test_a_silent_judge_takes_nothing_from_the_others():
    a, b = [0, 0, 1, 1], [0, 1, 1, 1]
    silent = judged([ABSENT] * 4, [], "mute")
    table = AGREEMENT.make(
        frames(judged(a, [], "a"), judged(b, [], "b"), silent),
        NOTHING.localisation,
        NOTHING.coverage,
    )
    (fleiss,) = where(table, statistic="fleiss_kappa").to_dict("records")
    assert (fleiss["n"], fleiss["n_judges"]) == (4, 2)
    with_mute = where(table, judge="a", other="mute", statistic="cohen_kappa").to_dict("records")
    assert [r["reason"] for r in with_mute] == ["no item that all judged"]


def test_one_judge_and_two_references():
    one = AGREEMENT.make(
        frames(judged([0, ABSENT], [], "a")), NOTHING.localisation, NOTHING.coverage
    )
    assert one[["reason", "n_without_verdict"]].to_numpy().tolist() == [[ALONE, 1]]
    first, second = scored([4, 3, 1], [3, 3, 1]), scored([4, 2, 1], [3, 3, 1]).assign(judge="b")
    other = [part.assign(reference_judge="s") for part in (first, second)]
    once = Frames(coverage=pd.concat([first, second])).coverage
    twice = Frames(coverage=pd.concat([first, second, *other])).coverage
    tables = [AGREEMENT.make(NOTHING.detection, NOTHING.localisation, x) for x in (once, twice)]
    pd.testing.assert_frame_equal(*tables)
    assert "quadratic_kappa" in set(tables[0]["statistic"])
