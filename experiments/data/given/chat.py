"""Reader of conversations of OpenAI-style APIs: `reasoning_content`, blocks, or think tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from faithscope.experiments.data.given.cells import (
    facts_of,
    is_cut,
    parsed,
    text,
    with_options_of_question,
)
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
from faithscope.experiments.data.tasks.sources.prompts import counterfactual_of, sent_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, cell, each, has, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Sent

SYSTEM = ("system", "developer")
"""Roles whose messages precede the user's message in the prompt."""
_TURNS = ("messages", "conversations", "conversation")
_SHAREGPT = {"human": "user", "gpt": "assistant", "function_call": "tool", "observation": "tool"}
"""Role by the names of ShareGPT, whose turns have `from` and `value`."""


def chain(row: SourceRow) -> GivenChain:
    """The chain of one row: `messages` that end with the assistant's, or a response with `choices`
    beside the `messages` that were sent.

    The thinking is the chain, and the reply after it the answer; a reply without thinking is the
    chain as a whole. Several messages of the assistant in a row are one reply. Earlier turns of a
    conversation, without their thinking, are part of the prompt as it was sent.

    Raises:
        UserError: there is no assistant message, or no user's before it, there is a tool's turn, a
            system message that is not the first, or a content is no text.
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
    roles = ["system" if m.get("role") in SYSTEM else str(m.get("role")) for m in sent]
    n_system = next((i for i, role in enumerate(roles) if role != "system"), 0)
    asked = max((i for i, role in enumerate(roles) if role == "user"), default=n_system)
    if roles[n_system] != "user" or set(roles[n_system:]) != {"user", "assistant"}:
        raise UserError(
            f"{row.where}: the roles of its messages are {', '.join(roles)}; give system, user and "
            "assistant, in this order, with earlier turns of user and assistant before the last"
        )
    system = [text_of(m.get("content"), row.where).strip() for m in sent[:n_system]]
    said_by_user = usable(text_of(sent[asked].get("content"), row.where), "the user's message", row)
    earlier = [
        (role, text_of(m.get("content"), row.where) if role == "user" else _said(m, row))
        for role, m in zip(roles[n_system:asked], sent[n_system:asked], strict=True)
    ]
    # the system message joins the user's: it may hold a cue, and not every template takes one
    prompt = "\n\n".join([*filter(None, system), said_by_user])
    before = "\n\n".join([*(text for _, text in earlier), prompt])
    replies = [of_message(m, row.where, before) for m in sent[asked + 1 :]]
    reasoning, answer = chain_of(replies)
    as_sent = sent_of(row)
    if earlier:
        first = [("system", text) for text in ["\n\n".join(filter(None, system))] if text]
        turns = (*first, *earlier, ("user", said_by_user))
        as_sent = replace(as_sent or Sent(), prompt=turns)
    # `choices` holds the API's response here, no options of a question
    about = SourceRow(row.id, row.cells.without("choices"), row.where)
    if has(about, ANSWER) and not stated(about, GOLD):
        raise UserError(
            f"{row.where}: 'answer' could be the right answer or the one in the reply; call the "
            "right one 'gold', and leave the other out: it is read from the reply"
        )
    question = text(row, "question") or said_by_user
    about, question = with_options_of_question(about, GOLD, answer, question)
    facts = facts_of(about, GOLD, answer)
    has_kind = facts["options"] is not None or facts["kind"] is not None
    check_unread(about, of_chain=True, has_kind=has_kind)
    return GivenChain(
        id=text(row, "id") or row.id,
        dataset=text(row, "dataset") or "chat",
        question=question,
        reasoning=reasoning,
        **facts,
        model=text(row, "model") or "",
        prompt=None if earlier else prompt,
        sent=as_sent,
        counterfactual=counterfactual_of(row),
        sample=text(row, "sample"),
        cut=is_cut(row, replies[-1].ended, ended),
        where=row.where,
    )


def _message(value: Any, i: int, row: SourceRow) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{row.where}: message {i} is a {type(value).__name__}; give an object")
    if "role" not in value and isinstance(said_by := value.get("from"), str):
        return {"role": _SHAREGPT.get(said_by, said_by), "content": value.get("value")}
    return value


def _said(message: Mapping[str, Any], row: SourceRow) -> str:
    """The text of an earlier reply without its thinking, as chat templates show it."""
    return usable(of_message(message, row.where).said, "an earlier message of the assistant", row)


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
    lambda rows: iter(each(rows, chain)),
)
