"""Benchmark of the noise floor that records report, against decisions that noise really changes.

`python benchmarks/noise_floor.py` writes `benchmarks/results/noise_floor_<machine>.csv`. SLRC of
the same traces, arm by arm, in one packed forest and one by one in a loop: the same weights, the
same texts, other batch shapes. A decision is the baseline's answer or whether an arm flips it.
The floor is honest if the decisions that differ between the two lie within the floor that the
packed record reports, and useful if most others do not.

Columns, per task and reading, in `prefix` framing:
    n_decisions         of all arms and baselines
    n_differ            between packed and loop
    n_differ_within     of these, decided by no more than the packed record's `noise_floor`
    within              share of all decisions that are
    n_flips             arms that change the answer, packed
    n_flips_within      of these, decided by no more than the floor
    floor_median, floor_max                 of the items, in nats
    moved_max, moved_tv_max                 what the repeated baselines moved by (scored)
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import asking_for, exclusion, make_traces
from faithscope.experiments.engine.traces.work import trace_settings
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes.slrc import SlrcSettings, slrc

FLIPS = {"removed": "necessary", "alone": "sufficient", "shuffled": "reordered"}
FLIPS |= {"corrupted": "corrupt_flips"}


def decisions(record: dict[str, Any]) -> Iterator[tuple[str, Any, float | None, bool]]:
    """(name, what was decided, by how much, whether it is a flip) of every arm of a record."""
    # no arm is decided by less than the closer of itself and its baseline
    margins = [m for kind in FLIPS for m in record[f"{kind}_margin"] or [] if m is not None]
    yield "baseline", record["baseline"], max(margins, default=math.inf), False
    for kind, name in FLIPS.items():
        for i, value in enumerate(record[name] or []):
            if value is not None:
                flip = value != (kind == "alone")
                yield f"{kind} {i}", flip, record[f"{kind}_margin"][i], flip


def compared(packed: dict[str, Any], loop: dict[str, Any]) -> Iterator[dict[str, Any]]:
    floor = packed["noise_floor"]
    for (name, a, margin, flip), (other, b, _, _) in zip(
        decisions(packed), decisions(loop), strict=True
    ):
        assert name == other
        within = margin is not None and margin <= floor
        yield {"differ": a != b, "within": within, "flip": flip, "margin": margin}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tasks", default="single_cue,conflicting_cue,sequential_math")
    parser.add_argument("--items", type=int, default=8, help="per task, with a usable trace")
    parser.add_argument("--add", action="store_true", help="to the rows of other models")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    model = interp.load(args.model, dtype=args.dtype)
    settings = SlrcSettings(
        framings=("prefix",), edits=("remove", "corrupt"), shuffles=1, answer_tokens=16
    )
    cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    floors: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for name in args.tasks.split(","):
        task = get_task(name)
        config = load_config(
            Path("configs/mechanistic.yaml"),
            [f"model.name={args.model}", f"tasks=[{name}]", "generation.max_new_tokens=256"],
            RunConfig,
        )
        questions = task.load(LoadSettings(limit=2 * args.items, seed=config.seed))
        traces = make_traces(model, [(task, q) for q in questions], trace_settings(config))
        usable = [t for t in traces if exclusion(t) is None][: args.items]
        for trace in tqdm(usable, desc=name, disable=None):
            asking = asking_for(model, task, trace)
            loop = settings.model_copy(update={"execution": "loop"})
            for packed, single in zip(
                slrc(model, trace, asking, settings), slrc(model, trace, asking, loop), strict=True
            ):
                if "excluded" in packed or "excluded" in single:
                    continue
                place = name, packed["reading"]
                cells[place] += compared(packed, single)
                floors[place].append(packed)
    if not cells:
        sys.exit("no trace could be measured; give other tasks or more items")
    rows = []
    for (task, reading), of_cell in cells.items():
        records = floors[task, reading]
        floor = pd.Series([r["noise_floor"] for r in records])
        moved = [r["baseline_moved"] for r in records if r["baseline_moved"] is not None]
        tv = [r["baseline_moved_tv"] for r in records if r["baseline_moved_tv"] is not None]
        rows.append(
            {
                "model": args.model,
                "dtype": model.dtype,
                "task": task,
                "reading": reading,
                "n_items": len(records),
                "n_decisions": len(of_cell),
                "n_differ": sum(d["differ"] for d in of_cell),
                "n_differ_within": sum(d["differ"] and d["within"] for d in of_cell),
                "within": sum(d["within"] for d in of_cell) / len(of_cell),
                "n_flips": sum(d["flip"] for d in of_cell),
                "n_flips_within": sum(d["flip"] and d["within"] for d in of_cell),
                "floor_median": floor.median(),
                "floor_max": floor.max(),
                "moved_max": max(moved, default=None),
                "moved_tv_max": max(tv, default=None),
            }
        )
        for d in of_cell:
            if d["differ"] and not d["within"]:
                print(task, reading, "differs beyond the floor:", d["margin"])
    table = pd.DataFrame(rows).round(6)
    out = Path(__file__).parent / "results" / f"noise_floor_{args.machine}.csv"
    if args.add and out.exists():
        table = pd.concat([pd.read_csv(out), table])
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
