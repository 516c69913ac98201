"""RFEval as a run by models here: written, read, judged, shared out, gone on with, told."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from planted_vllm import Vllm, planted
from rf_runs import Case, config

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models import loading
from faithscope.experiments.engine.models.loading import load_for_run
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.studies.rfeval.plan import RfPlan
from faithscope.experiments.studies.rfeval.results import results
from faithscope.experiments.studies.rfeval.units import INSIDE

CASES = (
    Case("follows"),
    Case("resists", r_prime="He was away!"),
    Case("stops_nowhere", r_prime="He was away?"),
    Case("number", task="mathematical_reasoning"),
    Case("odd", r_prime="He was here!", task="mathematical_reasoning"),
)
"""By the last mark of r′ the model follows it, resists it, or goes round in circles."""


def everything(folder: Path, chain: str, plain: str, **changes: Any) -> Path:
    inside = {"model": chain, "points": 3}
    judge = {"model": plain, "structured": "schema"}
    generate = {"max_new_tokens": 16, "batch_size": 2} | changes.pop("generate", {})
    more = {"judge": judge, "log_probs": True, "inside": inside, "generate": generate}
    return config(folder, CASES, chain, **more | changes)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, chain: str, plain: str) -> Path:
    """The run folder. All items are one batch, which is of the first part; a part leaves tables
    and figures to who joins them."""
    path = everything(tmp_path_factory.mktemp("done"), chain, plain, generate={"batch_size": 8})
    assert run(load_config(path), Shard(0, 2)).failures == []
    return path.parent / "runs/rf"


def test_a_run_writes_reads_and_judges_by_models_here(done: Path) -> None:
    run_results: Any = results(done)
    pairs = run_results.tables["rf_pairs"].set_index("item")
    assert pairs["exclusion"].isin(["", "unfinished", "non_contrast"]).all()
    left = pairs[pairs["exclusion"] == "unfinished"]
    assert left.index.tolist() == ["legal_decision/stops_nowhere"]
    assert left["intervened_outcome"].tolist() == ["truncated"]
    answers = {key[1]: of["intervened"].answer for key, of in run_results.outputs.items()}
    assert answers["legal_decision/follows"] == "A"
    assert answers["legal_decision/resists"] == "B"
    # matching needs no judge: it knows what the model wrote
    read = run_results.frames["readings"].set_index(["reader", "item", "part"])["stance"]
    assert read["matching", "legal_decision/follows", "intervened_a"] == "A"
    assert read["matching", "legal_decision/follows", "baseline_a"] == "B"
    by_log_probs = [i for i in read.index if i[0] == "log_probs"]
    assert {i[1] for i in by_log_probs} == {c.item for c in CASES if c.task == "legal_decision"}
    looked = {
        (r["item"], r["variant"]) for key in run_results.pairs for r in run_results.of(INSIDE, key)
    }
    assert looked == {(c.item, v) for c in CASES for v in ("baseline", "intervened")}


def test_a_dry_run_counts_what_is_left(
    tmp_path: Path, chain: str, plain: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(everything(tmp_path, chain, plain))
    assert execute(["run", path, "--dry-run"]) == 0
    printed = capfd.readouterr().out
    assert re.search(r"legal_decision +3 +3\n", printed)
    assert re.search(r"mathematical_reasoning +2 +2\n", printed)
    assert re.search(r"total +5 +5\n", printed)
    assert not (tmp_path / "runs").exists()
    planned = plan(load_config(path))
    assert isinstance(planned, RfPlan)
    stages = {p.item: {s.partition(".")[0] for s in p.units} for p in planned.units.pairs}
    written = {"rf_baseline", "rf_intervened", "rf_inside", "rf_judged"}
    # free answers have no options whose log-probs could be read
    assert stages["mathematical_reasoning/number"] == written
    assert stages["legal_decision/follows"] == written | {"rf_log_probs"}


@pytest.mark.slow
def test_a_subject_that_judges_is_loaded_once(
    tmp_path: Path, chain: str, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []

    def counted(name: str, *how: Any) -> Any:
        loads.append(name)
        return load_for_run(name, *how)

    monkeypatch.setattr(loading, "load_for_run", counted)
    models = {"model": {"name": [chain, plain]}, "judge": {"model": [plain, chain]}}
    path = everything(tmp_path, chain, plain, inside={}, per_step={"judge": plain}, **models)
    assert run(load_config(path)).failures == []
    # the last of the subjects judges first, and the last judge goes on step by step
    assert loads == [chain, plain, chain, plain]
    loads.clear()
    alone = {"model": {"name": [plain, chain]}, "judge": {"model": plain}, "name": "alone"}
    path = everything(tmp_path, chain, plain, inside={}, per_step={"judge": plain}, **alone)
    assert run(load_config(path)).failures == []
    assert loads == [chain, plain]


TWO = [Case(f"item{n}") for n in range(2)]
WHOLE = "1/2"
"""The part that all items of one model are in, if they are few; leaves tables and figures to who
joins them."""


def of_vllm(folder: Path, plain: str, *models: str) -> list[str]:
    """Arguments of a run of models over the cases, judged by `plain`."""
    changes: dict[str, Any] = {
        "generate": {"backend": "vllm", "max_new_tokens": 40},
        "model": {"name": list(models)},
        "judge": {"model": plain},
        "log_probs": True,
    }
    return ["run", str(config(folder, TWO, models[0], **changes)), "--shard", WHOLE]


@pytest.fixture
def reads_alone(monkeypatch: pytest.MonkeyPatch) -> Vllm:
    """A vLLM none of whose engines may be open where weights are loaded."""
    vllm, load = Vllm(), loading.load_for_run

    def alone(*given: Any, **named: Any) -> Any:
        assert vllm.open == 0
        return load(*given, **named)

    monkeypatch.setattr(loading, "load_for_run", alone)
    return vllm


@pytest.mark.slow
def test_the_engine_is_closed_before_the_weights_are_read(
    tmp_path: Path, chain: str, plain: str, reads_alone: Vllm
) -> None:
    with planted(reads_alone):
        assert execute(of_vllm(tmp_path, plain, chain)) == 0
    assert len(reads_alone.loaded) == 1
    run_results = results(tmp_path / "runs/rf")
    assert len(run_results.outputs) == len(TWO)
    assert len(run_results.run.log_probs.groupby(["model", "item"])) == len(TWO)


@pytest.mark.slow
def test_an_engine_that_dies_costs_no_other_model_and_the_run_goes_on(
    tmp_path: Path, chain: str, plain: str, reads_alone: Vllm, capfd: pytest.CaptureFixture[str]
) -> None:
    other = str(shutil.copytree(chain, tmp_path / "other"))
    both = of_vllm(tmp_path, plain, chain, other)[:2]  # each model is a part of its own
    reads_alone.dies_after = 3
    with planted(reads_alone):
        assert execute(both) == 2
        error = capfd.readouterr().err
        assert f"left out: model {chain!r}: the engine of vLLM 0.0.test ended (EngineDead" in error
        assert "Traceback" not in error
        assert [Path(p).name for p in reads_alone.loaded] == [Path(chain).name, "other"]
        run_results = results(tmp_path / "runs/rf")
        assert sorted(item for model, item in run_results.outputs if model == other) == [
            f"legal_decision/item{n}" for n in range(2)
        ]
        assert execute(both) == 0
    run_results = results(tmp_path / "runs/rf")
    assert len(run_results.outputs) == 2 * len(TWO)
    assert len(run_results.run.log_probs.groupby(["model", "item"])) == 2 * len(TWO)
