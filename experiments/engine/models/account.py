"""Account of a run's spending on APIs, call by call, whatever became of the replies.

Every worker appends a line to a file of its own (`spend.WORKER.jsonl` in the run folder) as soon as
a call has ended, so that spending is known after a kill, too: at most the calls in flight are
missing. Every call has an id, by which copies of it count once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API, SpendConfig
from faithscope.experiments.engine.append import Appender, damaged, whole_lines
from faithscope.experiments.engine.models.prices import prices_of
from faithscope.experiments.files import write_atomically
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Budget, Call

if TYPE_CHECKING:
    from faithscope.experiments.engine.store import Store

MERGED = "merged"
_USAGE = tuple(f.name for f in fields(Usage))


def spend_file(worker: str) -> str:
    """Name of the file in the run folder to which a worker appends its calls."""
    return f"spend.{worker}.jsonl"


class Account(Budget):
    """The budget of one worker: it stores its own calls in the run folder and counts all workers'.

    Raises:
        UserError: the prices cannot be read.
        StoreError: a line is damaged; the message has file, line and remedy.
    """

    def __init__(self, spend: SpendConfig, store: Store) -> None:
        super().__init__(spend.max_cost, spend.max_calls, prices_of(spend))
        self.run_dir = store.run_dir
        self.path = store.run_dir / spend_file(store.worker)
        self._offsets: dict[Path, int] = {}
        self._seen: set[str] = set()
        for call in self.of_others():
            self.count(call)

    def keep(self, call: Call) -> None:
        """Store a call; it is on the disk when this returns.

        Raises:
            StoreError: the call cannot be written, as on a full disk.
        """
        self._seen.add(call.id)
        with Appender(sync=True) as files:
            files.add(self.path, _to_line(call))

    def of_others(self) -> Iterator[Call]:
        """Calls in the files of all workers that this account has not seen yet."""
        # opened anew each time, so that a network file system asks the server for the file's length
        for path in _files(self.run_dir):
            for end, call in _calls(path, self._offsets.get(path, 0)):
                self._offsets[path] = end
                if call.id not in self._seen:
                    self._seen.add(call.id)
                    yield call


def budget_of(spend: SpendConfig, store: Store, models: Iterable[str]) -> Budget:
    """The budget of a run: an `Account` if one of `models` (those still to be asked) is an API
    model; else a plain budget, for which no prices are read.

    Raises:
        UserError, StoreError: as for `Account`.
    """
    if any(name.startswith(API) for name in models):
        return Account(spend, store)
    return Budget(spend.max_cost, spend.max_calls)


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
    values: dict[str, Any] = asdict(call) | asdict(call.usage) | {"model": API + call.model}
    del values["usage"]
    return json.dumps(values).encode() + b"\n"


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
    usage = Usage(**{name: int(values.pop(name)) for name in _USAGE})
    return Call(values.pop("model").removeprefix(API), usage=usage, **values)
