"""An API model, of which only written texts are known, behind the interface of a model.

Probes ask it through the same code as a model whose weights are at hand. Replies are fetched
beforehand, many at once, and looked up here: a probe that needs a reply that is not there yet ends
with `Unanswered`, which names the messages to ask, and is run again once they are answered. A
probe's messages depend on the trace and on seeds alone, so they are the same in the second run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from faithscope.interp.edits import Edit
    from faithscope.interp.forest import Ids
    from faithscope.interp.model import Model
    from faithscope.probes.judge.form import Reply


@dataclass(frozen=True)
class Message:
    """A user message, with or without a system message and earlier turns."""

    user: str
    system: str | None = None
    before: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """(role, text) of the turns before the message."""

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation without its system message, the user's message last."""
        return [{"role": r, "content": text} for r, text in (*self.before, ("user", self.user))]

    @property
    def decides(self) -> dict[str, Any]:
        """The fields that are part of a reply's id; without earlier turns it is that of earlier
        versions."""
        return {k: v for k, v in vars(self).items() if k != "before" or v}


class Unanswered(Exception):
    """Some messages have no reply yet; the exception carries them."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__(f"{len(messages)} messages without a reply")
        self.messages = tuple(messages)


@dataclass(frozen=True)
class TextModel:
    """An API model with stored replies. Its tokens are characters: edits of a trace need ids, and
    the model's own tokens are not known."""

    name: str
    find: Callable[[Message], Reply | None]
    """Function from a message to its reply; None if it is still to be asked."""

    def encode(self, text: str) -> tuple[int, ...]:
        """An id for each character."""
        return tuple(map(ord, text))

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The character of each id."""
        return tuple(map(chr, ids))

    def say(self, messages: Iterable[Message]) -> dict[Message, Reply]:
        """The reply to each different message.

        Raises:
            Unanswered: some messages have no reply yet; the exception names them all.
        """
        replies = {m: self.find(m) for m in messages}
        if missing := [m for m, reply in replies.items() if reply is None]:
            raise Unanswered(missing)
        return {m: reply for m, reply in replies.items() if reply is not None}


DECLINED = "reply_declined"
"""Why an answer that was asked for is unknown: the model or its provider refused, the prompt was
too long for the model, or the reply ended before the answer began."""

NO_ROOM = "no_room"
"""Why a measure is missing: text and continuation do not fit the model's positions."""


def text_of(reply: Reply) -> str | None:
    """The text of a reply, as far as it came; None if it holds no readable answer."""
    has_text = reply.outcome in ("parsed", "truncated") and reply.text.strip()
    return reply.text if has_text else None


def cost_of(
    model: Model,
    prefixes: Sequence[Ids],
    execution: Any,
    room: int | Sequence[int],
    edits: Sequence[Sequence[Edit]] | None = None,
) -> dict[str, Any]:
    """Execution and cost of asking a model here, as fields of a record."""
    from faithscope.interp.forest import size_of
    from faithscope.interp.read import choose_execution

    how, reason = choose_execution(model, prefixes, execution, room=room)
    naive = sum(map(len, prefixes))
    return {
        "execution": how,
        "tree_reason": reason,
        "trie_tokens": naive if how == "loop" else size_of(prefixes, edits),
        "naive_tokens": naive,
        "dtype": model.dtype,
    }


def added_costs(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Costs of several calls as one: counts add up, the noise is that of the noisiest call."""
    total: dict[str, Any] = {}
    for name, first in costs[0].items():
        values = [cost[name] for cost in costs if cost[name] is not None]
        if isinstance(first, bool | float):
            total[name] = max(values)
        else:
            total[name] = sum(values) if isinstance(first, int) else first
    return total


def cost_of_replies(replies: Iterable[Reply]) -> dict[str, Any]:
    """Cost of asking an API; tokens stand with each reply, which several probes may share."""
    texts = [text_of(r) for r in replies]
    return {
        "execution": "api",
        "tree_reason": None,
        "n_replies": len(texts),
        "n_declined": sum(t is None for t in texts),
    }
