"""Judges and writers by every backend: the same replies whoever writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from completions_server import CompletionsServer, Handler, fails, good
from planted_vllm import Vllm
from planted_vllm import planted as planted_vllm
from prm800k_rows import solved
from run_files import write_rows, write_yaml

from faithscope import interp
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.judges import STAGES
from faithscope.experiments.engine.store import read_records

VOCABULARY = 1000
"""More ids than the judge knows."""
MUTE = 3
"""Exit code of a run whose only judge, with random weights, says nothing that can be read."""
SERVERS = {"backend": "vllm-server", "endpoints": ["http://127.0.0.1:1/v1"]}
Reply = tuple[str, str, str]
"""The text of a reply, what became of it, and its problem."""


@pytest.fixture
def server(model: str) -> Iterator[CompletionsServer]:
    pytest.importorskip("openai", reason="needs the extra: pip install 'faithscope[judge]'")
    loaded = interp.load(model, dtype="float32", device="cpu")
    with CompletionsServer(loaded, names=("plain",)) as running:
        yield running


def config(folder: Path, model: str, **judge: Any) -> Path:
    write_rows(folder / "chains/phase1_train.jsonl", solved("Find x.", 6, 20))
    values = {
        "name": "c2",
        "benchmark": "c2faith",
        "out": str(folder / "runs"),
        "data": {"path": str(folder / "chains"), "splits": "phase1_train"},
        "perturb": {"levels": [0.5], "writer": model, "temperature": 0.0},
        "forms": ["c2_detection"],
        "judge": {"model": model, "structured": "prompt", "max_tokens": 16} | judge,
    }
    return write_yaml(folder / "c2.yaml", values)


def run(path: Path) -> int:
    """A run of one part, which leaves tables and figures to who joins them."""
    return execute(["run", str(path), "--shard", "1/2"])


def replies(folder: Path) -> dict[tuple[str, str], Reply]:
    return {
        (stage, r["ask"]): (r["text"], r["outcome"], r["problem"])
        for stage in STAGES.values()
        for r in read_records(folder / "runs/c2", stage)
    }


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory, model: str) -> dict[Any, Reply]:
    folder = tmp_path_factory.mktemp("here")
    assert run(config(folder, model)) == MUTE
    return replies(folder)


@pytest.mark.in_time(1)
@pytest.mark.parametrize("backend", ["vllm-server", "vllm"])
def test_judges_reply_the_same_whoever_writes(
    tmp_path: Path,
    model: str,
    backend: str,
    server: CompletionsServer,
    in_process: dict[Any, Reply],
) -> None:
    vllm = Vllm()
    with planted_vllm(vllm) if backend == "vllm" else nullcontext():
        urls = [server.url] if backend == "vllm-server" else []
        assert run(config(tmp_path, model, backend=backend, endpoints=urls)) == MUTE
    assert replies(tmp_path) == in_process
    assert {stage for stage, _ in in_process} == set(STAGES.values())
    # an engine would keep the weights, which are read for the log-probs, from the device
    assert vllm.open == 0


def test_a_writer_writes_by_servers(tmp_path: Path, model: str, server: CompletionsServer) -> None:
    path = config(tmp_path, model, backend="vllm-server", endpoints=[server.url])
    assert execute(["build", str(path), "--set", "perturb.acausal=llm"]) == 0
    (lines,) = (tmp_path / "runs/c2").rglob("acausal*.jsonl")
    (record,) = json.loads(lines.read_text().splitlines()[-1])["records"]
    asked = [a["prompt"] for a in server.asked if len(a["prompt"]) > 2]
    assert [len(prompt) for prompt in asked] == [record["input_tokens"]]
    assert record["output_tokens"] == 16


@pytest.mark.slow
def test_an_ask_that_a_server_refuses_is_asked_again_at_the_next_start(
    tmp_path: Path, model: str, server: CompletionsServer, in_process: dict[Any, Reply]
) -> None:
    path = config(tmp_path, model, backend="vllm-server", endpoints=[server.url])
    refused: list[Any] = []

    def refuse_one(handler: Handler) -> None:
        # of two tokens is the question whether ids come back
        if len(handler.asked["prompt"]) > 2 and not refused:
            refused.append(handler.asked["prompt"])
            return fails(400, "no")(handler)
        return good(handler)

    server.plan.update({first: [refuse_one] for first in range(VOCABULARY)})
    assert run(path) == 3
    assert len(replies(tmp_path)) == len(in_process) - 1
    server.asked.clear()
    assert run(path) == MUTE
    assert [a["prompt"] for a in server.asked if len(a["prompt"]) > 2] == refused
    assert replies(tmp_path) == in_process


@pytest.mark.parametrize(
    ("reference", "judge", "problem"),
    [
        (None, {"backend": "vllm", "structured": "schema"}, "structured 'schema' is of models"),
        (None, {"backend": "vllm-server"}, "needs endpoints; give http"),
        ("planted:hint", SERVERS, r"judge\.endpoints serve one model, and 2"),
    ],
)
def test_what_a_backend_cannot_do_is_said_before_the_run(
    tmp_path: Path, model: str, reference: str | None, judge: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(config(tmp_path, model, **judge), [f"reference={reference or 'null'}"])
