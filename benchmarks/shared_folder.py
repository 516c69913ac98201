"""Counts of what a run in shards asks of a shared file system: files, opens, locks and syncs.

`python benchmarks/shared_folder.py` writes `benchmarks/results/shared_folder.csv`. A tiny planted
model works through the questions in 64 shards, one after the other in this process; counts do not
depend on the machine. Two numbers of items tell the calls of an item from those of a shard.

Columns:
    what       an item with its trace and its probes; the start and end of a shard; `faithscope
               status`; or the merge of all shards
    opens      files below the run folder that are opened, for reading or writing
    folders    listings of folders
    syncs      calls of fsync
    renames    files put in the place of others
    locks      locks taken
    seconds    time of `faithscope status` and of the merge on the machine at hand, imports excluded
    files      files in the run folder when all shards are done, in the row of the merge
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tqdm import tqdm

from faithscope.experiments.cli import execute

KINDS = ("opens", "folders", "syncs", "renames", "locks")


class Calls:
    """Counter of this process's calls on files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.counts: Counter[str] = Counter()
        self._fsync, self._flock = os.fsync, fcntl.flock
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        kind = {"open": "opens", "os.scandir": "folders", "os.listdir": "folders"}.get(event)
        kind = "renames" if event == "os.rename" else kind
        if kind and isinstance(args[0], str | os.PathLike) and self.folder in os.fspath(args[0]):
            self.counts[kind] += 1

    @contextmanager
    def counted(self) -> Iterator[Counter[str]]:
        """Context manager that gives the counts of its block, complete when the block ends."""

        def fsync(fd: Any) -> None:
            self.counts["syncs"] += 1
            self._fsync(fd)

        def flock(fd: Any, how: int) -> None:
            self.counts["locks"] += how != fcntl.LOCK_UN
            self._flock(fd, how)

        self.counts = counts = Counter()
        os.fsync, fcntl.flock = fsync, flock
        try:
            yield counts
        finally:
            os.fsync, fcntl.flock = self._fsync, self._flock


def config(folder: Path, name: str, items: int, probes: Sequence[str]) -> Path:
    values = {
        "name": name,
        "out": str(folder),
        "model": {"name": "planted:faithful", "device": "cpu"},
        "tasks": ["planted"],
        "data": {"limit": items},
        "generation": {"batch_size": 1},
        "probes": list(probes),
        "report": {"bootstrap": 20},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def command(*arguments: str) -> float:
    """Seconds that a command of faithscope takes, whose output is dropped."""
    began = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        code = execute(list(arguments))
    assert code == 0, f"{arguments}: exit code {code}"
    return time.perf_counter() - began


def row(what: str, counts: Counter[str], per: int = 1, **more: float) -> dict[str, Any]:
    return {"what": what, **{k: round(counts[k] / per, 2) for k in KINDS}, **more}


def measured(folder: Path, shards: int, probes: Sequence[str]) -> list[dict[str, Any]]:
    calls = Calls(folder)
    # what is imported and cached once is no part of the counts
    command("run", str(config(folder, "first", 1, probes)))
    of: dict[int, Counter[str]] = {}
    few, many = shards, 3 * shards
    for items in (few, many):
        path = str(config(folder, f"of{items}", items, probes))
        with calls.counted() as counts:
            for k in tqdm(range(shards), f"{shards} shards of {items} items"):
                command("run", path, "--shard", f"{k + 1}/{shards}")
        of[items] = counts
    item = Counter({k: (of[many][k] - of[few][k]) / (many - few) for k in KINDS})
    shard = Counter({k: (of[few][k] - few * item[k]) / shards for k in KINDS})
    run = folder / f"of{many}"
    with calls.counted() as asked:
        status = command("status", str(run))
    with calls.counted() as merged:
        merge = command("merge", str(run))
    files = sum(path.is_file() for path in run.rglob("*"))
    return [
        row("item", item),
        row("shard", shard),
        row(f"status of {shards} shards", asked, seconds=round(status, 2)),
        row(f"merge of {shards} shards", merged, seconds=round(merge, 2), files=files),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--probes", default="attention", help="probes of every item, by commas")
    parser.add_argument("--out", default=str(Path(__file__).parent / "results/shared_folder.csv"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), args.shards, args.probes.split(","))
    table = pd.DataFrame(rows)
    table.to_csv(args.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
