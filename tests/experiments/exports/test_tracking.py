"""Tracking with the real trackers, as far as they are installed: what they store is read back."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import yaml
from bad_input import refused, said_by

from faithscope.experiments.analysis.exports.tracking import numbers, track
from faithscope.experiments.analysis.run import load_run

RATE = "edits/planted:faithful/planted/sentence/prefix/generated/remove/flip_rate"


def run_of(folder: Path, tracker: str) -> tuple[Path, str]:
    """A small run that is tracked, and what it says."""
    values = {
        "name": "t",
        "out": str(folder / "runs"),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": 3},
        "probes": ["slrc"],
        "slrc": {"framings": ["prefix"], "edits": ["remove"]},
        "tracking": tracker,
    }
    (folder / "x.yaml").write_text(yaml.safe_dump(values))
    said = said_by("run", str(folder / "x.yaml"))
    assert said.code == 0, said.err
    return folder / "runs/t", said.err


def flip_rate(run_dir: Path) -> float:
    edits = load_run(run_dir).tables["edits"]
    return edits[(edits.edit == "remove") & (edits.reading == "generated")].flip_rate.item()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which trackers write, which send nothing."""
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
        "TRACKIO_DIR": str(tmp_path / "trackio"),
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.slow
def test_wandb_has_the_summary_and_the_config_of_a_run(here: Path) -> None:
    pytest.importorskip("wandb")
    run_dir, said = run_of(here, "wandb")
    assert "tracked with wandb: " in said
    stored = list((here / "wandb").glob("offline-run-*/*.wandb"))
    assert len(stored) == 1
    summary = wandb_summary(stored[0])
    assert summary[RATE] == pytest.approx(flip_rate(run_dir))
    # a finished run is not written again, and so not sent again
    said = said_by("run", str(here / "x.yaml"))
    assert "is finished" in said.err
    assert "tracked" not in said.err
    assert len(list((here / "wandb").glob("offline-run-*"))) == 1


def wandb_summary(path: Path) -> dict[str, float]:
    """All values of a file that W&B wrote offline; of a curve, the last."""
    from wandb.proto.wandb_internal_pb2 import Record  # pyright: ignore

    values = {}
    for data in log_records(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        for item in record.history.item:
            values[item.key or item.nested_key[0]] = json.loads(item.value_json)
    return values


def log_records(data: bytes, block: int = 1 << 15) -> Iterator[bytes]:
    """Yields the records of a log in LevelDB's format, behind a head of seven bytes."""
    at, parts = 7, b""
    while at + 7 < len(data):
        if block - at % block < 7:
            at += block - at % block
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last of several parts
            yield parts
            parts = b""


def test_mlflow_has_the_numbers_of_a_run(here: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    run_dir, _ = run_of(here, "mlflow")
    (run,) = mlflow.search_runs(experiment_names=["faithscope"], output_format="list")
    assert run.info.run_name == "t"
    assert run.data.metrics[RATE] == pytest.approx(flip_rate(run_dir))
    config = yaml.safe_load(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/config.yaml"))
    assert config["tracking"] == "mlflow"
    curve = mlflow.MlflowClient().get_metric_history(
        run.info.run_id,
        RATE.replace("edits/", "edits_by_step/").replace("flip_rate", "3/flip_rate"),
    )
    assert [point.step for point in curve] == [1, 2, 3]


def test_trackio_has_the_numbers_of_a_run(here: Path) -> None:
    pytest.importorskip("trackio")
    run_dir, _ = run_of(here, "trackio")
    from trackio.sqlite_storage import SQLiteStorage  # pyright: ignore

    logs = SQLiteStorage.get_logs("faithscope", "t")
    values = {name: value for row in logs for name, value in row.items()}
    assert values[RATE] == pytest.approx(flip_rate(run_dir))


def test_a_tracker_that_is_missing_is_named_before_anything_runs(tmp_path: Path) -> None:
    out = ("--set", f"out={tmp_path}", "--set", "model.name=planted:faithful")
    line = refused("run", "quickstart", *out, "--set", "tracking=wanbd")
    assert "tracking: " in line
    assert "'wandb'" in line
    missing = [name for name in ("mlflow", "trackio", "wandb") if find_spec(name) is None]
    if not missing:
        pytest.skip("all trackers are installed")
    line = refused("run", "quickstart", *out, "--set", f"tracking={missing[0]}")
    remedy = f"pip install {missing[0]}, or take null"
    assert line.endswith(f"tracking: {missing[0]!r} is not installed; {remedy}")
    assert not list(tmp_path.iterdir())


def test_rows_that_text_names_are_numbers_and_others_are_curves() -> None:
    summary = pd.DataFrame(
        {"model": ["a", "b"], "n": [2, 3], "p": [0.5, None], "p_low": [0.1, 0.2]}
    )
    assert list(numbers("t", summary)) == [
        ("t/a/n", None, 2),
        ("t/a/p", None, 0.5),
        ("t/b/n", None, 3),
    ]
    layers = pd.DataFrame({"model": ["a", "a"], "layer": [3, 7], "gap": [1.0, 2.0]})
    assert list(numbers("t", layers)) == [("t/a/gap", 3, 1.0), ("t/a/gap", 7, 2.0)]
    places = pd.DataFrame({"model": ["x?y", "x?y"], "position": [0.9, 0.1], "gap": [1.0, 2.0]})
    assert list(numbers("t", places)) == [("t/x_y/gap", 1, 1.0), ("t/x_y/gap", 0, 2.0)]
    whole = pd.DataFrame({"n": [4]})
    assert list(numbers("t", whole)) == [("t/n", None, 4)]
    assert list(numbers("t", whole.iloc[:0])) == []


def test_a_report_elsewhere_says_that_it_tracks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    track({"name": "t", "tracking": "no_such_tracker"}, {})
    said = capsys.readouterr().err
    assert "not tracked with no_such_tracker (ModuleNotFoundError: No module named" in said


@pytest.mark.parametrize(
    "breaks", ["raise TypeError('no server')", "raise SystemExit('no server')"]
)
def test_a_tracker_that_fails_costs_no_tables(
    breaks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"failing_{breaks.split()[1][:4].lower()}"
    (tmp_path / f"{name}.py").write_text(f"def init(**more):\n    {breaks}\n")
    monkeypatch.syspath_prepend(tmp_path)
    track({"name": "t", "tracking": name}, {})
    said = capsys.readouterr().err
    assert f"not tracked with {name} (" in said
    assert "no server); `faithscope report` sends the tables again" in said
