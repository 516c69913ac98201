"""A benchmark that a model writes: its failures accounted for, made before the work is shared."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused, said_by
from c2_runs import config, tables

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, fails, says

from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.run import Outcome, plan, run, work_through
from faithscope.experiments.studies.c2faith.benchmark.writing import STAGE

REPLIES = [says('{"score": 1}')]
WRITER = "api:openai/gpt-4.1"
WRITING = "item=writing;"
"""In the writer's prompt, by which the server knows it."""


class Refusing:
    """Rewrites every step but one, of the chain that is asked about first."""

    def __init__(self) -> None:
        self.refused: str | None = None
        self.times = 0

    def __call__(self, handler: Any) -> None:
        told = json.dumps(handler.request_body["messages"])
        self.refused = self.refused or told
        if told == self.refused:
            self.times += 1
            fails(400, "not this one")(handler)
        else:
            says("So x is 4711, as we have seen.")(handler)


@pytest.fixture
def server(server: FaultServer) -> FaultServer:
    server.plan["writing"] = [Refusing()]
    return server


def written(folder: Path, server: FaultServer, **changes: Any) -> Path:
    judge = {"model": WRITER, "base_url": server.url, "structured": "prompt", "max_retries": 0}
    perturb = {"levels": [0.5], "acausal": "llm", "writer": WRITER}
    told = {"perturb": perturb, "forms": "c2_detection"} | changes
    path = config(folder, judge | {"max_connections": 1}, **told)
    prompt = {"task": "acausal", "source": "a test", "ours": True}
    prompt["template"] = WRITING + " Rewrite {target_step} after {context}"
    (folder / "prompts/c2_acausal.yaml").write_text(yaml.safe_dump(prompt))
    return path


@pytest.mark.slow
def test_a_step_that_is_never_rewritten_leaves_its_chain_out(
    tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path, server))
    for _ in range(2):
        assert execute(["run", path]) == 3
        assert "asked again when the run is started again; after 3 starts" in capfd.readouterr().err
    assert execute(["run", path]) == 0
    assert "failed in 3 starts: " in capfd.readouterr().err
    manifest = json.loads((tmp_path / "runs/c2/benchmark/manifest.json").read_text())
    assert manifest["counts"]["left_out"]["causal:writer_failed"] == 1
    exclusions = pd.read_csv(tmp_path / "runs/c2/tables/exclusions.csv").set_index("reason")
    assert exclusions.loc["writer_failed", "n"] == 1
    assert pd.read_csv(tmp_path / "runs/c2/tables/c2_detection.csv")["n"].tolist() == [2]
    assert server.plan["writing"][0].times == 3
    made, asked = tables(tmp_path / "runs/c2"), sum(server.seen.values())
    assert execute(["run", path]) == 0
    assert (tables(tmp_path / "runs/c2"), sum(server.seen.values())) == (made, asked)


@pytest.mark.slow
def test_none_is_given_up_before_all_are_tried(tmp_path: Path, server: Any) -> None:
    path = written(tmp_path, server)
    for calls in (1, 2, 3):
        assert "budget is spent" in built(path, f"spend.max_calls={calls}").stopped
    assert server.plan["writing"][0].times == 3
    ended = built(path)
    assert (ended.failures, server.plan["writing"][0].times) == ([], 4)
    assert "writer_failed" in (ended.run_dir / "benchmark/left_out.jsonl").read_text()


class Wordy:
    """Explains itself: of every step the first `times` times, of one of them always."""

    def __init__(self, times: int, never: bool = False) -> None:
        self.times, self.never = times, never
        self.asked: Counter[str] = Counter()

    def __call__(self, handler: Any) -> None:
        told = json.dumps(handler.request_body["messages"])
        self.asked[told] += 1
        hopeless = self.never and told == next(iter(self.asked))
        if hopeless or self.asked[told] <= self.times:
            says("Of course!\nSo x is 4711.")(handler)
        else:
            says("So x is 4711, as we have seen.")(handler)


def built(path: Path, *overrides: str) -> Outcome:
    """The run up to where all steps are written."""
    return work_through(plan(load_config(path, list(overrides))), build_only=True)


def of_writer(run_dir: Path) -> list[dict[str, Any]]:
    return [r for unit in Index.of(run_dir).each((STAGE,)) for r in unit.records]


