"""All probes of one item, each as a multiple of one plain forward of the same text.

`python benchmarks/all_probes.py` writes `benchmarks/results/all_probes_<machine>.csv`, a row per
probe that a config asks for and one for all of them. The item is the first of a task whose
trace has enough steps; its trace is generated once. `forward` is prompt, reasoning and answer
cue through the model: the cheapest thing that reads the same text. Seconds are process CPU time
(wall time on a GPU), the median of the repeats, the rounds interleaved.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from forest import timed
from tqdm import tqdm

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import asking_for, exclusion, make_traces
from faithscope.experiments.engine.traces.units import measure
from faithscope.experiments.engine.traces.work import trace_settings
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.model import Model
from faithscope.probes.framing import prefix_ids


@torch.inference_mode()
def forward(model: Model, ids: list[int]) -> None:
    model.hf(torch.tensor([ids], device=model.device), use_cache=False, logits_to_keep=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/mechanistic.yaml"))
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--task", default="sequential_math")
    parser.add_argument("--steps", type=int, default=5, help="that the trace has at least")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    config = load_config(
        args.config,
        [
            f"model.name={args.model}",
            f"tasks=[{args.task}]",
            "data.limit=40",
            "generation.max_new_tokens=256",
        ],
        RunConfig,
    )
    task = get_task(args.task)
    model = interp.load(args.model, dtype=args.dtype)
    for question in task.load(LoadSettings(limit=40, seed=config.seed)):
        (trace,) = make_traces(model, [(task, question)], trace_settings(config))
        if exclusion(trace) is None and len(trace.steps) >= args.steps:
            break
    else:
        sys.exit(f"no trace of {args.task} has {args.steps} steps")
    ids = list(prefix_ids(model, asking_for(model, task, trace), trace))

    work: dict[str, Callable[[], object]] = {"forward": lambda: forward(model, ids)}
    for name in config.probes:
        work[name] = lambda name=name: measure(name, model, task, trace, config)
    for do in work.values():
        do()
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in tqdm(range(args.repeats), disable=None):
        for name, do in work.items():
            seconds, peak, _ = timed(model, do)
            runs[name].append((seconds, peak))
    seconds = {name: statistics.median(s for s, _ in found) for name, found in runs.items()}
    seconds["all"] = sum(s for name, s in seconds.items() if name != "forward")
    about = {
        "model": args.model,
        "dtype": model.dtype,
        "tokens": len(ids),
        "reasoning_tokens": len(trace.reasoning_ids),
        "steps": len(trace.steps),
    }
    rows = [
        about | {"probe": name, "seconds": s, "forwards": s / seconds["forward"]}
        for name, s in seconds.items()
    ]
    table = pd.DataFrame(rows).round({"seconds": 3, "forwards": 2})
    out = Path(__file__).parent / "results" / f"all_probes_{args.machine}.csv"
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
