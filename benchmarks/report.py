"""Benchmark of the commands that read a run of many items: process CPU seconds and peak memory.

`python benchmarks/report.py` writes `benchmarks/results/report_<machine>.csv`, a row per number of
items, of ways of asking (framing and reading) and command: `list runs`, `status`, `show` of one
item, and `report`, which writes tables, figures and page. A planted model works through some
questions once; their records are repeated under further names until there are enough items, so that
only time and memory have a meaning. Every command is a process of its own, Python and imports
included, with compiled modules as an installed package has them. `run_scale.py` measures the same,
and the run before it, on items that are all worked.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import yaml

from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.units import Unit, read_unit

COMMAND = "import sys; from faithscope.experiments.cli import main; main(sys.argv[1:])"
COMMANDS = ("list", "status", "show", "report")
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
    folder.mkdir(parents=True, exist_ok=True)
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


def arguments(command: str, run: Path) -> list[str]:
    if command == "list":
        return ["list", "runs", "--out", str(run.parent)]
    plan = planfile.read(run)
    assert plan is not None
    return [command, str(run), *(["--item", plan.items[-1].item] if command == "show" else [])]


def measure(command: str, run: Path, compiled: Path) -> tuple[float, float]:
    """CPU seconds and peak MB of a command on a run that stands alone in its folder."""
    python = [sys.executable, "-c", COMMAND, *arguments(command, run)]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(compiled)
    with subprocess.Popen(python, stdout=subprocess.DEVNULL, env=env) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"faithscope {command} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", default="2000,20000")
    parser.add_argument("--ways", default=",".join(map(str, WAYS)))
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument(
        "--worked", type=int, default=500, help="items that the model works through"
    )
    parser.add_argument("--run", type=Path, help="such a run that is there")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    out = Path(__file__).parent / "results" / f"report_{args.machine}.csv"
    commands, rows = args.commands.split(","), []
    with tempfile.TemporaryDirectory(prefix="report-") as name:
        folder = Path(name)
        run = args.run or worked(folder / "made", args.worked)
        for command in commands:
            # modules are compiled at their first import
            measure(command, run, folder / "compiled")
        for items in map(int, args.items.split(",")):
            for ways in map(int, args.ways.split(",")):
                into = repeated(run, folder / f"{items}-{ways}" / "run", items, WAYS[ways])
                for command in commands:
                    seconds, peak = measure(command, into, folder / "compiled")
                    row = {"items": items, "ways": ways, "command": command}
                    rows.append({**row, "cpu_s": round(seconds, 2), "peak_mb": round(peak)})
                    print(rows[-1], flush=True)
                shutil.rmtree(into)
    when = {"run": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")}
    with out.open("w", encoding="utf-8", newline="") as file:
        # without pandas, since no process that is started counts as smaller than this one
        table = csv.DictWriter(file, [*rows[0], *when], lineterminator="\n")
        table.writeheader()
        table.writerows(row | when for row in rows)
    print(out)


if __name__ == "__main__":
    main()
