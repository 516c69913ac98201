"""What goes with detection, and judges beside internals: by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from c2_frames import table_of
from c2_judgements import ABSENT, HOW, frames, judged, placed
from sklearn.metrics import roc_auc_score

from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.studies.c2faith.benchmark.features import features as benchmark_features
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.tables.every_table import tables
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.experiments.studies.c2faith.tables.internals import AGAINST
from faithscope.experiments.studies.c2faith.tables.predictors import (
    EDITS,
    FEATURES,
    METHODS,
    POSITIONS,
    PREDICTORS,
)


def features(n: int, **columns) -> pd.DataFrame:
    made = pd.DataFrame({"item": [f"i{i}" for i in range(n)], "chain": [f"c{i}" for i in range(n)]})
    made["edit_type"], made["method"] = "numeric_swap", "rule:numeric"
    for name in ("target", "wrong_alone", *FEATURES):
        made[name] = 1.0
    return Frames(features=made.assign(**columns)).features


def test_means_of_right_and_wrong_are_those_of_table_5():
    said = frames(judged([0, 0, 1, ABSENT, 1], [0] * 5))
    about = features(5, math_symbol_density=[0.4, 0.2, 0.1, 9, 0.3])
    table = PREDICTORS.make(said, about, how=HOW)
    assert table["feature"].tolist() == list(FEATURES)
    row = table.iloc[0]
    assert [row[x] for x in ("n_correct", "n_wrong", "n_without_verdict")] == [2, 2, 1]
    assert (row["mean_correct"], row["mean_wrong"]) == (pytest.approx(0.3), pytest.approx(0.2))
    assert row["difference"] == pytest.approx(0.1)
    assert math.isnan(row["difference_low"])
    assert "fewer than 10" in row["reason"]
    assert math.isnan(row["coefficient"])


def test_the_regression_finds_what_decides_and_is_silent_on_what_is_constant():
    rng = np.random.default_rng(2)
    density, words = rng.uniform(0, 1, 200), rng.normal(15, 4, 200)
    right = rng.random(200) < 1 / (1 + np.exp(-6 * (density - 0.5)))
    said = frames(judged((~right).astype(int).tolist(), []))
    about = features(200, math_symbol_density=density, n_words=words)
    found = PREDICTORS.make(said, about, how=HOW).set_index("feature")["coefficient"]
    # per standard deviation: 6 times 1 / sqrt(12)
    assert found["math_symbol_density"] == pytest.approx(6 / math.sqrt(12), rel=0.35)
    assert abs(found["n_words"]) < 0.4
    assert found["edit_similarity"] == 0


def test_edit_types_methods_and_positions():
    said = frames(judged([0, 1, 0, ABSENT, 0, 1], []))
    kinds = ["minor_rewrite", *["numeric_swap"] * 3, "other", "numeric_swap"]
    about = features(
        6,
        edit_type=kinds,
        method=["llm", *["rule:numeric"] * 5],
        relative_position=[0.0, 0.199, 0.2, 0.5, 0.99, 1.0],
    )
    types = EDITS.make(said, about)
    assert types["edit_type"].tolist() == ["numeric_swap", "minor_rewrite", "other"]
    swap = types.iloc[0]
    assert (swap["n"], swap["n_without_verdict"]) == (3, 1)
    assert swap["detection"] == wilson(1, 3).value
    assert swap["detection_low"] == wilson(1, 3).low
    assert METHODS.make(said, about)["n"].tolist() == [1, 4]
    bins = POSITIONS.make(said, about)
    assert bins["bin"].tolist() == [0, 1, 2, 4]
    assert bins["n"].tolist() == [2, 1, 0, 2]
    assert bins["position"].tolist() == pytest.approx([0.1, 0.3, 0.5, 0.9])


def test_the_benchmarks_own_features_are_admitted():
    steps = ("Let x be 2.", "Then x + 1 = 4.", "So y is 9.")
    item = CausalItem("i0", "c0", "?", steps, 1, "Then x + 1 = 3.", steps[1], "rule:numeric")
    about = Frames(features=benchmark_features([item])).features
    table = EDITS.make(frames(judged([0], [])), about)
    assert table["edit_type"].tolist() == ["numeric_swap"]
    assert set(FEATURES) <= set(about.columns)


def test_judges_beside_internals():
    detection = frames(judged([0, 0, 1, ABSENT], [1, 0, 1, 1]))
    places = Frames(localisation=placed([5, 4, 5, -1], [5, -1, -1, -1])).localisation
    rng = np.random.default_rng(4)
    rows = [
        {"model": "m", "signal": s, "item": f"i{i}", "chain": f"c{i}", "condition": condition}
        | {"score": rng.normal() + lift * (condition == "perturbed")}
        | {"target": 5, "predicted": 5 if lift else i, "n_steps": 10}
        | {"n_candidates": 9 if lift else 10, "n_middle": 7}
        for s, lift in (("weak", 0), ("strong", 2))
        for condition in ("perturbed", "control")
        for i in range(12)
    ]
    signals = pd.DataFrame(rows)
    made = Frames(detection, places, internals=signals, internals_localisation=signals)
    table = table_of(AGAINST, made, HOW)
    assert table["kind"].tolist() == ["judge", "internals", "internals"]
    assert table["signal"].tolist() == ["generated", "strong", "weak"]
    judge, strong, weak = table.to_dict("records")
    # without probabilities the verdict itself ranks: (1 + net) / 2
    assert judge["auroc"] == pytest.approx((1 + 2 / 3 - 1 / 4) / 2)
    assert (judge["n"], judge["n_without_verdict"]) == (7, 1)
    assert (judge["exact"], judge["exact_control"]) == (0.5, 0.25)
    of_strong = [r for r in rows if r["signal"] == "strong"]
    truth = [r["condition"] == "perturbed" for r in of_strong]
    peer = roc_auc_score(truth, [r["score"] for r in of_strong])
    assert strong["auroc"] == pytest.approx(peer)
    assert (strong["exact"], weak["exact"]) == (1, pytest.approx(1 / 12))
    # a blind choice is among the steps that a signal has a number for
    assert strong["exact_chance"] == pytest.approx(1 / 9)
    assert (weak["exact_chance"], judge["exact_chance"]) == (pytest.approx(0.1),) * 2
    assert table["exact_chance_middle"].tolist() == pytest.approx([1 / 7] * 3)


def test_internals_alone_and_judges_alone():
    only_judges = tables(Frames(detection=frames(judged([0, 1], [1, 1]))), resamples=20)
    assert only_judges["c2_judge_against_internals"]["kind"].tolist() == ["judge"]
    rows = [
        {"model": "m", "signal": "s", "item": "i", "chain": "c", "condition": c, "score": 1.0}
        for c in ("perturbed", "control")
    ]
    (row,) = tables(Frames(internals=pd.DataFrame(rows)), resamples=20)[
        "c2_judge_against_internals"
    ].to_dict("records")
    assert (row["kind"], row["auroc"], row["n"]) == ("internals", 0.5, 2)
