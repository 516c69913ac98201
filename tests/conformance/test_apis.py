"""Models behind an API, in every study: said once, stored once, and no more than was allowed."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

import faithcot_runs
import rf_runs
from cases import API, CASES, CONNECTIONS, Case, Setting, asked, run_folder, serves
from fault_server import KEY, FaultServer, Handler, fails
from run_folders import (
    every_run,
    every_study,
    every_study_in_time,
    keys,
    outputs,
    planned,
    starting,
)

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.cluster.jobs import jobs_of
from faithscope.experiments.engine.models.account import calls_of
from faithscope.experiments.engine.run import plan
from faithscope.experiments.engine.store import read_failures


def calls(run_dir: Path) -> int:
    """Made so far, by the ledgers."""
    return sum(line.usage.calls for line in calls_of(run_dir))


@every_study
def test_a_dry_run_prices_what_is_not_asked(
    case: Case, over_api: Setting, server: FaultServer, capfd: pytest.CaptureFixture[str]
) -> None:
    path = case.over_api(over_api)
    prices = over_api.folder / "prices.yaml"
    entry = {"input": 1000.0, "output": 1000.0, "source": "a test"}
    prices.write_text(yaml.safe_dump({"as_of": "2026-01-01", "models": {"gpt-4.1": entry}}))
    priced = ["--set", f"spend.prices={prices}"]
    assert execute(["run", str(path), "--dry-run", *priced]) == 0
    rows = [x.split() for x in capfd.readouterr().out.splitlines() if x.startswith(f"{API} ")]
    assert any(
        len(row) == 5 and int(row[1]) > 0 and float(row[4].replace(",", "")) > 0 for row in rows
    ), rows
    assert server.bodies == []
    assert not run_folder(path).exists()


@every_run
def test_every_call_is_made_once_and_counted_and_its_key_is_kept_nowhere(
    undisturbed_api: tuple[Path, Counter[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    run_dir, everything = undisturbed_api
    assert set(everything.values()) == {1}
    n = calls(run_dir)
    assert n == len(everything)
    files = [p for p in run_dir.rglob("*") if p.is_file()]
    assert [p for p in files if KEY.encode() in p.read_bytes()] == []
    # the toy tells of no spending
    if (spend := run_dir / "tables/spend.csv").is_file():
        assert pd.read_csv(spend)["calls"].sum() == n
    assert execute(["status", str(run_dir)]) == 0
    assert f"spent: {n} calls to APIs" in capfd.readouterr().out
    # the server is gone: a call would fail
    before = outputs(run_dir)
    (path,) = run_dir.parents[1].glob("*.yaml")
    assert execute(["run", str(path)]) == 0
    assert outputs(run_dir) == before


@every_study_in_time
def test_a_spent_budget_stops_a_run_and_a_greater_one_goes_on(
    case: Case, over_api: Setting, server: FaultServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every prompt is sent once, however often the budget stops the run."""
    path = case.over_api(over_api)
    for most in (5, 5, 7):
        assert execute(["run", str(path), "--set", f"spend.max_calls={most}"]) == 130
        assert f"the budget is spent ({most} calls" in capfd.readouterr().err
        assert len(server.bodies) == calls(run_folder(path)) == most
    assert execute(["status", str(run_folder(path))]) == 0
    assert "complete" not in capfd.readouterr().out
    for _ in range(2):
        assert execute(["run", str(path)]) == 0
        assert set(asked(server).values()) == {1}
        assert calls(run_folder(path)) == len(server.bodies)
    assert execute(["status", str(run_folder(path))]) == 0
    assert "complete" in capfd.readouterr().out


