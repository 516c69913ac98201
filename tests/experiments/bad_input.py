"""Runs that something is wrong with, and what they leave."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from run_files import write_rows, write_yaml

from faithscope import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_failures

ITEMS = 3
GSM8K = "gsm8k"


def write(folder: Path, **changes: Any) -> str:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": ITEMS},
        "slrc": {"framings": ["prefix"], "shuffles": 1},
        "report": {"traces": 1, "bootstrap": 20},
    }
    return str(write_yaml(folder / "x.yaml", values | changes))


def copied(whole: Path, folder: Path, **changes: Any) -> str:
    """A copy of a finished run, as if it had been made in the folder; gives its config."""
    shutil.copytree(whole / "t", folder / "t")
    config = folder / "t" / "config.yaml"
    config.write_text(config.read_text().replace(str(whole), str(folder)))
    return write(folder, **changes)


def problems(folder: Path, questions: list[str]) -> str:
    """GSM8K rows in a file."""
    rows = ({"question": q, "answer": "#### 2"} for q in questions)
    return str(write_rows(folder / "rows.jsonl", *rows))


def asking(folder: Path, model: Path, questions: list[str], **changes: Any) -> str:
    """A config that asks a model folder GSM8K questions."""
    return write(
        folder,
        model={"name": str(model)},
        tasks=[GSM8K],
        data={"path": problems(folder, questions)},
        generation={"max_new_tokens": 256},
        slrc={"framings": ["prefix"], "edits": ["remove"], "shuffles": 1} | changes,
    )


def outputs(run_dir: Path) -> dict[str, bytes]:
    files = [*run_dir.glob("tables/*"), *run_dir.glob("figures/*.csv")]
    return {str(p.relative_to(run_dir)): p.read_bytes() for p in sorted(files)}


class Said(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    def wrong(self, *parts: str) -> str:
        """Why this output is no proper refusal in one line that names all `parts`; "" if it is."""
        if "Traceback" in self.err:
            return "a traceback"
        if self.code != 2:
            return f"exit code {self.code}"
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        if len(lines) != 1 or self.out:
            return f"{len(lines)} lines of error, and {len(self.out)} characters of output"
        lacking = [part for part in parts if part not in lines[0]]
        return f"names no {lacking[0]}: {lines[0][:200]}" if lacking else ""


def said_by(*arguments: str) -> Said:
    """Carries out a command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = execute(arguments)
    return Said(code, out.getvalue(), err.getvalue())


def refused(*arguments: object) -> str:
    """The one line of error of a command that is not carried out; progress, which names what is
    loaded, aside."""
    said = said_by(*map(str, arguments))
    assert said.wrong() == "", said
    (line,) = [x for x in said.err.splitlines() if x.startswith("error: ")]
    return line


def failed_items(capsys: pytest.CaptureFixture[str], path: str) -> list[str]:
    """Lines on the items that fail in a run; all are in the first part, which leaves outputs to who
    joins them."""
    capsys.readouterr()
    assert execute(["run", path, "--shard", "1/2"]) == 3
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(Path(path).parent / "t")]
    assert "Traceback" not in err
    return [x for x in err.splitlines() if x.startswith("failed: ") and " · " in x[:200]]


def lost(run_dir: Path, stage: str = "trace") -> dict[str, int]:
    table = load_run(run_dir).tables["exclusions"]
    rows = table[table["stage"] == stage]
    return dict(zip(rows["reason"], rows["n"], strict=True))


def read_after(printed: list[str], run_dir: Path) -> list[tuple[str, str]]:
    """(stage, reason) of the stored failures, each of which was printed."""
    stored = read_failures(run_dir)
    for unit in stored:
        assert any(f"{unit.item} · {unit.stage}: {unit.failed}" in line for line in printed)
    return [(unit.stage, unit.failed or "") for unit in stored]
