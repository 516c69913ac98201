"""Given conversations: reasoning and reply are told apart in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.interp.errors import UserError
from faithscope.interventions import Sent

ASKED = {"role": "user", "content": "Which swims?"}


THOUGHT, SAID = "Owls fly. Otters swim.", "It is the otter."


def chain_of(folder: Path, *messages: dict[str, Any]) -> GivenChain:
    (chain,) = read_chains(write_rows(folder / "chat.jsonl", {"messages": list(messages)})).chains
    return chain


def reply(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


@pytest.mark.parametrize(
    "message",
    [
        reply(f"<think>{THOUGHT}</think>{SAID}"),
        reply(f'<think signature="rs_01"><summary>Swimming</summary>{THOUGHT}</think>{SAID}'),
        reply(f"Sure! <thinking>{THOUGHT}</thinking>"),
        reply(f"[THINK]{THOUGHT}[/THINK]{SAID}"),
        reply(f"<seed:think>{THOUGHT}</seed:think>{SAID}"),
        reply(f"◁think▷{THOUGHT}◁/think▷{SAID}"),
        reply(f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{SAID}"),
        reply(
            f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
            f"<|channel|>final<|message|>{SAID}<|return|>"
        ),
        reply([{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, SAID]),
        reply(
            [
                {"type": "thinking", "thinking": THOUGHT, "signature": "x"},
                {"type": "redacted_thinking", "data": "gAAA="},
                {"type": "text", "text": SAID},
            ]
        ),
        reply(
            [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
                {"type": "output_text", "text": SAID},
            ]
        ),
        reply([{"type": "text", "text": f"<think>{THOUGHT}</think>{SAID}"}]),
        reply(f"{THOUGHT}</think>{SAID}"),
        reply(SAID, reasoning=THOUGHT),
        reply(SAID, reasoning_content=THOUGHT),
        reply(SAID, reasoning_details=[{"type": "reasoning.text", "text": THOUGHT}]),
        reply(f"<think>{THOUGHT}</think>{SAID}", reasoning_content=THOUGHT),
    ],
    ids=str,
)
def test_what_was_thought_is_the_chain(tmp_path: Path, message: dict[str, Any]) -> None:
    chain = chain_of(tmp_path, ASKED, message)
    assert chain.reasoning == THOUGHT
    assert chain.answer in (SAID, "Sure!")


def test_a_nested_block_is_part_of_the_thought(tmp_path: Path) -> None:
    thought = "They may write <think>owl</think> as a hint, but otters swim."
    chain = chain_of(tmp_path, ASKED, reply(f"<think>{thought}</think>{SAID}"))
    assert (chain.reasoning, chain.answer) == (thought, SAID)


def test_an_empty_block_is_no_thought_and_an_encrypted_one_is_no_text(tmp_path: Path) -> None:
    chain = chain_of(tmp_path, ASKED, reply(f"<think>\n\n</think>\n\n{SAID}"))
    assert (chain.reasoning.strip(), chain.answer) == (SAID, None)
    hidden = reply([{"type": "redacted_thinking", "data": "gAAA="}, SAID])
    chain = chain_of(tmp_path, ASKED, hidden)
    assert (chain.reasoning, chain.answer) == ("", SAID)


def test_messages_of_the_assistant_in_a_row_are_one_reply(tmp_path: Path) -> None:
    first = reply("Let me see.", reasoning_content="Owls fly.")
    chain = chain_of(tmp_path, ASKED, first, reply(SAID, reasoning_content="Otters swim."))
    assert chain.reasoning == "Owls fly.\n\nOtters swim."
    assert chain.answer == f"Let me see.\n\n{SAID}"


CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ((ASKED, CALL, {"role": "tool", "content": "4"}, reply(SAID)), "message 1 is of a tool"),
        (
            (
                ASKED,
                reply([{"type": "tool_use", "id": "1", "name": "f", "input": {}}]),
                {"role": "user", "content": [{"type": "tool_result", "content": "4"}]},
                reply(SAID),
            ),
            "message 1 is of a tool",
        ),
        ((reply("Hello!"), ASKED, reply(SAID)), "roles of its messages are assistant, user"),
        ((ASKED, reply("<think>a</think>b</think>c")), "('</think>' is left over)"),
        ((ASKED, reply([{"type": "audio", "data": "x"}])), "a part of type 'audio'"),
        (
            ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, reply(SAID)),
            "a part of type 'image_url'",
        ),
        ((ASKED, reply(7)), "a part of type 'int'"),
    ],
)
def test_what_cannot_be_read_whole_is_named(
    tmp_path: Path, messages: tuple[dict[str, Any], ...], problem: str
) -> None:
    with pytest.raises(UserError, match="line 1") as refused:
        chain_of(tmp_path, *messages)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_chat_without_thinking_is_a_chain_itself(tmp_path: Path) -> None:
    said = "It swims. So it is B."
    choices = [{"message": reply(said)}]
    row = {"messages": [ASKED], "choices": choices}
    (chain,) = read_chains(write_rows(tmp_path / "chat.jsonl", row)).chains
    assert (chain.reasoning, chain.answer) == (said, None)


def test_earlier_turns_are_part_of_the_prompt_as_it_was_sent(tmp_path: Path) -> None:
    system, first = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}
    said = reply("It swims. So it is B.")
    chain = chain_of(tmp_path, system, first, reply("<think>Greet.</think>Hello."), ASKED, said)
    assert chain.sent == Sent(
        (
            ("system", "Be brief."),
            ("user", "Hi."),
            ("assistant", "Hello."),
            ("user", ASKED["content"]),
        )
    )
    assert (chain.prompt, chain.question, chain.reasoning) == (
        None,
        ASKED["content"],
        said["content"],
    )
    for messages in ((first, system, ASKED, said), (said,), (first, reply(""), ASKED, said)):
        with pytest.raises(UserError, match="line 1"):
            chain_of(tmp_path, *messages)


def test_a_conversation_says_what_it_is_about(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        ASKED,
        reply("<think>It swims.</think>B."),
    ]
    row = {"messages": messages, "model": "m", "options": ["owl", "otter"], "target": "B"}
    read = read_chains(write_rows(tmp_path / "chat.jsonl", row))
    (chain,) = read.chains
    assert (read.format, chain.model) == ("chat", "m")
    assert (chain.reasoning, chain.answer, chain.gold) == ("It swims.", "B", "B")
    # a cue may stand in the system message: who reads the chain reads it, too
    assert (chain.prompt, chain.question) == ("Be brief.\n\nWhich swims?", "Which swims?")
