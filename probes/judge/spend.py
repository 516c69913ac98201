"""Costs of judging: prices, the most that a call may use, and a budget that ends a run."""

from __future__ import annotations

import math
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Usage, Writing


@dataclass(frozen=True)
class Price:
    """Prices of a model in US dollars per million tokens."""

    input: float
    output: float
    """Price of output tokens; reasoning tokens are billed as output."""
    cached: float | None = None
    """Price of input tokens in the provider's prompt cache; None for the price of input."""

    def of(self, usage: Usage) -> float:
        """Dollars that `usage` costs. `Usage.input_tokens` includes cached tokens."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        dollars = fresh * self.input + usage.cached_tokens * cached
        return (dollars + usage.output_tokens * self.output) / 1e6


Prices = Mapping[str, Price]
"""Judge name, as in `ApiJudge.name` -> its price."""


def price_of(name: str, prices: Prices) -> Price | None:
    """The price of a judge, under the name that `priced_as` finds."""
    known = priced_as(name, prices)
    return None if known is None else prices[known]


_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def priced_as(name: str, prices: Prices) -> str | None:
    """The name under which a model has a price: its whole name, its last part, or one of these
    without the date at its end (`o3-2025-04-16` as `o3`).

    Each is looked up as written, then in any case: services spell one model in different ways.
    """
    folded = {known.casefold(): known for known in prices}
    whole, last = name, name.rsplit("/", 1)[-1]
    for wanted in (whole, last, _DATED.sub("", whole), _DATED.sub("", last)):
        if wanted in prices:
            return wanted
        if wanted.casefold() in folded:
            return folded[wanted.casefold()]
    return None


def dated_note(name: str, prices: Prices) -> list[str]:
    """A note on the name that a model is priced as, if that is its own name without a date."""
    known = priced_as(name, prices)
    same = known is None or name.casefold().endswith(known.casefold())
    return [] if same else [f"{name} is priced as {known}"]


def add(a: Usage, b: Usage) -> Usage:
    """The sum of two usages."""
    return Usage(*(getattr(a, f.name) + getattr(b, f.name) for f in fields(Usage)))


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

    A dry run multiplies it by a price; a budget counts it where no server tells the usage.

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

    def __init__(self, message: str, unanswered: Usage):
        super().__init__(message)
        self.unanswered = unanswered
        """Usage of asks that were begun and then stopped before a reply could be stored."""


@dataclass(frozen=True)
class Call:
    """One call that was answered, or that may be billed though nobody saw an answer."""

    model: str
    """The judge's name, as in `ApiJudge.name`."""
    ask: str
    """The form's name and the id of the ask that the call was made for."""
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


REFRESH = 2.0
"""Seconds after which the spending of other processes is read again."""


class Budget:
    """Limits of spending, for all judges that share this budget together.

    No call begins once `max_cost` dollars are spent or `max_calls` calls are made. Calls in flight
    may finish and are stored, so that the cost can pass `max_cost` by as many calls as a judge has
    connections; one process passes `max_calls` only if calls in flight time out and are made again.
    Processes that share an account (a subclass that keeps calls and reads those of others) see each
    other's calls once they have ended and `REFRESH` seconds are over: together they can pass either
    limit by the calls that the others have in flight and end within that time.

    A server may bill a call that timed out: each such attempt counts, once the ask that it was made
    for has its reply, and so does a stopped one. Both, and calls whose reply tells no usage or
    cannot be read, count as the most that they may have used (`most_used`). Not counted are repeats
    after an error that the server sent, which nobody bills, and repeats that a provider's client
    makes by itself, unseen, after a lost connection or after its own time limit (ten minutes for
    most) if `timeout` is longer: a provider may bill these.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        max_calls: int | None = None,
        prices: Prices | None = None,
    ):
        for name, value in (("max_cost", max_cost), ("max_calls", max_calls)):
            if value is not None and not value >= 0:
                raise UserError(f"{name}={value!r}: must not be negative")
        self.max_cost = max_cost
        self.max_calls = max_calls
        self.prices = dict(prices or {})
        self.cost = 0.0
        """Dollars spent so far, without the calls of judges that have no price."""
        self.calls = 0
        self.in_flight = 0
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        """Time at which the spending of other processes was last read."""

    def check(self, name: str) -> None:
        """Check before the first call of a judge that its cost can be limited.

        Raises:
            UserError: the cost is limited, and the judge has no price.
        """
        if self.max_cost is not None and price_of(name, self.prices) is None:
            guess = did_you_mean(name, self.prices) or "; add it to the prices, or limit max_calls"
            raise UserError(f"max_cost={self.max_cost:g}: model {name!r} has no price{guess}")

    def count(self, call: Call) -> None:
        """Count a call that was made by this process or another, now or before.

        A call that had no price when it was made counts at the current price.
        """
        cost = self._cost(call) if call.cost is None else call.cost
        with self._lock:
            self.calls += call.usage.calls
            # run folders of earlier versions may hold costs below zero, from a server's counts
            self.cost += max(0.0, cost or 0.0)

    def admit(self) -> bool:
        """Reserve one call, which `settle` releases; False if the budget allows none."""
        self._look_up()
        with self._lock:
            if self.max_calls is not None and self.calls + self.in_flight >= self.max_calls:
                return False
            if self.max_cost is not None and self.cost >= self.max_cost:
                return False
            self.in_flight += 1
            return True

    def settle(self, call: Call) -> None:
        """Record the end of a call that `admit` allowed; nothing for a cached reply.

        Raises:
            UserError: the call cannot be stored; it is counted all the same.
        """
        with self._lock:
            self.in_flight -= 1
        self.write_down(call)

    def write_down(self, call: Call) -> None:
        """Price, count and store a call besides the one that `admit` allowed, e.g. one that timed
        out.

        Raises:
            UserError: the call cannot be stored; it is counted all the same.
        """
        call = replace(call, cost=self._cost(call))
        self.count(call)
        if call.usage.calls:
            self.keep(call)

    def keep(self, call: Call) -> None:
        """Store a call of this process for others; a plain budget counts for its process alone.

        Raises:
            UserError: the call cannot be stored.
        """

    def of_others(self) -> Iterable[Call]:
        """The calls that other processes have made since this method was last called."""
        return ()

    def _cost(self, call: Call) -> float | None:
        price = price_of(call.model, self.prices)
        return price.of(call.usage) if price else None

    def _look_up(self) -> None:
        if self.max_cost is None and self.max_calls is None:
            return
        now = time.monotonic()
        with self._lock:
            if now - self._looked < REFRESH:
                return
            self._looked = now
        for call in self.of_others():
            self.count(call)

    def __str__(self) -> str:
        most = []
        if self.max_calls is not None:
            most.append(f"max_calls={self.max_calls}")
        if self.max_cost is not None:
            most.append(f"max_cost={self.max_cost:g}")
        spent = f"{self.calls} calls, ${self.cost:.4g}"
        return f"{spent} of {', '.join(most)}" if most else spent
