"""A run of C2-Faith opened in Python: every judgement is there, with what would have been right."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import faithscope
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.studies.c2faith.judgements import COLUMNS
from faithscope.experiments.studies.c2faith.results import results
from faithscope.interp.errors import UserError


@pytest.fixture(scope="module")
def opened(judged: Path) -> faithscope.Run:
    found = faithscope.load_run(judged)
    return found


def test_a_row_is_a_judgement_with_its_texts(opened: faithscope.Run) -> None:
    rows = opened.judgements
    # three chains: two tasks in two conditions, coverage and its reference at one level; twice read
    assert len(rows) == 3 * (2 * 2 + 2) * 2
    assert list(rows.columns) == list(COLUMNS)
    assert not rows.duplicated(["judge", "form", "reading", "ask"]).any()
    assert set(rows["task"]) == {"detection", "localisation", "coverage", "coverage_reference"}
    assert rows["asked"].str.startswith("Judge: ").all()
    written = rows[rows["reading"] == "generated"]
    assert (written["output_tokens"] > 0).all()
    assert (written["text"] != "").any()
    assert written["mass"].isna().all()
    assert (written["calls"] == 1).all()
    assert len(opened.detection) == (rows["task"] == "detection").sum()


def test_what_would_have_been_right_stands_beside_the_verdict(opened: faithscope.Run) -> None:
    rows = opened.judgements
    right = rows.groupby(["task", "condition"], dropna=False)["right"].apply(list)
    assert set(right["detection", "perturbed"]) == {0}
    assert set(right["detection", "control"]) == {1}
    assert set(right["localisation", "control"]) == {-1}
    broken = rows[(rows["task"] == "localisation") & (rows["condition"] == "perturbed")]
    assert (broken["right"] == broken["target"]).all()
    assert rows.loc[rows["task"].str.startswith("coverage"), "right"].isna().all()
    targets = {i.id: i.target for i in results(opened).benchmark.causal}
    assert (broken["target"] == broken["item"].map(targets)).all()


def test_the_scored_reading_has_its_probabilities_and_their_mass(opened: faithscope.Run) -> None:
    scored = opened.judgements.query("reading == 'scored'")
    assert ((scored["mass"] > 0) & (scored["mass"] <= 1)).all()
    for row in scored.to_dict("records"):
        p = np.array(row["probabilities"])
        low = -1 if row["task"] == "localisation" else 0
        assert p.sum() == pytest.approx(1)
        assert row["verdict"] == low + p.argmax()
        assert row["expected"] == pytest.approx(p @ (low + np.arange(len(p))))
    assert scored.loc[scored["task"] == "detection", "scale"].isna().all()
    assert set(scored.loc[scored["task"] == "coverage", "scale"]) == {"0-4"}


def test_the_probabilities_of_the_run_are_held_against_what_is_true(
    opened: faithscope.Run,
) -> None:
    said = opened.judgements.query("task == 'localisation' and reading == 'scored'")
    table = opened.tables["c2_reliability"]
    table = table[table["bin"] == OVERALL].set_index("event")
    given = [p[v + 1] for p, v in zip(said["probabilities"], said["verdict"], strict=True)]
    assert table.loc["verdict_right", "n"] == len(said) == 6
    assert table.loc["verdict_right", "mean_p"] == pytest.approx(np.mean(given))
    right = (said["verdict"] == said["right"]).mean()
    assert table.loc["verdict_right", "share_happened"] == right
    scores = opened.judgements.query("task == 'coverage' and reading == 'scored'")
    below = np.mean([sum(p[:3]) for p in scores["probabilities"]])
    assert table.loc["below_three_quarters", "mean_p"] == pytest.approx(below)


def test_every_step_has_every_signal(opened: faithscope.Run) -> None:
    signals = opened.signals
    n_steps = {i.id: len(i.steps) for i in results(opened).benchmark.causal}
    by = signals.groupby(["item", "condition", "signal"])["step"]
    assert (by.min() == 0).all()
    assert [len(of) for _, of in by] == [n_steps[key[0]] for key, _ in by]
    assert {"surprisal", "necessity", "information_flow"} <= set(signals["signal"])
    last = signals["step"] == signals["item"].map(n_steps) - 1
    # the answer is asked for before the last step, which states it
    asked = signals["signal"].isin(["answer_tracing", "necessity", "information_flow"])
    assert signals.loc[asked & last, "value"].isna().all()
    assert signals.loc[~(asked & last), "value"].notna().all()


def test_arrays_come_by_item(opened: faithscope.Run) -> None:
    found = dict(opened.arrays("broken_step"))
    assert {item for _, _, item in found} == {i.id for i in results(opened).benchmark.causal}
    for arrays in found.values():
        assert arrays["perturbed/surprisal"].ndim == 1


def test_a_run_whose_items_are_not_made_yet_says_so(judged: Path, tmp_path: Path) -> None:
    early = tmp_path / "early"
    early.mkdir()
    shutil.copy(judged / "config.yaml", early)
    with pytest.raises(UserError, match="early: nothing is judged there yet"):
        _ = faithscope.load_run(early).judgements
