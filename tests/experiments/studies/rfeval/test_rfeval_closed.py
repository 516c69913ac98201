"""Models behind APIs as subjects of RFEval: r′ quoted, marked as that, stopped, gone on with."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from rf_data import row, write
from rf_frames import drawn, models_of, tables_of
from run_files import write_yaml
from tiny_models import tiny

from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.studies.rfeval.paper import PAPER
from faithscope.experiments.studies.rfeval.results import results

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion, fails, says

from faithscope import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN
from faithscope.experiments.studies.rfeval.records import output_of_reply
from faithscope.experiments.studies.rfeval.subjects.model_files import CLOSED_SYSTEM
from faithscope.experiments.studies.rfeval.subjects.subjects import CONTINUE, forced, multi_turn
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL
from faithscope.experiments.studies.rfeval.words import (
    framing_sentences,
    verdicts,
    waterfall_sentences,
)
from faithscope.probes.judge.form import Reply, Usage

NAME, JUDGE = "api:openai/gpt-4.1", "api:openai/gpt-4o"
OWN = "The seller kept the goods, and that decides it. Answer: B"
FOLLOWED = "So the buyer it is, as payment came first. Answer: A"


@pytest.fixture
def subject(server: FaultServer) -> FaultServer:
    server.default = [answers]
    return server


@pytest.fixture
def judge() -> Iterator[FaultServer]:
    with FaultServer() as server:
        server.default = [judges]
        yield server


def answers(handler: Handler) -> None:
    """By itself B; where r′ was quoted to it, what that leads to."""
    forced = any(m["content"] == CONTINUE for m in handler.request_body["messages"])
    handler.send(200, completion(FOLLOWED if forced else OWN))


def judges(handler: Handler) -> None:
    """Every part of an own output has the second stance, every part of one under r′ the first."""
    asked = handler.request_body
    if "response_format" in asked:
        schema = asked["response_format"]["json_schema"]["schema"]
    else:
        schema = json.loads(asked["messages"][-1]["content"].rpartition("JSON schema:\n")[2])
    of_r_prime = "counterfactual_reasoning" in json.dumps(schema)
    handler.send(200, completion(json.dumps(filled(schema, 0 if of_r_prime else 1))))


def filled(schema: dict[str, Any], stance: int) -> Any:
    if schema.get("type") == "object":
        return {name: filled(of, stance) for name, of in schema["properties"].items()}
    if "enum" in schema:
        return schema["enum"][stance]
    return False if schema.get("type") == "boolean" else "as it says"


def config(
    folder: Path, subject: FaultServer, judging: FaultServer, n: int = 4, **changes: Any
) -> Path:
    data = [row(id=str(i), question=f"item={i}; Who is right?") for i in range(n)]
    values: dict[str, Any] = {
        "name": "closed",
        "out": str(folder),
        "benchmark": "rfeval",
        "data": {"path": str(write(folder / "data" / "legal.jsonl", *data))},
        "model": {"name": NAME},
        "api": {"base_url": subject.url, "max_retries": 0, "max_connections": 2},
        "judge": {"model": JUDGE, "base_url": judging.url, "max_retries": 0, "max_connections": 2},
        "report": {"bootstrap": 10},
    }
    for key, value in changes.items():
        values[key] = values[key] | value if isinstance(values.get(key), dict) else value
    return write_yaml(folder / "closed.yaml", values)


def table(run_dir: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(run_dir / "tables" / f"{name}.csv")


def outputs(run_dir: Path) -> list[dict[str, Any]]:
    return [r for c in ("baseline", "intervened") for r in read_records(run_dir, f"rf_{c}")]


@pytest.mark.slow
def test_a_closed_model_is_quoted_r_prime_and_marked(
    tmp_path: Path, subject: FaultServer, judge: FaultServer
) -> None:
    path = config(tmp_path, subject, judge)
    loaded = load_config(path)
    short, quoted_to, without = loaded.notes
    assert short.startswith(f"{JUDGE}: judge.max_tokens is 1024; if it thinks before it replies")
    enough = load_config(path, ["judge.max_tokens=8000"])
    assert enough.notes == [quoted_to, without]
    assert quoted_to.startswith(f"{NAME}: r′ is quoted as an earlier turn (multi_turn), an approx")
    assert without.startswith(f"{NAME}: without log_probs")
    outcome = run(loaded)
    assert outcome.failures == outcome.problems == []
    asked = [body["messages"] for body in subject.bodies]
    assert Counter(len(m) for m in asked) == {2: 4, 4: 4}
    for messages in (m for m in asked if len(m) == 4):
        system, question, r_prime, last = messages
        assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
        assert system["content"] == CLOSED_SYSTEM
        assert r_prime["content"] == "The buyer paid first."
        assert last["content"] == CONTINUE
        assert [system, question] in asked  # the baseline's only turn
    assert {body["max_tokens"] for body in subject.bodies} == {32_768}

    stored = outputs(outcome.run_dir)
    assert len(stored) == 8
    for r in stored:
        assert (r["framing"], r["outcome"], r["reply"]) == ("multi_turn", "complete", "parsed")
        assert (r["n_tokens"], r["n_prompt"], r["ids"]) == (20, 100, [])
        assert r["reasoning_from"] == "text"
        assert r["system"] == CLOSED_SYSTEM
        assert r["seconds"] > 0
        assert r["answer"] == ("A" if r["variant"] == "intervened" else "B")
    assert not list(outcome.run_dir.glob("records/rf_log_probs*"))

    rf = table(outcome.run_dir, "rfeval")
    assert list(rf.columns[:4]) == ["reader", "model", "framing", "task"]
    assert set(rf["framing"]) == {"multi_turn"}
    own = rf.loc[(rf["model"] == NAME) & (rf["task"] == OVERALL)].iloc[0]
    assert (own["n_total"], own["n_included"], own["rf"]) == (4, 4, 1)
    # the paper's Table 2 is of models whose reasoning r′ is, and has no number of this one
    assert not (outcome.run_dir / "tables/paper_rfeval_table2.csv").exists()
    assert set(table(outcome.run_dir, "paper_rfeval_table26")["model"]) == {NAME, OVERALL}
    lengths = table(outcome.run_dir, "rf_lengths")
    assert set(lengths["mean_tokens"]) == {20}
    page = (outcome.run_dir / "report.html").read_text()
    assert "An approximation" in page
    assert "someone else’s words" in page
    spend = table(outcome.run_dir, "spend").set_index("model")["calls"]
    assert dict(spend) == {NAME: 8, JUDGE: 8}


@pytest.mark.slow
def test_what_a_judge_was_sent_is_shown_word_for_word(
    tmp_path: Path, subject: FaultServer, judge: FaultServer, capfd: pytest.CaptureFixture[str]
) -> None:
    in_prompt = {"structured": "prompt", "temperature": None}
    path = config(tmp_path, subject, judge, n=1, judge=in_prompt, api={"temperature": None})
    run_dir = run(load_config(path)).run_dir
    assert not any("temperature" in body for body in (*subject.bodies, *judge.bodies))
    sent = {body["messages"][-1]["content"] for body in judge.bodies}
    assert len(sent) == 2
    opened = load_run(run_dir)
    assert set(opened.judgements["asked"]) == sent
    assert {as_sent(r) for r in results(run_dir).examples(1)[0]["judged"].values()} == sent
    assert execute(["show", str(run_dir), "--item", "0"]) == 0
    shown = "".join(capfd.readouterr().out.split())
    page = html.unescape((run_dir / "report.html").read_text())
    for text in sent:
        assert "".join(text.split()) in shown
        assert text in page


@pytest.mark.slow
def test_a_model_file_says_what_a_closed_model_is_told(
    tmp_path: Path, subject: FaultServer, judge: FaultServer
) -> None:
    plain = load_config(config(tmp_path, subject, judge, n=1))
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "a.yaml").write_text(
        f"name: {NAME}\nlabel: mine\nsystem: Be brief.\nsystem_source: ours\n"
    )
    mine = {"name": NAME, "profiles": str(profiles)}
    told = load_config(config(tmp_path, subject, judge, n=1, model=mine))
    assert units_of(plain).isdisjoint(units_of(told))
    outcome = run(told)
    assert outcome.failures == []
    assert {body["messages"][0]["content"] for body in subject.bodies} == {"Be brief."}
    assert {r["system"] for r in outputs(outcome.run_dir)} == {"Be brief."}
    (profiles / "a.yaml").write_text(f"name: {NAME}\nlabel: mine\n")
    none = run(load_config(config(tmp_path, subject, judge, n=1, model=mine, name="none")))
    assert {body["messages"][0]["role"] for body in subject.bodies[-2:]} == {"user"}
    assert {r["system"] for r in outputs(none.run_dir)} == {None}


def units_of(loaded: Any) -> set[str]:
    pairs: Any = plan(loaded)
    return {unit for p in pairs.units.pairs for unit in p.units.values()}


@pytest.mark.slow
def test_how_a_reply_ended_is_told_and_not_guessed(
    tmp_path: Path, subject: FaultServer, judge: FaultServer
) -> None:
    too_long = "This model's maximum context length is 100 tokens"
    subject.plan |= {
        "0": [says(None, refusal="I cannot help with that.")],
        "1": [says("", "content_filter")],
        "2": [says("It goes on and", "length")],
        "3": [fails(400, too_long, "context_length_exceeded")],
        "4": [fails(400, "not this one"), says(OWN)],
        "5": [says(OWN, reasoning_content="Let me think. The seller.")],
    }
    path = config(tmp_path, subject, judge, n=7)
    outcome = run(load_config(path), Shard(0, 2))
    assert len(outcome.failures) == 1
    assert "not this one" in outcome.failures[0]
    by_item = {(r["item"][-1], r["variant"]): r for r in outputs(outcome.run_dir)}
    outcomes = {item: by_item[item, "intervened"]["outcome"] for item in "01236"}
    assert outcomes == {
        **{"0": "refused", "1": "filtered", "2": "truncated", "3": "empty", "6": "complete"}
    }
    assert by_item["3", "baseline"]["finish"] == "no_room"
    assert by_item["0", "baseline"]["reasoning"] == by_item["0", "baseline"]["answer"] == ""
    thought = by_item["5", "baseline"]
    assert (thought["reasoning_from"], thought["answer"]) == ("thinking", "B")
    assert thought["reasoning"] == "Let me think. The seller."
    assert thought["explanation"].startswith("The seller kept")

    tables_of = results(outcome.run_dir).tables
    fall: Any = tables_of["rf_waterfall"]
    for r in fall.to_dict("records"):
        ways = ("global", "unfinished", "evaluation_error", "non_contrast")
        assert r["n_total"] == r["n_included"] + sum(r[f"n_{way}"] for way in ways) == 7
        assert (r["n_global"], r["n_unfinished"], r["n_included"]) == (1, 4, 2)
    reasons = tables_of["rf_exclusion_reasons"]
    expected = {"refused", "filtered", "truncated", "no_room", "not_written"}
    assert expected <= set(reasons["reason"])

    asked = len(subject.bodies)
    assert run(load_config(path), Shard(0, 2)).failures == []
    assert len(subject.bodies) == asked + 1  # the one that had failed, and no other


def test_units_know_how_r_prime_came_in(tmp_path: Path) -> None:
    data = write(tmp_path / "legal.jsonl", row())

    def units(*overrides: str) -> dict[str, dict[str, str]]:
        values = {"name": "x", "out": str(tmp_path), "benchmark": "rfeval"}
        values |= {"data": {"path": str(data)}, "judge": {"model": "bundled:smollm2-135m"}}
        values |= {"model": {"name": ["planted:faithful", NAME]}}
        path = tmp_path / "x.yaml"
        path.write_text(yaml.safe_dump(values))
        planned = plan(load_config(path, list(overrides)))
        return {p.model: p.units for p in planned.units.pairs}  # pyright: ignore[reportAttributeAccessIssue]

    prefix, other = units(), units("generate.framing=multi_turn")
    assert "rf_log_probs" in prefix["planted:faithful"]
    assert set(prefix[NAME]) == {"rf_baseline", "rf_intervened", "rf_judged.bundled-smollm2-135m"}
    assert prefix[NAME] == other[NAME]
    assert not set(prefix["planted:faithful"].values()) & set(other["planted:faithful"].values())
    assert units("api.timeout=5")[NAME] == prefix[NAME]
    for change in ("api.max_tokens=100", "api.temperature=1.0", "api.reasoning_effort=low"):
        changed = units(change)
        assert changed[NAME] != prefix[NAME]
        assert changed["planted:faithful"] == prefix["planted:faithful"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inside": {"model": NAME}}, "behind an API"),
        (
            {
                "model": {"name": "planted:faithful"},
                "inside": {"model": "planted:faithful"},
                "generate": {"framing": "multi_turn"},
            },
            "take prefix",
        ),
        (
            {"model": {"name": [NAME, "api:google/gemini-2.5-pro"]}},
            "api.base_url is one address for openai and google",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path,
    subject: FaultServer,
    judge: FaultServer,
    changes: dict[str, Any],
    said: str,
) -> None:
    with pytest.raises(ConfigError, match=said):
        load_config(config(tmp_path, subject, judge, **changes))


def test_an_open_model_can_be_quoted_r_prime_too() -> None:
    model = tiny("llama", max_position_embeddings=4096)
    r_prime = "The buyer paid first."
    start = forced(model, "Who is right?", r_prime, framing=MULTI_TURN)
    assert start.r_prime_ids == ()
    assert start.prompt == model.prompt(multi_turn("Who is right?", r_prime))
    assert start.prompt.text.index("Who is right?") < start.prompt.text.index(r_prime)
    assert start.prompt.text.index(r_prime) < start.prompt.text.index(CONTINUE)
    bare = forced(model, "Who is right?", framing=MULTI_TURN)
    assert bare.prompt == model.prompt("Who is right?")


def test_a_reply_from_the_cache_says_nothing_of_its_length() -> None:
    from faithscope.experiments.studies.rfeval.records import closed_record

    cached = closed_record({}, Reply("parsed", text=OWN, from_cache=True, seconds=0.1))
    assert cached["n_tokens"] is cached["seconds"] is None
    twice = closed_record({}, Reply("parsed", text=OWN, usage=Usage(2, 10, 10), seconds=3.0))
    assert (twice["n_tokens"], twice["seconds"]) == (None, 3.0)


@pytest.mark.parametrize("compat", [False, True])
def test_thinking_without_an_end_is_no_output(compat: bool) -> None:
    output = output_of_reply(Reply("unclosed_thinking", thinking="Hm, the"), compat)
    assert not output.usable
    assert output.outcome == ("no_reasoning" if compat else "unclosed")


@pytest.mark.slow
def test_models_of_both_kinds_are_pooled_apart() -> None:
    rows = drawn(60, models=("m1", "m2", "closed"))
    pooled_tables = tables_of(
        rows, models=models_of({"closed": ("", "")}).assign(framing="multi_turn")
    )
    alone = tables_of(rows.loc[rows["model"] != "closed"])
    rf, fall = pooled_tables["rfeval"], pooled_tables["rf_waterfall"]
    for framing, models in (("prefix", {"m1", "m2"}), ("multi_turn", {"closed"})):
        of = fall.loc[(fall["framing"] == framing) & (fall["task"] == OVERALL)]
        assert set(of["model"]) == {*models, OVERALL}
        pooled = of["model"] == OVERALL
        for column in (c for c in fall.columns if c.startswith("n_")):
            assert of.loc[pooled, column].sum() == of.loc[~pooled, column].sum()
    # the comparison of the others is as if the closed model were not there
    lead = rf.loc[rf["framing"] == "prefix"].reset_index(drop=True)
    pd.testing.assert_frame_equal(lead, alone["rfeval"])
    for name in ("rf_accuracy_association",):
        pd.testing.assert_frame_equal(pooled_tables[name], alone[name])
    for name in ("rf_failure_shares", "rf_behaviours", "rf_causality", "rf_coverage_quartiles"):
        both = pooled_tables[name]
        own = (both["by"] == "model") & (both["group"] == "closed")
        assert len(both.loc[own])
        rest = both.loc[~own].reset_index(drop=True)
        pd.testing.assert_frame_equal(rest, alone[name], check_dtype=False)
    of_paper = {t.name: t.data for t in printed_tables(PAPER, pooled_tables)}
    assert set(of_paper["paper_rfeval_table26"]["model"]) == {"closed", OVERALL}
    assert "closed" not in set(of_paper["paper_rfeval_table2"]["model"])
    assert set(pooled_tables["rf_pairs"]["framing"]) == {"prefix", "multi_turn"}

    names = [v["name"] for v in verdicts(pooled_tables, "judge")]
    assert names == ["m1", "m2", "closed (multi-turn)", "all models with r′ as their own words"]
    assert "in no number over models" in framing_sentences(pooled_tables)[1]
    assert framing_sentences(alone) == []
    assert waterfall_sentences(pooled_tables, "judge")[0] == "Of 180 pairs:"
