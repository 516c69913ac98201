"""What a run has spent on APIs, call by call, whatever became of the replies.

Every worker adds to a file of its own (`spend.WORKER.jsonl` in the run folder), a line as soon as
a call has ended, so that what was paid is known after a kill, too: at most the calls in flight are
missing. Every line has an id, by which it counts once wherever copies of it have got to.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.append import Appender
from faithscope.experiments.engine.index import Index
from faithscope.experiments.files import StoreError, write_atomically
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Spent

if TYPE_CHECKING:
    from faithscope.experiments.engine.store import Store

BEFORE = "records"
"""The worker, as it were, of what was stored before there were ledgers."""
MERGED = "merged"
_USAGE = tuple(f.name for f in fields(Usage))


@dataclass(frozen=True)
class Line:
    """One call."""

    id: str
    """Different for every call there ever was."""
    time: str
    """When it ended, ISO 8601 in UTC; empty where that was not kept."""
    model: str
    """As a config names it, `api:` and all."""
    ask: str
    outcome: str
    usage: Usage
    cost: float | None
    """Dollars at the price of then; None without a price."""
    estimated: bool = False
    """Whether `usage`, or a part of it, is an estimate; ledgers of before have none."""

    @property
    def spent(self) -> Spent:
        name = self.model.removeprefix(API)
        return Spent(name, self.usage, self.cost, self.ask, self.outcome, self.estimated)

    def to_bytes(self) -> bytes:
        """The line, its newline included."""
        values = asdict(self)
        used = values.pop("usage")
        cost = values.pop("cost")
        return json.dumps({**values, **used, "cost": cost}).encode() + b"\n"


def spend_file(worker: str) -> str:
    """The file, below the run folder, to which a worker adds its calls."""
    return f"spend.{worker}.jsonl"


class Ledger:
    """An `Account` in a run folder: one worker's hold on its own file, and its eye on the others'.

    Making one reads what was spent so far into `lines`. A folder without any ledger, of a version
    that kept none, has its stored replies counted, once and for all: a line for each goes into
    `spend.records.jsonl`. What such a version spent on asks of which it stored no reply is lost.

    Raises:
        StoreError: a damaged line, with file, line and remedy.
    """

    def __init__(self, store: Store) -> None:
        self.run_dir = store.run_dir
        self.path = store.run_dir / spend_file(store.worker)
        with store.shared():
            if not _files(self.run_dir):
                _write(self.run_dir / spend_file(BEFORE), stored_calls(store.index))
        self._offsets: dict[Path, int] = {}
        self._seen: set[str] = set()
        self.lines = list(self._unread())
        """Of all workers, at the time of making."""

    def add(self, spent: Spent) -> None:
        """Keep a call; it is on the disk when this returns.

        Raises:
            StoreError: it cannot be written, as on a full disk.
        """
        line = Line(
            secrets.token_hex(8),
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            API + spent.judge,
            spent.ask,
            spent.outcome,
            spent.usage,
            spent.cost,
            spent.estimated,
        )
        self._seen.add(line.id)
        with Appender(sync=True) as files:
            files.add(self.path, line.to_bytes())

    def news(self) -> Iterator[Spent]:
        """What other workers have added since this was last asked."""
        return (line.spent for line in self._unread())

    def _unread(self) -> Iterator[Line]:
        # opened anew each time: by that a network file system asks the server how long it is
        for path in _files(self.run_dir):
            lines, self._offsets[path] = _read(path, self._offsets.get(path, 0))
            for line in lines:
                if line.id not in self._seen:
                    self._seen.add(line.id)
                    yield line


def calls_of(run_dir: Path, index: Index | None = None) -> list[Line]:
    """Every call of a run, once; of a run without ledgers, those whose replies are stored.

    Args:
        index: of the run, where it is read already.

    Raises:
        StoreError: a damaged line.
    """
    if not (files := _files(run_dir)):
        return stored_calls(Index.of(run_dir) if index is None else index)
    found = (line for path in files for line in _read(path)[0])
    return list({line.id: line for line in found}.values())


def in_words(calls: Sequence[Line]) -> str:
    """How many calls and dollars, in a line; empty without a call."""
    if not calls:
        return ""
    n, known = sum(c.usage.calls for c in calls), [c for c in calls if c.cost is not None]
    guessed = sum(c.usage.calls for c in calls if c.estimated)
    estimated = f", the tokens of {guessed:,} of them estimated" if guessed else ""
    if not known:
        return f"{n:,} calls to APIs, without a price{estimated}"
    told = f"{n:,} calls to APIs, ${math.fsum(c.cost or 0.0 for c in known):,.2f}"
    without = n - sum(c.usage.calls for c in known)
    return told + (f", {without:,} of them without a price" if without else "") + estimated


def join(folders: Iterable[Path], into: Path) -> None:
    """Have a merged folder hold every call of the folders that it was merged from, once."""
    merged = into / spend_file(MERGED)
    own = [path for path in _files(into) if path != merged]
    held = {line.id for path in own for line in _read(path)[0]}
    # what the folder itself holds, too: it may have been gone on with
    lines = {line.id: line for folder in (into, *folders) for line in calls_of(folder)}
    _write(merged, (line for line in lines.values() if line.id not in held))


def stored_calls(index: Index) -> list[Line]:
    """A line for each stored reply of a model behind an API, which may have taken several calls.

    The id is made of the unit's, so that copies of a reply count once.
    """
    places = [entry for key, entry in index.places() if key[1].startswith(API)]
    with index.reader() as read:
        units = [read(entry) for entry in places]
    return [
        Line(
            f"{BEFORE}-{unit.unit}-{n}",
            "",
            unit.model,
            f"{unit.task}/{unit.item}",
            str(r.get("outcome", "")),
            Usage(**{name: r[name] for name in _USAGE}),
            None,
        )
        for unit in units
        for n, r in enumerate(unit.records)
        if r.get("calls")
    ]


def _files(run_dir: Path) -> list[Path]:
    return sorted(run_dir.glob(spend_file("*")))


def _write(path: Path, lines: Iterable[Line]) -> None:
    if content := b"".join(line.to_bytes() for line in lines):
        write_atomically(path, content)


def _read(path: Path, offset: int = 0) -> tuple[list[Line], int]:
    """The whole lines from an offset on, and where they end; a torn last one is passed over."""
    with path.open("rb") as file:
        file.seek(offset)
        whole, newline, _torn = file.read().rpartition(b"\n")
    lines = []
    for number, text in enumerate(whole.split(b"\n") if newline else [], start=1):
        try:
            lines.append(_line(json.loads(text)))
        except (ValueError, TypeError, KeyError) as error:
            number += path.read_bytes()[:offset].count(b"\n")
            raise StoreError(
                f"{path}: line {number} is damaged ({error}); delete that line "
                f"(sed -i '{number}d' {path}) and run again: its call is no longer counted"
            ) from error
    return lines, offset + len(whole) + len(newline)


def _line(values: dict[str, Any]) -> Line:
    usage = Usage(**{name: int(values[name]) for name in _USAGE})
    told = {f.name: values[f.name] for f in fields(Line) if f.name not in ("usage", "estimated")}
    return Line(usage=usage, estimated=bool(values.get("estimated", False)), **told)
