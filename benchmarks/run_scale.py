"""Benchmark of a run's costs by number of items, apart from the model: memory, start-up, files.

`python benchmarks/run_scale.py` writes `benchmarks/results/run_scale_<machine>.csv`, a row per
number of items. A tiny planted model works through all questions, each a trace and an SLRC probe
with all edits in one framing and reading. Then, each in a process of its own:

    half_mb, end_mb     resident memory of the run when half and when all of its units are
                        stored; equal where memory is flat
    first_unit_s        from the start of a fresh run to its first stored unit
    resume_s            the same for the run killed half-way; what it takes longer is the
                        price of what lies in the folder
    status_s, show_s    `faithscope status`, and `show` of one item
    outputs_s, outputs_mb   tables, figures and report of all, with the peak of memory
    files, folder_mb    what is in the run folder at the end
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tqdm import tqdm

POLL = 0.05


def config(folder: Path, items: int) -> Path:
    values: dict[str, Any] = {
        "name": "scale",
        "out": str(folder),
        "model": {"name": ["planted:faithful"]},
        "tasks": ["planted"],
        "data": {"limit": items},
        "generation": {"batch_size": 64},
        "slrc": {"framings": ["prefix"], "readings": ["generated"], "regenerate_tokens": 32},
    }
    path = folder / "scale.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


class Records:
    """Counter of the units that a run has stored, which reads files as they grow."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.seen: dict[Path, tuple[int, int]] = {}

    def count(self) -> int:
        for path in (self.run_dir / "records").glob("*.jsonl"):
            offset, lines = self.seen.get(path, (0, 0))
            with path.open("rb") as file:
                file.seek(offset)
                new = file.read()
            self.seen[path] = offset + len(new), lines + new.count(b"\n")
        return sum(lines for _, lines in self.seen.values())


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def started(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", "run", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def until(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> float:
    """Seconds until `reached` is true.

    Raises:
        RuntimeError: the run ended before that.
    """
    start = time.perf_counter()
    while not reached():
        if process.poll() is not None:
            raise RuntimeError(f"the run ended with {process.returncode}")
        time.sleep(POLL)
    return time.perf_counter() - start


def seconds_of(*arguments: str) -> tuple[float, float]:
    """Wall seconds and peak MB of a faithscope command."""
    before = time.perf_counter()
    code = "import sys; from faithscope.experiments.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"faithscope {' '.join(arguments)} ended with {process.returncode}")
    return time.perf_counter() - before, usage.ru_maxrss / 1024


def measure(items: int, folder: Path) -> dict[str, Any]:
    path, run_dir = config(folder, items), folder / "scale"
    records, units = Records(run_dir), 2 * items
    run = started(path)
    first = until(run, lambda: records.count() > 0)
    began = time.perf_counter()
    # traces are stored before the probes, so from here on the work is of one kind
    until(run, lambda: records.count() >= units * 3 // 4)
    half_mb = resident_mb(run.pid)
    run.send_signal(signal.SIGTERM)
    run.wait()
    stored = records.count()
    run = started(path)
    resumed = until(run, lambda: records.count() > stored)
    end_mb = 0.0
    with tqdm(total=units, initial=records.count(), desc=f"{items} items", disable=None) as bar:
        while (now := records.count()) < units and run.poll() is None:
            end_mb = resident_mb(run.pid)
            bar.update(now - bar.n)
            time.sleep(POLL)
    worked = time.perf_counter() - began
    if run.wait():
        raise RuntimeError(f"the run ended with {run.returncode}")
    status, _ = seconds_of("status", str(run_dir))
    show, _ = seconds_of("show", str(run_dir), "--item", f"planted-0-{items - 1}")
    outputs, peak = seconds_of("report", str(run_dir))
    files = [p for p in run_dir.rglob("*") if p.is_file()]
    return {
        "items": items,
        "run_s": worked,
        "first_unit_s": first,
        "resume_s": resumed,
        "half_mb": half_mb,
        "end_mb": end_mb,
        "status_s": status,
        "show_s": show,
        "outputs_s": outputs,
        "outputs_mb": peak,
        "files": len(files),
        "folder_mb": sum(p.stat().st_size for p in files) / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", default="2000,20000")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    rows = []
    for items in map(int, args.items.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="scale-"))
        try:
            rows.append(measure(items, folder))
        finally:
            shutil.rmtree(folder)
    table = pd.DataFrame(rows).round(1)
    out = Path(__file__).parent / "results" / f"run_scale_{args.machine}.csv"
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
