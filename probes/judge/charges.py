"""What a call is charged where the server does not say what it used, or nobody saw its reply.

A budget that took silence for nothing would never end a run against a server that sends no usage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Reply, Usage, Writing

if TYPE_CHECKING:
    from inspect_ai.event import Event

CHARACTERS_PER_TOKEN = 3.5
"""Mathematical English in the common vocabularies has 3.3 to 4; the low end, to promise too much
rather than too little."""

MESSAGE_TOKENS = 12
"""What chat formats write around a message."""

REPLY_TOKENS = 4096
"""Of a reply that nobody saw, where the judge sets no `max_tokens`: a guess."""

TIMED_OUT = "timed_out"
"""Outcome of an attempt that was given up and made again."""

_TIMEOUT = re.compile(r"(?!Connect)\w*Timeout\w*\(|Request timed out")
"""Inspect's own (`AttemptTimeoutError`), and the providers' clients'."""


@dataclass(frozen=True)
class Charge:
    """One call as it is written down."""

    usage: Usage
    outcome: str
    """Of its reply; `stopped` where it was given up before there was one, or `TIMED_OUT`."""
    estimated: bool = False
    """Whether tokens are counted from characters, or taken to be as many as were allowed."""


def prompt_tokens(ask: Ask | Writing, prompted: bool = True) -> int:
    """About how many tokens an ask puts: characters / 3.5, and what formats add.

    Args:
        prompted: whether the schema is asked for in the prompt (`ApiJudge.structured`).
    """
    texts = [ask.prompt, ask.system or ""]
    if isinstance(ask, Ask):
        texts.append(parse.request(ask) if prompted else "")
        turns = 1
    else:
        texts += [content for _, content in ask.before]
        turns = len(ask.turns)
    return math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN) + MESSAGE_TOKENS * turns


@dataclass(frozen=True)
class Charges:
    """How the calls of one judge are charged."""

    max_tokens: int | None
    """Of a reply, thinking included."""
    prompted: bool
    """Whether the schema is asked for in the prompt."""

    def of(self, ask: Ask | Writing, reply: Reply) -> Charge:
        """A call whose reply was read: what the server says, and an estimate of what it does not.

        A reply of which nothing came, and one that was cut off at the limit, is taken to have had
        all that was allowed: what is not shown (thinking) is billed as well.
        """
        used = reply.usage
        is_complete = used.input_tokens and (used.output_tokens or not _shown(reply))
        if is_complete or not used.calls:
            return Charge(used, reply.outcome)
        written = used.output_tokens or self._written(reply)
        estimate = replace(
            used,
            input_tokens=used.input_tokens or prompt_tokens(ask, self.prompted),
            output_tokens=written,
        )
        return Charge(estimate, reply.outcome, estimated=True)

    def unseen(self, ask: Ask | Writing, outcome: str) -> Charge:
        """A call that was sent and of whose reply nothing was seen: all that it may have used."""
        most = REPLY_TOKENS if self.max_tokens is None else self.max_tokens
        usage = Usage(1, prompt_tokens(ask, self.prompted), most)
        return Charge(usage, outcome, estimated=True)

    def of_timeouts(self, ask: Ask | Writing, attempts: Sequence[str | None]) -> list[Charge]:
        """Attempts that timed out and were made again: all such but the last, which ended the call.

        Args:
            attempts: as `attempts_of` has them.
        """
        return [self.unseen(ask, TIMED_OUT) for error in attempts[:-1] if timed_out(error)]

    def of_stopped(self, ask: Ask | Writing, attempts: Sequence[str | None]) -> Charge:
        """A call that was stopped: nothing, where none was on its way."""
        if not attempts:
            return Charge(Usage(), "stopped")
        last = attempts[-1]
        if last is None or timed_out(last) or "model call cancelled" in last:
            return self.unseen(ask, "stopped")
        # an error of the server, before it was tried again
        return Charge(Usage(calls=1), "stopped")

    def _written(self, reply: Reply) -> int:
        shown = _shown(reply)
        # a filter or a refusal is short, and says so itself
        ended = reply.outcome in ("refused", "filtered", "overflow")
        if reply.outcome == "truncated" or not (shown or ended):
            return REPLY_TOKENS if self.max_tokens is None else self.max_tokens
        return math.ceil(shown / CHARACTERS_PER_TOKEN)


def attempts_of(events: Sequence[Event]) -> list[str | None]:
    """The error of each attempt that Inspect made in these events; None of one without.

    What the provider's client repeats by itself within an attempt is not among them.
    """
    from inspect_ai.event import ModelEvent

    calls = (e for e in events if isinstance(e, ModelEvent) and e.cache != "read")
    return [call.error for call in calls]


def timed_out(error: str | None) -> bool:
    """Whether an attempt of `attempts_of` was given up for taking too long."""
    return error is not None and _TIMEOUT.match(error) is not None


def _shown(reply: Reply) -> int:
    return len(reply.text) + len(reply.thinking)
