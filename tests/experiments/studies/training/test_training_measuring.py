"""Measures before and after training: held-out questions, the table, refusals and failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from processor_time import dear

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.studies.training import work
from faithscope.interp.errors import UserError

UNSHOWN = Shard(only="weights")
"""All of a run, without tables, figures and page."""
TRAINED_ON, HELD_OUT = 6, 5
METHOD = "cosr_differentiable"
SMALL = {
    "name": "small",
    "benchmark": "training",
    "model": {"name": ["planted:mixture_50"]},
    "tasks": ["planted"],
    "data": {"limit": TRAINED_ON},
    "methods": [METHOD],
    "updates": 1,
    "sampling": {"questions": 2, "group": 3, "max_new_tokens": 40, "answer_tokens": 4},
    "bound": {"chains": 4},
    "optimizer": {"rate": 0.002},
    "measured_on": 10,
}
PROBED: dict[str, Any] = {
    "probes": ["slrc"],
    "slrc": {"framings": ["prefix"], "readings": ["generated"], "shuffles": 0, "edits": ["remove"]},
    "report": {"bootstrap": 20},
}


def measuring(limit: int, seed: int = 0, **values: Any) -> dict[str, Any]:
    """The section `measure`: SLRC on planted questions."""
    asked = {"tasks": ["planted"], "data": {"limit": limit}, "seed": seed}
    return {"config": "slrc", "set": asked | PROBED | values}


def training(folder: Path, **values: Any) -> Path:
    """A config file of one step of training."""
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL | {"out": str(folder / "runs")} | values))
    return path


@pytest.fixture(scope="module")
@dear
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that is measured afterwards, on questions some of which it was trained on."""
    folder = tmp_path_factory.mktemp("measured")
    first = run(load_config(training(folder), []), UNSHOWN)
    (adapter,) = first.run_dir.glob("adapters/*/*/adapter_model.safetensors")
    written = adapter.stat().st_mtime_ns
    both = measuring(TRAINED_ON + HELD_OUT)
    ended = run(load_config(training(folder, measure=both), []))
    assert not ended.failures
    assert adapter.stat().st_mtime_ns == written
    return ended.run_dir


@pytest.mark.slow
def test_the_table_has_every_measure_before_and_after(measured):
    table = pd.read_csv(measured / "tables" / "training_measured.csv").set_index("measure")
    assert set(table["method"]) == {METHOD}
    assert {"accuracy", "mean_steps", "cut_off", "necessity_prefix_generated"} <= set(table.index)
    assert (table["n_trained_on"] == TRAINED_ON).all()
    assert (table["n_chains"] == HELD_OUT).all()
    assert (table["difference"] - (table["after"] - table["before"])).abs().max() < 1e-5
    known = table.dropna(subset=["difference_low"])  # of so few items some have no interval
    assert len(known) >= 2
    assert (known["difference_low"] <= known["difference"]).all()
    assert (table["mean_steps_before"] == table.loc["mean_steps", "before"]).all()


def test_its_means_are_those_of_the_runs_that_measure(measured):
    table = pd.read_csv(measured / "tables" / "training_measured.csv").set_index("measure")
    held_out = [f"planted-0-{i}" for i in range(TRAINED_ON, TRAINED_ON + HELD_OUT)]
    for column, method in (("before", "start"), ("after", METHOD)):
        (folder,) = measured.glob(f"measured/*-{method}-0.*")
        items = faithscope.load_run(folder).items
        of = items[items["item"].isin(held_out) & (items["reading"] == "generated")]
        assert of["necessity"].mean() == pytest.approx(
            table.loc["necessity_prefix_generated", column], abs=1e-6
        )


def test_the_page_shows_both_and_the_frame_has_the_model_before_training(measured):
    page = (measured / "report.html").read_text()
    assert "Before and after training" in page
    assert "necessity_prefix_generated" in page
    frame = faithscope.load_run(measured).measured
    assert set(frame["method"]) == {"start", METHOD}
    assert frame.groupby("item")["trained_on"].first().sum() == TRAINED_ON


def test_a_dry_run_says_how_many_questions_are_trained_on(tmp_path):
    some = load_config(training(tmp_path, measure=measuring(TRAINED_ON + 1)), [])
    told = plan(some).summary()
    assert "slrc on 7 questions, of which it is trained on 6, which the table leaves out" in told
    other = load_config(training(tmp_path, measure=measuring(4, seed=1)), [])
    assert "slrc on 4 questions\n" in plan(other).summary()


def test_questions_that_are_all_trained_on_are_refused(tmp_path):
    same = load_config(training(tmp_path, measure=measuring(TRAINED_ON)), [])
    with pytest.raises(ConfigError, match=r"trained on all 6 questions .* another seed"):
        plan(same)


@pytest.mark.parametrize(
    ("measure", "remedy"),
    [
        (measuring(4, seed=1, name="x"), "name is given by the training run"),
        (measuring(4, seed=1, model={"name": "x"}), "model.name is given by the training run"),
        (measuring(4, seed=1, prober=["slrc"]), "measure slrc: .*prober"),
        ({"config": "slcr"}, "measure slcr: .*slrc"),
        ({"config": "train/planted", "set": {"seed": 1}}, "no scores of traces; name another"),
    ],
)
def test_what_cannot_measure_is_refused(tmp_path, measure, remedy):
    with pytest.raises(UserError, match=remedy):
        run(load_config(training(tmp_path, measure=measure), []))
    assert not any(tmp_path.rglob("adapter_model.safetensors"))


def test_a_run_that_measures_nothing_fails(tmp_path, capsys):
    nothing = measuring(4, seed=1, steps={"min_chars": 1000})
    code = execute(["run", str(training(tmp_path, measure=nothing, methods=["start"]))])
    assert code == 3
    assert "nothing is measured: 0 of 4 items" in capsys.readouterr().err


def test_failed_items_are_tried_again_and_then_left_out(tmp_path, monkeypatch):
    def fails(*args, **how):
        return replace(run(*args, UNSHOWN, **how), failures=["no luck"])

    monkeypatch.setattr(work, "run", fails)
    values = {"measure": measuring(2, seed=1), "methods": ["start"]}
    first = run(load_config(training(tmp_path, **values), []), UNSHOWN)
    assert ["failed items: 1, first no luck" in line for line in first.failures] == [True]
    assert not len(faithscope.load_run(first.run_dir).measured)
    again = run(load_config(training(tmp_path, **values), []), UNSHOWN)
    assert not again.failures
    assert len(faithscope.load_run(again.run_dir).measured)
