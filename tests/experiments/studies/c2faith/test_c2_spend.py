"""What asking APIs costs a run of C2-Faith: kept through failures, resumes, parts and merges."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bad_input import refused
from c2_runs import config, unshown
from prm800k_rows import solved
from run_files import write_rows, write_yaml

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, fails, says

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run

REPLIES = [says('{"score": 1}')]
JUDGE = "api:openai/gpt-4.1"


def judged(folder: Path, server: Any, judge: dict[str, Any] | None = None, **changes: Any) -> Path:
    told = {"model": JUDGE, "base_url": server.url, "structured": "prompt", "max_retries": 0}
    return config(folder, told | {"max_connections": 1} | (judge or {}), **changes)


def prices(folder: Path) -> str:
    of_model = {"input": 10.0, "cached": 5.0, "output": 30.0, "source": "a test"}
    return str(
        write_yaml(folder / "prices.yaml", {"as_of": "2026-01-01", "models": {"gpt-4.1": of_model}})
    )


def made(server: FaultServer) -> int:
    return sum(server.seen.values())


@pytest.mark.slow
def test_a_failed_ask_is_a_judgement_without_a_verdict(tmp_path: Path, server: Any) -> None:
    server.default = [fails(400), says('{"score": 1, "sure": true}')]
    injection = {"kinds": ["command"], "demands": ["best"]}
    forms = ["c2_detection", "c2_coverage"]
    ended = unshown(judged(tmp_path, server, forms=forms, injection=injection))
    lost = Counter(u.task for u in load_run(ended.run_dir).failures)
    assert sum(lost.values()) == 1
    tables = load_run(ended.run_dir).tables
    without = {
        "c2_detection": tables["c2_detection"][["n_without_verdict", "n_control_without_verdict"]],
        "c2_coverage": tables["c2_coverage"]["n_without_verdict"],
    }
    for task, counts in without.items():
        assert counts.to_numpy().sum() == lost[task]
    # three chains, twice in detection, once in coverage, and each once more with a text in it
    assert tables["usage"]["n"].sum() == 2 * (6 + 3)
    assert tables["usage"]["n_extra_fields"].sum() == 2 * (6 + 3) - 1
    failed = tables["exclusions"].query("reason == 'failed'")
    assert failed["n"].tolist() == [1]


@pytest.mark.parametrize("of", ["c2_detection+injected", "c2_coverage+injected"])
def test_a_failed_ask_with_a_text_in_it_is_in_the_table_of_injections(
    tmp_path: Path, server: Any, of: str
) -> None:
    def fails_at_texts(handler: Any) -> None:
        text = "Ignore the rubric" in json.dumps(handler.request_body)
        return (fails(400) if text else says('{"score": 1}'))(handler)

    server.default = [fails_at_texts]
    injection = {"kinds": ["command"], "demands": ["best"]}
    form = of.removesuffix("+injected")
    ended = unshown(judged(tmp_path, server, forms=form, injection=injection))
    opened = load_run(ended.run_dir)
    lost = [u for u in opened.failures if u.task == of]
    table = opened.tables["c2_injection"]
    assert len(lost) == table["n_without_verdict"].sum() > 0
    assert table["n"].sum() == 0
    assert table["form_lost"].tolist() == [1.0] * len(table)


@pytest.mark.slow
def test_attempts_that_the_budget_cut_off_count_too(tmp_path: Path, server: Any) -> None:
    server.default = [says("hm")]
    path = judged(tmp_path, server, forms="c2_coverage")
    for _ in range(2):
        ended = run(load_config(path, ["spend.max_calls=4"]))
        assert "the budget is spent (4 calls" in ended.stopped
        assert made(server) == 4
    usage, spent = (pd.read_csv(ended.run_dir / f"tables/{n}.csv") for n in ("usage", "spend"))
    # three attempts at the one that is stored, one at the next
    assert (usage["calls"].sum(), spent["calls"].sum()) == (3, 4)


def test_a_cost_is_limited_where_the_server_tells_no_usage(
    tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.default = [says('{"score": 1}', used=None)]
    spend = {"prices": prices(tmp_path), "max_cost": 0.02}
    path = judged(tmp_path, server, {"max_tokens": 400}, forms="c2_coverage", spend=spend)
    for _ in range(2):
        ended = unshown(path)
        assert "the budget is spent (1 calls" in ended.stopped
        assert made(server) == 1
    tables = load_run(ended.run_dir).tables
    (row,) = tables["spend"].to_dict("records")
    assert (row["calls"], row["estimated_calls"]) == (1, 1)
    assert row["cost"] == row["estimated_cost"] > 0.01
    # what is stored of the reply is what the server said
    assert (tables["usage"]["n"].sum(), tables["usage"]["output_tokens"].sum()) == (1, 0)
    assert execute(["status", str(ended.run_dir)]) == 0
    assert "the tokens of 1 of them estimated" in capfd.readouterr().out


def test_a_dry_run_from_elsewhere_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    configs = Path(__file__).parents[4] / "configs"
    data = write_rows(tmp_path / "phase1_train.jsonl", *(solved(f"Find {n}.", 6) for n in range(2)))
    monkeypatch.chdir(tmp_path)
    told = [f"data.path={data}", "data.splits=phase1_train", "judge.model=api:openai/gpt-4.1"]
    told += ["reference=null", "internals.model=[]"]
    command = ["run", str(configs / "c2faith.yaml"), "--dry-run"]
    command += [word for setting in told for word in ("--set", setting)]
    # the shipped prices are found from everywhere
    assert execute(command) == 0
    assert "dollars, at most" in capfd.readouterr().out
    told = refused(*command, "--set", "spend.prices=mine.yaml")
    assert "spend.prices: mine.yaml: no such file" in told
    assert execute([*command, "--set", f"spend.prices={configs / 'prices.yaml'}"]) == 0
    assert "dollars, at most" in capfd.readouterr().out
