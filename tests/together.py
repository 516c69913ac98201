"""Which tests one process runs: those of a module, or of a folder that has fixtures of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
LONG = (
    "tests/conformance",
    "tests/experiments/studies/slrc/detectors/test_faithcot_run.py",
    "tests/experiments/studies/training/test_training_run.py",
    "tests/experiments/studies/compare/test_compare_runs.py",
    "tests/experiments/extras/test_injection.py",
)
"""Groups that take longest for their number of tests, by which xdist orders the others: begun last,
one process would do them while the others have nothing left."""


def group_of(nodeid: str) -> str:
    """The module of a test, or its folder if that has a `conftest.py`."""
    module = nodeid.partition("::")[0]
    folder = Path(module).parent
    return str(folder) if (ROOT / folder / "conftest.py").exists() else module


class Together(LoadScopeScheduling):
    """Shared fixtures are set up in one process, where others would each set up all; groups that
    take long come first."""

    def __init__(self, *args: Any) -> None:
        assert all((ROOT / group).exists() for group in LONG), "a group of LONG was moved"
        super().__init__(*args)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if long := next((group for group in LONG if group in self.workqueue), None):
            self.workqueue.move_to_end(long, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    return Together(config, log) if config.getoption("dist") == "load" else None
