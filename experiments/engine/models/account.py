"""Account of a run's spending on APIs, call by call, whatever became of the replies.

Every worker appends a line to a file of its own (`spend.WORKER.jsonl` in the run folder) as soon as
a call has ended, so that spending is known after a kill, too: at most the calls in flight are
missing. Every call has an id, by which copies of it count once.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.engine.append import Appender, damaged, whole_lines
from faithscope.experiments.engine.models.prices import price_of, prices_of
from faithscope.experiments.files import write_atomically
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Account, Call

MERGED = "merged"
REFRESH = 2.0
"""Seconds after which the spending of other workers is read again."""


def spend_file(worker: str) -> str:
    """Name of the file in the run folder to which a worker appends its calls."""
    return f"spend.{worker}.jsonl"


class RunAccount(Account):
    """The account of one worker of a run, with the limits of `SpendConfig`: it stores its own calls
    and counts those of all workers.

    No call begins once a limit is reached. Calls in flight may finish and are stored, so that one
    worker can pass `max_cost` by as many calls as a judge has connections; it passes `max_calls`
    only if calls in flight time out and are made again. Workers see each other's calls once these
    have ended and `REFRESH` seconds are over.

    Raises:
        UserError: the prices cannot be read.
        StoreError: a line is damaged; the message has file, line and remedy.
    """

    def __init__(self, spend: SpendConfig, run_dir: Path, worker: str) -> None:
        self.spend, self.prices = spend, prices_of(spend)
        self.run_dir, self.path = run_dir, run_dir / spend_file(worker)
        self.calls = 0
        self.cost = 0.0
        """Dollars spent so far, without the calls of judges that have no price."""
        self._offsets: dict[Path, int] = {}
        self._seen: set[str] = set()
        self._count_others()

    def check(self, model: str) -> None:
        limit = self.spend.max_cost
        if limit is not None and price_of(model, self.prices) is None:
            guess = did_you_mean(model, self.prices) or "; add it to the prices, or limit max_calls"
            raise UserError(
                f"max_cost={self.spend.max_cost:g}: model {model!r} has no price{guess}"
            )

    def admit(self) -> bool:
        if time.monotonic() - self._looked >= REFRESH:
            self._count_others()
        most_calls, most_cost = self.spend.max_calls, self.spend.max_cost
        if most_calls is not None and self.calls + self.in_flight >= most_calls:
            return False
        if most_cost is not None and self.cost >= most_cost:
            return False
        return super().admit()

    def settle(self, calls: Sequence[Call]) -> None:
        """Record the end of a call; it is on the disk when this returns."""
        super().settle(calls)
        priced = [replace(call, cost=self._cost(call)) for call in calls]
        for call in priced:
            self._count(call)
        with Appender(sync=True) as files:
            for call in priced:
                files.add(self.path, _to_line(call))

    def __str__(self) -> str:
        limits = {"max_calls": self.spend.max_calls, "max_cost": self.spend.max_cost}
        most = ", ".join(f"{name}={limit:g}" for name, limit in limits.items() if limit is not None)
        return f"{self.calls} calls, ${self.cost:.4g} of {most}"

    def _cost(self, call: Call) -> float | None:
        """Dollars of a call; one that had no price when it was made counts at the current price."""
        price = price_of(call.model, self.prices)
        return call.cost if call.cost is not None or price is None else price.of(call.usage)

    def _count(self, call: Call) -> None:
        self._seen.add(call.id)
        self.calls += call.usage.calls
        self.cost += self._cost(call) or 0.0

    def _count_others(self) -> None:
        """Count the calls in the files of all workers that this account has not seen yet."""
        self._looked = time.monotonic()
        # opened anew each time, so that a network file system asks the server for the file's length
        for path in _files(self.run_dir):
            for end, call in _calls(path, self._offsets.get(path, 0)):
                self._offsets[path] = end
                if call.id not in self._seen:
                    self._count(call)


def calls_of(run_dir: Path) -> list[Call]:
    """Every call of a run, once.

    Raises:
        StoreError: a line is damaged.
    """
    return list({call.id: call for path in _files(run_dir) for _, call in _calls(path)}.values())


def in_words(calls: Sequence[Call]) -> str:
    """Numbers of calls and dollars, in one line; empty without a call."""
    if not calls:
        return ""
    n, known = sum(c.usage.calls for c in calls), [c for c in calls if c.cost is not None]
    guessed = sum(c.usage.calls for c in calls if c.estimated)
    estimated = f", the tokens of {guessed:,} of them estimated" if guessed else ""
    if not known:
        return f"{n:,} calls to APIs, without a price{estimated}"
    dollars = f"{n:,} calls to APIs, ${math.fsum(c.cost or 0.0 for c in known):,.2f}"
    without = n - sum(c.usage.calls for c in known)
    return dollars + (f", {without:,} of them without a price" if without else "") + estimated


def join(folders: Iterable[Path], into: Path) -> None:
    """Write every call of the merged folders once into the folder `into`."""
    merged = into / spend_file(MERGED)
    own = {call.id for path in _files(into) if path != merged for _, call in _calls(path)}
    # the calls of `into` itself, too: its run may have been continued
    calls = {call.id: call for folder in (into, *folders) for call in calls_of(folder)}
    if content := b"".join(_to_line(call) for call in calls.values() if call.id not in own):
        write_atomically(merged, content)


def _files(run_dir: Path) -> list[Path]:
    return sorted(run_dir.glob(spend_file("*")))


def _to_line(call: Call) -> bytes:
    return json.dumps(asdict(call)).encode() + b"\n"


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
