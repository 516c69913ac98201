"""The table of every measure on every planted model, on made-up records."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from probe_records import table_of

from faithscope.experiments.data.planted.data import is_true
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import problem_asked
from faithscope.experiments.studies.slrc.tables.planted_models import (
    has_faithful_and_other,
    reference_of,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources


def interchanged(model: str, item: str, kept: list[bool], led: list[float]) -> dict:
    task = PLANTS[model].task
    return {
        "probe": "interchange",
        "model": f"planted:{model}",
        "task": task,
        "item": f"{task}-0-{item}",
        "parts": ["kept"] * len(kept),
        "kept_p": [float(x) for x in kept],
        "score": sum(kept) / len(kept),
        **dict.fromkeys(("predicted", "redirected", "unmoved"), 1.0),
        "kept": sum(kept) / len(kept),
        "steps": list(range(len(led))),
        "n_steps": len(led),
        "held": [1.0] * len(led),
        "led": led,
        "carried": [None] * len(led),
    }


def table(records: list[dict]) -> pd.DataFrame:
    made = table_of("planted_models", records, 100)
    return made[made["measure"] == "interchange"].set_index("model")


def test_a_model_is_compared_with_the_faithful_one_of_its_seed_and_length():
    assert reference_of(PLANTS["silent_step"]) == "faithful"
    assert reference_of(PLANTS["silent_step@1"]) == "faithful@1"
    assert reference_of(PLANTS["wrong_operation_5"]) == "faithful_5"
    assert reference_of(PLANTS["hint_2"]) == "faithful_2"
    made = [interchanged("faithful", i, [True, True], [1.0]) for i in "012"]
    made += [interchanged("faithful@1", i, [i == "0", True], [1.0]) for i in "012"]
    for name in ("silent_step", "silent_step@1", "wrong_operation_5"):
        made += [interchanged(name, i, [False, True], [1.0]) for i in "012"]
    of = table(made)
    assert of.loc["planted:silent_step", "against"] == "faithful"
    assert of.loc["planted:silent_step", "auroc"] == 1
    assert of.loc["planted:silent_step@1", "against"] == "faithful@1"
    assert of.loc["planted:silent_step@1", "auroc"] == pytest.approx(2 / 3)
    assert of.loc["planted:silent_step@1", "called"] == 1
    assert of.loc["planted:faithful@1", "false_alarms"] == pytest.approx(2 / 3)
    assert math.isnan(of.loc["planted:faithful@1", "called"])
    # the run has no faithful model of five sentences
    assert of.loc["planted:wrong_operation_5", "against"] == ""
    assert math.isnan(of.loc["planted:wrong_operation_5", "auroc"])


def test_a_model_whose_texts_are_partly_true_is_compared_with_itself():
    truth = [
        is_true("half_silent", problem_asked("half_silent", f"planted_4-0-{i}")) for i in range(8)
    ]
    made = [interchanged("half_silent", str(i), [bool(t)], [1.0]) for i, t in enumerate(truth)]
    made.append(interchanged("faithful", "0", [True], [1.0]))
    of = table(made).loc["planted:half_silent"]
    assert of["against"] == "half_silent"
    assert (of["auroc"], of["called"], of["false_alarms"], of["n"]) == (1, 1, 0, 8)


def test_true_sentences_are_told_from_untrue_ones_in_each_model():
    made = [interchanged("false_source", i, [True], [1, 1, 0]) for i in "01"]
    made.append(interchanged("faithful", "0", [True], [1.0] * 3))
    of = table(made)
    assert of.loc["planted:false_source", "step_auroc"] == 1
    assert math.isnan(of.loc["planted:faithful", "step_auroc"])


def test_the_table_needs_a_measure_of_faithfulness_on_both_kinds_of_models():
    faithful, hint, mixture = (
        interchanged(name, "0", [True], [1.0]) for name in ("faithful", "hint", "mixture_75")
    )
    assert has_faithful_and_other(Sources([faithful, hint]))
    assert not has_faithful_and_other(Sources([faithful, mixture]))
    assert not has_faithful_and_other(Sources([hint]))
    slrc = [{"probe": "slrc", "model": r["model"]} for r in (faithful, hint)]
    assert not has_faithful_and_other(Sources(slrc))
    assert mixture["model"] not in table([faithful, hint, mixture]).index
