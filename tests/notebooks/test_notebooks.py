"""Every notebook runs from top to bottom in a fresh kernel, and its two files say the same."""

from __future__ import annotations

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
MINUTES = 10
"""After which a cell that hangs is given up; idle, a whole notebook takes less than three."""


def test_there_is_a_pair_for_every_notebook() -> None:
    assert [p.stem for p in SCRIPTS] == [p.stem for p in sorted(FOLDER.glob("*.ipynb"))]
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_both_files_of_a_pair_say_the_same(script: Path) -> None:
    written, paired = jupytext.read(script), jupytext.read(script.with_suffix(".ipynb"))
    assert [(c.cell_type, c.source) for c in written.cells] == [
        (c.cell_type, c.source) for c in paired.cells
    ], f"run: jupytext --sync notebooks/{script.name}"
    assert not any(c.get("outputs") for c in paired.cells), "committed without outputs"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_a_notebook_runs(script: Path) -> None:
    notebook = jupytext.read(script)
    NotebookClient(
        notebook,
        timeout=60 * MINUTES,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    shown = [o for c in notebook.cells for o in c.get("outputs", ())]
    assert any("image/png" in o.get("data", {}) for o in shown) or script.stem.startswith("01")
