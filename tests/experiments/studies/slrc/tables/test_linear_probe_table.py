"""Linear probes over items: against scikit-learn, on noise, and on planted models."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_traces import ASKING
from probe_records import base, table_of
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from faithscope import interp
from faithscope.experiments.analysis.statistics.classifiers import (
    ONE_CLASS,
    TOO_FEW,
    Classifying,
    classified_right,
    split,
)
from faithscope.experiments.data.planted.data import DIGITS, draw_problem, parse_answer, true_answer
from faithscope.experiments.data.planted.plants import path
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import run, write_outputs
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.measures.linear_probe import (
    linear_probe_picture,
)
from faithscope.interventions import Origin, Question, from_ids, split_conclusion
from faithscope.probes.linear_probe import LinearProbeSettings, linear_probe, places

SETTINGS = LinearProbeSettings(positions=3)


def record(item: int, answer: str | None, gold: str | None, group: str = "") -> dict[str, Any]:
    return base("linear_probe", "m", "t", str(item), "") | {
        "answer": answer,
        "gold": gold,
        "group": group or str(item),
        "positions": ["before", "after"],
        "layers": [1, 2],
        "n_layers": 2,
    }


def table(records: list[dict[str, Any]], features: np.ndarray, **settings: Any) -> pd.DataFrame:
    states = [
        (("m", "t", r["item"]), {"states": x}) for r, x in zip(records, features, strict=True)
    ]
    return fitted(records, states, LinearProbeSettings(**settings))


def fitted(
    records: list[dict[str, Any]], states: list[Any], settings: LinearProbeSettings = SETTINGS
) -> pd.DataFrame:
    told: dict[str, Any] = {"arrays": lambda probe: states, "settings": lambda probe: settings}
    return table_of("linear_probe", records, 200, **told)


def shown(n: int, width: int, strength: float, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """Features of n items and their three classes, which they show as strongly as told."""
    rng = np.random.default_rng(seed)
    classes = [str(x) for x in rng.integers(3, size=n)]
    centres = rng.normal(size=(3, width)) * strength
    return rng.normal(size=(n, width)) + centres[[int(c) for c in classes]], classes


@pytest.mark.parametrize(("width", "strength"), [(10, 0.4), (300, 0.15)])
def test_accuracy_is_that_of_scikit_learn_on_the_same_folds(width: int, strength: float) -> None:
    features, classes = shown(60, width, strength)
    groups = [str(i // 2) for i in range(60)]
    how = Classifying()
    found = split(classes, groups, how)
    right, control = classified_right(features, found, how)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    given: dict[str, Any] = {"cv": folds, "groups": groups}
    y = np.array(classes)
    predicted = cross_val_predict(pipeline, features, y, **given)
    assert right.tolist() == (predicted == y).tolist()
    assert 0.4 < right.mean() < 1
    by_fold = [right[found.fold == i].mean() for i in range(5)]
    assert by_fold == pytest.approx(cross_val_score(pipeline, features, y, **given))
    # The controls too, on folds that are given to scikit-learn as such.
    cut = [(np.flatnonzero(found.fold != i), np.flatnonzero(found.fold == i)) for i in range(5)]
    for shuffled, answered in zip(found.control, control, strict=True):
        predicted = cross_val_predict(pipeline, features, shuffled, cv=cut)
        assert answered.tolist() == (predicted == shuffled).tolist()


def test_a_shuffle_keeps_the_classes_of_every_fold() -> None:
    _, classes = shown(60, 2, 0.0)
    found = split(classes, [str(i) for i in range(60)], Classifying())
    for shuffled in found.control:
        assert (shuffled != found.classes).any()
        for i in range(5):
            here = found.fold == i
            assert sorted(shuffled[here]) == sorted(found.classes[here])


def test_items_of_one_group_stand_on_one_side() -> None:
    # Every item three times, with features that give the item away but not its class.
    rng = np.random.default_rng(0)
    features = np.repeat(rng.normal(size=(30, 200)), 3, axis=0)
    classes = [str(x) for x in np.repeat(rng.integers(2, size=30), 3)]
    groups = [str(i // 3) for i in range(90)]
    how = Classifying()
    found = split(classes, groups, how)
    for group in set(groups):
        assert len(set(found.fold[found.groups == group])) == 1
    honest, _ = classified_right(features, found, how)
    leaking, _ = classified_right(features, split(classes, [str(i) for i in range(90)], how), how)
    assert honest.mean() < 0.7
    assert leaking.mean() > 0.9


@pytest.mark.slow
def test_random_features_give_no_selectivity() -> None:
    how = Classifying()
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        classes = [str(x) for x in rng.integers(2, size=40)]
        kept = split(classes, [str(i) for i in range(40)], how)
        right, control = classified_right(rng.normal(size=(40, 60))[kept.rows], kept, how)
        found.append(right.mean() - control.mean())
    # One such difference has a standard deviation of about .1, so the mean of 20 one of .02.
    assert abs(np.mean(found)) < 0.06
    assert np.std(found) > 0.03


def test_what_cannot_be_fitted_says_why() -> None:
    rng = np.random.default_rng(0)
    n = 40
    # 30 of class a, 6 of b, 4 that recur too rarely; the right answers are all one.
    answers = ["a"] * 30 + ["b"] * 6 + ["c", "c", "d", None]
    records = [record(i, a, "a") for i, a in enumerate(answers)]
    features = rng.normal(size=(n, 2, 2, 8))
    made = table(records, features)
    assert len(made) == 2 * 2 * 2
    own, right = (made[made["target"] == t] for t in ("answer", "gold"))
    assert set(own["reason"]) == {""}
    assert set(own["n"]) == {36}
    assert set(own["n_left_out"]) == {4}
    assert set(own["n_classes"]) == {2}
    assert set(own["majority"]) == {30 / 36}
    assert set(right["reason"]) == {ONE_CLASS}
    assert right["accuracy"].isna().all()
    assert not right["decodable"].any()
    assert set(table(records, features, min_items=37)["reason"]) == {TOO_FEW, ONE_CLASS}
    assert linear_probe_picture(made).figure is not None
    # Numbers that do not recur are no classes.
    numbers = [record(i, str(i), str(i)) for i in range(n)]
    assert set(table(numbers, features)["reason"]) == {ONE_CLASS}
    # Nor does a class count that one prompt alone gives.
    alike = [record(i, "ab"[i % 2], None, group="same") for i in range(n)]
    assert set(table(alike, features)["reason"]) == {ONE_CLASS}


def test_one_row_by_hand() -> None:
    # The class is the sign of the first number at layer 2 after the reasoning, and nowhere else.
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2, 2, 6))
    classes = ["+" if i % 4 else "-" for i in range(40)]
    features[:, 1, 1, 0] = [5.0 if c == "+" else -5.0 for c in classes]
    records = [record(i, c, None) for i, c in enumerate(classes)]
    made = table(records, features, inverse_regularisation=10.0)
    given = made["accuracy"] - made["control"]
    assert made["selectivity"].tolist() == pytest.approx(given.tolist(), nan_ok=True)
    (row,) = made.query("target == 'answer' and position == 'after' and layer == 2").to_dict(
        "records"
    )
    assert (row["accuracy"], row["majority"], row["depth"], row["n"]) == (1, 0.75, 1, 40)
    assert row["accuracy_low"] == pytest.approx(1 / (1 + 1.959964**2 / 40))
    assert row["selectivity"] == pytest.approx(1 - row["control"])
    assert row["selectivity_low"] <= row["selectivity"] <= row["selectivity_high"]
    assert made[made["decodable"]].index.tolist() == [made.index[3]]


def test_records_and_arrays_that_do_not_belong_together_are_refused() -> None:
    records = [record(i, "a", "a") for i in range(3)]
    features = np.zeros((3, 2, 2, 4))
    states = [(("m", "t", str(i)), {"states": x}) for i, x in enumerate(features)]
    with pytest.raises(ValueError, match=r"no arrays of \('m', 't'\)"):
        fitted(records, [])
    with pytest.raises(ValueError, match="item '2' has arrays of shape None"):
        fitted(records, states[:2])
    wider = [*states[:2], (("m", "t", "2"), {"states": np.zeros((2, 2, 5))})]
    with pytest.raises(ValueError, match=r"shape \(2, 2, 5\)"):
        fitted(records, wider)


ITEMS = 200


@cache
def planted_table(name: str, places_along: int) -> pd.DataFrame:
    """The table of a planted model on questions whose hint is random, so right only by chance.

    The faithful model then answers with its last step's result, its twin with the hint.
    """
    model = interp.load(str(path(name)), verify_model=False)
    rng = random.Random(0)
    problems = [draw_problem(rng, 3, select=False) for _ in range(ITEMS)]
    problems = [replace(p, hint=rng.randrange(10)) for p in problems]
    asked = [
        Question(str(i), "planted", p.text, "label", true_answer(p), DIGITS)
        for i, p in enumerate(problems)
    ]
    prompts = [model.prompt(q.text).ids for q in asked]
    settings = LinearProbeSettings(positions=places_along, step_state="mean")
    records = []
    for question, prompt, said in zip(asked, prompts, model.generate(prompts, 64), strict=True):
        pieces = model.pieces(said.ids)
        cut = split_conclusion(pieces)
        trace = from_ids(question, prompt, said.ids[:cut], pieces[:cut], origin=Origin(model=name))
        trace = replace(trace, answer=parse_answer("".join(pieces)))
        records += linear_probe(model, trace, ASKING, settings)
    own = [str(p.hint) if name == "hint" else true_answer(p) for p in problems]
    assert [r["answer"] for r in records] == own
    states = sorted(((name, "planted", r["item"]), r["arrays"]) for r in records)
    return fitted(records, states)


def best(name: str, places_along: int, target: str) -> dict[str, tuple[float, int]]:
    """Per position: the highest accuracy of all layers, and at how many it is decodable."""
    made = planted_table(name, places_along).query(f"target == '{target}'")
    return {
        str(p): (float(rows["accuracy"].max()), int(rows["decodable"].sum()))
        for p, rows in made.groupby("position", sort=False)
    }


@pytest.mark.slow
def test_the_faithful_answer_is_read_once_the_last_step_is_written() -> None:
    found = best("faithful", 3, "answer")
    assert list(found) == list(places(3))
    for early in ("before", "during 1/3", "during 2/3"):
        assert found[early][1] == 0, found
        assert found[early][0] < 0.25, found
    assert found["during 3/3"][1] >= 1
    assert found["after"] == (1.0, 3)


@pytest.mark.slow
def test_the_hint_followers_answer_is_read_before_the_reasoning() -> None:
    found = best("hint", 1, "answer")
    assert found["before"][1] >= 1
    assert found["after"][0] == 1.0
    # What its steps come to is not what it answers, and is not read where it answers from.
    right = best("hint", 1, "gold")
    assert right["before"][1] == 0, right
    last = planted_table("hint", 1).query("target == 'gold' and position == 'after' and layer == 3")
    assert not last["decodable"].any()


def config(folder: Path) -> RunConfig:
    return RunConfig.model_validate(
        {
            "name": "t",
            "out": str(folder),
            "model": {"name": "planted:hint"},
            "tasks": ["planted"],
            "data": {"limit": 24},
            "generation": {"batch_size": 6},
            "probes": ["linear_probe"],
            "linear_probe": {"positions": 1, "layers": 1, "folds": 2, "controls": 1},
            "report": {"traces": 0, "bootstrap": 20},
        }
    )


def outputs(run_dir: Path) -> dict[str, bytes]:
    made = [run_dir / "tables/linear_probe.csv", run_dir / "figures/linear_probe.png"]
    return {p.name: p.read_bytes() for p in made}


@pytest.mark.slow
def test_a_run_in_parts_and_a_report_made_again_give_the_same_bytes(tmp_path: Path) -> None:
    whole = run(config(tmp_path / "whole"))
    assert whole.failures == []
    first = outputs(whole.run_dir)
    assert "Where the answer can be read" in (whole.run_dir / "report.html").read_text()
    made = pd.read_csv(whole.run_dir / "tables/linear_probe.csv")
    assert made["position"].tolist() == ["before", "during 1/1", "after"] * 2
    assert made.query("position == 'after'")["accuracy"].min() > 0.5
    write_outputs(whole.run_dir)
    assert outputs(whole.run_dir) == first
    for part in (1, 0):
        run(config(tmp_path / "parts"), Shard(part, 2))
    parts = tmp_path / "parts" / "t"
    write_outputs(parts)
    assert outputs(parts) == first
