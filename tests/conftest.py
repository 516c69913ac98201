"""What every test runs under, and the tiny models as fixtures."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import bytecode  # noqa: F401
import fault_server
import pytest
import torch
from hypothesis import settings
from tiny_models import CONFIGS, NO_TREE, saved, tiny

from faithscope.experiments.garbage import gc_paused
from faithscope.interp import scoring
from faithscope.interp.model import Model

pytest_plugins = ["processor_time", "together"]

# how long an example may take says how busy the machine is, not whether the code is right
settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")

# tests run in parallel processes: threads beyond the cores cost more than they give
torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Modules and tests stay to the end: looking for garbage among them takes seconds."""
    with gc_paused():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `in_time(n)`, n that are spread evenly stay fast."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("in_time"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_test in cases.values():
        mark = of_test[0].get_closest_marker("in_time")
        assert mark is not None
        fast = {i * len(of_test) // mark.args[0] for i in range(mark.args[0])}
        for i, item in enumerate(of_test):
            if i not in fast:
                item.add_marker(pytest.mark.slow)


kept = cache(tiny)
"""Models by family: every module has all families in turn, and pytest would make each anew."""

FORESTS = {"llama", "gpt2", "qwen3", "gemma2", "mixtral", "gpt_oss", "deepseek_v3"}
"""Fast families among those that the forest serves, one for each kind of attention and layers. The
others are verified (`test_every_supported_family_verifies`), and take every test that may be
slow."""


@pytest.fixture(
    scope="session",
    params=[pytest.param(f, marks=[] if f in FORESTS else pytest.mark.slow) for f in CONFIGS],
)
def tree_model(request: pytest.FixtureRequest) -> Model:
    return kept(request.param)


LOOPS = {"falcon", "gptj", "qwen3_next"}
"""Fast families among those that the forest cannot serve: other attention, and linear attention.
Scans of state-space layers take seconds on a CPU."""


@pytest.fixture(
    scope="session",
    params=[pytest.param(f, marks=[] if f in LOOPS else pytest.mark.slow) for f in NO_TREE],
)
def loop_model(request: pytest.FixtureRequest) -> Model:
    return kept(request.param)


@pytest.fixture(scope="session")
def llama() -> Model:
    return tiny("llama")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny random model that reads long prompts and has no chat template."""
    model = tiny("llama", max_position_embeddings=8192)
    return saved(model, tmp_path_factory.mktemp("models") / "plain")


@pytest.fixture
def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fault_server.FaultServer]:
    """The server of models behind APIs, with a key for it: it does what `REPLIES` of the test's
    module says."""
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    monkeypatch.setenv("OPENAI_API_KEY", fault_server.KEY)
    with fault_server.FaultServer() as running:
        running.default = getattr(request.module, "REPLIES", running.default)
        yield running


@pytest.fixture
def everything_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens behind labels are run however unlikely they are: random weights make all so."""
    monkeypatch.setattr(scoring, "LEAST_LIKELY", 1e-300)
    monkeypatch.setattr(scoring, "LEAST_SHARE", 1e-300)
