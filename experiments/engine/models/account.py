"""Account of a run's spending on APIs, call by call, whatever became of the replies.

Every worker appends lines to a file of its own (`spend.WORKER.jsonl` in the run folder): one
before a call, with the most that it may cost, and one as soon as it has ended. So spending is known
after a kill, too: a call that was begun and has no end is charged the most. Every call has an id,
by which its two lines, and copies of them, count once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.engine.append import Appender, damaged, whole_lines
from faithscope.experiments.engine.models.prices import price_of, prices_of
from faithscope.experiments.files import write_atomically
from faithscope.experiments.numerals import money, significant
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import BEGUN, Account, Call

MERGED = "merged"
NO_CALL = "no_call"
"""Outcome in the line that ends a call which cost nothing: its reply came from the cache, or it was
never sent."""
REFRESH = 2.0
"""Seconds after which the spending of other workers is read again."""
PATIENCE = 600.0
"""Seconds for which the end of another worker's call is waited for, if a limit needs it."""


def spend_file(worker: str) -> str:
    """Name of the file in the run folder to which a worker appends its calls."""
    return f"spend.{worker}.jsonl"


class RunAccount(Account):
    """The account of one worker of a run, with the limits of `SpendConfig`: it stores its own calls
    and counts those of all workers.

    No call begins that might pass a limit: all that are in flight, of any worker, count as the most
    that they may cost. A run can pass `max_cost` where a server takes more than it was allowed (it
    thinks beyond `max_tokens`), by one call of each model, which therefore begins alone, and by
    calls that take more than any before; and `max_calls` if calls in flight time out and are made
    again. Workers see each other's calls after `REFRESH` seconds.

    Raises:
        UserError: the prices cannot be read.
        StoreError: a line is damaged; the message has file, line and remedy.
    """

    def __init__(
        self, spend: SpendConfig, run_dir: Path, worker: str, files: Appender | None = None
    ) -> None:
        """
        Args:
            files: the worker's files, which the store closes; None opens the account's for a line.
        """
        super().__init__()
        self._files = files
        self.spend, self.prices = spend, prices_of(spend)
        self.run_dir, self.path = run_dir, run_dir / spend_file(worker)
        self._ended_calls, self._ended_cost = 0, 0.0
        self._open: dict[str, Call] = {}
        """Id -> call that was begun and has not ended, here, elsewhere, or before a kill."""
        self._since = _now()
        self._next = ""
        """What a further call may cost, if that was too much."""
        self._offsets: dict[Path, int] = {}
        self._seen: set[str] = set()
        self._count_others()

    @property
    def calls(self) -> int:
        """Number of calls so far, with those in flight."""
        return self._ended_calls + len(self._open)

    @property
    def cost(self) -> float:
        """Dollars spent so far, with the most that calls in flight may cost, and without the calls
        of judges that have no price."""
        return self._ended_cost + math.fsum(self._cost(call) or 0.0 for call in self._open.values())

    def check(self, model: str) -> None:
        limit = self.spend.max_cost
        if limit is not None and price_of(model, self.prices) is None:
            guess = did_you_mean(model, self.prices) or "; add it to the prices, or limit max_calls"
            raise UserError(
                f"max_cost={self.spend.max_cost:g}: model {model!r} has no price{guess}"
            )

    def admit(self, call: Call) -> bool:
        """Begin a call; its line is on the disk when this returns, or after `flush`."""
        if time.monotonic() - self._looked >= REFRESH:
            self._count_others()
        most_calls, most_cost, self._next = self.spend.max_calls, self.spend.max_cost, ""
        if most_calls is not None and self.calls >= most_calls:
            return False
        most = self.most(call.model, call.usage)
        call = replace(call, cost=self._cost(replace(call, usage=most)))
        if most_cost is not None:
            after = self.cost + (call.cost or 0.0)
            if after > most_cost and not math.isclose(after, most_cost):
                self._next = f"; the next call may cost ${significant(call.cost or 0.0, 4)}"
                return False
            if self.in_flight and call.model not in self._known:
                return False
        self._keep([call])
        self._count(call)
        return super().admit(call)

    def in_groups(self) -> AbstractContextManager[None]:
        return super().in_groups() if self._files is None else self._files.in_groups()

    @property
    def is_late(self) -> bool:
        return self._files is not None and bool(self._files.late)

    def flush(self) -> None:
        if self._files is not None:
            self._files.flush()

    def may_free(self) -> bool:
        # a call of a worker that was killed never ends
        since = max(self._since, _now(-PATIENCE))
        return super().may_free() or any(call.time > since for call in self._open.values())

    def settle(self, begun: Call, calls: Sequence[Call]) -> None:
        """Record the end of a call; it is on the disk when this returns, or after `flush`."""
        super().settle(begun, calls)
        priced = [replace(call, cost=self._cost(call)) for call in calls]
        if all(call.id != begun.id for call in priced):
            priced.append(replace(begun, outcome=NO_CALL, usage=Usage(), estimated=False))
        for call in priced:
            self._count(call)
        self._keep(priced)

    def _keep(self, calls: Sequence[Call]) -> None:
        lines = b"".join(map(_to_line, calls))
        if self._files is not None:
            self._files.add(self.path, lines)
            return
        with Appender(sync=True) as files:
            files.add(self.path, lines)

    def __str__(self) -> str:
        limits = {"max_calls": self.spend.max_calls, "max_cost": self.spend.max_cost}
        most = ", ".join(f"{name}={limit:g}" for name, limit in limits.items() if limit is not None)
        return f"{self.calls} calls, ${significant(self.cost, 4)} of {most}{self._next}"

    def _cost(self, call: Call) -> float | None:
        """Dollars of a call; one that had no price when it was made counts at the current price."""
        price = price_of(call.model, self.prices)
        return call.cost if call.cost is not None or price is None else price.of(call.usage)

    def _count(self, call: Call) -> None:
        if call.id in self._seen:
            return
        if call.outcome == BEGUN:
            self._open[call.id] = call
            return
        begun = self._open.pop(call.id, None)
        self._seen.add(call.id)
        self._ended_calls += call.usage.calls
        self._ended_cost += self._cost(call) or 0.0
        if call.usage.calls:
            self.learn(begun, call)

    def _count_others(self) -> None:
        """Count the calls in the files of all workers that this account has not seen yet."""
        self._looked = time.monotonic()
        # opened anew each time, so that a network file system asks the server for the file's length
        for path in _files(self.run_dir):
            for end, call in _calls(path, self._offsets.get(path, 0)):
                self._offsets[path] = end
                self._count(call)


