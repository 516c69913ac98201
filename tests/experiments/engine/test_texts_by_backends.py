"""Traces of SLRC by every backend: token ids in and out, the same traces whoever writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from alike import assert_alike
from completions_server import CompletionsServer, Handler, dies, fails, good
from planted_vllm import Vllm
from planted_vllm import planted as planted_vllm
from run_files import write_yaml

from faithscope import interp
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import TraceSettings, make_traces
from faithscope.experiments.engine.store import read_records
from faithscope.interp.backends.server import connect
from faithscope.interp.errors import UserError
from faithscope.interp.generation import room_for
from faithscope.interp.model import Model

MODEL = "planted:faithful"
ITEMS = 5


@pytest.fixture(scope="module")
def model() -> Model:
    return interp.load(MODEL, dtype="float32", device="cpu")


@pytest.fixture
def server(model: Model) -> Iterator[CompletionsServer]:
    pytest.importorskip("openai", reason="needs the extra: pip install 'faithscope[judge]'")
    with CompletionsServer(model, names=("faithful",)) as running:
        yield running


def config(folder: Path, **changes: Any) -> Path:
    generation = {"max_new_tokens": 256, "batch_size": 2} | changes.pop("generation", {})
    values = {
        "name": "run",
        "out": str(folder),
        "model": {"name": MODEL, "dtype": "float32", "device": "cpu"},
        "tasks": ["planted"],
        "data": {"limit": ITEMS},
        "probes": ["flow"],
        "generation": generation,
        "report": {"bootstrap": 5},
    }
    folder.mkdir(exist_ok=True)
    return write_yaml(folder / "run.yaml", values | changes)


def traces(folder: Path) -> dict[str, dict[str, Any]]:
    return {r["item"]: r for r in read_records(folder / "run", "trace")}


def run(path: Path) -> int:
    """A run of one part, which leaves tables and figures to who joins them."""
    return execute(["run", str(path), "--shard", "1/2"])


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("here")
    assert run(config(folder)) == 0
    return traces(folder)


@contextmanager
def writing(backend: str, server: CompletionsServer) -> Iterator[dict[str, Any]]:
    with planted_vllm(Vllm()) if backend == "vllm" else nullcontext():
        urls = [server.url] if backend == "vllm-server" else []
        yield {"backend": backend, "endpoints": urls}


@pytest.mark.parametrize("backend", ["vllm-server", "vllm"])
def test_traces_are_the_same_tokens_whoever_writes_them(
    tmp_path: Path,
    backend: str,
    server: CompletionsServer,
    in_process: dict[str, dict[str, Any]],
) -> None:
    with writing(backend, server) as generation:
        assert run(config(tmp_path, generation=generation)) == 0
    found = traces(tmp_path)
    assert found.keys() == in_process.keys()
    assert found
    for item, trace in found.items():
        here = in_process[item]
        origin, of_here = trace["origin"], here["origin"]
        assert {k: v for k, v in trace.items() if k != "origin"} == {
            k: v for k, v in here.items() if k != "origin"
        }
        assert origin["template_hash"] == of_here["template_hash"]
        assert origin["sampling"]["backend"] == backend
        assert "batch_size" not in origin["sampling"]
    # the weights are read for the probes all the same
    assert {r["item"] for r in read_records(tmp_path / "run", "flow")} == set(found)
    if backend == "vllm-server":
        assert sum(len(asked["prompt"]) > 2 for asked in server.asked) == len(found)


def scored(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["item"], r["variant"]): r for r in read_records(folder / "run", "slrc")}


@pytest.mark.slow
@pytest.mark.parametrize("backend", [pytest.param("vllm-server", marks=pytest.mark.slow), "vllm"])
def test_probes_measure_the_same_whoever_writes_their_texts(
    tmp_path: Path, backend: str, server: CompletionsServer
) -> None:
    probes = {"probes": ["slrc"], "slrc": {"edits": ["remove", "regenerate"]}}
    assert run(config(tmp_path / "here", **probes)) == 0
    with writing(backend, server) as generation:
        path = config(tmp_path / "there", generation=generation | {"probes": True}, **probes)
        assert run(path) == 0
    here, there = scored(tmp_path / "here"), scored(tmp_path / "there")
    assert here.keys() == there.keys()
    assert here
    for at, record in here.items():
        assert_alike(there[at], record)
    facts = json.loads((tmp_path / "there" / "run" / "environment.json").read_text())
    assert f'"probes_backend": "{backend}"' in json.dumps(facts)
    if backend == "vllm-server":
        assert len(server.asked) > 10 * ITEMS


@pytest.mark.slow
def test_a_lost_server_of_probes_ends_the_run_and_costs_no_item(
    tmp_path: Path, server: CompletionsServer, in_process: dict[str, dict[str, Any]]
) -> None:
    generation = {"backend": "vllm-server", "endpoints": [server.url], "probes": True}
    path = config(tmp_path, generation=generation, probes=["slrc"])
    first = next(iter(in_process.values()))["prompt_ids"][0]
    # the check that ids come back, and the traces; then it is gone
    server.plan[first] = [good] * (len(in_process) + 3) + [dies]
    assert run(path) == 2
    assert traces(tmp_path).keys() == in_process.keys()
    assert [r for r in read_records(tmp_path / "run", "slrc") if r.get("failed")] == []


def test_what_this_process_writes_anyway_is_no_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="backend 'here' writes their texts anyway"):
        load_config(config(tmp_path, generation={"probes": True}))


@pytest.mark.slow
def test_a_trace_that_fails_costs_no_other_and_is_written_at_the_next_start(
    tmp_path: Path, server: CompletionsServer, in_process: dict[str, dict[str, Any]]
) -> None:
    path = config(tmp_path, generation={"backend": "vllm-server", "endpoints": [server.url]})
    refused: list[Any] = []

    def refuse_one(handler: Handler) -> None:
        # of two tokens is the question whether ids come back
        if len(handler.asked["prompt"]) > 2 and not refused:
            refused.append(handler.asked["prompt"])
            return fails(400, "no")(handler)
        return good(handler)

    for prompt in ([1], *(trace["prompt_ids"] for trace in in_process.values())):
        server.plan[prompt[0]] = [refuse_one]
    assert run(path) == 3
    written = traces(tmp_path)
    assert len(written) == len(in_process) - 1
    server.asked.clear()
    assert run(path) == 0
    assert traces(tmp_path).keys() == in_process.keys()
    assert [asked["prompt"] for asked in server.asked if len(asked["prompt"]) > 2] == refused


def test_a_notebook_may_have_its_traces_written_elsewhere(
    model: Model, server: CompletionsServer
) -> None:
    task = get_task("planted")
    asked = [(task, question) for question in task.load(LoadSettings(limit=3))]
    settings = TraceSettings(max_new_tokens=48)
    backend = connect("faithful", [server.url])
    here, there = (
        make_traces(model, asked, settings),
        make_traces(model, asked, settings, None, backend),
    )
    assert [t.reasoning_ids for t in here] == [t.reasoning_ids for t in there]
    assert [t.steps for t in here] == [t.steps for t in there]


def test_one_server_serves_one_model(tmp_path: Path) -> None:
    several = {"name": [MODEL, "planted:hint"]}
    generation = {"backend": "vllm-server", "endpoints": ["http://127.0.0.1:1/v1"]}
    with pytest.raises(ConfigError, match=r"generation\.endpoints serve one model"):
        load_config(config(tmp_path, model=several, generation=generation))
    with pytest.raises(ConfigError, match="needs endpoints; give http"):
        load_config(config(tmp_path, generation={"backend": "vllm-server"}))


def test_a_text_ends_where_the_positions_do() -> None:
    assert room_for(32_768, 900, None) == 32_768
    assert room_for(32_768, 900, 131_072) == 32_768
    assert room_for(32_768, 900, 32_768) == 31_868
    with pytest.raises(UserError, match="a prompt of 32768 tokens leaves no room"):
        room_for(32_768, 32_768, 32_768)
