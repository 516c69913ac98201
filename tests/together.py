"""Which tests one process runs: those of a module, or of a folder that has fixtures of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]


def group_of(nodeid: str) -> str:
    """The module of a test, or its folder if that has a `conftest.py`."""
    module = nodeid.partition("::")[0]
    folder = Path(module).parent
    return str(folder) if (ROOT / folder / "conftest.py").exists() else module


class Together(LoadScopeScheduling):
    """Shared fixtures are set up in one process, where others would each set up all."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    return Together(config, log) if config.getoption("dist") == "load" else None