@every_study_in_time
def test_a_call_that_fails_costs_no_other_and_is_asked_again(
    case: Case,
    undisturbed_api: tuple[Path, Counter[str]],
    over_api: Setting,
    server: FaultServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    undisturbed, everything = undisturbed_api
    path = case.over_api(over_api)
    (good,) = server.default
    bad: list[object] = []

    def behave(handler: Handler) -> None:
        messages = handler.request_body["messages"]
        with server.lock:
            if len(server.bodies) >= len(everything) // 2 and not bad:
                bad.append(messages)
        (fails(400, "no such luck") if messages in bad else good)(handler)

    server.default = [behave]
    assert execute(["run", str(path)]) == 3
    assert "no such luck" in capfd.readouterr().err
    assert read_failures(run_folder(path))
    assert execute(["run", str(path)]) == 3
    # what failed was paid for, too
    assert calls(run_folder(path)) == len(server.bodies)
    server.default = [good]
    assert execute(["run", str(path)]) == 0
    assert read_failures(run_folder(path)) == []
    assert asked(server).keys() == everything.keys()
    several = {text for text, count in asked(server).items() if count > 1}
    assert {json.dumps(json.loads(text)[1]) for text in several} == {json.dumps(bad[0])}
    assert outputs(run_folder(path)) == outputs(undisturbed)


@every_study_in_time
def test_a_part_that_a_budget_stopped_goes_on_where_its_replies_lie(
    case: Case,
    undisturbed_api: tuple[Path, Counter[str]],
    over_api: Setting,
    server: FaultServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    undisturbed, everything = undisturbed_api
    path = case.over_api(over_api)
    if case.builds:
        pytest.skip("its items are built by one process")
    folders = []
    for k, (most, code) in enumerate((("null", 0), ("1", 130)), 1):
        part = over_api.folder / f"part{k}"
        command = ["run", str(path), "--shard", f"{k}/2", "--set", f"out={part}"]
        assert execute([*command, "--set", f"spend.max_calls={most}"]) == code
        folders.append(str(next(part.iterdir())))
    joined = over_api.folder / "joined"
    merge = ["merge", *folders, "--into", str(joined)]
    capfd.readouterr()
    assert execute(merge) == 2
    message = capfd.readouterr().err
    assert "part 2/2 lacks" in message
    command = message.partition("do it with: faithscope ")[2].split()
    assert execute([*command, "--set", "spend.max_calls=null"]) == 0
    assert execute(merge) == 0
    assert asked(server) == everything
    assert calls(joined) == len(everything)
    assert outputs(joined) == outputs(undisturbed)


@pytest.mark.slow
@every_run
def test_after_kills_only_what_was_on_its_way_is_asked_again(
    case: Case, undisturbed_api: tuple[Path, Counter[str]], over_api: Setting, server: FaultServer
) -> None:
    undisturbed, everything = undisturbed_api
    path = case.over_api(over_api)
    server.default = [serves(case, seconds=0.1)]
    kills = 1 if case is CASES["toy"] else 3
    with starting(over_api.folder) as start:
        for k in range(kills):
            # the first while what a run must have before it is shared out is made, where it is
            enough = 1 + len(everything) * k // kills
            start(path, lambda enough=enough: len(asked(server)) >= enough, signal.SIGKILL)
    assert execute(["run", str(path)]) == 0
    assert asked(server).keys() == everything.keys()
    assert sum((asked(server) - everything).values()) <= kills * CONNECTIONS
    # what had begun counts, whether a kill came before it was sent or after; nothing counts twice
    begun = len(server.bodies) + kills * CONNECTIONS
    assert len(everything) <= calls(run_folder(path)) <= begun
    assert planned(run_folder(path)) == planned(undisturbed)
    assert max(keys(run_folder(path)).values()) == 1
    assert outputs(run_folder(path)) == outputs(undisturbed)
    assert read_failures(run_folder(path)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("study", "rounds"), [("rfeval", 1), ("faithcot", 2)])
def test_models_here_and_models_behind_an_api_are_asked_apart(
    study: str,
    rounds: int,
    over_api: Setting,
    server: FaultServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As in a job with a GPU and one without, and in parts."""
    judge = over_api.asked | {"model": "api:openai/gpt-4o", "structured": "schema"}
    judge |= {"max_tokens": 64, "batch_size": 2}
    if study == "rfeval":
        cases = [rf_runs.Case("one"), rf_runs.Case("two")]
        chain = over_api.models["chain"]
        path = rf_runs.config(over_api.folder, cases, chain, generate={"batch_size": 1})
    else:
        plain = over_api.models["plain"]
        path = faithcot_runs.config(over_api.folder, plain, plain, generation={"batch_size": 1})
    values = yaml.safe_load(path.read_text())
    key = "judges" if "judges" in values else "judge"
    path.write_text(yaml.safe_dump(values | {key: values[key] | judge}))
    # an address on this machine would be that of a server in the job
    elsewhere = load_config(path, [f"{key}.base_url=null"])
    jobs = [job.kind for job in jobs_of(plan(elsewhere), 2)]
    assert jobs == ["shards", *(["judges"] if rounds == 1 else []), "merge"]
    assert execute(["run", str(path)]) == 0
    together, everything = over_api.folder / "together", asked(server)
    run_folder(path).rename(together)
    server.bodies.clear()

    def in_parts(*options: str) -> None:
        for k in (1, 2):
            capfd.readouterr()
            assert execute(["run", str(path), "--shard", f"{k}/2", *options]) == 0

    in_parts("--only", "weights")
    assert server.bodies == []
    in_parts("--only", "apis")
    assert "loading" not in capfd.readouterr().err
    assert asked(server) == everything
    for _ in range(rounds - 1):
        in_parts("--only", "weights")
    assert execute(["merge", str(run_folder(path))]) == 0
    assert outputs(run_folder(path)) == outputs(together)
