"""Spending of judges behind APIs: the most that a call may use, and the account of all calls."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Usage, Writing

CHARACTERS_PER_TOKEN = 3.5
"""Characters per token of an estimate. Mathematical English has 3.3 to 4 in common vocabularies;
the low end estimates too much rather than too little."""
MESSAGE_TOKENS = 12
"""Number of tokens that chat formats write around a message."""
REPLY_TOKENS = 4096
"""Guessed tokens of a reply whose usage nobody tells, if the judge sets no `max_tokens`."""


def tokens_of(characters: int, messages: int = 1) -> int:
    """Estimated number of tokens of a prompt of some messages, without a tokenizer."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN) + MESSAGE_TOKENS * messages


def most_used(ask: Ask | Writing, max_tokens: int | None, prompted: bool = True) -> Usage:
    """The most that one call for an ask may use: its prompt, and as long a reply as is allowed.

    A dry run multiplies it by a price; an account counts it where no server tells the usage.

    Args:
        max_tokens: most tokens of a reply, thinking included; None for `REPLY_TOKENS`.
        prompted: whether the schema is asked for in the prompt (`ApiJudge.structured`).
    """
    texts, messages = [ask.prompt, ask.system or ""], 1
    if isinstance(ask, Ask):
        texts.append(parse.request(ask) if prompted else "")
    else:
        texts += [content for _, content in ask.before]
        messages = len(ask.turns)
    read = tokens_of(sum(map(len, texts)), messages)
    return Usage(1, read, REPLY_TOKENS if max_tokens is None else max_tokens)


class BudgetSpent(Exception):
    """The budget ended the asking. Replies so far are stored; the other asks are still pending."""


@dataclass(frozen=True)
class Call:
    """One call that was answered, or that may be billed though nobody saw an answer."""

    model: str
    """The judge's name, as in `ApiJudge.name`."""
    ask: str
    """Name of the ask or writing that the call was made for (`Ask.name`)."""
    outcome: str
    """Outcome of the call's reply; `stopped` if it was given up before a reply, `timed_out` if it
    was made again."""
    usage: Usage
    cost: float | None = None
    """Dollars at the price when the call was made; None without a price."""
    estimated: bool = False
    """Whether `usage`, or a part of it, is not the server's, but the most that was allowed."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Random id of the call, different for every call."""
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    """Time at which the call ended, ISO 8601 in UTC."""


class Account:
    """Account of the calls of one or several judges. This one sets no limit and forgets the calls;
    a run's (`experiments.engine.models.account.RunAccount`) has limits, and keeps them on the disk.
    """

    in_flight = 0
    """Number of calls that were admitted and have not ended."""

    def check(self, model: str) -> None:
        """Check before the first call of a judge that its calls can be limited.

        Raises:
            UserError: the cost is limited, and the judge has no price.
        """

    def admit(self) -> bool:
        """Reserve one call, which `settle` releases; False if no further call is allowed."""
        self.in_flight += 1
        return True

    def settle(self, calls: Sequence[Call]) -> None:
        """Record the end of a call that `admit` allowed.

        Args:
            calls: the call with its repeats that may be billed; none for a cached reply.

        Raises:
            UserError: a call cannot be stored; it is counted all the same.
        """
        self.in_flight -= 1
