"""A benchmark whose r′ a model writes and another validates, before any model is put to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused
from run_files import write_rows, write_yaml

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, fails, says

from faithscope.experiments.cli import execute
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.tables.filtering import CRITERIA

WRITER = "api:openai/gpt-4.1"
GOOD = "## Reasoning\nThe rule has one part only.\n\n## Flaw\nIt has two; this leads to A."


def verdict(**changes: Any) -> str:
    return json.dumps(
        {"reason": "told so", **dict.fromkeys(CRITERIA, True), "decision": "yes"} | changes
    )


def row(n: int, **changes: Any) -> dict[str, Any]:
    values = {"task": "legal_decision", "id": n, "question": f"q{n}; Is it so?"}
    values |= {"options": ["no", "yes"], "answer": "B", "content": {"source": "law"}}
    return values | changes


REPLIES = [says("no verdict on outputs")]


@pytest.fixture
def server(server: FaultServer) -> FaultServer:
    for n in range(5):
        server.plan[f"write-q{n}"] = [says(GOOD.replace("rule", f"rule {n}"))]
        server.plan[f"check-q{n}"] = [says(verdict())]
    return server


def prompts(folder: Path) -> None:
    """Short ones, by which the server knows who is asked about which problem."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {"legal_decision": "{question}\n{options}"}
    (folder / "rf_questions.yaml").write_text(yaml.safe_dump(words))
    tasks = ("code_generation", "mathematical_reasoning", "logical_reasoning", "table_reasoning")
    tasks += ("context_understanding", "legal_decision", "paper_review")
    told = {
        "template": "{examples}item=write-{problem}",
        "example": "E: {r_prime} {flaw}. {problem}\n",
    }
    told |= {key: dict.fromkeys(tasks, "x") for key in ("flaws", "length")}
    (folder / "rf_generate.yaml").write_text(yaml.safe_dump(told))
    fields: list[dict[str, Any]] = [{"name": "reason", "kind": "text"}]
    fields += [{"name": name, "kind": "boolean"} for name in CRITERIA]
    fields.append({"name": "decision", "kind": "label", "labels": ["yes", "no"]})
    form = {"task": "validate", "ours": True, "source": "a test", "fields": fields}
    form |= {"verdict": "decision", "template": "item=check-{problem} {r_prime} {flaw}"}
    (folder / "rf_validate.yaml").write_text(yaml.safe_dump(form))


