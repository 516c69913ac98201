"""A notebook of the repository in a real JupyterLab, whose own style for tables lies over ours."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import loopback
import pytest
from browser import Browser, browser

NAME = "10_open_a_run.ipynb"
NOTEBOOK = Path(__file__).parents[3] / "notebooks" / NAME
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells')"
KERNEL = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel"
CELLS = """[...document.querySelectorAll('style + .faithscope :is(td, th)')].map(cell => ({
    text: cell.textContent.trim().slice(0, 40),
    number: cell.matches('.number, .number *'),
    wide: cell.scrollWidth - cell.clientWidth,
    align: getComputedStyle(cell).textAlign,
}))"""


def until(chromium: Browser, condition: str, seconds: int = 120) -> None:
    deadline = time.monotonic() + seconds
    while not chromium.evaluate(condition):
        assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
        time.sleep(0.5)


@pytest.mark.slow
def test_a_stored_notebook_runs_at_once_and_its_tables_are_laid_out_by_us(tmp_path: Path) -> None:
    shutil.copy(NOTEBOOK, tmp_path / NAME)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--IdentityProvider.token=", "--expose-app-in-browser"]
    served = loopback.serving(command, tmp_path / "lab.log", host="--ip", health="api")
    with served as url, browser(tmp_path / "profile") as chromium:
        chromium.open(f"{url.removesuffix('/v1')}/lab/tree/{NAME}?reset", 1400)
        until(chromium, "!!window.jupyterapp && !!document.querySelector('.jp-CodeCell')")
        until(chromium, f"!!document.querySelector('.jp-Dialog') || {KERNEL}?.status == 'idle'")
        assert chromium.evaluate("!document.querySelector('.jp-Dialog')"), "asks for a kernel"
        # what is stored is not trusted, and so shown without our style
        assert chromium.evaluate("!document.querySelector('style + .faithscope')")
        chromium.evaluate(f"void {RUN_ALL}")
        until(chromium, "document.querySelectorAll('style + .faithscope table').length > 2")
        cells = chromium.evaluate(CELLS)
    assert len(cells) > 100
    assert [c for c in cells if c["wide"] > 0] == []
    assert {c["align"] for c in cells if not c["number"]} == {"left"}
