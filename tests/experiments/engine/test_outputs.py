"""A finished run that is started again does nothing, and all that is needed where anything of its
records, its config, its code or its outputs is not as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.engine import outputs
from faithscope.experiments.engine.folder import read_environment, stored_config

WRITES, FINISHED = "writing tables", "is finished"
PROGRAM = """
import sys
from faithscope.experiments.cli import execute
code = execute(["run", sys.argv[1]])
heavy = {"torch", "transformers", "pandas", "matplotlib", "scipy"} & set(sys.modules)
sys.exit(f"imports {heavy}" if heavy else code)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a run that is done."""
    folder = tmp_path_factory.mktemp("made")
    values = {
        "name": "small",
        "out": str(folder),
        "model": {"name": "planted:faithful"},
        "tasks": "planted",
        "data": {"limit": 2},
        "slrc": {"framings": ["prefix"], "readings": ["scored"], "edits": ["remove"]},
        "report": {"bootstrap": 20},
    }
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(values))
    assert execute(["run", str(path)]) == 0
    return path


@pytest.fixture
def config(finished: Path, tmp_path: Path) -> Path:
    """The config of a copy of the finished run in the test's own folder."""
    shutil.copytree(finished.parent / "small", tmp_path / "small")
    path = tmp_path / "small.yaml"
    path.write_text(finished.read_text().replace(str(finished.parent), str(tmp_path)))
    return path


def tables(config: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (config.parent / "small" / "tables").iterdir()}


@pytest.mark.slow
def test_it_says_so_and_loads_neither_torch_nor_what_outputs_are_made_with(config: Path):
    before = sorted((p, p.stat().st_mtime_ns) for p in config.parent.rglob("*.*"))
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(config)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert FINISHED in ended.stderr
    assert WRITES not in ended.stderr
    assert ended.stdout == f"{config.parent / 'small'}\n"
    assert sorted((p, p.stat().st_mtime_ns) for p in config.parent.rglob("*.*")) == before
    assert len(read_environment(config.parent / "small")["sessions"]) == 1


def _delete_a_table(run: Path) -> None:
    (run / "tables" / "slrc.csv").unlink()


def _edit_a_table(run: Path) -> None:
    (run / "tables" / "slrc.md").write_text("mine")


def _delete_the_page(run: Path) -> None:
    (run / "report.html").unlink()


def _delete_what_was_noted(run: Path) -> None:
    (run / outputs.FILE).unlink()


def _damage_what_was_noted(run: Path) -> None:
    (run / outputs.FILE).write_text("[]")


def _touch_the_records(run: Path) -> None:
    os.utime(run / "records" / "slrc.main.jsonl")


def _repeat_a_record(run: Path) -> None:
    path = run / "records" / "slrc.main.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])


def _lose_a_record(run: Path) -> None:
    path = run / "records" / "slrc.main.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.slow
@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    "change",
    [
        _delete_a_table,
        _edit_a_table,
        _delete_the_page,
        _delete_what_was_noted,
        _damage_what_was_noted,
        _touch_the_records,
        _repeat_a_record,
        _lose_a_record,
    ],
)
def test_outputs_are_made_again_where_files_changed(
    change: Callable[[Path], None], config: Path, capfd: pytest.CaptureFixture[str]
):
    before = tables(config)
    change(config.parent / "small")
    assert execute(["run", str(config)]) == 0
    assert WRITES in capfd.readouterr().err
    assert tables(config) == before
    assert execute(["run", str(config)]) == 0
    assert FINISHED in capfd.readouterr().err


@pytest.mark.slow
def test_outputs_are_made_again_where_they_are_to_look_otherwise(
    config: Path, capfd: pytest.CaptureFixture[str]
):
    otherwise = ["run", str(config), "--set", "report.bootstrap=30"]
    assert execute(otherwise) == 0
    assert WRITES in capfd.readouterr().err
    assert stored_config(config.parent / "small")["report"]["bootstrap"] == 30
    assert execute(otherwise) == 0
    assert FINISHED in capfd.readouterr().err


@pytest.mark.slow
def test_outputs_are_made_again_by_other_code_or_libraries(
    config: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    for name in ("source", "version"):
        monkeypatch.setattr(outputs, name, lambda *of: "another")
        assert execute(["run", str(config)]) == 0
        assert WRITES in capfd.readouterr().err
