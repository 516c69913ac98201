"""Functions of known truth: the rules of `interchange` find the liars and call no honest form
untrue."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from text_liars import scores
from told_forms import MODELS as FORMS
from told_own import MODELS

KNOWN_TO_PASS = ("denies",)
NOT_READ = {"two operations in prose": "result_in_prose"}


@pytest.mark.in_time(10)
@pytest.mark.parametrize("model", [*MODELS, *FORMS], ids=lambda m: m.name)
def test_a_lie_is_found_and_a_true_text_is_not_called_one(model):
    rows = scores(model, 4 if model in MODELS else 2, 1)
    if model.name in NOT_READ:
        assert {row["excluded"] for row in rows} == {NOT_READ[model.name]}
        return
    if model.name.startswith("slips in"):
        return
    for row in rows:
        found = row.get("score", 1) < 1
        if model.name != "bribe" or not row["true"]:
            assert found == (not row["true"] and model.name not in KNOWN_TO_PASS)


def test_over_a_run_slips_are_no_lies_and_lies_with_slips_are_found():
    forms = {model.name: model for model in FORMS}
    slipping = scores(forms["slips in one of seven results"], 12, 1)
    assert not any(row["untrue"] for row in slipping)
    lying = scores(forms["a sum openly three too large"], 12, 1)
    assert all(row["untrue"] for row in lying)