@pytest.mark.slow
def test_what_is_refused_is_written_again(tmp_path: Path, server: Any) -> None:
    wordy = server.plan["writing"][0] = Wordy(1, never=True)
    path = written(tmp_path, server)
    outcome = run(load_config(path))
    assert outcome.failures == []
    assert sorted(wordy.asked.values()) == [2, 2, 3]
    rewrites = of_writer(outcome.run_dir)
    assert Counter(r["draw"] for r in rewrites) == {1: 3, 2: 3, 3: 1}
    for r in rewrites:
        assert r["item"].endswith(".causal")
        assert (r["model"], r["judge"], r["writer"]) == (None, None, WRITER)
    manifest = json.loads((outcome.run_dir / "benchmark/manifest.json").read_text())
    assert manifest["counts"]["causal"] == {"llm": 2}
    assert manifest["counts"]["left_out"]["causal:several_lines"] == 1
    assert manifest["made_of"]["replacement"]["draws"] == 3
    assert manifest["made_of"]["replacement"]["temperature"] == 0.7
    made, asked = tables(outcome.run_dir), sum(server.seen.values())
    assert run(load_config(path)).failures == []
    assert (tables(outcome.run_dir), sum(server.seen.values())) == (made, asked)


@pytest.mark.slow
def test_a_writer_stopped_between_two_draws_goes_on(tmp_path: Path, server: Any) -> None:
    wordy = server.plan["writing"][0] = Wordy(1)
    path = written(tmp_path, server)
    assert "budget is spent" in built(path, "spend.max_calls=4").stopped
    assert sum(wordy.asked.values()) == 4
    told = plan(load_config(path)).summary()
    assert f"2 of 3 steps are to be rewritten by {WRITER}, draw 2" in told
    assert "asked for up to 3 times in all" in told
    assert built(path).failures == []
    assert sorted(wordy.asked.values()) == [2, 2, 2]


@pytest.mark.takes("runs with their outputs")
def test_a_draw_that_fails_for_good_leaves_its_chain_out(tmp_path: Path, server: Any) -> None:
    refusing = Refusing()

    def behave(handler: Any) -> None:
        if wordy.asked.total() < 3:
            wordy(handler)
        else:
            refusing(handler)

    wordy = Wordy(1)
    server.plan["writing"] = [behave]
    path = written(tmp_path, server)
    assert [len(built(path).failures) for _ in range(3)] == [1, 1, 0]
    left_out = (tmp_path / "runs/c2/benchmark/left_out.jsonl").read_text()
    assert left_out.count("writer_failed") == left_out.count("failed in 3 starts") == 1
    assert refusing.times == 3


def rewritten(handler: Any) -> None:
    """By a step as long as it was, and like no other."""
    told = str(handler.request_body["messages"])
    (step,) = re.findall(rf"{WRITING} Rewrite (.*?) after", told)
    says(step.replace("So ", "Or ").replace("get", "put"))(handler)


def spending(told: str, who: str) -> list[list[str]]:
    """The rows of one table of a summary: model, calls, tokens in and out, dollars."""
    _, _, table = told.partition(f"\n{who}  ")
    rows = table.split("\ntokens are estimated")[0].splitlines()[1:]
    return [row.replace(",", "").split() for row in rows]


