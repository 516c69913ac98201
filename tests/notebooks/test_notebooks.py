"""Every notebook runs from top to bottom in a fresh kernel, and its two files say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import notebook_outputs
import pytest

SCRIPTS = sorted(notebook_outputs.NOTEBOOKS.glob("*.py"))
MINUTES = 10
"""After which a cell that hangs is given up; idle, a whole notebook takes less than three."""
MOST_BYTES = 300_000
PATHS = re.compile(r"(?<![\w.:])/(?:tmp|home|root|work|usr|Users|private|var)/")
"""Paths of a machine, which no stored output holds."""


def read(path: Path) -> Any:
    # imported here, since it takes seconds that no other test needs
    import jupytext

    return jupytext.read(path)


def test_there_is_a_pair_for_every_notebook() -> None:
    stored = sorted(notebook_outputs.NOTEBOOKS.glob("*.ipynb"))
    assert [p.stem for p in SCRIPTS] == [p.stem for p in stored]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_both_files_of_a_pair_say_the_same(script: Path) -> None:
    written, paired = read(script), read(script.with_suffix(".ipynb"))
    assert [(c.cell_type, c.source) for c in written.cells] == [
        (c.cell_type, c.source) for c in paired.cells
    ], f"run: python tools/notebook_outputs.py {script.stem}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_stored_outputs_show_on_a_forge(script: Path) -> None:
    path = script.with_suffix(".ipynb")
    notebook = read(path)
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert outputs, "run `python tools/notebook_outputs.py NAME`"
    assert outputs == [o for o in outputs if notebook_outputs.shows(o)]
    assert path.stat().st_size < MOST_BYTES
    assert not PATHS.findall(path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_a_notebook_runs(script: Path) -> None:
    notebook = notebook_outputs.executed(script, MINUTES)
    shown = [o for c in notebook.cells for o in c.get("outputs", ())]
    assert any("image/png" in o.get("data", {}) for o in shown) or _is_of_tables(script)


def _is_of_tables(script: Path) -> bool:
    """Whether a notebook shows tables and texts only."""
    return script.stem in {"01_first_look", "08_own_chains"}
