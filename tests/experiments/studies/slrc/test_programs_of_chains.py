"""Runs in which models write chains down as programs: asked, mended once, executed, counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.interventions import NotExecutable
from faithscope.probes import program_reader

READER = "api:openai/gpt-4.1"
_STEP = re.compile(r"(\S+) ([-+]) (\S+) makes (\d+)")


def program_of(prompt: str) -> str:
    """The program of a planted chain."""
    chain = prompt.rpartition("Reasoning: ")[2]
    lines = [
        {
            "words": m.group(),
            "operation": f"{f'S{k}' if k else 'Q1'} {m[2]} Q{k + 2}",
            "result": m[4],
        }
        for k, m in enumerate(_STEP.finditer(chain))
    ]
    return json.dumps({"lines": lines})


def reads(handler: Handler) -> None:
    """A reader that first talks about every second chain, and always mends its reply."""
    messages = handler.request_body["messages"]
    said = program_of(messages[0]["content"])
    if len(messages) == 1 and len(handler.server.bodies) % 2:
        said = f"Here it is. {said} I hope that helps."
    handler.send(200, completion(said))


REPLIES = [reads]


@pytest.fixture(autouse=True)
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule reads nothing, so that chains of planted models are as chains in words."""

    def nothing(*chain: str) -> None:
        raise NotExecutable("no_operation_stated")

    monkeypatch.setattr(program_reader, "program_of", nothing)


def config(folder: Path, url: str, **more: Any) -> Path:
    known: dict[str, Any] = {
        "name": "words",
        "out": str(folder / "runs"),
        "model": {"name": ["planted:faithful"]},
        "tasks": ["planted"],
        "data": {"limit": 6},
        "generation": {"max_new_tokens": 256},
        "probes": ["interchange"],
        "programs": {"model": READER, "base_url": url, "max_retries": 0},
        "report": {"bootstrap": 20},
    }
    file = folder / "words.yaml"
    file.write_text(yaml.safe_dump(known | more))
    return file


@pytest.mark.slow
def test_a_reader_is_asked_once_and_once_more_to_mend_its_reply(
    tmp_path: Path, server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(config(tmp_path, server.url))
    assert execute(["run", path, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"{READER}: 6 chains" in shown
    assert re.search(rf"{READER} +6 ", shown), shown
    assert not server.bodies
    assert execute(["run", path]) == 0
    loaded = load_run(tmp_path / "runs" / "words")
    (row,) = loaded.tables["interchange"].to_dict("records")
    assert row["by_model"] == 1
    assert row["interchange"] == row["left"] == 1
    assert set(loaded.interchange["reader"]) == {READER}
    mended = [b for b in server.bodies if len(b["messages"]) == 3]
    assert len(server.bodies) == 6 + len(mended)
    assert mended
    assert all("This cannot be used" in b["messages"][2]["content"] for b in mended)
    assert all("lines" in json.dumps(b["response_format"]) for b in server.bodies)
    calls = len(server.bodies)
    assert execute(["run", path]) == 0
    assert len(server.bodies) == calls


@pytest.mark.slow
def test_replies_that_are_no_program_are_counted_with_their_reasons(
    tmp_path: Path, server: FaultServer
) -> None:
    def talks(handler: Handler) -> None:
        handler.send(200, completion("The answer is 7."))

    def copies(handler: Handler) -> None:
        said = json.loads(program_of(handler.request_body["messages"][0]["content"]))
        for line in said["lines"]:
            line["operation"] = line["result"]
        handler.send(200, completion(json.dumps(said)))

    for behave, reason in ((talks, "program_not_json"), (copies, "program_ignores_its_words")):
        server.default = [behave]
        folder = tmp_path / reason
        folder.mkdir()
        assert execute(["run", str(config(folder, server.url))]) == 3
        lost = load_run(folder / "runs" / "words").tables["exclusions"]
        reasons = dict(zip(lost["reason"], lost["n"], strict=True))
        assert reasons[reason] > 0, reasons
        assert sum(n for why, n in reasons.items() if why.startswith("program_")) == 6


@pytest.mark.slow
def test_a_server_that_is_down_costs_nothing_but_a_second_start(
    tmp_path: Path, server: FaultServer
) -> None:
    path = str(config(tmp_path, server.url))
    server.default = [lambda handler: handler.send(500, {"error": {"message": "down"}})]
    assert execute(["run", path]) == 3
    server.default = REPLIES
    assert execute(["run", path]) == 0
    assert load_run(tmp_path / "runs" / "words").tables["interchange"]["interchange"].tolist() == [
        1
    ]


def test_readers_that_nothing_asks_for_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = [READER, "bundled:smollm2-135m", "planted:faithful"]
    for changes, why in (
        ({"probes": ["slrc"]}, "no probe of the run reads programs; add interchange"),
        ({"programs": {"model": three}}, "names 3 readers; name one, or two"),
        ({"programs": {"model": "planted:no_such"}}, "planted:no_such"),
        ({"programs": {"model": READER, "temperature": -1.0}}, "programs.temperature"),
    ):
        assert execute(["run", str(config(tmp_path, "http://127.0.0.1:9", **changes))]) == 2
        told = capsys.readouterr().err
        assert why in told, told
