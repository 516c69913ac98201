"""A model of which only what it writes is to be had: one behind an API.

Whatever asks it goes through the same code as for a model whose weights are at hand. Its replies
are fetched beforehand, many at once, and looked up here: a probe that wants one that is not there
yet ends with `Unanswered`, which says what to ask, and is run again once that is answered. What a
probe asks depends on the trace and on seeds alone, so it asks the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithscope.interp.edits import Edit
    from faithscope.interp.model import Model
    from faithscope.probes.judge.form import Reply


@dataclass(frozen=True)
class Message:
    """What a model is told."""

    user: str
    system: str | None = None


class Unanswered(Exception):
    """Messages that no reply is there for yet."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(f"{len(messages)} messages without a reply")
        self.messages = tuple(messages)


@dataclass(frozen=True)
class TextModel:
    """Its tokens are characters: edits of a trace need ids, and the model's own are not known."""

    name: str
    find: Callable[[Message], Reply | None]
    """The reply to a message; None where it is still to be asked."""

    def encode(self, text: str) -> tuple[int, ...]:
        """An id for each character."""
        return tuple(map(ord, text))

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The character of each id."""
        return tuple(map(chr, ids))

    def say(self, messages: Iterable[Message]) -> dict[Message, Reply]:
        """The reply to each different message.

        Raises:
            Unanswered: some have none yet; it names all of these.
        """
        replies = {m: self.find(m) for m in messages}
        if missing := [m for m, reply in replies.items() if reply is None]:
            raise Unanswered(missing)
        return {m: reply for m, reply in replies.items() if reply is not None}


DECLINED = "reply_declined"
"""Why nothing is known of an answer that was asked for: the model or its provider refused, the
prompt was too long for it, or the reply ended before the answer began."""

NO_ROOM = "no_room"
"""Why something is not measured: the text, with what is to be written after it, does not fit the
model's positions."""


def text_of(reply: Reply) -> str | None:
    """What a reply says, as far as it came; None where there is no answer in it to be read."""
    has_text = reply.outcome in ("parsed", "truncated") and reply.text.strip()
    return reply.text if has_text else None


def cost_of(
    model: Model,
    prefixes: Sequence[Sequence[int]],
    execution: Any,
    room: int | Sequence[int],
    edits: Sequence[Sequence[Edit]] | None = None,
) -> dict[str, Any]:
    """What asking a model here took, as a record tells it."""
    from faithscope.interp.forest import Forest
    from faithscope.interp.read import choose_execution

    how, reason = choose_execution(model, prefixes, execution, room=room)
    naive = sum(map(len, prefixes))
    return {
        "execution": how,
        "tree_reason": reason,
        "trie_tokens": naive if how == "loop" else len(Forest.of(prefixes, edits)),
        "naive_tokens": naive,
        "dtype": model.dtype,
    }


def added_costs(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several calls took, as one: counts add up, the noise is that of the noisiest."""
    total: dict[str, Any] = {}
    for name, first in costs[0].items():
        values = [cost[name] for cost in costs if cost[name] is not None]
        if isinstance(first, bool | float):
            total[name] = max(values)
        else:
            total[name] = sum(values) if isinstance(first, int) else first
    return total


def cost_of_replies(replies: Iterable[Reply]) -> dict[str, Any]:
    """What asking an API took; the tokens stand with each reply, which several probes may share."""
    texts = [text_of(r) for r in replies]
    return {
        "execution": "api",
        "tree_reason": None,
        "n_replies": len(texts),
        "n_declined": sum(t is None for t in texts),
    }
