"""Traces of SLRC by every backend: token ids in and out, the same traces whoever writes them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
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
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models import loading
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.experiments.engine.store import Store, read_records
from faithscope.experiments.engine.traces import writers
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.backends import Backend, BackendLost, choice
from faithscope.interp.backends.choice import Device
from faithscope.interp.backends.server import connect
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Sampling, room_for
from faithscope.interp.model import Model

MODEL = "planted:faithful"
ITEMS = 5
VERSIONS = {"vllm": "0.0.test", "vllm-server": "0.0.test"}


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
        assert there[at].pop("texts_by") == f"{backend} {VERSIONS[backend]}"
        assert_alike(there[at], record)
    facts = json.loads((tmp_path / "there" / "run" / "environment.json").read_text())
    assert f'"probes_backend": "{backend}"' in json.dumps(facts)
    if backend == "vllm-server":
        assert len(server.asked) > 10 * ITEMS


@pytest.fixture
def on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine with a large CUDA device and vLLM says of itself; models stay on the CPU."""
    card = Device("cuda", 80 * choice.GIB, 79 * choice.GIB)
    monkeypatch.setattr(writers, "version_of_vllm", lambda: "0.32.0")
    monkeypatch.setattr(writers, "_device", lambda name: card)
    monkeypatch.setattr(choice, "SMALL", 0)


def chosen(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run" / "environment.json").read_text())["chosen"]["writer"]


def units(folder: Path, stage: str) -> dict[str, str]:
    index = Index.of(folder / "run")
    return {key[-1]: entry.unit for key, entry in index.places((stage,))}


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_card")
def test_by_default_one_vllm_writes_traces_and_what_probes_need(
    tmp_path: Path, in_process: dict[str, dict[str, Any]]
) -> None:
    path = config(tmp_path, probes=["slrc", "flow"], slrc={"edits": ["remove", "regenerate"]})
    with planted_vllm(Vllm()) as vllm:
        assert run(path) == 0
    assert len(vllm.loaded) == 1
    assert vllm.open == 0
    assert {t["origin"]["sampling"]["backend"] for t in traces(tmp_path).values()} == {"vllm"}
    assert {i: t["reasoning_ids"] for i, t in traces(tmp_path).items()} == {
        i: t["reasoning_ids"] for i, t in in_process.items()
    }
    assert {r["texts_by"] for r in read_records(tmp_path / "run", "slrc")} == {"vllm 0.0.test"}
    assert chosen(tmp_path) == {"backend": "vllm", "probes": True, "reason": "weights fit twice"}
    stored = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["generation"]
    assert (stored["backend"], stored["probes"]) == ("auto", None)


def test_vllm_gets_what_the_measured_model_leaves(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = sum(p.nbytes for p in model.hf.parameters())
    card = Device("cuda", 100 * choice.GIB, 60 * choice.GIB)
    monkeypatch.setattr(loading, "device_at", lambda device: card)
    settings = load_config(config(tmp_path), must_be=RunConfig)
    plan = writers.room_beside(settings, model)
    assert plan is not None
    assert plan == choice.beside(
        choice.Asked(),
        choice.Weights(MODEL, held, files_of(MODEL).token_bytes(4), model.max_positions),
        Device("cuda", 100 * choice.GIB, 60 * choice.GIB + held),
    )
    asleep = choice.Beside(True, 40_000, 20 * choice.GIB)
    with planted_vllm(Vllm()) as vllm, Store(settings, {}) as store:
        budget = model.token_budget
        section = settings.generation.model_copy(update={"backend": "vllm", "probes": True})
        with loading.written_by(section, model, settings.model, store, asleep):
            assert model.token_budget == min(budget, 40_000)
            assert vllm.loaded == []
            (text,) = model.generate([[1, 2, 3]], 4)
            (options,) = vllm.options
        assert model.writer is None
        assert model.token_budget == budget
    assert model.generate([[1, 2, 3]], 4) == [text]
    assert options["gpu_memory_utilization"] == 0.4
    assert options["enable_sleep_mode"]
    assert options["dtype"] == "float32"
    assert vllm.slept == ["sleep", "wake", "sleep"]


def test_an_engine_that_does_not_start_is_tried_once() -> None:
    tries: list[int] = []

    def start() -> Backend:
        tries.append(1)
        raise UserError("model 'org/m' cannot be loaded by vLLM: no kernel image")

    late = loading.StartedLate("org/m", start)
    for _ in range(2):
        with pytest.raises(BackendLost, match=r"no kernel image; --set generation\.backend=here"):
            late.generate([[1]], Sampling((), 1))
    assert tries == [1]
    late.close()


@pytest.mark.slow
def test_a_run_keeps_the_engine_that_it_was_begun_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    for folder in (begun, ended):
        config(folder)
    assert run(begun / "run.yaml") == 0
    assert chosen(begun)["backend"] == "here"
    request.getfixturevalue("on_a_card")
    with planted_vllm(Vllm()):
        assert run(ended / "run.yaml") == 0
        # with a card at hand, what was begun without stays as it is
        before = units(begun, "trace")
        assert run(begun / "run.yaml") == 0
    assert units(begun, "trace") == before
    assert units(ended, "trace").keys() == before.keys()
    assert not set(units(ended, "trace").values()) & set(before.values())
    request.getfixturevalue("monkeypatch").undo()
    # and without vLLM nothing is added to what it began
    records = next((ended / "run" / "records").glob("trace*.jsonl"))
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:-1]))
    capsys.readouterr()
    assert run(ended / "run.yaml") == 2
    assert "backend 'vllm' needs vLLM, which is not here" in capsys.readouterr().err
    assert execute(["run", str(ended / "run.yaml"), "--set", "generation.backend=here"]) == 2
    said = capsys.readouterr().err
    assert 'generation.backend: "auto" there, "here" now' in said


def test_a_folder_of_an_earlier_version_keeps_its_backend(tmp_path: Path) -> None:
    path = config(tmp_path, data={"limit": 1}, generation={"backend": "here", "probes": False})
    assert run(path) == 0
    before = units(tmp_path, "trace")
    config(tmp_path, data={"limit": 1})
    assert run(path) == 0
    assert units(tmp_path, "trace") == before
    assert writers.choice_for(load_config(path, must_be=RunConfig)).reason == "the run was begun so"


def test_a_dry_run_says_who_writes_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    path = config(tmp_path)

    def said() -> str:
        assert execute(["run", str(path), "--dry-run"]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "traces and what probes need written by this process: vLLM is not installed" in said()
    request.getfixturevalue("on_a_card")
    text = said()
    assert "traces and what probes need written by vllm: weights fit twice" in text
    assert f"estimated at {writers.RATIO:g} of our own time" in text
    assert "not on a GPU; --set generation.backend=here writes here" in text


def test_the_estimate_is_the_one_that_was_measured() -> None:
    with (Path(__file__).parents[3] / writers.BASIS).open() as file:
        (measured,) = (
            row
            for row in csv.DictReader(file)
            if (row["measure"], row["way"]) == ("decoding", "vllm")
        )
    assert float(measured["ratio"]) == pytest.approx(writers.RATIO, abs=0.005)


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
        load_config(config(tmp_path, generation={"backend": "here", "probes": True}))


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
