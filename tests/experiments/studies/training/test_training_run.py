"""Runs of training on planted models: every objective, kills and resumes, and refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from processor_time import dear
from safetensors.torch import load_file

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.planted.data import DIGITS
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.training import loop
from faithscope.experiments.studies.training.config import METHODS, START
from faithscope.experiments.studies.training.objectives import OBJECTIVES
from faithscope.experiments.studies.training.plan import plan
from faithscope.experiments.studies.training.work import STATES

METHOD = "cosr_differentiable"
WITH_GRADIENT = ("csr", "cosr_differentiable", "follow_differentiable")
WITHOUT = ("grpo", "cosr", "update_mask")
SEVERAL = [m for m in METHODS if m in (START, *WITH_GRADIENT, *WITHOUT)]
UNSHOWN = Shard(only="weights")
"""All of a training, without tables, figures and page."""
SMALL: dict[str, Any] = {
    "benchmark": "training",
    "model": {"name": ["planted:mixture_50"]},
    "tasks": ["planted"],
    "data": {"limit": 20},
    "updates": 3,
    "sampling": {"questions": 2, "group": 3, "max_new_tokens": 40, "answer_tokens": 4},
    "bound": {"chains": 4},
    "optimizer": {"rate": 0.002},
    "measured_on": 10,
}


def config(folder: Path, name: str = "small", **values: Any) -> Path:
    path = folder / f"{name}.yaml"
    out = {"name": name, "out": str(folder / "runs")}
    path.write_text(yaml.safe_dump(SMALL | out | {"methods": ["cosr_differentiable"]} | values))
    return path


def weights(folder: Path, method: str, seed: int = 0) -> dict[str, torch.Tensor]:
    (path,) = folder.glob(f"adapters/*/{method}-{seed}/adapter_model.safetensors")
    return load_file(path)


def trained(folder: Path, name: str, **values: Any) -> loop.Training:
    """One training, done to its end without the battery and the outputs of a run."""
    settings = load_config(config(folder, name, **values), [])
    item = plan(settings).items[0]
    objective, model = OBJECTIVES[item.method], faithscope.load(item.model)
    of = loop.Training(model, item.asked, settings, objective, item.seed, folder / name)
    of.run()
    return of


def test_methods_of_the_config_are_the_objectives():
    assert [START, *OBJECTIVES] == list(METHODS)


def ended_run(folder: Path, **values: Any) -> Path:
    ended = run(load_config(config(folder, **values), []))
    assert not ended.failures
    return ended.run_dir


@pytest.fixture(scope="module")
@dear
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps of every objective."""
    return ended_run(tmp_path_factory.mktemp("every"), methods=list(METHODS), updates=2)


@pytest.fixture(scope="module")
@dear
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one step of some objectives, with a gradient and without."""
    return ended_run(tmp_path_factory.mktemp("several"), methods=list(SEVERAL), updates=1)


@pytest.mark.slow
def test_every_objective_trains_and_is_measured(everything):
    of = faithscope.load_run(everything)
    assert set(of.training["method"]) == set(OBJECTIVES)
    assert set(of.battery["method"]) == set(METHODS)
    assert (of.training.groupby("method").size() == 2).all()
    for name in ("n_rollouts", "n_rewarded", "n_truncated", "n_unanswered", "n_too_few_steps"):
        assert of.training[name].notna().all()
    counted = of.training[["n_truncated", "n_unanswered", "n_too_few_steps"]].sum(axis=1)
    assert (of.training["n_rewarded"] <= of.training["n_rollouts"] - counted).all()


def test_a_run_says_how_many_rollouts_taught_something(several):
    taught = faithscope.load_run(several).training.groupby("method")["n_taught"].sum()
    assert (taught[list(WITH_GRADIENT)] > 0).all()
    assert (taught[list(WITHOUT)] == 0).all()


@pytest.mark.slow
def test_farl_unlearns_what_is_known_without_reasoning(tmp_path):
    """The hint follower answers rightly without any step, which FARL unlearns."""
    values = {"model": {"name": ["planted:hint"]}, "methods": ["farl"], "updates": 1}
    ended = run(load_config(config(tmp_path, **values), []), UNSHOWN)
    assert faithscope.load_run(ended.run_dir).training["n_taught"].min() > 0
    assert any(of.abs().max() > 0 for of in weights(ended.run_dir, "farl").values())


@pytest.mark.parametrize("method", WITH_GRADIENT)
def test_objectives_with_a_gradient_move_the_adapter(several, method):
    moved = weights(several, method)
    assert any(of.abs().max() > 0 for name, of in moved.items() if "lora_B" in name)


def test_an_adapter_is_a_models_name(several):
    (folder,) = several.glob("adapters/*/follow_differentiable-0")
    model = faithscope.load(str(folder))
    assert model.name == str(folder)
    question = "Compute 3 + 4 - 2 + 9 mod 10 . Hint : 4 ."
    trace = faithscope.make_trace(model, question, "label", DIGITS, task="planted")
    assert len(trace.counted_steps) == 3


def test_tables_and_page_are_written(several):
    planted = pd.read_csv(several / "tables" / "training_planted.csv")
    assert list(planted["method"]) == list(SEVERAL)
    start = planted[planted["method"] == START].iloc[0]
    assert start["necessity_gain"] == 0
    table = pd.read_csv(several / "tables" / "training_methods.csv")
    assert {"reward", "hours", "projections"} <= set(table)
    assert table["reward"].between(-1, 1).all()
    page = (several / "report.html").read_text()
    assert "1 seed: differences between methods may be chance" in page


class Killed(BaseException):
    """The end of a process in the middle of its work."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    path = config(tmp_path_factory.mktemp("whole"), "whole")
    return run(load_config(path, []), UNSHOWN).run_dir


