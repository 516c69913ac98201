"""Measures of steps held against each other and against labels of steps."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    average_precision_score,
    roc_auc_score,
)
from synthetic_comparison import HOW, run_of

from faithscope.experiments.analysis.comparison.agreement import (
    step_agreement_table,
    step_hits_table,
)
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.comparison.scores import (
    STEP_LABEL,
    STEP_NUMBER,
    Scores,
)
from faithscope.experiments.analysis.comparison.step_labels import (
    PLACE_OF_STEP,
    TOO_SPARSE_STEPS,
    step_against_table,
)
from faithscope.experiments.analysis.tidy import rows


def test_steps_are_ranked_and_the_labelled_one_is_named() -> None:
    about = {"dataset": "d", "task": "t", "model": "m"}
    credit = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [3.0, 2.0, math.nan]}
    steps = [
        about | {"item": f"i{i}", "measure": name, "family": family, "step": k, "value": v}
        | {"higher_is_faithful": True}
        for i in range(4)
        for name, family, of in (
            *((n, "logit", v) for n, v in credit.items()), ("named", "label", [0.0, 0.0, 1.0]),
            ("label_published", STEP_NUMBER, [0.3, 0.2, 0.1]),
        )
        for k, v in enumerate(of)
        if not math.isnan(v)
    ]  # fmt: skip
    whole = run_of({"x": ("logit", np.arange(4.0))})
    joined = join({"a": Scores(whole.items, whole.traces, pd.DataFrame(steps))}, None, "text")
    table = {(r["measure"], r["other"]): r for r in rows(step_agreement_table(joined, HOW))}
    assert table["a", "b"]["spearman"] == 1
    assert table["a", "b"]["same_top"] == 1
    assert table["a", "b"]["chance"] == pytest.approx(1 / 3)
    # over the two steps that both have
    assert table["a", "c"]["spearman"] == -1
    assert table["a", "c"]["same_top"] == 0
    assert table["a", "label_published"]["spearman"] == -1
    hits = {r["measure"]: r["hit"] for r in rows(step_hits_table(joined, HOW))}
    assert hits == {"a": 1, "b": 1, "c": 0}


def test_measures_are_held_against_labels_of_steps() -> None:
    rng = np.random.default_rng(0)
    about = {"dataset": "d", "task": "t", "model": "m", "higher_is_faithful": True}
    unfaithful, credit = rng.random((40, 3)) < 0.4, rng.random((40, 3))
    credit[unfaithful] *= 0.6  # what is unfaithful has less credit
    steps = [
        about | {"item": f"i{i}", "step": k, "measure": name, "family": family, "value": float(v)}
        | ({} if up else {"higher_is_faithful": False})
        for name, family, up, values in (
            *(("credit", "logit", True, credit), ("fault", "judged", False, -credit)),
            *(("half", "logit", True, credit[:20]), ("wrong", STEP_LABEL, False, unfaithful)),
            *(("fine", STEP_LABEL, True, ~unfaithful), ("one", "label", True, unfaithful[:, :1])),
        )
        for i, of in enumerate(values)
        for k, v in enumerate(of)
    ]  # fmt: skip
    whole = run_of({"credit": ("logit", np.arange(40.0))})
    costs = whole.items.assign(forwards=7.0)
    joined = join({"a": Scores(costs, whole.traces, pd.DataFrame(steps))}, None, "text")
    table = {(r["label"], r["measure"]): r for r in rows(step_against_table(joined, HOW, 4))}
    assert len(table) == 8
    place = [-k for _ in range(40) for k in range(3)]  # what has read nothing
    held = roc_auc_score(unfaithful.ravel(), place)
    assert table["wrong", PLACE_OF_STEP]["auroc"] == pytest.approx(held)
    kind, score = unfaithful.ravel(), -credit.ravel()
    for row in (table["wrong", "credit"], table["fine", "credit"], table["wrong", "fault"]):
        assert row["auroc"] == pytest.approx(roc_auc_score(kind, score))
        assert row["average_precision"] == pytest.approx(average_precision_score(kind, score))
        assert (row["n"], row["n_items"], row["n_missing"]) == (120, 40, 0)
        assert 0 < row["g_mean_squared"] < 1
        assert row["auroc_low"] < row["auroc"] < row["auroc_high"]
    assert table["wrong", "credit"]["forwards"] == 7
    assert math.isnan(table["wrong", "fault"]["forwards"])
    half = table["wrong", "half"]
    assert (half["n"], half["n_missing"], half["reason"]) == (60, 60, TOO_SPARSE_STEPS)
    assert [*table][-1] == ("wrong", "half")  # whatever it is worth
    assert len(step_agreement_table(joined, HOW)) == 3  # labels are no measures
