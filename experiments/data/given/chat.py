"""Conversations as OpenAI-style APIs give them: `reasoning_content`, blocks, or think tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.data.given.cells import facts_of, parsed, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.thinking import apart
from faithscope.experiments.data.tasks.sources.rows import Row, has, usable
from faithscope.interp.errors import UserError

SYSTEM = ("system", "developer")
"""Roles whose messages stand before the user's in the prompt."""
REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message that hold what was thought before it (DeepSeek and vLLM; OpenRouter;
Ollama)."""
_THOUGHT = {"reasoning", "thinking"}


def chain(row: Row) -> GivenChain:
    """One row: `messages` that end with the assistant's, or a response with `choices` beside the
    `messages` that were sent.

    What was thought is the chain, and the reply after it the answer; of a reply without thinking
    the whole is the chain.

    Raises:
        UserError: no assistant message, several turns of the user, or a content that is no text.
    """
    sent = [_message(m, i, row) for i, m in enumerate(parsed(row, "messages", list))]
    if has(row, "choices"):
        choices = parsed(row, "choices", list)
        if len(choices) != 1 or not isinstance(choices[0], Mapping):
            raise UserError(f"{row.where}: {len(choices)} 'choices'; give a row for each")
        sent.append(_message(choices[0].get("message"), len(sent), row))
    if not sent or sent[-1].get("role") != "assistant":
        raise UserError(f"{row.where}: the last message is not the assistant's; give its reply")
    asked = [m for m in sent[:-1] if m.get("role") == "user"]
    if len(asked) != 1:
        raise UserError(
            f"{row.where}: {len(asked)} turns of the user; a chain answers one, give a row for each"
        )
    system = [_content(m, row)[1].strip() for m in sent[:-1] if m.get("role") in SYSTEM]
    said_by_user = usable(_content(asked[0], row)[1], "the user's message", row)
    # a cue may stand in a system message, and not every template has a place for one
    prompt = "\n\n".join([*filter(None, system), said_by_user])
    thought, said = _content(sent[-1], row)
    # `choices` are those of the response
    cells = row.cells.without("choices")
    reasoning, answer = (thought, said.strip() or None) if thought is not None else (said, None)
    return GivenChain(
        id=text(row, "id") or row.id,
        dataset=text(row, "dataset") or "chat",
        question=text(row, "question") or said_by_user,
        reasoning=reasoning,
        **facts_of(Row(row.id, cells, row.where), ("gold", "target")),
        answer=answer,
        model=text(row, "model") or "",
        prompt=prompt,
        where=row.where,
    )


def _message(value: Any, i: int, row: Row) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{row.where}: message {i} is a {type(value).__name__}; give an object")
    return value


def _content(message: Mapping[str, Any], row: Row) -> tuple[str | None, str]:
    """What was thought, where there is any, and what was said."""
    field = next((message[name] for name in REASONING if message.get(name)), None)
    content = message.get("content")
    if isinstance(content, list):
        blocks = [b for b in content if isinstance(b, Mapping)]
        thought = [_block(b) for b in blocks if b.get("type") in _THOUGHT]
        content = "".join(_block(b) for b in blocks if b.get("type") not in _THOUGHT)
        if thought and field is None:
            field = "\n\n".join(thought)
    if content is None:
        content = ""
    if not isinstance(content, str) or not isinstance(field, str | None):
        raise UserError(f"{row.where}: the content of a message is no text; give one")
    return (field, content) if field is not None else apart(content)


def _block(block: Mapping[str, Any]) -> str:
    value = next((block[n] for n in ("text", *REASONING) if isinstance(block.get(n), str)), "")
    return str(value)


CHAT = Reader(
    "chat",
    "OpenAI-style messages, with reasoning_content, reasoning blocks or think tags",
    lambda row: "messages" in row,
    lambda rows: map(chain, rows),
)