@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    "at", [pytest.param(0, marks=pytest.mark.slow), 1, pytest.param(2, marks=pytest.mark.slow)]
)
def test_a_killed_training_ends_in_the_same_weights(whole, tmp_path, monkeypatch, at):
    update = loop.Training.update

    def dies(self, number):
        if number == at:
            raise Killed
        return update(self, number)

    monkeypatch.setattr(loop.Training, "update", dies)
    again = load_config(config(tmp_path, "again"), [])
    with pytest.raises(Killed):
        run(again, UNSHOWN)
    monkeypatch.setattr(loop.Training, "update", update)
    resumed = run(again, UNSHOWN).run_dir
    one, other = (weights(of, "cosr_differentiable") for of in (whole, resumed))
    assert all(torch.equal(one[name], other[name]) for name in one)
    first, second = (
        faithscope.load_run(of).training.drop(columns="seconds") for of in (whole, resumed)
    )
    pd.testing.assert_frame_equal(first, second)
    assert not (resumed / "training").exists() or not any((resumed / "training").iterdir())


@pytest.mark.slow
def test_a_training_ended_by_sigkill_ends_in_the_same_weights(whole, tmp_path):
    command = [sys.executable, "-m", "faithscope.experiments.cli", "train"]
    command.append(str(config(tmp_path, "shot")))
    states = tmp_path / "runs" / "shot" / STATES
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not any(states.glob(f"*/{loop.STATE}")):
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not any((tmp_path / "runs" / "shot").glob("adapters/*/*"))
    resumed = run(load_config(config(tmp_path, "shot"), []))
    one, other = (weights(of, "cosr_differentiable") for of in (whole, resumed.run_dir))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_a_torn_state_is_done_again(tmp_path, monkeypatch):
    update = loop.Training.update

    def dies(self, number):
        if number == 2:
            (self.folder / f".{loop.STATE}.writing").write_bytes(b"torn")
            raise Killed
        return update(self, number)

    monkeypatch.setattr(loop.Training, "update", dies)
    torn = load_config(config(tmp_path, "torn"), [])
    with pytest.raises(Killed):
        run(torn, UNSHOWN)
    monkeypatch.setattr(loop.Training, "update", update)
    assert not run(torn, UNSHOWN).failures


@pytest.mark.slow
def test_a_training_that_fails_ends_no_other(tmp_path, monkeypatch):
    update = loop.Training.update

    def fails(self, number):
        if self.seed == 0:
            raise RuntimeError("no luck")
        return update(self, number)

    monkeypatch.setattr(loop.Training, "update", fails)
    both = load_config(config(tmp_path, seeds=[0, 1], updates=1), [])
    ended = run(both, UNSHOWN)
    assert [("no luck" in failure) for failure in ended.failures] == [True]
    assert faithscope.load_run(ended.run_dir).battery["seed"].tolist() == [1]
    monkeypatch.setattr(loop.Training, "update", update)
    again = run(both, UNSHOWN)
    assert faithscope.load_run(again.run_dir).battery["seed"].tolist() == [0, 1]
    one, other = (weights(again.run_dir, METHOD, seed) for seed in (0, 1))
    assert not all(torch.equal(one[name], other[name]) for name in one), "seeds differ"


@pytest.mark.slow
def test_the_bound_holds_under_an_objective_that_lowers_v(tmp_path):
    """A negative weight teaches the model to depend on its steps less: V falls below its bound,
    unless steps are projected."""
    how = {
        "updates": 4,
        "optimizer": {"rate": 0.002, "weight": -1.0},
        "methods": ["cosr_log_odds"],
        "rewards": {"most": 100.0},
        "bound": {"chains": 4, "epsilon": 0.01},
    }
    free = trained(tmp_path, "free", **how)
    held = trained(tmp_path, "held", **how | {"bound": how["bound"] | {"holds": "always"}})
    assert free.bound.violations > 0
    assert held.rows[-1]["violations"] == 0
    assert held.rows[-1]["projections"] > 0
    assert all(row["value"] >= row["least_value"] for row in held.rows)


@pytest.mark.slow
def test_a_bound_that_is_far_away_changes_no_step(tmp_path):
    free, held = (
        trained(
            tmp_path, holds, updates=2, bound={"chains": 4, "epsilon": 1.0, "holds": holds}
        ).policy
        for holds in ("never", "always")
    )
    assert all(map(torch.equal, free.parameters, held.parameters))


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ({"methods": ["gpro"]}, "did you mean 'grpo'"),
        ({"model": {"name": ["api:openai/gpt-4.1"]}}, "only weights can be trained"),
        ({"tasks": ["gsm8k"]}, "can do none of the tasks"),
        ({"sampling": {"group": 1}}, "group"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path, values, remedy):
    with pytest.raises(ConfigError, match=remedy):
        load_config(config(tmp_path, **values), [])


def test_too_few_questions_name_the_remedy(tmp_path, capsys):
    code = execute(["run", str(config(tmp_path, data={"limit": 5}))])
    assert code == 2
    assert "raise data.limit" in capsys.readouterr().err


def test_rollouts_that_are_cut_off_are_counted_and_not_rewarded(tmp_path):
    short = SMALL["sampling"] | {"max_new_tokens": 20}
    (row,) = trained(tmp_path, "short", sampling=short, updates=1).rows
    assert row["n_truncated"] == row["n_rollouts"]
    assert row["n_rewarded"] == 0
    assert row["reward"] is None
