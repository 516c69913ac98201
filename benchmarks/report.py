"""Benchmark of tables, figures and page of many items: process CPU seconds and peak memory.

`python benchmarks/report.py` writes `benchmarks/results/report_<machine>.csv`, a row per number of
items and of ways of asking (framing and reading). A planted model works through some questions
once; their records are repeated under further names until there are enough items, so that only time
and memory have a meaning. `faithscope report` is then a process of its own. `run_scale.py` measures
the same, and the run before it, on items that are all worked.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import yaml

from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.units import Unit, read_unit

REPORT = "import sys; from faithscope.experiments.cli import main; main(['report', sys.argv[1]])"
WAYS = {1: ("prefix.generated",), 4: ()}
"""Number of ways of asking -> names of the ways that are kept; an empty tuple keeps all."""


def worked(folder: Path, items: int) -> Path:
    values = {
        "name": "worked",
        "out": str(folder),
        "model": {"name": ["planted:faithful"]},
        "tasks": ["planted"],
        "data": {"limit": items},
        "generation": {"batch_size": 64},
        "slrc": {"regenerate_tokens": 32},
    }
    path = folder / "worked.yaml"
    path.write_text(yaml.safe_dump(values))
    # in a process of its own: a fork counts as large as this process
    command = [sys.executable, "-m", "faithscope.experiments.cli", "run", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "worked"


def repeated(run: Path, into: Path, items: int, ways: tuple[str, ...]) -> Path:
    """A run folder of `items` items, made by repeating those of `run`."""
    (into / "records").mkdir(parents=True)
    for name in ("config.yaml", "environment.json"):
        (into / name).write_bytes((run / name).read_bytes())
    plan = planfile.read(run)
    assert plan is not None
    names = {
        i.item: [f"{i.item}-{k}" for k in range(-(-items // len(plan.items)))] for i in plan.items
    }
    chosen = [
        (i, name)
        for k in zip(*names.values(), strict=True)
        for i, name in zip(plan.items, k, strict=True)
    ]
    chosen = chosen[:items]
    stored = (StoredItem(i.model, i.task, n, i.units, i.runs_on_excluded) for i, n in chosen)
    planfile.write(into, StoredPlan(plan.batch_size, tuple(stored)))
    kept = {name for _, name in chosen}

    def again(unit: Unit) -> Iterator[Unit]:
        records = [r for r in unit.records if not (ways and r["variant"]) or r["variant"] in ways]
        for name in kept & set(names[unit.item]):
            named = [{**r, "item": name} for r in records]
            yield dataclasses.replace(unit, item=name, records=named)

    for path in (run / "records").glob("*.jsonl"):
        with path.open("rb") as lines, (into / "records" / path.name).open("wb") as out:
            for line in lines:
                out.writelines(unit.to_line() for unit in again(read_unit(line)))
    return into


def measure(run: Path) -> tuple[float, float]:
    """CPU seconds and peak MB of `faithscope report`."""
    with subprocess.Popen([sys.executable, "-c", REPORT, str(run)], stdout=subprocess.DEVNULL) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise RuntimeError(f"the report ended with {p.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", default="2000,20000")
    parser.add_argument("--worked", type=int, default=500)
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        run = worked(Path(folder), args.worked)
        for items in map(int, args.items.split(",")):
            for n_ways, ways in WAYS.items():
                into = Path(folder) / f"{items}-{n_ways}"
                seconds, peak = measure(repeated(run, into, items, ways))
                rows.append({"items": items, "ways": n_ways, "cpu_s": seconds, "peak_mb": peak})
    table = pd.DataFrame(rows).round(1)
    table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    table.to_csv(Path(__file__).parent / "results" / f"report_{args.machine}.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
