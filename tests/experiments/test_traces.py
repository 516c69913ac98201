"""Traces: made by a model, stored and read back, excluded for a reason, asked about again."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from run_files import write_rows
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from faithscope import interp
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import (
    TraceSettings,
    asking_for,
    exclusion,
    make_trace,
    make_traces,
    score_answer,
    to_record,
    to_trace,
    trace_of,
    usual_tokens,
)
from faithscope.experiments.engine.traces.endings import faults_of_trace
from faithscope.interp.errors import UserError
from faithscope.interp.formats import BY_NAME
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model
from faithscope.interventions import EDITS, Edit, Origin, Question, Step, Trace, remove_step
from faithscope.probes.framing import prefix_ids

TEMPLATE = (Path(__file__).parents[1] / "interp" / "templates" / "qwen3.jinja").read_text()
REASONING = "First add 3 and 4, which makes 7. Then take 2 away from it, which leaves 5."
QUESTION = Question("q", "sequential_math", "3 + 4 - 2?", "number", gold="5")
MATH = get_task("sequential_math")


def tiny(template: str | None) -> Model:
    """A random byte-level Llama, with the control tokens and template of Qwen3 or without."""
    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=letters, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    inner.add_tokens([AddedToken("<think>"), AddedToken("</think>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>")
    tokenizer.chat_template = template
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    return interp.wrap(LlamaForCausalLM(config), tokenizer, name="tiny:thinker")


@pytest.fixture(scope="module")
def thinker() -> Model:
    return tiny(TEMPLATE)


@pytest.fixture(scope="module")
def plain() -> Model:
    return tiny(None)


@pytest.fixture(scope="module")
def planted() -> Model:
    return interp.load("planted:hint", dtype="float32", device="cpu")


def written(model: Model, text: str, finish="stop") -> Generation:
    """What the model would have emitted, control tokens as such."""
    ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    return Generation(tuple(ids), finish)


def traced(model: Model, text: str, finish="stop", **settings) -> Trace:
    made = TraceSettings(**settings)
    prompt = model.prompt(MATH.cot_prompt(QUESTION), thinking=made.thinking)
    return trace_of(model, MATH, QUESTION, prompt, written(model, text, finish), made)


def test_a_planted_model_writes_traces(planted: Model) -> None:
    task = get_task("planted")
    questions = list(task.load(LoadSettings(limit=5)))
    seen: dict[int, Trace] = {}
    settings = TraceSettings(max_new_tokens=48, batch_size=2)
    made = make_traces(planted, [(task, q) for q in questions], settings, seen.__setitem__)
    assert [seen[i] for i in range(5)] == made
    for question, trace in zip(questions, made, strict=True):
        assert trace.question == question
        assert [s.text.count("makes") for s in trace.counted_steps] == [1, 1, 1]
        assert trace.tail_text.split() == ["Therefore", "the", "answer", "is", question.gold, "."]
        assert (trace.answer, trace.finish, exclusion(trace)) == (question.gold, "stop", None)
        assert to_record(trace)["correct"] is True
        assert trace.origin.model == planted.name
        assert trace.origin.sampling["batch_size"] == 2
    alone = make_traces(planted, [(task, questions[3])], settings)
    assert alone[0].reasoning_ids == made[3].reasoning_ids


def test_answers_of_a_planted_model_are_scored(planted: Model) -> None:
    task = get_task("planted")
    question = next(iter(task.load(LoadSettings(limit=1))))
    trace = make_traces(planted, [(task, question)], TraceSettings(max_new_tokens=48))[0]
    scores = score_answer(planted, trace)
    assert set(scores) == set("0123456789")
    assert math.isclose(sum(scores.values()), 1, abs_tol=1e-6)
    assert max(scores, key=scores.__getitem__) == trace.answer
    few = score_answer(planted, trace, labels=["1", "2"])
    assert math.isclose(few["1"] + few["2"], 1, abs_tol=1e-6)
    assert few["1"] / few["2"] == pytest.approx(scores["1"] / scores["2"], rel=1e-3)
    with pytest.raises(UserError, match="no two answers to weigh; give labels"):
        score_answer(planted, trace, labels=["1"])


def test_plain_prose_is_cut_before_its_answer(plain: Model) -> None:
    trace = traced(plain, f"{REASONING} So the answer is 5.")
    assert trace.reasoning_text.strip() == REASONING
    assert trace.tail_text == "So the answer is 5."
    assert (trace.answer, len(trace.counted_steps), exclusion(trace)) == ("5", 2, None)
    kept = traced(plain, f"{REASONING} So the answer is 5.", conclusion="keep")
    assert (kept.tail_ids, len(kept.counted_steps), kept.answer) == ((), 3, "5")
    assert (*trace.reasoning_ids, *trace.tail_ids) == kept.reasoning_ids


def test_what_the_limit_cut_off_is_no_closing_statement(plain: Model) -> None:
    text = "The film is slow to begin with. Therefore it is hard to"
    assert traced(plain, text).tail_text == "Therefore it is hard to"
    cut = traced(plain, text, finish="length")
    assert (cut.tail_text, len(cut.counted_steps)) == ("", 2)
    assert "answer is 9" in traced(plain, f"{REASONING} The answer is 9. More", "length").tail_text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (REASONING, None),
        (f"{REASONING} Now check: 5 + 2 is 7 and", None),
        (f"{REASONING} The answer is 9. More", "9"),
        (f"{REASONING} The answer is 9. Then 12 + 3", "9"),
        (f"{REASONING}\nThe final answer is:\n\n\\boxed{{9}}\n\nLet me check 3", "9"),
        (f"{REASONING} The answer is 1", None),
        (f"{REASONING} The answer is 1,2", None),
        (f"{REASONING} The answer is 9 pens, as", "9"),
        (f"{REASONING}\n#### 9\n\nQuestion: 3 and", "9"),
        (f"{REASONING} The answer is 9. Wait, that is wrong. Take 2", None),
    ],
)
def test_a_chain_that_the_limit_cut_off_has_an_answer_only_if_it_states_one(
    plain: Model, thinker: Model, text: str, answer: str | None
) -> None:
    assert traced(plain, text, finish="length").answer == answer
    kept = traced(plain, text, finish="length", conclusion="keep")
    assert kept.answer == answer
    after = f"{REASONING}\n</think>\n\n{text}"
    assert traced(thinker, after, finish="length").answer == answer
    assert faults_of_trace(to_record(kept)) >= ({"cut"} if answer else {"cut", "answerless"})


def test_a_think_block_is_the_reasoning_and_what_follows_the_answer(thinker: Model) -> None:
    trace = traced(thinker, f"{REASONING}\n</think>\n\nIt is 5, from 7 apples.\n\n#### 5")
    assert trace.reasoning_text == f"{REASONING}\n"
    assert trace.tail_text.startswith("</think>")
    assert thinker.decode(trace.prompt_ids).endswith("<think>\n")
    assert (trace.answer, exclusion(trace)) == ("5", None)
    assert trace.origin.sampling["reasoning_format"] == thinker.format.name != "none"


def test_an_opener_that_the_model_wrote_belongs_to_the_prompt(thinker: Model) -> None:
    prompt = thinker.prompt("3 + 4 - 2?")
    bare = replace(prompt, ids=prompt.ids[: prompt.ids.index(thinker.encode("\n")[0]) + 1])
    said = written(thinker, f"<think>\n{REASONING}</think>5")
    trace = trace_of(thinker, MATH, QUESTION, bare, said, TraceSettings())
    assert trace.reasoning_text == REASONING
    assert thinker.decode(trace.prompt_ids).endswith("<think>\n")
    assert (*trace.prompt_ids, *trace.reasoning_ids, *trace.tail_ids) == (*bare.ids, *said.ids)


def test_exclusions_have_reasons(thinker: Model, plain: Model) -> None:
    unclosed = traced(thinker, REASONING, finish="length")
    assert (exclusion(unclosed), unclosed.answer) == ("reasoning_unclosed", None)
    assert exclusion(traced(plain, "")) == "empty_generation"
    assert exclusion(traced(plain, "It is simply five. 5")) == "fewer_than_2_steps"
    assert exclusion(traced(thinker, "</think>5")) == "fewer_than_2_steps"
    no_answer = traced(plain, "I cannot say what it comes to. Nobody can say that at all.")
    assert (no_answer.answer, exclusion(no_answer)) == (None, None)
    # an answer that cannot be read is not a wrong one
    assert to_record(no_answer)["correct"] is None
    assert to_record(unclosed)["excluded"] == "reasoning_unclosed"


def test_thinking_turned_off_leaves_plain_prose(thinker: Model) -> None:
    trace = traced(thinker, f"{REASONING} The answer is 5.", thinking=False)
    assert trace.tail_text == "The answer is 5."
    assert trace.origin.sampling["reasoning_format"] == "none"
    assert asking_for(thinker, MATH, trace).closer_ids == ()


def test_the_prefix_framing_closes_a_think_block_before_the_cue(thinker: Model) -> None:
    trace = traced(thinker, f"{REASONING}\n</think>\n\nIt is 5.")
    asking = asking_for(thinker, MATH, trace)
    text = thinker.decode(prefix_ids(thinker, asking, trace))
    assert text.endswith(f"<think>\n{REASONING}\n</think>{MATH.answer_cue}")
    assert asking.closer_ids == trace.tail_ids[: len(asking.closer_ids)]


def test_an_answer_after_a_cue_is_the_first_and_without_one_the_last(plain: Model) -> None:
    asking = asking_for(plain, MATH, traced(plain, f"{REASONING} So 5."))
    assert asking.parse(f"{MATH.answer_cue} 5, not 7.") == "5"
    assert asking.parse(f"{MATH.reprompt_cue} 5, not 7.") == "5"
    assert asking.parse("It is 7 less 2. So 5.") == "5"
    assert asking.parse(MATH.answer_cue) is None
    assert ("5", " 5") in asking.labels
    assert "QUOTED" in asking.necessity_prompt("QUOTED")
    assert '"QUOTED"' in asking.sufficiency_prompt("QUOTED")


def test_a_question_of_ones_own(plain: Model) -> None:
    settings = TraceSettings(max_new_tokens=12)
    trace = make_trace(plain, "How many?", gold="1,200.0", settings=settings)
    assert (trace.question.kind, trace.question.gold) == ("number", "1200")
    assert set(score_answer(plain, trace)) >= {"1200", "1201", "1199"}
    trace = make_trace(plain, "So?", "label", ["yes", "no"], settings=settings)
    assert set(score_answer(plain, trace)) == {"yes", "no"}
    trace = make_trace(plain, "Which?", "choice", ["this", "that", "other"], settings=settings)
    assert set(score_answer(plain, trace)) == {"A", "B", "C"}
    trace = make_trace(plain, "It was fun.", task="sentiment", settings=settings)
    assert set(score_answer(plain, trace)) == {"positive", "negative"}
    with pytest.raises(UserError, match="make_trace: no column 'options'"):
        make_trace(plain, "So?", "label")
    with pytest.raises(UserError, match="'sentiment' has answers of kind 'label', not 'number'"):
        make_trace(plain, "So?", "number", task="sentiment")


@pytest.mark.parametrize(
    "row",
    [
        {"options": ["owl", "otter"], "gold": "otter"},
        {"options": ["owl", "otter"], "gold": "B", "kind": "label"},
        {"gold": "7 apples"},
        {"gold": "otter"},
        {"options": ["owl"]},
        {"options": ["owl", "otter"], "gold": "bat"},
        {"options": ["owl", "otter"], "gold": 1},
        {"options": ["owl", "otter"], "kind": "number"},
        {"kind": "choice"},
        {"question": "<|im_start|>user\nWhich?"},
    ],
)
def test_a_question_in_python_is_refused_and_accepted_as_one_in_a_file(
    plain: Model, tmp_path: Path, row: dict[str, Any]
) -> None:
    row = {"question": "Which swims?", **row}
    path = write_rows(tmp_path / "mine.jsonl", row)
    settings = TraceSettings(max_new_tokens=2)
    given = {**row, "text": row["question"]}
    del given["question"]
    try:
        (asked,) = get_task("own").load(LoadSettings(path))
    except UserError as error:
        said = str(error).partition("line 1: ")[2]
        with pytest.raises(UserError, match=re.escape(f"make_trace: {said}")):
            make_trace(plain, **given, settings=settings)
    else:
        made = make_trace(plain, **given, settings=settings).question
        assert replace(made, id=asked.id) == replace(asked, task="own")


COUNTING = "First 3 + 4 makes 71. Then 12 comes on top. Now take 5 away. That leaves 40."


def test_a_long_prompt_takes_no_room_from_the_others_of_its_batch():
    model = tiny(None)
    short, long = (
        (MATH, Question(f"q{n}", "sequential_math", "3 + 4 - 2? " * n, "number", gold="5"))
        for n in (1, 180)
    )
    assert model.max_positions is not None
    room = model.max_positions - len(model.prompt(MATH.cot_prompt(long[1])).ids)
    assert 0 < room < 100
    settings = TraceSettings(max_new_tokens=100)
    first, last = make_traces(model, [short, long], settings)
    (alone,) = make_traces(model, [short], settings)
    assert first.reasoning_ids + first.tail_ids == alone.reasoning_ids + alone.tail_ids
    assert first.origin.sampling["max_new_tokens"] == 100
    assert last.origin.sampling["max_new_tokens"] == room
    assert len(last.reasoning_ids + last.tail_ids) <= room


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_is_scored_on_the_answers_of_the_trace_it_was_made_of(
    plain: Model, name: str
) -> None:
    trace = traced(plain, COUNTING)
    new = plain.encode("It is 99. ")
    writer = {"encode": plain.encode, "pieces_of": plain.pieces}
    others = {
        "truncate_token": {"kept": 9},
        "shuffle": {"seed": 0},
        "reverse": {},
        "replace": {"step": 1, "ids": new, "pieces": plain.pieces(new)},
        "corrupt": {"step": 1, "seed": 0, **writer},
        "remark": {"step": 1, **writer},
    }
    edited = EDITS[name](trace, **others.get(name, {"step": 1}))
    twice = remove_step(edited, edited.steps[0].index)
    assert trace.original is None
    assert edited.original == twice.original == trace
    answers = list(score_answer(plain, trace))
    assert {"5", "40", "71", "12"} <= set(answers)
    assert list(score_answer(plain, edited)) == list(score_answer(plain, twice)) == answers
    assert asking_for(plain, MATH, edited).labels == asking_for(plain, MATH, trace).labels


TEXTS = st.text(max_size=12)
IDS = st.lists(st.integers(0, 10**6), max_size=4).map(tuple)
FLAT = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | TEXTS, max_size=3)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    sizes: Sequence[int] = draw(st.lists(st.integers(1, 3), max_size=4))
    pieces = tuple(draw(TEXTS) for _ in range(sum(sizes)))
    cuts = [0, *(sum(sizes[: i + 1]) for i in range(len(sizes)))]
    at = [len("".join(pieces[:c])) for c in cuts]
    steps = tuple(
        Step(i, "".join(pieces[a:b]), (at[i], at[i + 1]), (a, b), draw(st.booleans()))
        for i, (a, b) in enumerate(pairwise(cuts))
    )
    options = draw(st.lists(TEXTS, min_size=2, max_size=4).map(tuple))
    choice = Question("q", "d", draw(TEXTS), "choice", draw(st.sampled_from("AB")), options)
    number = Question("q", "d", draw(TEXTS), "number", "1", None, draw(st.lists(TEXTS).map(tuple)))
    trace = Trace(
        question=draw(st.sampled_from((choice, number))),
        prompt_ids=draw(IDS),
        reasoning_ids=tuple(range(len(pieces))),
        pieces=pieces,
        steps=steps,
        tail_ids=draw(IDS),
        tail_text=draw(TEXTS),
        answer=draw(st.none() | TEXTS),
        finish=draw(st.sampled_from(("stop", "length"))),
        origin=Origin("m", draw(st.none() | TEXTS), sampling=draw(FLAT), seed=draw(st.integers())),
    )
    edits = draw(st.lists(st.builds(Edit, TEXTS, st.integers(), detail=FLAT), max_size=2))
    return trace.edited(answer=draw(TEXTS), edits=tuple(edits)) if edits else trace


@given(traces())
def test_a_trace_survives_being_stored(trace: Trace) -> None:
    record = json.loads(json.dumps(to_record(trace)))
    assert to_trace(record) == trace
    assert to_record(to_trace(record)) == record


def test_a_model_that_marks_its_reasoning_may_write_for_longer(planted: Model) -> None:
    prompt = planted.prompt("Compute 1 + 1 .")
    assert usual_tokens(prompt) == 320
    assert usual_tokens(replace(prompt, format=BY_NAME["think_tags"])) == 8_192
    (asked,) = [(t, q) for t in [get_task("planted")] for q in t.load(LoadSettings(limit=1))]
    (trace,) = make_traces(planted, [asked], TraceSettings())
    room = planted.max_positions - len(trace.prompt_ids)  # pyright: ignore
    assert trace.origin.sampling["max_new_tokens"] == min(320, room)
