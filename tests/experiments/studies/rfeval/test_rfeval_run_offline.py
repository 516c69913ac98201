"""A run whose outputs vLLM writes in this process, and an engine that dies in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from planted_vllm import Vllm, planted
from rf_runs import Case, config

from faithscope.experiments.cli import execute
from faithscope.experiments.engine import worker
from faithscope.experiments.studies.rfeval.results import results

CASES = [Case(f"item{n}") for n in range(2)]
WHOLE = "1/2"
"""The part that all items of a small run are in; leaves tables and figures to who joins them."""


def of_vllm(folder: Path, plain: str, *models: str) -> list[str]:
    """Arguments of a run of models over the cases, judged by `plain`."""
    changes: dict[str, Any] = {
        "generate": {"backend": "vllm", "max_new_tokens": 40},
        "model": {"name": list(models)},
        "judge": {"model": plain},
        "log_probs": True,
    }
    return ["run", str(config(folder, CASES, models[0], **changes)), "--shard", WHOLE]


@pytest.fixture
def reads_alone(monkeypatch: pytest.MonkeyPatch) -> Vllm:
    """A vLLM none of whose engines may be open where weights are loaded."""
    vllm, load = Vllm(), worker.load_for_run

    def alone(*given: Any, **named: Any) -> Any:
        assert vllm.open == 0
        return load(*given, **named)

    monkeypatch.setattr(worker, "load_for_run", alone)
    return vllm


def test_the_engine_is_closed_before_the_weights_are_read(
    tmp_path: Path, chain: str, plain: str, reads_alone: Vllm
) -> None:
    with planted(reads_alone):
        assert execute(of_vllm(tmp_path, plain, chain)) == 0
    assert len(reads_alone.loaded) == 1
    made = results(tmp_path / "runs/rf")
    assert len(made.outputs) == len(CASES)
    assert len(made.run.log_probs.groupby(["model", "item"])) == len(CASES)


def test_an_engine_that_dies_costs_no_other_model_and_the_run_goes_on(
    tmp_path: Path, chain: str, plain: str, reads_alone: Vllm, capfd: pytest.CaptureFixture[str]
) -> None:
    other = str(shutil.copytree(chain, tmp_path / "other"))
    both = of_vllm(tmp_path, plain, chain, other)
    reads_alone.dies_after = 3
    with planted(reads_alone):
        assert execute(both) == 2
        told = capfd.readouterr().err
        assert f"left out: model {chain!r}: the engine of vLLM 0.0.test ended (EngineDead" in told
        assert "Traceback" not in told
        assert [Path(p).name for p in reads_alone.loaded] == [Path(chain).name, "other"]
        made = results(tmp_path / "runs/rf")
        assert sorted(item for model, item in made.outputs if model == other) == [
            f"legal_decision/item{n}" for n in range(2)
        ]
        assert execute(both) == 0
    made = results(tmp_path / "runs/rf")
    assert len(made.outputs) == 2 * len(CASES)
    assert len(made.run.log_probs.groupby(["model", "item"])) == 2 * len(CASES)
