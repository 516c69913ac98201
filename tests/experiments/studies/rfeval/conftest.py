"""Models of small runs, saved once, and the servers that act out what runs are made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rf_runs import Servers, chain_model, serving, thinking_model
from tiny_models import saved


@pytest.fixture(scope="session")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved model with a chat template that opens the reasoning; random weights."""
    return saved(thinking_model(), tmp_path_factory.mktemp("models") / "thinking")


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved model that writes whole outputs by itself (`rf_runs.SPOKEN`)."""
    return saved(chain_model(), tmp_path_factory.mktemp("models") / "chain")


@pytest.fixture
def servers(thinking: str) -> Iterator[Servers]:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    with serving(thinking) as both:
        yield both
