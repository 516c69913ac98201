"""Prompts as they were sent, of given chains, questions of one's own, and in a notebook."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from chat_models import chat
from run_files import write_rows

import faithscope
from faithscope import given_traces, make_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.data.tasks.own import OWN, question
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.experiments.data.traces import TraceSettings, asking_for, to_record, to_trace
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interventions import Sent
from faithscope.probes.cues import conversation
from faithscope.probes.text_model import Message

ROW = {
    "question": "What is 2 + 3?",
    "gold": "5",
    "model": "tiny:qwen3",
    "reasoning": "Two and one more make three. Two plus three makes five. So the answer is 5.",
}
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "What is 2 + 3?"},
]
RAW = "<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def model() -> Model:
    return chat("qwen3")


def prompt_of(model: Model, **more: Any) -> tuple[str, str]:
    """What the model reads before the chain, and what it reads after it."""
    (trace,) = given_traces(model, [ROW | more])
    assert trace == to_trace(to_record(trace))
    return model.decode(trace.prompt_ids), trace.tail_text


def test_chains_are_read_after_the_prompt_that_was_sent(model: Model) -> None:
    assert prompt_of(model, prompt_raw=RAW) == (f"{RAW}<think>\n", "</think>")
    assert prompt_of(model, prompt_raw=f"{RAW}<think>\n") == (f"{RAW}<think>\n", "</think>")
    assert prompt_of(model, prompt_raw=RAW, assistant_prefix="Let's think:")[0] == (
        f"{RAW}Let's think:"
    )
    assert prompt_of(model, prompt_raw="User: 2 + 3? Assistant:") == (
        "User: 2 + 3? Assistant:",
        " So the answer is 5.",
    )
    text, tail = prompt_of(model, prompt_raw=TURNS)
    assert text.count("<|im_start|>") == 5
    assert "assistant\nHi.<|im_end|>" in text
    assert (text[-8:], tail) == ("<think>\n", "</think>")
    asked = prompt_of(model, prompt="2 + 3?", assistant_prefix="<think>\nOkay. ")
    assert asked[0].endswith("2 + 3?<|im_end|>\n<|im_start|>assistant\n<think>\nOkay. ")


def test_probes_that_ask_again_leave_such_a_chain_out(model: Model) -> None:
    row = ROW | {"options": ["five", "six"], "gold": "A", "answer": "A"}
    for column in ({"assistant_prefix": "Let's think:"}, {"prompt_raw": TURNS}):
        (trace,) = given_traces(model, [row | column])
        records = faithscope.measure(model, trace, "hints")
        assert {r["excluded"] for r in records} == {"prompt_not_rendered_again"}


def test_the_conversation_of_a_chain_is_that_of_its_messages_up_to_the_users(model: Model) -> None:
    def of(**more: Any) -> Message:
        (trace,) = given_traces(model, [ROW | more])
        return conversation(trace, asking_for(model, get_task("own"), trace))

    turns = [(t["role"], t["content"]) for t in TURNS]
    assert turns[0][0] == "system"
    assert of(prompt_raw=TURNS) == Message(turns[-1][1], turns[0][1], tuple(turns[1:-1]))
    # words of the model's turn, or a text, are no messages: the task's own stands for them
    assert of(prompt_raw=TURNS, assistant_prefix="Let's think:").before == ()
    assert of(prompt_raw=RAW).before == of().before == ()


def test_a_chain_without_such_columns_keeps_its_hash_and_one_with_them_has_another() -> None:
    def sha(**more: Any) -> str:
        (chain,) = read_chains([ROW | more]).chains
        return question_of_chain(chain, "f", "rows").sha256

    assert sha() == sha(prompt_raw=None, assistant_prefix="")
    assert len({sha(), sha(prompt_raw=RAW), sha(assistant_prefix="a"), sha(prompt_raw=TURNS)}) == 4


def test_tables_hold_messages_as_json(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*ROW, "prompt_raw"])
        writer.writeheader()
        writer.writerow(ROW | {"prompt_raw": json.dumps(TURNS)})
    (chain,) = read_chains(path).chains
    assert chain.sent == Sent(tuple((t["role"], t["content"]) for t in TURNS))


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"prompt_raw": "a", "prompt": "b"}, "another one"),
        ({"prompt_raw": TURNS[:3]}, "ends with a message of the assistant"),
        ({"prompt_raw": TURNS[1:2] + TURNS[:1]}, "role 'system'"),
        ({"prompt_raw": [{"role": "tool", "content": "x"}]}, "role 'tool'"),
        ({"prompt_raw": [{"role": "user", "content": " "}]}, "prompt_raw[0].content is empty"),
        ({"prompt_raw": "[{'role': 'user'}]"}, "is no JSON"),
        ({"prompt_raw": {"role": "user"}}, "is a dict"),
        ({"assistant_prefix": ["a"]}, "is a list"),
    ],
)
def test_a_prompt_that_is_none_is_named(
    tmp_path: Path, columns: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UserError, match="line 1") as refused:
        read_chains(write_rows(tmp_path / "mine.jsonl", ROW | columns))
    assert problem in str(refused.value)


def test_a_question_of_ones_own_is_put_as_it_says(model: Model) -> None:
    row = {"question": "What is 2 + 3?", "prompt_raw": RAW, "assistant_prefix": "Let's think:"}
    asked = question(SourceRow("q", row, "mine.jsonl, line 1"))
    assert asked.sent == Sent(RAW, "Let's think:")
    settings = TraceSettings(max_new_tokens=4)
    (trace,) = faithscope.make_traces(model, [(OWN, asked)], settings)
    assert model.decode(trace.prompt_ids) == f"{RAW}Let's think:"
    same = make_trace(model, prompt=RAW, prefix="Let's think:", settings=settings)
    assert (same.prompt_ids, same.reasoning_ids) == (trace.prompt_ids, trace.reasoning_ids)
    assert make_trace(model, prompt=TURNS, settings=settings).question.text == "What is 2 + 3?"
    with pytest.raises(UserError, match="neither a question nor a prompt"):
        make_trace(model)
