"""Parts of a run are the run: shards in one folder or in several, merged, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig

LIMIT = 14


def config(folder: Path, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": LIMIT},
        "generation": {"batch_size": 2},
        "slrc": {"framings": ["prefix"], "shuffles": 1},
        "report": {"traces": 1, "bootstrap": 20},
    }
    return RunConfig.model_validate(values | changes)


def outputs(run_dir: Path) -> dict[str, bytes]:
    files = [*run_dir.glob("tables/*"), *run_dir.glob("figures/*.csv")]
    return {str(p.relative_to(run_dir)): p.read_bytes() for p in sorted(files)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return outputs(run(config(tmp_path_factory.mktemp("whole"))).run_dir)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards, each in a folder of its own as on a node of its own."""
    folders = [tmp_path_factory.mktemp(f"node{k}") for k in range(3)]
    return [run(config(f), Shard(k, 3)).run_dir for k, f in enumerate(folders)]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = execute(arguments)
    return code, *capsys.readouterr()


def test_a_missing_shard_is_named_with_the_command_that_does_it(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(
        capsys, "merge", str(parts[0]), str(parts[2]), "--into", str(tmp_path / "m")
    )
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "part 2/3 lacks 4 of 4 items (first: " in err
    command = f"faithscope run {parts[0]}/config.yaml --shard 2/3"
    assert err.strip().endswith(command)
    assert not (tmp_path / "m/tables").exists()


def test_the_command_that_is_named_does_the_missing_shard(
    whole: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in (0, 2):
        run_dir = run(config(tmp_path), Shard(k, 3)).run_dir
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(run_dir, moved)
    code, _, err = said(capsys, "merge", str(moved))
    assert code == 2
    assert execute(err.partition("do it with: faithscope ")[2].split()) == 0
    capsys.readouterr()
    assert said(capsys, "merge", str(moved))[:2] == (0, f"{moved}\n")
    assert outputs(moved) == whole


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("seed", 5, "seed: 0 and 5"), ("slrc.shuffles", 4, "slrc.shuffles: 1 and 4")],
)
def test_parts_of_different_runs_are_refused_with_the_difference(
    parts: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    key: str,
    value: int,
    expected: str,
) -> None:
    other = tmp_path / "t"
    shutil.copytree(parts[1], other)
    values = yaml.safe_load((other / "config.yaml").read_text())
    section, _, name = key.rpartition(".")
    (values[section] if section else values)[name] = value
    (other / "config.yaml").write_text(yaml.safe_dump(values))
    code, _, err = said(capsys, "merge", str(parts[0]), str(other), "--into", str(tmp_path / "m"))
    assert code == 2
    assert expected in err
    assert not (tmp_path / "m").exists()


def test_parts_of_other_data_are_refused_with_the_item(
    parts: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = run(config(tmp_path, data={"limit": LIMIT - 1}), Shard(1, 3)).run_dir
    (other / "config.yaml").write_bytes((parts[1] / "config.yaml").read_bytes())
    code, _, err = said(capsys, "merge", str(parts[0]), str(other), "--into", str(tmp_path / "m"))
    assert code == 2
    assert "of task 'planted' for planted:faithful is in one of them only" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["{0}", "{1}"], "2 run folders to merge and nowhere to join them; add --into DIR"),
        (["{0}", "--into", "{0}"], "is one of the folders to merge"),
        (["{0}", "--into", "{full}"], "is a folder with something else in it"),
    ],
)
def test_nowhere_to_join(
    parts: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    expected: str,
) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    given = [a.format(*parts, full=tmp_path) for a in arguments]
    code, _, err = said(capsys, "merge", *given)
    assert code == 2
    assert expected in err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
