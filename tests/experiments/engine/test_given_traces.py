"""Chains written elsewhere: encoded as they are, probed as any trace, counted where they cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import refused
from fault_server import FaultServer
from run_files import write_rows
from speaking_server import reasoning, speaks

import faithscope
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.experiments.data.traces import TraceSettings, to_record, to_trace
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.engine.traces.given import RUN, read_given
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp.errors import UserError
from faithscope.interventions import Trace
from faithscope.interventions.edits import remove_step
from faithscope.interventions.trace import Sent

WRITER = "org/writer"
REPLIES = [speaks]
WHOLE = Shard(0, 2)
"""The part that all chains of a small run are in; a part leaves outputs to who joins them."""


@pytest.fixture(scope="module")
def model() -> Any:
    return faithscope.load("planted:faithful")


@pytest.fixture(scope="module")
def own(model: Any) -> list[Trace]:
    """Traces that the model wrote itself."""
    return faithscope.make_traces(model, questions("planted", 3))


def rows_of(traces: list[Trace]) -> list[dict[str, Any]]:
    return [
        {
            "id": t.question.id,
            "dataset": "planted",
            "question": t.question.text,
            "kind": "label",
            "options": list(t.question.options or ()),
            "gold": t.question.gold,
            "steps": [{"text": s.text.strip(), "label_wrong": s.index == 1} for s in t.steps],
            "reasoning": t.reasoning_text,
            "answer": t.answer,
            "model": WRITER,
            "label_unfaithful": t.question.id.endswith("1"),
        }
        for t in traces
    ]


def config(folder: Path, **values: Any) -> Path:
    path = folder / "given.yaml"
    known = {
        "name": "given",
        "out": str(folder / "runs"),
        "model": {"name": "planted:faithful"},
        "probes": ["causal_effects", "attention"],
        "report": {"bootstrap": 20},
    }
    path.write_text(yaml.safe_dump(known | values))
    return path


def test_a_model_reads_its_own_words_as_it_wrote_them(model: Any, own: list[Trace]) -> None:
    given = faithscope.given_traces(model, rows_of(own))
    for written, read in zip(own, given, strict=True):
        assert read.prompt_ids == written.prompt_ids
        assert read.reasoning_ids == written.reasoning_ids
        assert [s.tokens for s in read.steps] == [s.tokens for s in written.steps]
        assert read.answer == written.answer
        assert (read.unit, read.origin.model) == ("given", "planted:faithful")
        assert read.origin.given is not None
        assert read.origin.given.model == WRITER
        assert to_trace(json.loads(json.dumps(to_record(read)))) == read
        for probe in ("causal_effects", "tracing"):
            (mine,), (other,) = (faithscope.measure(model, t, probe) for t in (written, read))
            for name, value in mine.items():
                if isinstance(value, float):
                    assert other[name] == pytest.approx(value, abs=1e-4), name


@pytest.fixture(scope="module")
def language() -> Any:
    return faithscope.load_language("bundled:smollm2-135m")


@pytest.mark.parametrize(
    ("reasoning", "steps"),
    [
        ("It is 3+4. So 7.", ["It is 3+4.", "So 7."]),
        ("First\n\nSecond\n\nThird", ["First", "Second", "Third"]),
        ("ab,cd", ["ab", ",", "cd"]),
        ("naïve…\U0001f600 yes", ["naïve", "…\U0001f600", "yes"]),
    ],
)
def test_steps_are_kept_to_the_character(language: Any, reasoning: str, steps: list[str]) -> None:
    row = {"question": "?", "reasoning": reasoning, "steps": steps, "kind": "number"}
    (trace,) = faithscope.given_traces(language, [row])
    assert trace.reasoning_text == reasoning
    assert [s.text.strip() for s in trace.steps] == steps
    assert all(s.counted for s in trace.steps)
    for i, step in enumerate(trace.steps):
        assert language.decode(trace.step_ids(step)) == step.text
        assert "".join(remove_step(trace, i).pieces) == "".join(
            s.text for s in trace.steps if s.index != i
        )


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"answer": "There are 3 boxes with 4 each, so the answer is 12."}, "12"),
        ({"answer": "48 / 2 = 24 clips, and 48 + 24 = 72. #### 72"}, "72"),
        ({"answer": "12"}, "12"),
        (
            {
                "kind": "label",
                "options": ["positive", "negative"],
                "answer": "The positive words are ironic. The answer is negative.",
            },
            "negative",
        ),
        ({"kind": "choice", "options": ["owl", "otter"], "answer": "B"}, "B"),
    ],
)
def test_an_answer_is_what_a_whole_reply_comes_to(
    language: Any, row: dict[str, Any], answer: str
) -> None:
    given = {"question": "?", "reasoning": "We think about it. Then we know.", "kind": "number"}
    (trace,) = faithscope.given_traces(language, [given | row])
    assert trace.answer == answer


def test_another_runs_chains_keep_their_prompt_and_what_is_no_step() -> None:
    record: dict[str, Any] = {
        "item": "q0",
        "model": "m",
        "question": {
            "dataset": "sst2",
            "task": "sst2:alternative",
            "text": "A fine film.",
            "kind": "label",
            "options": ["positive", "negative"],
            "gold": "positive",
        },
        "origin": {},
        "pieces": ["Ok. ", "The words are warm. ", "So it is praise."],
        "steps": [
            {"index": 0, "text": "Ok. ", "chars": [0, 4], "counted": False},
            {"index": 1, "text": "The words are warm. ", "chars": [4, 24], "counted": True},
            {"index": 2, "text": "So it is praise.", "chars": [24, 40], "counted": True},
        ],
        "answer": "positive",
    }
    (chain,) = RUN.chains([SourceRow("q0", record, "runs/a")])
    assert chain.steps == ((4, 24), (24, 40))
    asked = question_of_chain(chain, "runs/a", "run")
    assert asked.task.name == asked.question.task == "sst2:alternative"
    assert asked.prompt != question_of_chain(chain, "runs/a", "run", task="sst2").prompt
    # as JSON holds a conversation that was sent
    turns = [["user", "Is a bad film praised?"], ["assistant", "No."], ["user", "Is this one?"]]
    record["question"]["sent"] = {"prompt": turns, "prefix": ""}
    (sent,) = RUN.chains([SourceRow("q0", record, "runs/a")])
    assert sent.sent == Sent(tuple((role, text) for role, text in turns))
    assert question_of_chain(sent, "runs/a", "run").prompt == "Is this one?"
    # what the right number is compared with is the task's, as in the run that wrote the chain
    of_task = {"task": "worked_problems", "kind": "number", "gold": "7", "candidates": ["5", "6"]}
    record |= {"question": {**record["question"], **of_task, "options": None}, "answer": "7"}
    (number,) = RUN.chains([SourceRow("q0", record, "runs/a")])
    assert question_of_chain(number, "runs/a", "run").question.candidates == ("5", "6")


def test_text_between_given_steps_is_cut_as_usual(language: Any) -> None:
    text = "We begin with a plain thought. The book says B. Hm. So the answer must be B."
    start = text.index("The book")
    row = {
        "row_id": "r",
        "label_type": "UNFAITHFUL_STEP",
        "sentence_span_start": start,
        "sentence_span_end": start + len("The book says B."),
        "cot": text,
        "prompt": "Which?",
        "target_model": "m",
    }
    (trace,) = faithscope.given_traces(language, [row])
    assert [s.text for s in trace.steps] == [
        "We begin with a plain thought.",
        " The book says B.",
        " Hm.",
        " So the answer must be B.",
    ]
    assert [s.counted for s in trace.steps] == [True, True, False, True]
    assert trace.origin.given is not None
    assert trace.origin.given.step_labels == {"unfaithful": (None, True, None, None)}


def test_what_a_model_has_no_tokens_for_is_named(model: Any, tmp_path: Path) -> None:
    row = {"dataset": "planted", "question": "Compute", "reasoning": "So 7 . But otters swim ."}
    path = write_rows(tmp_path / "m.jsonl", row | {"steps": ["So 7 .", "But otters swim ."]})
    with pytest.raises(UserError) as refused:
        faithscope.given_traces(model, path)
    assert str(refused.value) == (
        f"{path}, line 1: step 1 (characters 6 to 24, ' But otters swim .') cannot be put into "
        "whole tokens of planted:faithful; write it in characters that its tokenizer gives back, "
        "or let another model read it"
    )


def test_a_run_over_a_file(tmp_path: Path, own: list[Trace], capsys: Any) -> None:
    rows = rows_of(own)
    rows[2] |= {"reasoning": "So otters swim .", "steps": None}
    path = write_rows(tmp_path / "mine.jsonl", *rows)
    settings = config(tmp_path, traces={"path": str(path)}, tasks=["planted_2"])
    outcome = run(load_config(settings), WHOLE)
    assert f"{path} is read as rows" in capsys.readouterr().err
    assert len(outcome.failures) == 1
    assert "line 3: the text (characters 0 to 16" in outcome.failures[0]
    opened = faithscope.load_run(outcome.run_dir)
    traces = opened.traces
    assert list(traces["label_unfaithful"]) == [False, True]
    assert set(traces["written_by"]) == {WRITER}
    assert list(opened.trace_steps["label_wrong"]) == [False, True, False] * 2
    exclusions = opened.tables["exclusions"].set_index(["stage", "reason"])["n"]
    assert (exclusions["trace", "failed"], exclusions["trace", "included"]) == (1, 2)
    assert exclusions["causal_effects", "included"] == 2
    # the chain's content is in the ids: another step is another trace, the others stand
    before = {i.item: dict(i.units) for i in plan(load_config(settings)).items}
    rows[0]["answer"] = "9"
    write_rows(path, *rows)
    after = {i.item: dict(i.units) for i in plan(load_config(settings)).items}
    changed = [item for item in before if before[item] != after[item]]
    assert changed == [rows[0]["id"]]


@pytest.mark.slow
def test_answers_of_no_known_kind_leave_out_the_probes_that_read_them(
    tmp_path: Path, own: list[Trace]
) -> None:
    rows = [
        {"id": row["id"], "question": row["question"], "reasoning": row["reasoning"]}
        for row in rows_of(own)
    ]
    path = write_rows(tmp_path / "mine.jsonl", *rows)
    model = "bundled:smollm2-135m"
    settings = config(tmp_path, traces={"path": str(path), "limit": 1}, model={"name": model})
    outcome = run(load_config(settings), WHOLE)
    assert outcome.failures == []
    exclusions = faithscope.load_run(outcome.run_dir).tables["exclusions"]
    n = exclusions.set_index(["stage", "reason"])["n"]
    assert n["causal_effects", "answer_kind_unknown"] == n["causal_effects", "total"] == 1
    assert n["attention", "included"] == 1


def test_another_run_is_a_source_of_chains(tmp_path: Path, own: list[Trace], model: Any) -> None:
    first = config(tmp_path, tasks=["planted"], data={"limit": 2}, name="first", probes=["tracing"])
    written = run(load_config(first), WHOLE).run_dir
    second = config(
        tmp_path, traces={"path": str(written)}, model={"name": "planted:hint"}, probes=["tracing"]
    )
    outcome = run(load_config(second), WHOLE)
    assert outcome.failures == []
    a, b = (faithscope.load_run(folder).traces for folder in (written, outcome.run_dir))
    assert list(b["reasoning"]) == list(a["reasoning"])
    assert list(b["n_steps"]) == list(a["n_steps"])
    assert set(b["written_by"]) == {"planted:faithful"}
    assert set(b["format"]) == {"run"}
    # the records of an item are those that measuring it returns
    (trace, *_) = own
    taken = faithscope.load_run(written).item("tracing", trace.question.id)
    (mine,) = faithscope.measure(model, trace, "tracing")
    assert taken.trace == trace
    assert set(taken[0]) >= {*mine} - {"arrays"}
    assert taken[0]["largest"] == pytest.approx(mine["largest"], abs=1e-4)
    for probe, item, why in (("tracing", "q9", "none; it has"), ("traced", "q9", "none; it has")):
        with pytest.raises(UserError, match=why):
            faithscope.load_run(written).item(probe, item)


def test_another_runs_chain_keeps_the_tokens_that_its_model_wrote(language: Any) -> None:
    def read(texts: list[str], ids: list[int]) -> Trace:
        spans = [(sum(map(len, texts[:i])), sum(map(len, texts[: i + 1]))) for i in range(2)]
        record: dict[str, Any] = {
            "item": "q0",
            "model": "m",
            "question": {
                **{"dataset": "own", "task": "own", "text": "How many?", "kind": "number"},
                **{"options": None, "gold": "7"},
            },
            "origin": {},
            "pieces": language.pieces(ids),
            "reasoning_ids": ids,
            "steps": [
                {"index": i, "text": t, "chars": chars, "counted": True}
                for i, (t, chars) in enumerate(zip(texts, spans, strict=True))
            ],
            "answer": "7",
        }
        (chain,) = RUN.chains([SourceRow("q0", record, "runs/a")])
        return given_trace(language, question_of_chain(chain, "runs/a", "run"), TraceSettings())

    # two line breaks at a text's end are one token, and two before a word
    first, (both,) = map(language.encode, ("It is 3 + 4.", "\n\n"))
    texts = ["It is 3 + 4.\n\n", "So it is 7."]
    ids = list(language.encode("".join(texts)))
    assert list(language.encode(texts[0])) == [*first, both] != ids[: len(first) + 1]
    trace = read(texts, ids)
    assert list(trace.reasoning_ids) == ids
    assert [s.text for s in trace.steps] == texts
    for step in trace.steps:
        assert language.decode(trace.step_ids(step)) == step.text
    # where a token lies across the border of two steps, each step has its own
    borders = ["It is about mar", "bles alone."]
    across = read(borders, list(language.encode("".join(borders))))
    assert [s.text for s in across.steps] == borders
    assert across.reasoning_text == "".join(borders)


@pytest.mark.takes("a run whose model writes chains under cues")
def test_chains_that_a_run_wrote_under_cues_are_given_chains(tmp_path: Path) -> None:
    of = {"tasks": ["planted"], "data": {"limit": 2}, "model": {"name": "planted:hint"}}
    written = run(load_config(config(tmp_path, **of, probes=["hints"])), WHOLE).run_dir
    records = [r for r in faithscope.load_run(written).records("hints") if r.get("reasoning")]
    chains = read_given(written, "cued").chains
    assert records
    assert {c.id for c in chains} == {f"{r['item']}/{r['cue']}" for r in records}
    for chain in chains:
        assert str(chain.cue) in str(chain.prompt)
        assert chain.labels["followed"] == (chain.answer == chain.cue_target)
    plain = run(load_config(config(tmp_path, **of, name="no", probes=["tracing"])), WHOLE).run_dir
    with pytest.raises(UserError, match=r"holds no chains under cues"):
        read_given(plain, "cued")


def test_a_model_behind_an_api_is_asked_about_given_chains(
    tmp_path: Path, server: FaultServer
) -> None:
    prompt, text = next(iter(reasoning().items()))
    steps = [f"{s}." for s in text.partition(" The answer")[0].rstrip(".").split(". ")]
    answer = text.rstrip(".").split()[-1]
    row = {"question": "?", "prompt": prompt, "steps": steps, "gold": answer, "answer": answer}
    path = write_rows(tmp_path / "m.jsonl", row)
    settings = config(
        tmp_path,
        traces={"path": str(path)},
        model={"name": "api:openai/gpt-4.1"},
        api={"base_url": server.url, "max_retries": 0},
        probes=["slrc"],
    )
    outcome = run(load_config(settings), WHOLE)
    assert outcome.failures == outcome.problems == []
    opened = faithscope.load_run(outcome.run_dir)
    assert list(opened.traces["n_steps"]) == [len(steps)]
    (row_of_table,) = opened.tables["slrc"].to_dict("records")
    # it reads its answer off the last equation it is shown
    assert row_of_table["necessity"] == pytest.approx(1 / len(steps))
    # no chain was asked for, only what the probe wants
    assert all(body["messages"][-1]["content"] != prompt for body in server.bodies)


def test_a_file_that_is_not_there_is_exit_code_2(tmp_path: Path) -> None:
    settings = config(tmp_path, traces={"path": str(tmp_path / "none.jsonl")})
    assert "traces.path: no such file or folder" in refused("run", settings)
    assert "tasks: missing" in refused("run", str(config(tmp_path)))
