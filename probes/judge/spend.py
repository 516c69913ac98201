"""Costs of judging: prices, a budget that ends a run, and an estimate before it."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.charges import CHARACTERS_PER_TOKEN, Charge, prompt_tokens
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
    """Outcome of the call (`parsed`, `timed_out`, `stopped`, …), as in `Charge.outcome`."""
    usage: Usage
    cost: float | None
    """Dollars at the price when the call was made; None without a price."""
    estimated: bool = False
    """Whether `usage`, or a part of it, is an estimate (`probes.judge.charges`)."""
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
    for has its reply, and so does a stopped one; both, and calls whose reply tells no usage or
    cannot be read, count at an estimate (`probes.judge.charges`). Not counted are repeats after an
    error that the server sent, which nobody bills, and repeats that a provider's client makes by
    itself, unseen, after a lost connection or after its own time limit (ten minutes for most) if
    `timeout` is longer: a provider may bill these.
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

    def charge(self, name: str, usage: Usage, cost: float | None = None) -> None:
        """Count the usage of a judge's call, made by this process or another, now or before.

        Args:
            cost: dollars, if known; else computed at the current price.
        """
        if cost is None:
            cost = self._cost(name, usage) or 0.0
        with self._lock:
            self.calls += usage.calls
            # run folders of earlier versions may hold costs below zero, from a server's counts
            self.cost += max(0.0, cost)

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

    def settle(self, name: str, charge: Charge, ask: str = "") -> None:
        """Record the end of a call that `admit` allowed, with its charge; nothing for a cached
        reply.

        Raises:
            UserError: the call cannot be stored; it is counted all the same.
        """
        with self._lock:
            self.in_flight -= 1
        self.write_down(name, charge, ask)

    def write_down(self, name: str, charge: Charge, ask: str = "") -> None:
        """Count and store a call besides the one that `admit` allowed, e.g. one that timed out.

        Raises:
            UserError: the call cannot be stored; it is counted all the same.
        """
        cost = self._cost(name, charge.usage)
        self.charge(name, charge.usage, cost)
        if charge.usage.calls:
            call = Call(name, ask, charge.outcome, charge.usage, cost, charge.estimated)
            self.keep(call)

    def keep(self, call: Call) -> None:
        """Store a call of this process for others; a plain budget counts for its process alone.

        Raises:
            UserError: the call cannot be stored.
        """

    def of_others(self) -> Iterable[Call]:
        """The calls that other processes have made since this method was last called."""
        return ()

    def _cost(self, name: str, usage: Usage) -> float | None:
        price = price_of(name, self.prices)
        return price.of(usage) if price else None

    def _look_up(self) -> None:
        if self.max_cost is None and self.max_calls is None:
            return
        now = time.monotonic()
        with self._lock:
            if now - self._looked < REFRESH:
                return
            self._looked = now
        for call in self.of_others():
            self.charge(call.model, call.usage, call.cost)

    def __str__(self) -> str:
        most = []
        if self.max_calls is not None:
            most.append(f"max_calls={self.max_calls}")
        if self.max_cost is not None:
            most.append(f"max_cost={self.max_cost:g}")
        spent = f"{self.calls} calls, ${self.cost:.4g}"
        return f"{spent} of {', '.join(most)}" if most else spent


@dataclass(frozen=True)
class Estimate:
    """An estimate of what asking would use, made before any call."""

    calls: int
    """One call for each ask; repeats after malformed replies come on top."""
    input_tokens: int
    output_tokens: int
    """Most output tokens: `max_output` for each call."""
    cost: float | None
    """Most dollars; None if the judge has no price."""
    method: str
    """Method by which tokens were counted."""


def estimate(
    asks: Iterable[Ask | Writing], name: str, max_output: int, prices: Prices, prompted: bool = True
) -> Estimate:
    """Calls, tokens and cost of asking a judge, without calling it.

    Args:
        max_output: most tokens of a reply, thinking included.
        prompted: whether the schema is asked for in the prompt (`ApiJudge.structured`).
    """
    calls = tokens = 0
    for ask in asks:
        tokens += prompt_tokens(ask, prompted)
        calls += 1
    usage = Usage(calls, tokens, calls * max_output)
    price = price_of(name, prices)
    cost = price.of(usage) if price else None
    method = f"characters / {CHARACTERS_PER_TOKEN:g}, without a tokenizer"
    return Estimate(calls, tokens, usage.output_tokens, cost, method)
