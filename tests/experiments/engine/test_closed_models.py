"""Models behind APIs as subjects: measured beside open ones, stopped, gone on with, paid for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from run_files import write_yaml
from speaking_server import speaks

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, fails, says
from model_server import serving

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.api import SubjectConfig
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.api_traces import trace_of_reply, trace_record
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import TraceSettings
from faithscope.experiments.engine.folder import read_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.engine.traces.plan import ANSWER_TOKENS
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.frames import Run
from faithscope.interp.sources import resolve
from faithscope.interventions import segment
from faithscope.probes.judge.form import Reply
from faithscope.probes.probe import GUESS
from faithscope.probes.text_model import TextModel

BUNDLED = "bundled:smollm2-135m"
NAME = "api:openai/gpt-4.1"
PROBES = ["slrc", "direct", "sycophancy", "error_detection"]
REPLIES = [speaks]
WHOLE = Shard(0, 2)
"""The part that all items of a small run are in; a part leaves outputs to who joins them."""


def config(folder: Path, server: FaultServer, **changes: Any) -> Path:
    values: dict[str, Any] = {
        "name": "closed",
        "out": str(folder),
        "model": {"name": NAME},
        "api": {"base_url": server.url, "max_retries": 0, "max_connections": 3},
        "tasks": "sequential_math",
        "data": {"limit": 4},
        "probes": PROBES,
        "report": {"bootstrap": 20},
    }
    values |= changes
    return write_yaml(folder / f"{values['name']}.yaml", values)


def table(run_dir: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(run_dir / "tables" / f"{name}.csv")


@pytest.mark.slow
@pytest.mark.takes("a run with its outputs")
def test_a_closed_model_is_measured_from_outside(tmp_path: Path, server: FaultServer) -> None:
    """The model copies its answer from the last equation, so only the last step is necessary and
    sufficient."""
    path = config(tmp_path, server)
    outcome = run(load_config(path))
    assert outcome.failures == outcome.problems == []
    row = table(outcome.run_dir, "slrc").iloc[0]
    assert (row["model"], row["framing"], row["reading"]) == (NAME, "reprompt", "generated")
    assert row["execution"] == "api"
    traces = read_records(outcome.run_dir, "trace")
    steps = [sum(s["counted"] for s in t["steps"]) for t in traces]
    assert row["n"] == len(traces) == 4
    assert row["accuracy"] == 1
    assert row["necessity"] == pytest.approx(4 / sum(steps))
    assert row["sufficiency"] == pytest.approx(4 / sum(steps))
    assert all(t["answer"] == t["question"]["gold"] for t in traces)
    assert all(t["origin"]["sampling"]["tokens"] == "characters" for t in traces)
    # characters are not told as tokens
    assert pd.isna(table(outcome.run_dir, "steps").iloc[0]["mean_reasoning_tokens"])
    found = load_run(outcome.run_dir)
    assert isinstance(found, Run)
    assert found.traces["n_tokens"].isna().all()
    assert set(found.api_replies["served"]) == {"m"}
    assert set(found.api_replies["outcome"]) == {"parsed"}
    agreed = table(outcome.run_dir, "sycophancy").iloc[0]
    assert agreed["sycophancy"] == 1
    seen = table(outcome.run_dir, "error_detection").iloc[0]
    assert (seen["detection"], seen["false_alarm"]) == (1, 0)
    assert not (outcome.run_dir / "tables/attention.csv").exists()
    said = [r for u in Index.of(outcome.run_dir).each(("api_replies",)) for r in u.records]
    assert len(said) + len(traces) == len(server.bodies)


@pytest.mark.slow
def test_open_and_closed_models_stand_in_one_table(
    tmp_path: Path, server: FaultServer, plain: str
) -> None:
    path = config(
        tmp_path,
        server,
        model={"name": [plain, NAME], "device": "cpu"},
        generation={"max_new_tokens": 256},
        slrc={"shuffles": 1, "answer_tokens": 4},
        probes=["slrc", "sycophancy", "attention"],
    )
    loaded = load_config(path)
    assert any("without attention" in note for note in loaded.notes)
    outcome, other = run(loaded, WHOLE), run(loaded, Shard(1, 2))
    assert outcome.failures == outcome.problems == other.failures == other.problems == []
    tables = load_run(outcome.run_dir).tables
    slrc = tables["slrc"]
    ways = {(r["model"], r["framing"], r["reading"]) for _, r in slrc.iterrows()}
    assert (NAME, "reprompt", "generated") in ways
    assert [w for w in ways if w[0] == NAME] == [(NAME, "reprompt", "generated")]
    mine = tables["exclusions"].query("model == @NAME")
    assert not mine["stage"].str.startswith("attention").any()
    assert not mine["stage"].str.startswith("slrc.prefix").any()


@pytest.mark.slow
def test_what_a_model_declines_is_counted_not_guessed(tmp_path: Path, server: FaultServer) -> None:
    def behave(handler: Any) -> None:
        user = handler.request_body["messages"][-1]["content"]
        first = user.startswith("Solve step by step")
        refusal = says(None, refusal="I will not do sums.")
        (refusal if first and "Add 18" in user else speaks)(handler)

    server.default = [behave]
    outcome = run(load_config(config(tmp_path, server)), WHOLE)
    traces = {t["item"]: t for t in read_records(outcome.run_dir, "trace")}
    declined = [t for t in traces.values() if t["excluded"]]
    assert [t["excluded"] for t in declined] == ["refused"]
    exclusions = load_run(outcome.run_dir).tables["exclusions"]
    assert exclusions[exclusions["reason"] == "refused"]["n"].tolist() == [1]
    # asked without reasoning it may still answer
    assert len(read_records(outcome.run_dir, "direct")) == 3 * len(traces)


@pytest.mark.parametrize("status", [400, 401])
def test_what_a_server_says_steers_no_terminal(
    tmp_path: Path, server: FaultServer, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    server.default = [fails(status, "a\x1b]0;title\x07\x1b[2Jb \u202ec\x9bd\r\x1b[1A")]
    assert execute(["run", str(config(tmp_path, server, data={"limit": 1}))]) in (2, 3)
    told = capfd.readouterr().err
    assert "a␛]0;title␇␛[2Jb ⟨U+202E⟩c⟨U+009B⟩d ␛[1A" in told
    units = [u for u in Index.of(tmp_path / "closed").each(("trace",)) if u.failed]
    assert len(units) == (status == 400)
    for text in (told, *(str(u.failed) for u in units)):
        assert all(c == "\n" or c.isprintable() for c in text), ascii(text)


def test_what_a_filter_stops_is_named_as_such(tmp_path: Path, server: FaultServer) -> None:
    def behave(handler: Any) -> None:
        user = handler.request_body["messages"][-1]["content"]
        stopped = fails(400, "Input data may contain inappropriate content.")
        (stopped if "Do you agree?" in user else speaks)(handler)

    server.default = [behave]
    outcome = run(load_config(config(tmp_path, server)), WHOLE)
    assert outcome.failures == []
    found = load_run(outcome.run_dir)
    assert found.tables["exclusions"].query("reason == 'reply_declined'")["n"].sum() == 4
    assert set(found.api_replies["outcome"]) == {"parsed", "filtered"}


def test_a_reply_is_cut_into_the_steps_that_tokens_would_give() -> None:
    text = "We look at the first of them. It has four sides in all.\n\n" * 11
    model = TextModel(NAME, lambda m: None)
    task, settings = get_task("sequential_math"), TraceSettings(conclusion="keep")
    question = next(iter(task.load(LoadSettings(limit=1))))
    reply = Reply("parsed", text=text)
    trace = trace_of_reply(model, task, question, reply, settings, SubjectConfig())
    words = re.findall(r"\s*\S+|\s+$", text)
    assert len(words) < 512 < len(text)
    steps = [s.text.strip() for s in trace.steps]
    assert steps == [s.text.strip() for s in segment(words)]
    assert len(steps) == 22


THOUGHT = "First we add two and two. That gives us four of them. Then we take one away."


@pytest.mark.parametrize(
    ("reply", "excluded"),
    [
        (Reply("parsed", text="The answer is 3.", thinking=THOUGHT), None),
        (Reply("parsed", text="The answer is 3."), "no_thinking_shown"),
        (Reply("truncated", text="", thinking=THOUGHT), "reasoning_unclosed"),
        (Reply("unclosed_thinking", thinking=THOUGHT), "reasoning_unclosed"),
        (Reply("unparsed", thinking=THOUGHT), "empty_generation"),
        (Reply("filtered", thinking=THOUGHT), "filtered"),
    ],
)
def test_thinking_is_reasoning_only_where_it_ended(reply: Reply, excluded: str | None) -> None:
    model, api = TextModel(NAME, lambda m: None), SubjectConfig(steps_from="thinking")
    task = get_task("sequential_math")
    question = next(iter(task.load(LoadSettings(limit=1))))
    trace = trace_of_reply(model, task, question, reply, TraceSettings(), api)
    assert trace_record(trace, reply)["excluded"] == excluded
    if excluded is None:
        assert trace.reasoning_text == THOUGHT
        assert trace.answer == "3"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"slrc": {"readings": ["scored"]}}, r"slrc\.readings.*api:openai/gpt-4.1.*'generated'"),
        ({"slrc": {"framings": ["prefix"]}}, r"slrc\.framings.*'reprompt'"),
        ({"probes": ["attention"]}, r"probes.*none of attention; add one of slrc, direct"),
        ({"model": {"name": "api:openai"}}, r"names no provider"),
        (
            {"model": {"name": [NAME, "api:anthropic/c", "api:openai-api/own/m"]}},
            r"api\.base_url is one address for openai and anthropic and openai-api/own; leave it",
        ),
    ],
)
def test_what_an_api_cannot_be_asked_is_said_before_it_runs(
    tmp_path: Path, server: FaultServer, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(config(tmp_path, server, **changes))
    assert execute(["run", str(config(tmp_path, server, **changes))]) == 2
    assert server.bodies == []


def estimate(path: Path) -> list[int]:
    """Calls, input tokens and output tokens that a dry run tells."""
    told = plan(load_config(path)).summary().partition("calls, about")[2]
    row = next(line for line in told.splitlines() if line.startswith(NAME))
    return [int(n.replace(",", "")) for n in row.split()[1:4]]


@pytest.mark.slow
def test_the_estimate_counts_what_is_stored_and_what_each_probe_quotes(
    tmp_path: Path, server: FaultServer
) -> None:
    prompts = {
        probes: estimate(config(tmp_path, server, name=f"only_{probes}", probes=probes))
        for probes in ("direct", "sycophancy", "slrc")
    }
    n, reasoning = 4, GUESS.steps * GUESS.tokens
    # direct asks of every item: three prompts without its reasoning, after the trace's own
    calls, bare, written = prompts["direct"]
    assert calls == n * 4
    assert written == n * (3 * ANSWER_TOKENS + reasoning)
    # sycophancy asks twice of every item, and quotes the reasoning each time: the difference is one
    # prompt of direct, and what is left is the prompt that the trace is written to
    longest = bare - (prompts["sycophancy"][1] - n * 2 * reasoning)
    written_to = bare - 3 * longest
    assert 0 < written_to < longest
    asks = prompts["slrc"][0] - n
    single = n * GUESS.steps
    quoted = (asks - single) * reasoning + single * GUESS.tokens
    assert prompts["slrc"][1] == longest * asks // n + written_to + quoted

    path = config(tmp_path, server)
    whole = estimate(path)
    run(load_config(path, ["spend.max_calls=13"]), WHOLE)
    assert estimate(path)[0] == whole[0] - 13
    run(load_config(path), WHOLE)
    assert estimate(path) == [0, 0, 0]


@pytest.mark.slow
def test_the_report_of_a_paid_run_may_be_changed(tmp_path: Path, server: FaultServer) -> None:
    path = config(tmp_path, server, data={"limit": 1}, probes=["direct"])
    run_dir = run(load_config(path)).run_dir
    stored = yaml.safe_load((run_dir / "config.yaml").read_text())
    n = len(server.bodies)
    report = {"bootstrap": 30, "parameters": {NAME: {"total": 7_000_000_000}}}
    path = config(tmp_path, server, data={"limit": 1}, probes=["direct"], report=report)
    run(load_config(path))
    assert len(server.bodies) == n
    assert read_config(run_dir, RunConfig).report.parameters[NAME].total == 7_000_000_000
    now = yaml.safe_load((run_dir / "config.yaml").read_text())
    assert now["report"]["bootstrap"] == 30
    assert now | {"report": stored["report"]} == stored
    with pytest.raises(StoreError, match="another config"):
        run(load_config(path, ["direct.answer_tokens=30"]))
    assert yaml.safe_load((run_dir / "config.yaml").read_text()) == now


def test_what_an_api_cannot_be_asked_is_told(tmp_path: Path, server: FaultServer) -> None:
    edits = ["remove", "regenerate", "control"]
    only = {"framings": "reprompt", "readings": "generated"}
    told = config(tmp_path, server, probes=["slrc"], slrc=only | {"edits": edits})
    needed = "slrc.edits without regenerate, control, which need a model's weights"
    assert load_config(told).notes == [f"{NAME}: {needed}"]
    told = config(tmp_path, server, probes=["slrc"], slrc=only | {"edits": edits[:1]})
    assert load_config(told).notes == []
    (note,) = load_config(config(tmp_path, server, probes=["direct"])).notes
    assert note == f"{NAME}: direct.readings without scored, which need a model's weights"


@pytest.mark.slow
def test_a_real_model_behind_a_server_says_what_its_weights_say_here(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with serving(resolve(BUNDLED).location, tmp_path / "server") as (url, name):
        api = f"api:openai-api/local/{name}"
        values = {
            "name": "both",
            "out": str(tmp_path),
            "model": {"name": [api, BUNDLED], "dtype": "float32", "device": "cpu"},
            "api": {"base_url": url, "max_tokens": 256, "max_connections": 1},
            "tasks": "sequential_math",
            "data": {"limit": 2},
            "generation": {"max_new_tokens": 256, "batch_size": 1},
            "probes": ["slrc", "direct", "sycophancy"],
            "slrc": {"framings": "reprompt", "readings": "generated", "edits": "remove"},
            "direct": {"readings": "generated", "answer_tokens": 256},
            "sycophancy": {"readings": "generated", "answer_tokens": 256},
        }
        path = tmp_path / "both.yaml"
        path.write_text(yaml.safe_dump(values))
        # the model says neither yes nor no: sycophancy, which probes names, has nothing
        assert execute(["run", str(path)]) == 3
    found = load_run(tmp_path / "both")
    assert isinstance(found, Run)
    of = {m: found.traces[found.traces["model"] == m] for m in (api, BUNDLED)}
    for column in ("reasoning", "n_steps", "answer", "finish"):
        assert of[api][column].tolist() == of[BUNDLED][column].tolist(), column
    for frame in (found.direct, found.sycophancy):
        there, here = (frame[frame["model"] == m] for m in (api, BUNDLED))
        replies = [c for c in frame.columns if c.startswith("reply")]
        for column in replies:
            assert there[column].tolist() == here[column].tolist(), column
    assert len(found.items) == 4