def test_a_dry_run_prices_what_comes_after_the_writing_too(
    tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan["writing"] = [rewritten]
    of_model = {"input": 100.0, "output": 1e4, "source": "a test"}
    prices = tmp_path / "prices.yaml"
    prices.write_text(yaml.safe_dump({"as_of": "2026-01-01", "models": {"gpt-4.1": of_model}}))
    forms = ["c2_detection", "c2_localisation", "c2_coverage"]
    reference = "api:openai/gpt-4o"
    perturb = {"levels": [0.3, 0.5], "acausal": "llm", "writer": WRITER}
    changes = {"forms": forms, "reference": reference, "perturb": perturb}
    path = written(tmp_path, server, **changes, spend={"prices": str(prices)})
    assert execute(["run", str(path), "--dry-run"]) == 0
    first = capfd.readouterr().out
    assert sum(server.seen.values()) == 0
    assert not (tmp_path / "runs").exists()
    assert f"3 of 3 steps are to be rewritten by {WRITER}" in first
    assert "3 chains: 3 with a broken step, 6 with steps left out" in first
    (writer,) = spending(first, "writer")
    # three steps, replies of 16 tokens, a cent each
    assert (writer[0], writer[1], writer[3]) == (WRITER, "3", "48")
    assert float(writer[4]) == pytest.approx((int(writer[2]) * 100 + 48 * 1e4) / 1e6, abs=0.005)
    judge, other = spending(first, "judge, about")
    # 3 broken chains and 3 as they were, twice; 3 chains with steps left out in two ways
    assert (judge[0], judge[1], judge[3]) == (WRITER, "18", str(18 * 16))
    assert float(judge[4]) == pytest.approx((int(judge[2]) * 100 + 288 * 1e4) / 1e6, abs=0.005)
    assert (other[0], other[1], other[3:]) == (reference, "6", [str(6 * 16), "no", "price"])
    assert built(path).failures == []
    then = plan(load_config(path)).summary()
    assert "writer" not in then
    # rewrites were as long as the steps
    assert spending(then, "judge") == [judge, other]


@pytest.mark.slow
def test_a_step_that_is_given_up_on_is_not_priced(tmp_path: Path, server: Any) -> None:
    refusing, wordy = Refusing(), Wordy(1)

    def behave(handler: Any) -> None:
        told = json.dumps(handler.request_body["messages"])
        (refusing if refusing.refused in (None, told) else wordy)(handler)

    server.plan["writing"] = [behave]
    path = written(tmp_path, server)
    for _ in range(3):
        # three calls of the first start and one of each other, none of the second draw
        ended = built(path, "spend.max_calls=5")
    assert "budget is spent" in ended.stopped
    told = plan(load_config(path)).summary()
    assert f"2 of 2 steps are to be rewritten by {WRITER}, draw 2" in told
    assert "3 chains: 2 with a broken step, 3 with steps left out" in told
    assert [row[1] for row in spending(told, "judge, about")] == ["4"]


@pytest.mark.slow
def test_at_temperature_0_and_from_a_cache_nothing_is_drawn_twice(
    tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    wordy = server.plan["writing"][0] = Wordy(1)
    path = written(tmp_path, server)
    cold = built(path, "perturb.temperature=0.0", "name=cold").run_dir
    assert set(wordy.asked.values()) == {1}
    assert (cold / "benchmark/left_out.jsonl").read_text().count("several_lines") == 3
    wordy = server.plan["writing"][0] = Wordy(1)
    for name in ("one", "other"):
        warm = built(path, f"name={name}", "judge.cache=true").run_dir
        assert [r["draw"] for r in of_writer(warm)].count(2) == 3
        assert '"llm": 3' in (warm / "benchmark/manifest.json").read_text()
        # what the other run was told before, each draw by itself
        assert set(wordy.asked.values()) == {2}


@pytest.mark.slow
def test_what_is_written_is_built_before_the_work_is_shared_out(
    tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    server.plan["writing"] = [says("So x is 4711, as we have seen.")]
    path = str(written(tmp_path, server))
    assert "first `faithscope build` with the same config" in refused("run", path, "--shard", "1/2")
    assert sum(server.seen.values()) == 0
    assert execute(["build", path]) == 0
    run_dir = tmp_path / "runs/c2"
    assert capfd.readouterr().out == f"{run_dir}\n"
    assert server.seen == {"writing": 3}
    assert (run_dir / "benchmark/manifest.json").is_file()
    assert (run_dir / "prompts/c2_detection.yaml").is_file()
    assert not list(run_dir.glob("records/judge_*"))
    assert execute(["build", path]) == 0
    for part in ("1/2", "2/2"):
        assert execute(["run", path, "--shard", part]) == 0
    assert server.seen == {"writing": 3, "": 6}
    joined = tmp_path / "joined"
    assert execute(["merge", str(run_dir), "--into", str(joined)]) == 0
    # gone on with, though the rewrites themselves stayed behind
    assert execute(["run", path, "--set", f"out={tmp_path}", "--set", "name=joined"]) == 0
    assert server.seen == {"writing": 3, "": 6}


def test_another_prompt_of_the_writer_is_told_before_it_is_paid_for(
    tmp_path: Path, server: Any
) -> None:
    server.plan["writing"] = [says("So x is 4711, as we have seen.")]
    path = written(tmp_path, server)
    built(path)
    prompt = tmp_path / "prompts/c2_acausal.yaml"
    prompt.write_text(prompt.read_text().replace("Rewrite", "Break"))
    with pytest.raises(Exception, match=r"benchmark: is not what the config makes.*prompt_sha256"):
        built(path)
    assert server.seen["writing"] == 3


@pytest.mark.slow
def test_what_needs_no_writing_can_be_built_too(
    tmp_path: Path, model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(config(tmp_path, {"model": model, "readings": ["scored"]}))
    assert execute(["build", path]) == 0
    assert "loading" not in capfd.readouterr().err
    # nothing is stored: other settings are no other run
    assert execute(["build", path, "--set", "perturb.levels=[0.3]"]) == 0
    items = (tmp_path / "runs/c2/benchmark/coverage.jsonl").read_text()
    assert items.count('"level": 0.3') == items.count("\n") == 3
    assert execute(["status", str(tmp_path / "runs/c2")]) == 0
    assert "0 of 15 items done" in capfd.readouterr().out
    assert execute(["report", str(tmp_path / "runs/c2")]) == 0


def test_judges_that_cannot_be_asked_are_told_before_the_writer_is_paid(
    tmp_path: Path, server: Any
) -> None:
    path = str(written(tmp_path, server, reference="api:openai/gpt-4o", spend={"max_cost": 1.0}))
    said = said_by("run", path)
    assert said.code == 2
    assert "model 'openai/gpt-4.1' has no price" in said.err
    assert "model 'openai/gpt-4o' has no price" in said.err
    assert sum(server.seen.values()) == 0
