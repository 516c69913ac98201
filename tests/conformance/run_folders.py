"""What stands in a run folder, and runs that are killed."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
import pytest
from cases import CASES, run_folder

from faithscope.experiments.engine.units import API_REPLIES, Key, read_unit

PATIENCE = 240
CLOCKS = re.compile(r"seconds|hours|per_second|known time")
PROGRAM = """import json, os, sys; sys.path[:0] = json.loads(sys.argv[1])
import toy
from faithscope.experiments.cli import main
from faithscope.experiments.config.study import register
register(toy.STUDY)
for line in sys.stdin:
    config, out, err, code = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate((os.devnull, out, err)):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        main(['run', config])
    print(child, flush=True)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(code + '.writing', 'w') as file:
        file.write(str(ended))
    os.replace(code + '.writing', code)"""
"""Imports all that a run needs, which takes longer than the run, then forks a process for each."""


def _fast(*studies: str) -> pytest.MarkDecorator:
    marked = [pytest.param(s, marks=[] if s in studies else pytest.mark.slow) for s in CASES]
    return pytest.mark.parametrize("study", marked)


every_study = pytest.mark.parametrize("study", CASES)
"""For what needs no run."""
every_run = _fast("toy", "slrc")
"""For what reads the run that all tests share: of the toy and of one real study, and of the others
in tests that may take long."""
every_study_in_time = _fast("toy")
"""For what makes runs of its own: of the toy, and of the others in tests that may take long."""


def outputs(run_dir: Path) -> dict[str, str]:
    """Tables and the numbers of figures, but for what clocks say and what was paid."""
    texts = {}
    for path in sorted(p for kind in ("tables", "figures") for p in (run_dir / kind).glob("*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if "cost" in table:
            table = table.loc[table["cost"] != "seconds"]
        if "heading" in table and table["heading"].str.contains(CLOCKS).any():
            continue
        if path.name != "spend.csv" and not any(CLOCKS.search(c) for c in table.columns):
            texts[f"{path.parent.name}/{path.name}"] = table.to_csv(index=False)
    return texts


def lines(run_dir: Path, stage: str = "*") -> list[bytes]:
    """Whole stored lines of a stage's files."""
    files = sorted((run_dir / "records").glob(f"{stage}.*.jsonl"))
    return [line for p in files for line in p.read_bytes().split(b"\n")[:-1]]


def keys(run_dir: Path) -> Counter[Key]:
    """How often each unit is stored."""
    return Counter(read_unit(line).key for line in lines(run_dir))


def planned(run_dir: Path) -> Counter[Key]:
    """Stored units that the plan names; single API replies are left out, since their keys depend on
    the server's address."""
    return Counter({key: n for key, n in keys(run_dir).items() if key[0] != API_REPLIES})


def half_written(run_dir: Path) -> list[Path]:
    return [p for p in run_dir.rglob("*") if p.name.endswith(".writing")]


class Ended(NamedTuple):
    """How a run ended that was sent a signal."""

    code: int
    out: str
    err: str


Start = Callable[[Path, Callable[[], bool], signal.Signals], Ended]


@contextmanager
def starting(folder: Path) -> Iterator[Start]:
    """Yields a function that starts a run, each a process of its own, and sends it a signal once
    something is reached; none where it is over before."""
    folders = [str(Path(__file__).parent), *filter(None, sys.path)]
    numbers = itertools.count()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:
        wanted, begun = process.stdin, process.stdout
        assert wanted is not None
        assert begun is not None

        def start(path: Path, reached: Callable[[], bool], sent: signal.Signals) -> Ended:
            run_dir, deadline = run_folder(path), time.monotonic() + PATIENCE
            out, err, code = (folder / f"{next(numbers)}.{x}" for x in ("out", "err", "code"))
            print(json.dumps([str(path), str(out), str(err), str(code)]), file=wanted, flush=True)
            child = int(begun.readline())
            try:
                while not code.exists() and not reached():
                    assert time.monotonic() < deadline, "that was never reached"
                    # before there is a run folder there is nothing to miss
                    time.sleep(0.004 if run_dir.exists() else 0.05)
            finally:
                with suppress(ProcessLookupError):
                    os.kill(child, sent)
                deadline = time.monotonic() + PATIENCE
                while not code.exists():
                    time.sleep(0.004)
                    if time.monotonic() > deadline:
                        os.kill(child, signal.SIGKILL)
            return Ended(int(code.read_text()), out.read_text("utf-8"), err.read_text("utf-8"))

        yield start


def signalled(path: Path, reached: Callable[[], bool]) -> Ended:
    """Start a run and kill it once something is reached; not where it is over before."""
    with TemporaryDirectory() as folder, starting(Path(folder)) as start:
        return start(path, reached, signal.SIGKILL)
