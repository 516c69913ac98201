"""Rows of one's own whose reasoning holds marks or whose prompt was rendered before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.given.rules import ReadingRules
from faithscope.experiments.engine.run import plan
from faithscope.experiments.engine.tallies.reasons import EMPTY_CHAIN
from faithscope.interp.errors import UserError
from faithscope.interp.marks import MARKS

THOUGHT, SAID = "Owls fly.\nOtters swim.", "It is the otter.\n\nThe answer is B."
ROW = {"question": "Which swims?", "options": ["owl", "otter"]}


def read(folder: Path, row: dict[str, Any], rules: ReadingRules | None = None) -> GivenChain:
    (chain,) = read_chains(write_rows(folder / "mine.jsonl", ROW | row), rules=rules).chains
    return chain


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.name)
def test_rows_are_cut_at_every_mark_as_chat_is(tmp_path: Path, marks: Any) -> None:
    texts = [f"{marks.opener}\n{THOUGHT}\n{marks.closer}\n\n{SAID}"]
    texts += [] if marks.pairs_only else [f"{THOUGHT}\n{marks.closer}\n\n{SAID}"]
    for text in texts:
        chain = read(tmp_path, {"reasoning": text})
        assert (chain.reasoning, chain.answer) == (THOUGHT, SAID)
        # the column of the answer goes before the reply
        assert read(tmp_path, {"reasoning": text, "answer": "owl"}).answer == "A"
        row = {"messages": [{"role": "user", "content": "Which swims?"}], "options": ROW["options"]}
        row["messages"].append({"role": "assistant", "content": text})
        (said,) = read_chains(write_rows(tmp_path / "chat.jsonl", row)).chains
        assert (said.reasoning, said.answer) == (THOUGHT, SAID)
    for asked in ("question", "prompt"):
        chain = read(tmp_path, {asked: f"Which swims?\n{marks.opener}\n", "reasoning": THOUGHT})
        if marks.name != "granite_prose":
            assert getattr(chain, asked) == "Which swims?"


def test_marks_alone_are_no_step_and_a_reply_among_steps_is_refused(tmp_path: Path) -> None:
    steps = ["<think>", {"text": "Owls fly.", "label": 1}, "Otters swim.\n</think>"]
    chain = read(tmp_path, {"steps": steps})
    assert chain.reasoning == "Owls fly.\n\nOtters swim."
    assert chain.step_labels == {"label": (1, None)}
    whole = "<think>\nOwls fly. Otters swim.\n</think>\n\nThe answer is B."
    chain = read(tmp_path, {"steps": steps, "reasoning": whole})
    assert (chain.reasoning, chain.answer) == ("Owls fly. Otters swim.", "The answer is B.")
    assert [chain.reasoning[a:b] for a, b in chain.steps or ()] == ["Owls fly.", "Otters swim."]
    for bad in (["a", "</think>", "b"], ["a", "So.</think>b"]):
        with pytest.raises(UserError, match=r"line 1: steps\[\d\] .* the mark that ends"):
            read(tmp_path, {"steps": bad})


def test_a_prefilled_text_may_begin_with_the_mark(tmp_path: Path) -> None:
    row = {"reasoning": f"<think>\n{THOUGHT}\n</think>{SAID}", "prefilled": "<think>\nOwls"}
    assert read(tmp_path, row).prefilled == len("Owls")
    assert read(tmp_path, row | {"prefilled": "<think>\n"}).prefilled == 0


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("<ifm|think>a</ifm|think>b", "<ifm|think>"),
        ("a</my_think>b", "</my_think>"),
        ("<scratchpad>a</scratchpad>b", "<scratchpad>"),
        ("[REASON]a[/REASON]b", "[REASON]"),
        ("<think>a</think><thoughts>c</thoughts>b", "<thoughts>"),
    ],
)
def test_unknown_marks_are_refused_by_name_and_may_be_stated(
    tmp_path: Path, reply: str, mark: str
) -> None:
    for row in ({"reasoning": reply}, {"reasoning": "a", "answer": reply}):
        with pytest.raises(UserError, match=r"traces\.marks") as refused:
            read(tmp_path, row)
        assert f"line 1: the reply holds {mark!r}" in str(refused.value)
    assert read(tmp_path, {"reasoning": reply}, ReadingRules("none")).reasoning == reply
    if mark == "<ifm|think>":
        chain = read(
            tmp_path, {"reasoning": reply}, ReadingRules(["<ifm|think>\n", "</ifm|think>"])
        )
        assert (chain.reasoning, chain.answer) == ("a", "B")


@pytest.mark.parametrize(
    "prompt",
    [
        "<|im_start|>user\nWhich swims?<|im_end|>\n<|im_start|>assistant\n<think>\n",
        "<|start_header_id|>user<|end_header_id|>\n\nWhich?<|eot_id|>",
        "<|begin_of_text|>Which swims?",
        "<s>[INST] Which swims? [/INST]",
        "<start_of_turn>user\nWhich swims?<end_of_turn>\n<start_of_turn>model\n",
        "Be brief.<｜User｜>Which swims?<｜Assistant｜>",
        "Human: Which swims?\n\nAssistant: Let's think step by step:",
        "Below is an instruction.\n\n### Instruction:\nWhich swims?\n\n### Response:",
    ],
)
def test_a_prompt_that_was_rendered_is_refused(tmp_path: Path, prompt: str) -> None:
    for column in ("prompt", "question"):
        with pytest.raises(UserError, match=rf"line 1: {column} holds .*prompt_raw"):
            read(tmp_path, {column: prompt, "reasoning": THOUGHT})


@pytest.mark.parametrize(
    "prompt",
    [
        "What does the token <|im_end|> do?",
        "Question: Which swims?\nAnswer:",
        "Human: Hi.\nAssistant: Hello.\n\nWas the assistant polite?",
    ],
)
def test_a_message_that_quotes_is_none_that_was_rendered(tmp_path: Path, prompt: str) -> None:
    assert read(tmp_path, {"prompt": prompt, "reasoning": THOUGHT}).prompt == prompt


@pytest.mark.parametrize(
    ("row", "cut"),
    [
        ({"reasoning": "<think>\nHe has 6 of 4, which is 24. Then"}, True),
        ({"reasoning": "[THINK]He has 6 of 4, which is 24. Then"}, True),
        ({"reasoning": "<think>\nHe has 6 of 4. So 24.\n</think>\n\n24"}, False),
        # what the row says of its end goes before what its marks say
        ({"reasoning": "<think>\nHe has 6 of 4. So 24.", "finish_reason": "stop"}, False),
        ({"reasoning": "<think>\nHe has 6 of 4. So 24.", "truncated": False}, False),
        ({"reasoning": "<think>\nHe has 6 of 4. So 24.", "answer": "24"}, False),
        ({"reasoning": "He has 6 of 4, which is 24. Then", "finish_reason": "length"}, True),
    ],
)
def test_a_reply_without_its_closing_mark_was_cut_off_and_states_no_answer(
    tmp_path: Path, row: dict[str, Any], cut: bool
) -> None:
    asked = {"question": "How many are 6 of 4?", "gold": "24"}
    read = read_chains(write_rows(tmp_path / "mine.jsonl", asked | row))
    (chain,) = read.chains
    assert chain.cut is cut
    answer = question_of_chain(chain, read.file, read.format).answer
    assert answer == (None if cut else "24")
    assert len(read.notes) == (cut and "finish_reason" not in row)


def test_an_empty_reply_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    full = "First we add the one to the other. That makes two in all, which is the answer."
    texts = [full, "", None, " \n"]
    rows = [{"question": f"What is 1 + {i}?", "reasoning": t} for i, t in enumerate(texts)]
    path = write_rows(tmp_path / "mine.jsonl", *rows)
    config = load_config("chains", [f"traces.path={path}", f"out={tmp_path}", "probes=[attention]"])
    assert plan(config).forecast().lost == {EMPTY_CHAIN: 3}
    table = tmp_path / "mine.csv"
    table.write_text('question,reasoning\n"What is 1 + 1?","We add. It is 2."\n"And 2?",\n')
    assert [c.reasoning for c in read_chains(table).chains] == ["We add. It is 2.", ""]
    with pytest.raises(UserError, match="neither 'reasoning' nor 'steps'"):
        read_chains(write_rows(tmp_path / "none.jsonl", rows[0], {"question": "Why?"}), "rows")
