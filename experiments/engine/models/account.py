"""What a run has spent on APIs, call by call, whatever became of the replies, and may still spend.

Every worker adds to a file of its own (`spend.WORKER.jsonl` in the run folder), a line as soon as
a call has ended, so that what was paid is known after a kill, too: at most the calls in flight are
missing. Every call has an id, by which it counts once wherever copies of it have got to.
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
    """The file, below the run folder, to which a worker adds its calls."""
    return f"spend.{worker}.jsonl"


class Account(Budget):
    """The budget of one worker: it keeps its own calls in the run folder and counts all workers'.

    Raises:
        UserError: the prices cannot be read.
        StoreError: a damaged line, with file, line and remedy.
    """

    def __init__(self, spend: SpendConfig, store: Store) -> None:
        super().__init__(spend.max_cost, spend.max_calls, prices_of(spend))
        self.run_dir = store.run_dir
        self.path = store.run_dir / spend_file(store.worker)
        self._offsets: dict[Path, int] = {}
        self._seen: set[str] = set()
        for call in self.of_others():
            self.charge(call.model, call.usage, call.cost)

    def keep(self, call: Call) -> None:
        """Keep a call; it is on the disk when this returns.

        Raises:
            StoreError: it cannot be written, as on a full disk.
        """
        self._seen.add(call.id)
        with Appender(sync=True) as files:
            files.add(self.path, _to_line(call))

    def of_others(self) -> Iterator[Call]:
        """What is in the files of all workers and was not seen here yet."""
        # opened anew each time: by that a network file system asks the server how long it is
        for path in _files(self.run_dir):
            for end, call in _calls(path, self._offsets.get(path, 0)):
                self._offsets[path] = end
                if call.id not in self._seen:
                    self._seen.add(call.id)
                    yield call


def budget_of(spend: SpendConfig, store: Store, models: Iterable[str]) -> Budget:
    """What may still be spent in a run: an `Account` where one of `models`, which are still to be
    asked, is behind an API; else nothing is read, prices neither.

    Raises:
        UserError, StoreError: as `Account`.
    """
    if any(name.startswith(API) for name in models):
        return Account(spend, store)
    return Budget(spend.max_cost, spend.max_calls)


def calls_of(run_dir: Path) -> list[Call]:
    """Every call of a run, once.

    Raises:
        StoreError: a damaged line.
    """
    return list({call.id: call for path in _files(run_dir) for _, call in _calls(path)}.values())


def in_words(calls: Sequence[Call]) -> str:
    """How many calls and dollars, in a line; empty without a call."""
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
    """Have a merged folder hold every call of the folders that it was merged from, once."""
    merged = into / spend_file(MERGED)
    own = {call.id for path in _files(into) if path != merged for _, call in _calls(path)}
    # what the folder itself holds, too: it may have been gone on with
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
    """(where its line ends, call) from an offset on; a torn last line is passed over."""
    for offset, line in whole_lines(path, start):
        try:
            call = read_call(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(path, offset, error, "its call is no longer counted") from error
        yield offset + len(line), call


def read_call(line: bytes) -> Call:
    """The call of a line; whatever is no line of ours raises one of many errors."""
    values = json.loads(line)
    usage = Usage(**{name: int(values.pop(name)) for name in _USAGE})
    return Call(values.pop("model").removeprefix(API), usage=usage, **values)
