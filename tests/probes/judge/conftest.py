"""A home that shows what is written to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fault_server import KEY


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home of their own, where nothing may appear; and the planted key."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(home)
    return home
