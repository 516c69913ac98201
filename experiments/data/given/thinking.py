"""Split of a stored reply, kept as one text or as parts, into thinking and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from faithscope.experiments.data.given.rules import rules
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.marks import split, unknown_in_reply, without_breaks, without_ends

REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
"""Fields of a message that may hold the thinking before it (DeepSeek and vLLM; OpenRouter and vLLM;
Ollama; OpenRouter; LiteLLM); the first that holds any counts."""
_THOUGHT = ("thinking", "reasoning", "reasoning_text", "redacted_thinking")
_SAID = ("text", "output_text", "input_text", "refusal")
TOOL_ROLES = ("tool", "function", "ipython")
_HOLDS_TEXT = ("text", "thinking", "reasoning", "content", "summary", "refusal")
"""Fields of a part that may hold its text; the first that does counts."""


class Parted(NamedTuple):
    """A reply, split into its thinking and the rest."""

    thinking: str | None
    """None if there is none."""
    said: str
    ended: bool = True
    """False if a mark opens the thinking and none closes it, as where a token limit cut it off."""


def apart(text: str, where: str, prompt: str = "") -> Parted:
    """Split a text at its marks of reasoning (`interp.marks`): the text between them, and the rest
    without the control tokens that ended its turn.

    All text after an unclosed opener is thinking; empty blocks count as none, and encrypted ones as
    "".

    Args:
        where: place of the text, for messages.
        prompt: the prompt that the text replies to, whose marks it may quote.

    Raises:
        UserError: the marks do not pair, so that which text is thinking is ambiguous; or the rest
            has a mark that is not known, and the user states none.
    """
    known = rules()
    thought = split(text, prompt, known.pairs)
    if thought.unpaired:
        raise UserError(
            f"{where}: the reply's marks of reasoning do not pair ({thought.unpaired!r} is left "
            "over), so that what was thought is ambiguous; give that in reasoning_content "
            "and the rest in content, say that marks are text here (traces.marks: none), or take "
            "the row out"
        )
    mark = unknown_in_reply(thought.answer) if known.marks is None else None
    if mark is not None and mark not in prompt:
        raise UserError(
            f"{where}: the reply holds {mark!r}, which looks like a mark of reasoning and is not "
            "known; say how the reasoning of this file is marked (traces.marks: [OPENER, CLOSER], "
            "or a name of `faithscope docs given`), or that it is not (traces.marks: none)"
        )
    thinks = bool(thought.thinking.strip()) or thought.withheld
    said = without_ends(thought.answer)
    return Parted(thought.thinking if thinks else None, said, thought.closed)


def of_message(message: Mapping[str, Any], where: str, prompt: str = "") -> Parted:
    """Split a message of an OpenAI-like or Anthropic-like API: a text, or text and reasoning in
    parts.

    Args:
        where, prompt: as for `apart`.

    Raises:
        UserError: as `apart`, or a part is neither text nor reasoning (an image, a tool's call).
    """
    thought, said = [], []
    for part in _parts(message.get("content")):
        kind = _kind(part, where)
        (thought if kind in _THOUGHT else said).append(_text(part, where))
    field = next((message[name] for name in REASONING if message.get(name)), None)
    if field is not None:
        held = reasoning_text(field) if isinstance(field, str) else _text(field, where)
        thought = [without_breaks(held), *thought]
    marked, answer, ended = apart("".join(said), where, prompt)
    return Parted(joined([*thought, *([] if marked is None else [marked])]), answer, ended)


def reasoning_text(text: str) -> str:
    """The reasoning in a text; of blocks that are held as JSON text, as routers send them
    (`[{"type": "reasoning.text", "text": …}]`), the text that they hold."""
    if not re.match(r"\s*\[\s*\{", text) or '"type"' not in text:
        return text
    try:
        blocks = json_of(text)
    except ValueError:
        return text
    kinds = [str(b.get("type")) for b in blocks if isinstance(b, Mapping)]
    known = len(kinds) == len(blocks) and all("reason" in k or "think" in k for k in kinds)
    return _text(blocks, "") if known else text


def text_of(content: Any, where: str) -> str:
    """The text of a message by another role than the model: marks of reasoning in it are text.

    Raises:
        UserError: the message holds anything but text.
    """
    for part in _parts(content):
        if _kind(part, where) in _THOUGHT:
            raise UserError(f"{where}: a message that is not the assistant's holds reasoning")
    return "".join(_text(part, where) for part in _parts(content))


def joined(thoughts: Iterable[str | None]) -> str | None:
    """`thoughts` as one text without repeats; None if there are none."""
    known = [t for t in dict.fromkeys(thoughts) if t is not None]
    return "\n\n".join(filter(None, known)) if known else None


def chain_of(replies: Sequence[Parted]) -> tuple[str, str | None]:
    """Reasoning and answer of the messages of one reply: the thinking is the chain and the rest the
    answer; without thinking, the whole text is the chain."""
    thought = joined(reply.thinking for reply in replies)
    said = "\n\n".join(reply.said for reply in replies if reply.said)
    return (said, None) if thought is None else (thought, said.strip() or None)


def refuse_tools(of_tools: Iterable[int], where: str) -> None:
    """Refuse a conversation in which tools were called.

    Text after a tool's result depends on that result, which a reader of the chain after the user's
    message alone would not see.

    Args:
        of_tools: indices of the messages that call a tool or hold its result.

    Raises:
        UserError: there is such a message.
    """
    if (first := next(iter(of_tools), None)) is not None:
        raise UserError(
            f"{where}: message {first} is of a tool; a chain is read as it follows the user's "
            "message alone, without what tools gave, so take the row out, or give one turn's "
            "reasoning with all that stood before it as its prompt"
        )


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [content]


def _kind(part: Any, where: str) -> str:
    if isinstance(part, str):
        return "text"
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind not in (*_THOUGHT, *_SAID):
        raise UserError(
            f"{where}: the content of a message holds a part of type {kind!r}, which is neither "
            "text nor reasoning; give what was written alone, or take the row out"
        )
    return str(kind)


def _text(value: Any, where: str) -> str:
    """The text of a part; of an encrypted part its summary, or nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n\n".join(filter(None, (_text(v, where) for v in value)))
    if isinstance(value, Mapping):
        names = [n for n in _HOLDS_TEXT if value.get(n)]
        return _text(value[names[0]], where) if names else ""
    raise UserError(f"{where}: the content of a message is a {type(value).__name__}; give a text")
