"""A home that shows what is written to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_server import KEY

from faithscope.probes.judge import providers


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home of their own, where nothing may appear; and the planted key."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for names in (p.keys for p in providers.PROVIDERS.values()):
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(home)
    return home