def calls_of(run_dir: Path) -> list[Call]:
    """Every call of a run, once; one that has no end yet, or never had, as `stopped`.

    Raises:
        StoreError: a line is damaged.
    """
    found = _last_lines([run_dir]).values()
    calls = [replace(c, outcome="stopped") if c.outcome == BEGUN else c for c in found]
    return [call for call in calls if call.usage.calls]


def _last_lines(folders: Iterable[Path], but: Path | None = None) -> dict[str, Call]:
    """Id -> what is known last of each call in some folders, without the file `but`."""
    known: dict[str, Call] = {}
    for path in (path for folder in folders for path in _files(folder) if path != but):
        for _, call in _calls(path):
            if call.id not in known or known[call.id].outcome == BEGUN:
                known[call.id] = call
    return known


def in_words(calls: Sequence[Call]) -> str:
    """Numbers of calls and dollars, in one line; empty without a call."""
    if not calls:
        return ""
    n, known = sum(c.usage.calls for c in calls), [c for c in calls if c.cost is not None]
    guessed = sum(c.usage.calls for c in calls if c.estimated)
    estimated = f", the tokens of {guessed:,} of them estimated" if guessed else ""
    if not known:
        return f"{n:,} calls to APIs, without a price{estimated}"
    dollars = f"{n:,} calls to APIs, ${money(math.fsum(c.cost or 0.0 for c in known))}"
    without = n - sum(c.usage.calls for c in known)
    return dollars + (f", {without:,} of them without a price" if without else "") + estimated


def join(folders: Iterable[Path], into: Path) -> None:
    """Write every call of the merged folders once into the folder `into`."""
    merged = into / spend_file(MERGED)
    own = _last_lines([into], merged)
    # the calls of `into` itself, too: its run may have been continued
    calls = _last_lines((into, *folders))
    if content := b"".join(_to_line(c) for c in calls.values() if own.get(c.id) != c):
        write_atomically(merged, content)


def _now(later: float = 0.0) -> str:
    """The time as in `Call.time`, or that so many seconds later."""
    return (datetime.now(UTC) + timedelta(seconds=later)).isoformat(timespec="milliseconds")


def _files(run_dir: Path) -> list[Path]:
    return sorted(run_dir.glob(spend_file("*")))


def _to_line(call: Call) -> bytes:
    return json.dumps(vars(call) | {"usage": vars(call.usage)}).encode() + b"\n"


def _calls(path: Path, start: int = 0) -> Iterator[tuple[int, Call]]:
    """(offset of the line's end, call) of the calls from `start` on, without a torn last line."""
    for offset, line in whole_lines(path, start):
        try:
            call = read_call(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(path, offset, error, "its call is no longer counted") from error
        yield offset + len(line), call


def read_call(line: bytes) -> Call:
    """The call in a line; any other line raises one of many errors."""
    values = json.loads(line)
    return Call(**values | {"usage": Usage(**values["usage"])})
