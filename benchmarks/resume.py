"""Benchmark of resuming: how soon a run that is nearly done stores its next unit.

`python benchmarks/resume.py` writes `benchmarks/results/resume_<machine>.csv`: seconds from the
start of `faithscope run` to the first new unit, Python, imports and the model included, as median,
least and most of the repeats. All units but those of three items are stored before, as one item's
real records under the names of the others. The row of 0 items is a fresh run of ten: the cost of
any start.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
from pathlib import Path

import pandas as pd
from run_scale import Records, config, started, until
from tqdm import tqdm

from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.environment import environment
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import Store, read_records, record_file
from faithscope.experiments.engine.traces.plan import plan
from faithscope.experiments.engine.traces.stages import STAGES
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.slrc.config import RunConfig

LEFT, FRESH = 3, 10


def nearly_done(folder: Path, items: int, left: int = LEFT) -> Path:
    """The config of a run of `items` items, of which all but `left` are stored."""
    one = folder / "one"
    one.mkdir(parents=True)
    done = run(load_config(config(one, 1))).run_dir
    many = folder / "many"
    many.mkdir()
    path = config(many, items)
    settings = load_config(path, must_be=RunConfig)
    whole = plan(settings)
    with Store(settings, environment(), "main", whole.stored()) as store:
        for stage in ("trace", "slrc"):
            records = read_records(done, stage)
            with (store.run_dir / record_file(stage, "main", STAGES)).open("wb") as file:
                for item in whole.items[: items - left]:
                    _, model, task, name = item.key(stage)
                    mine = [r | {"item": name} for r in records]
                    file.write(Unit(item.units[stage], stage, model, task, name, 1, mine).to_line())
    return path


def first_unit(path: Path) -> float:
    records = Records(path.parent / "scale")
    stored = records.count()
    process = started(path)
    try:
        return until(process, lambda: records.count() > stored)
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", default="2000,20000")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    rows = []
    for items in (0, *map(int, args.items.split(","))):
        base = Path(tempfile.mkdtemp(prefix="resume-"))
        try:
            original = base / "original"
            path = nearly_done(original, items) if items else config(_made(original), FRESH)
            seconds = []
            for i in tqdm(range(args.repeats + 1), desc=f"{items} stored", disable=None):
                copy = base / str(i)
                shutil.copytree(path.parent, copy)
                text = path.read_text().replace(str(path.parent), str(copy))
                (copy / path.name).write_text(text)
                seconds.append(first_unit(copy / path.name))
                shutil.rmtree(copy)
        finally:
            shutil.rmtree(base)
        rows.append(
            {
                "items": items,
                "seconds": statistics.median(seconds[1:]),
                "least": min(seconds[1:]),
                "most": max(seconds[1:]),
                "repeats": args.repeats,
            }
        )
    table = pd.DataFrame(rows).round(2)
    out = Path(__file__).parent / "results" / f"resume_{args.machine}.csv"
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
