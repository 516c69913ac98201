"""Reader of conversations of OpenAI-style APIs: `reasoning_content`, blocks, or think tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.data.given.cells import ENDED, facts_of, parsed, text, was_cut
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.thinking import (
    TOOL_ROLES,
    chain_of,
    of_message,
    refuse_tools,
    text_of,
)
from faithscope.experiments.data.tasks.sources.gold import (
    ANSWER,
    GOLD,
    check_unread,
    stated,
)
from faithscope.experiments.data.tasks.sources.rows import SourceRow, cell, has, usable
from faithscope.interp.errors import UserError

SYSTEM = ("system", "developer")
"""Roles whose messages precede the user's message in the prompt."""
_TURNS = ("messages", "conversations", "conversation")
_SHAREGPT = {"human": "user", "gpt": "assistant", "function_call": "tool", "observation": "tool"}
"""Role by the names of ShareGPT, whose turns have `from` and `value`."""


def chain(row: SourceRow) -> GivenChain:
    """The chain of one row: `messages` that end with the assistant's, or a response with `choices`
    beside the `messages` that were sent.

    The thinking is the chain, and the reply after it the answer; a reply without thinking is the
    chain as a whole. Several messages of the assistant in a row are one reply.

    Raises:
        UserError: there is no assistant message, there are several user turns or a tool's turn, or
            a content is no text.
    """
    ended = None
    name = next((n for n in _TURNS if n in row.values), _TURNS[0])
    sent = [_message(m, i, row) for i, m in enumerate(parsed(row, name, list))]
    if has(row, "system") and not any(m.get("role") in SYSTEM for m in sent):
        sent = [{"role": SYSTEM[0], "content": cell(row, "system")}, *sent]
    if has(row, "choices"):
        choices = parsed(row, "choices", list)
        if len(choices) != 1 or not isinstance(choices[0], Mapping):
            raise UserError(f"{row.where}: {len(choices)} 'choices'; give a row for each")
        ended = choices[0].get("finish_reason")
        sent.append(_message(choices[0].get("message"), len(sent), row))
    if not sent or sent[-1].get("role") != "assistant":
        raise UserError(f"{row.where}: the last message is not the assistant's; give its reply")
    refuse_tools((i for i, m in enumerate(sent) if _is_of_tools(m)), row.where)
    asked = [m for m in sent if m.get("role") == "user"]
    if len(asked) != 1:
        raise UserError(
            f"{row.where}: {len(asked)} turns of the user; a chain answers one, give a row for each"
        )
    replies = sent[sent.index(asked[0]) + 1 :]
    if [m.get("role") for m in replies] != ["assistant"] * len(replies) or any(
        m.get("role") not in SYSTEM for m in sent[: -len(replies) - 1]
    ):
        roles = ", ".join(str(m.get("role")) for m in sent)
        raise UserError(
            f"{row.where}: the roles of its messages are {roles}; give system, user and assistant, "
            "in this order"
        )
    system = [text_of(m.get("content"), row.where).strip() for m in sent[: -len(replies) - 1]]
    said_by_user = usable(text_of(asked[0].get("content"), row.where), "the user's message", row)
    # the system message joins the user's: it may hold a cue, and not every template takes one
    prompt = "\n\n".join([*filter(None, system), said_by_user])
    reasoning, answer = chain_of([of_message(m, row.where, prompt) for m in replies])
    # `choices` holds the API's response here, no options of a question
    about = SourceRow(row.id, row.cells.without("choices"), row.where)
    if has(about, ANSWER) and not stated(about, GOLD):
        raise UserError(
            f"{row.where}: 'answer' could be the right answer or the one in the reply; call the "
            "right one 'gold', and leave the other out: it is read from the reply"
        )
    facts = facts_of(about, GOLD, answer)
    has_kind = facts["options"] is not None or facts["kind"] is not None
    check_unread(about, of_chain=True, has_kind=has_kind)
    return GivenChain(
        id=text(row, "id") or row.id,
        dataset=text(row, "dataset") or "chat",
        question=text(row, "question") or said_by_user,
        reasoning=reasoning,
        **facts,
        model=text(row, "model") or "",
        prompt=prompt,
        cut=was_cut(ended, *map(row.values.get, ENDED)),
        where=row.where,
    )


def _message(value: Any, i: int, row: SourceRow) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{row.where}: message {i} is a {type(value).__name__}; give an object")
    if "role" not in value and isinstance(said_by := value.get("from"), str):
        return {"role": _SHAREGPT.get(said_by, said_by), "content": value.get("value")}
    return value


def _is_of_tools(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [str(p.get("type")) for p in parts if isinstance(p, Mapping)]
    called = message.get("tool_calls") or message.get("function_call")
    return bool(called) or message.get("role") in TOOL_ROLES or any("tool" in k for k in kinds)


CHAT = Reader(
    "chat",
    "messages of OpenAI's style or ShareGPT's, with reasoning_content, reasoning blocks or tags",
    lambda row: any(name in row for name in _TURNS),
    lambda rows: map(chain, rows),
)
