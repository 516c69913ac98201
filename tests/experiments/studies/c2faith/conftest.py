"""A tiny judge on disk, and a run in which it did all there is to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from c2_runs import config

from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run


@pytest.fixture(scope="session")
def model(plain: str) -> str:
    """A random model, whose written replies are no verdicts."""
    return plain


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """The run folder: judged in both readings, with a reference, and read from inside."""
    judge = {"model": model, "readings": ["generated", "scored"]}
    path = config(
        tmp_path_factory.mktemp("judged"), judge, reference=model, internals={"model": model}
    )
    outcome = run(load_config(path))
    assert outcome.failures == []
    return outcome.run_dir