def config(folder: Path, plain: str, server: FaultServer, n: int = 3, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    prompts(folder / "prompts")
    data = write_rows(folder / "problems.jsonl", *map(row, range(n)))
    counterfactual = {"written": True, "writer": WRITER, "validator": WRITER, "shots": 0}
    values: dict[str, Any] = {
        "name": "rf",
        "benchmark": "rfeval",
        "out": str(folder / "runs"),
        "data": {"path": str(data)},
        "counterfactual": counterfactual | changes.pop("counterfactual", {}),
        "model": {"name": plain, "device": "cpu"},
        "generate": {"max_new_tokens": 4},
        "judge": {"model": WRITER, "attempts": 1, "base_url": server.url, "max_retries": 0}
        | {"structured": "prompt", "max_connections": 1}
        | changes.pop("judge", {}),
        "prompts": str(folder / "prompts"),
        "log_probs": False,
        "report": {"bootstrap": 20, "pairs": 1},
    }
    return write_yaml(folder / "rf.yaml", values | changes)


def left_out(run_dir: Path) -> dict[str, dict[str, Any]]:
    lines = (run_dir / "benchmark/left_out.jsonl").read_text().splitlines()
    return {one["item"]: one for one in map(json.loads, lines)}


@pytest.mark.slow
def test_what_is_written_and_accepted_becomes_the_benchmark(
    tmp_path: Path, plain: str, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan["check-q1"] = [says(verdict(uniqueness=False, decision="no"))]
    server.plan["write-q2"] = [says("I would rather not.")]
    server.plan["check-q3"] = [says("hm")]
    path = str(config(tmp_path, plain, server, 5))
    assert "first `faithscope build` with the same config" in refused("run", path, "--shard", "1/2")
    assert sum(server.seen.values()) == 0
    assert execute(["build", path]) == 0
    run_dir = tmp_path / "runs/rf"
    assert capfd.readouterr().out == f"{run_dir}\n"
    written = {f"write-q{n}": 1 for n in range(5)} | {f"check-q{n}": 1 for n in (0, 1, 3, 4)}
    assert server.seen == written
    built = run_dir / "benchmark/items.jsonl"
    items, _ = read_rfeval(built)
    assert [(i.id, i.r_prime, i.explanation) for i in items] == [
        (f"legal_decision/{n}", f"The rule {n} has one part only.", "It has two; this leads to A.")
        for n in (0, 4)
    ]
    assert [(name, one["reason"], one["detail"]) for name, one in left_out(run_dir).items()] == [
        ("legal_decision/1", "rejected", "uniqueness: told so"),
        ("legal_decision/2", "no_reasoning", "the reply is not of the form: ## Reasoning, ## Flaw"),
        ("legal_decision/3", "unvalidated", left_out(run_dir)["legal_decision/3"]["detail"]),
    ]
    assert left_out(run_dir)["legal_decision/3"]["detail"].startswith("unparsed: ")
    assert left_out(run_dir)["legal_decision/1"]["r_prime"] == "The rule 1 has one part only."
    filtered = pd.read_csv(run_dir / "benchmark/rf_filtering.csv").iloc[0]
    counts = {"n_problems": 5, "n_removed": 3, "n_kept": 2, "n_no_reasoning": 1}
    counts |= {"n_unvalidated": 1, "n_fails_uniqueness": 1, "n_fails_logical_soundness": 0}
    assert {name: filtered[name] for name in counts} == counts
    assert {p.name for p in (run_dir / "prompts").iterdir()} >= {
        "rf_generate.yaml",
        "rf_validate.yaml",
        "rf_intervened.yaml",
    }

    before = built.read_bytes()
    # outputs of four tokens have no part to judge: a run that measured nothing says so
    assert execute(["run", path]) == 3
    assert built.read_bytes() == before
    assert {k: v for k, v in server.seen.items() if k} == written
    table = pd.read_csv(run_dir / "tables/rf_filtering.csv").iloc[0]
    assert {name: table[name] for name in counts} == counts
    eight = pd.read_csv(run_dir / "tables/paper_rfeval_table8.csv").groupby("task")["value"]
    assert eight.agg(list).to_dict() == {"legal_decision": [5, 3, 2], "overall": [5, 3, 2]}
    gone = pd.read_csv(run_dir / "tables/exclusions.csv").set_index("reason")["n"]
    assert gone[["r_prime: rejected", "r_prime: no_reasoning", "r_prime: unvalidated"]].sum() == 3
    assert "How r′ was written" in (run_dir / "report.html").read_text()
    assert len(pd.read_csv(run_dir / "tables/rf_pairs.csv")) == 2

    # the product is data like any other
    again = ["--set", f"data.path={built}", "--set", "counterfactual.written=false"]
    assert execute(["build", path, *again, "--set", "name=again"]) == 0
    assert (tmp_path / "runs/again/benchmark/items.jsonl").read_bytes() == before
    assert not (tmp_path / "runs/again/benchmark/rf_filtering.csv").exists()


@pytest.mark.slow
def test_an_r_prime_that_is_never_written_or_validated_leaves_its_item_out(
    tmp_path: Path, plain: str, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan["write-q0"] = [fails(400, "not this one")]
    server.plan["check-q1"] = [fails(400, "nor this")]
    path = str(config(tmp_path, plain, server))
    for _ in range(2):
        assert execute(["build", path]) == 3
        assert "after 3 starts its item is left out" in capfd.readouterr().err
    assert "check-q1" not in server.seen
    # the writer's is given up in this start, the validator's first try comes in it
    for _ in range(2):
        assert execute(["build", path]) == 3
    assert execute(["build", path]) == 0
    run_dir = tmp_path / "runs/rf"
    assert {k: v["reason"] for k, v in left_out(run_dir).items()} == {
        "legal_decision/0": "not_written",
        "legal_decision/1": "unvalidated",
    }
    assert "failed in 3 starts" in left_out(run_dir)["legal_decision/0"]["detail"]
    assert (server.seen["write-q0"], server.seen["check-q1"], server.seen["check-q2"]) == (3, 3, 1)


@pytest.mark.slow
def test_a_benchmark_is_built_in_shards(
    tmp_path: Path, plain: str, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan["check-q1"] = [says(verdict(uniqueness=False, decision="no"))]
    alone = str(config(tmp_path, plain, server, 5, name="alone"))
    assert execute(["build", alone]) == 0
    server.plan["check-q1"] = [says(verdict(uniqueness=False, decision="no"))]
    path = str(config(tmp_path, plain, server, 5, judge={"batch_size": 1}))
    # writing, then validation
    for _ in range(2):
        capfd.readouterr()
        assert execute(["build", path, "--shard", "1/2"]) == 0
        assert "left to prepare: r′ is written" in capfd.readouterr().err
        assert execute(["build", path, "--shard", "2/2"]) == 0
    assert capfd.readouterr().err.endswith("built\n")
    assert execute(["build", path]) == 0
    assert set(server.seen.values()) == {2}
    by_shards, by_one = (
        (tmp_path / "runs" / name / "benchmark/items.jsonl").read_text() for name in ("rf", "alone")
    )
    assert by_shards == by_one
    records = tmp_path / "runs/rf/records"
    assert {f.name.split(".")[-2] for f in records.glob("*.jsonl")} >= {"1of2", "2of2"}


@pytest.mark.slow
def test_parts_go_on_where_the_writing_stayed_behind(
    tmp_path: Path, plain: str, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(config(tmp_path, plain, server, 2, generate={"max_new_tokens": 4, "batch_size": 1}))
    assert execute(["build", path]) == 0
    # an output of four tokens is cut off: nothing is there to judge, and a run that measured
    # nothing says so
    for part in ("1/2", "2/2"):
        assert execute(["run", path, "--shard", part]) == 3
    run_dir, joined = tmp_path / "runs/rf", tmp_path / "joined"
    assert execute(["merge", str(run_dir), "--into", str(joined)]) == 3
    asked = dict(server.seen)
    assert execute(["run", path, "--set", f"out={tmp_path}", "--set", "name=joined"]) == 3
    assert server.seen == asked
    assert (joined / "tables/rf_filtering.csv").read_bytes() == (
        run_dir / "benchmark/rf_filtering.csv"
    ).read_bytes()
    # what would be asked otherwise is told before it is paid for
    told = tmp_path / "prompts/rf_generate.yaml"
    told.write_text(told.read_text().replace("write-", "write -"))
    capfd.readouterr()
    assert "benchmark: is not what the config makes now (requests_sha256" in refused("run", path)
    told.write_text(told.read_text().replace("write -", "write-"))
    items = run_dir / "benchmark/items.jsonl"
    items.write_text(items.read_text().replace("one part", "two parts"))
    assert "items.jsonl: is not what was written" in refused("run", path)
    assert server.seen == asked


def test_examples_come_from_the_data_or_from_a_file(
    tmp_path: Path, plain: str, server: Any
) -> None:
    path = config(tmp_path, plain, server, 1, counterfactual={"shots": 2})
    told = refused("build", path)
    assert "counterfactual.shots: 2 examples wanted for 'legal_decision/0'" in told
    assert "the data has 0 other items of task 'legal_decision' with r_prime" in told
    given = {"r_prime": "Because.", "explanation": "It is not."}
    rows = [row(7, **given, content={"source": "elsewhere"})]
    # its own problem under another id, one without a flaw, and two that fit
    rows += [row(8, **given, question="q0; Is it so?"), row(9, r_prime="Because.")]
    rows += [row(n, **given | {"r_prime": f"Because {n}."}) for n in (10, 11)]
    shown = write_rows(tmp_path / "shown.jsonl", *rows)
    more = ["--set", f"counterfactual.examples={shown}"]
    assert execute(["build", str(path), *more]) == 0
    asked = json.dumps(server.bodies[0]["messages"])
    assert asked.index("E: Because 10. It is not.") < asked.index("E: Because 11. It is not.")
    assert asked.count("E: ") == 2
    elsewhere = ["--set", "name=other", "--set", "counterfactual.examples=nowhere"]
    assert "counterfactual.examples: no such file" in refused("build", path, *elsewhere)


def test_what_cannot_be_built_is_told(
    tmp_path: Path, plain: str, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(config(tmp_path, plain, server))
    assert "problems.jsonl, line 1: no column 'r_prime'" in refused(
        "build", path, "--set", "counterfactual.written=false"
    )
    assert "written: true needs a validator" in refused(
        "build", path, "--set", "counterfactual.validator=null"
    )
    assert "has no price" in refused("build", path, "--set", "spend.max_cost=1.0")
    assert sum(server.seen.values()) == 0
    assert execute(["run", path, "--dry-run"]) == 0
    shown = capfd.readouterr().out
    assert "r′ of 3 of 3 items is to be written by api:openai/gpt-4.1" in shown
    # the price is that of the whole run: writer, validator, and the judge of two outputs an item
    calls = re.findall(r"^(writer|validator|judge) .*\n(api:\S+) +(\d+) ", shown, re.M)
    assert calls == [("writer", WRITER, "3"), ("validator", WRITER, "3"), ("judge", WRITER, "6")]
    # a model here that writes no r′ at all
    here = ["--set", f"counterfactual.writer={plain}", "--set", "judge.max_tokens=16"]
    assert "none of 3 items got an r′ that was accepted (3 no_reasoning" in refused(
        "build", path, *here
    )
