"""Charges of calls whose server does not report usage, or whose reply nobody saw.

A budget that counted unreported usage as zero would never end a run with such a server.
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
"""Characters per token of an estimate. Mathematical English has 3.3 to 4 in common vocabularies;
the low end estimates too much rather than too little."""

MESSAGE_TOKENS = 12
"""Number of tokens that chat formats write around a message."""

REPLY_TOKENS = 4096
"""Guessed tokens of a reply that nobody saw, if the judge sets no `max_tokens`."""

TIMED_OUT = "timed_out"
"""Outcome of an attempt that timed out and was made again."""

_TIMEOUT = re.compile(r"(?!Connect)\w*Timeout\w*\(|Request timed out")
"""Timeout errors: Inspect's own (`AttemptTimeoutError`), and those of providers' clients."""


@dataclass(frozen=True)
class Charge:
    """One call as it is written down: its usage and outcome."""

    usage: Usage
    outcome: str
    """Outcome of the call's reply; `stopped` if it was given up before a reply, or `TIMED_OUT`."""
    estimated: bool = False
    """Whether tokens were estimated from characters, or taken to be as many as were allowed."""


def prompt_tokens(ask: Ask | Writing, prompted: bool = True) -> int:
    """Estimated number of a prompt's tokens: characters / 3.5, plus those that formats add.

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
    """Charging of the calls of one judge."""

    max_tokens: int | None
    """Most tokens of a reply, thinking included."""
    prompted: bool
    """Whether the schema is asked for in the prompt."""

    def of(self, ask: Ask | Writing, reply: Reply) -> Charge:
        """The charge of a call whose reply was read: usage as the server reports it, else an
        estimate.

        A reply of which nothing came, or that was cut off at the limit, counts as all tokens that
        were allowed: hidden tokens (thinking) are billed as well.
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
        """The charge of a call whose reply nobody saw: all tokens that it may have used."""
        most = REPLY_TOKENS if self.max_tokens is None else self.max_tokens
        usage = Usage(1, prompt_tokens(ask, self.prompted), most)
        return Charge(usage, outcome, estimated=True)

    def of_timeouts(self, ask: Ask | Writing, attempts: Sequence[str | None]) -> list[Charge]:
        """The charges of attempts that timed out, but for the last attempt, which ended the call.

        Args:
            attempts: errors of the attempts, as `attempts_of` returns them.
        """
        return [self.unseen(ask, TIMED_OUT) for error in attempts[:-1] if timed_out(error)]

    def of_stopped(self, ask: Ask | Writing, attempts: Sequence[str | None]) -> Charge:
        """The charge of a stopped call: nothing if no attempt was on its way."""
        if not attempts:
            return Charge(Usage(), "stopped")
        last = attempts[-1]
        if last is None or timed_out(last) or "model call cancelled" in last:
            return self.unseen(ask, "stopped")
        # the last attempt ended in a server error, and no new one was on its way
        return Charge(Usage(calls=1), "stopped")

    def _written(self, reply: Reply) -> int:
        shown = _shown(reply)
        # a reply that was filtered or refused is short, and says so itself
        ended = reply.outcome in ("refused", "filtered", "overflow")
        if reply.outcome == "truncated" or not (shown or ended):
            return REPLY_TOKENS if self.max_tokens is None else self.max_tokens
        return math.ceil(shown / CHARACTERS_PER_TOKEN)


def attempts_of(events: Sequence[Event]) -> list[str | None]:
    """The error of each attempt that Inspect made in `events`; None for an attempt without one.

    Repeats by the provider's client within an attempt are not among them.
    """
    from inspect_ai.event import ModelEvent

    calls = (e for e in events if isinstance(e, ModelEvent) and e.cache != "read")
    return [call.error for call in calls]


def timed_out(error: str | None) -> bool:
    """Whether an attempt of `attempts_of` was given up for taking too long."""
    return error is not None and _TIMEOUT.match(error) is not None


def _shown(reply: Reply) -> int:
    return len(reply.text) + len(reply.thinking)
