"""Benchmark of numbers as answers: every spelling scored with the end of its number, in one pack.

`python benchmarks/number_ends.py` writes `benchmarks/results/number_ends_<machine>.csv`. The trace
of a question whose answers are numbers is generated once. The spellings of the answers are scored
after a number of evenly spaced cuts of its reasoning (`tracing`), after every step
(`early_answers`), and after the arms of SLRC (`full`), without and with the number boundary.
`further` is the number of tokens that the boundary has run after the labels, `further_s` the time
they take, `tokens` all tokens that are run. Seconds are process CPU time (wall time on a GPU).
`--code` names the code that is measured; rows of other code stay in the file.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
from forest import timed

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import asking_for, exclusion, make_traces
from faithscope.experiments.engine.traces.work import trace_settings
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp import execute
from faithscope.interp.model import Model
from faithscope.interventions.trace import Trace
from faithscope.probes.framing import label_ids


def prefix_sets(trace: Trace, after: tuple[int, ...], cuts: int) -> dict[str, list[list[int]]]:
    """Prefixes up to the answer cue, by the name of the set."""
    ids = trace.reasoning_ids
    steps = [ids[slice(*step.tokens)] for step in trace.steps]
    every, draw = list(range(len(steps))), random.Random(0)

    def told(order: list[int]) -> list[int]:
        return [*trace.prompt_ids, *(t for i in order for t in steps[i]), *after]

    early = [told(every[:i]) for i in range(len(steps) + 1)]
    arms = [[i for i in every if i != t] for t in every] + [[t] for t in every]
    orders = [draw.sample(every, len(every)) for _ in range(3)]
    at = [round(i * len(ids) / max(1, cuts - 1)) for i in range(cuts)]
    return {
        "tracing": [[*trace.prompt_ids, *ids[:i], *after] for i in at],
        "early_answers": early,
        "full": early + [told(kept) for kept in arms + orders],
    }


class Counter:
    """Counts the tokens that a model runs, and the time and tokens of `execute.one_more`."""

    def __init__(self, model: Model) -> None:
        self.tokens = self.further = 0
        self.further_s = 0.0
        model.hf.get_input_embeddings().register_forward_hook(self._count)
        one_more = execute.one_more

        def timed_one_more(*args: Any, **options: Any) -> None:
            before, start = self.tokens, time.process_time()
            one_more(*args, **options)
            self.further += self.tokens - before
            self.further_s += time.process_time() - start

        execute.one_more = timed_one_more

    def _count(self, _: Any, args: tuple[Any, ...], __: Any) -> None:
        self.tokens += args[0].numel()

    def counts(self) -> dict[str, float]:
        counts = {"tokens": self.tokens, "further": self.further, "further_s": self.further_s}
        self.tokens = self.further = 0
        self.further_s = 0.0
        return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--task", default="sequential_math")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--cuts", type=int, default=8, help="of the reasoning in `tracing`")
    parser.add_argument("--sets", nargs="+", default=["tracing", "early_answers", "full"])
    parser.add_argument("--code", default="here")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    changes = [f"model.name={args.model}", f"tasks=[{args.task}]", "data.limit=20"]
    changes.append(f"generation.max_new_tokens={args.new_tokens}")
    config = load_config(Path("configs/mechanistic.yaml"), changes, RunConfig)
    task = get_task(args.task)
    model = interp.load(args.model, dtype=args.dtype, verify_model=False)
    for question in task.load(LoadSettings(limit=20, seed=config.seed)):
        (trace,) = make_traces(model, [(task, question)], trace_settings(config))
        if exclusion(trace) is None:
            break
    else:
        sys.exit(f"no trace of {args.task} can be measured")
    asking = asking_for(model, task, trace)
    labels = label_ids(model, asking, "prefix")
    after = (*asking.closer_ids, *model.encode(asking.answer_cue))
    sets = prefix_sets(trace, after, args.cuts)
    _ = model.number_ends
    counter, rows = Counter(model), []
    for name in args.sets:
        prefixes = sets[name]
        for boundary in (None, "number"):
            counter.counts()
            seconds, peak, _ = timed(
                model,
                lambda prefixes=prefixes, boundary=boundary: model.ask(
                    prefixes, [labels] * len(prefixes), boundary=boundary
                ),
            )
            row = {"code": args.code, "model": args.model, "dtype": model.dtype, "set": name}
            row |= {"prefixes": len(prefixes), "labels": len(labels), "boundary": boundary or ""}
            rows.append(row | {"seconds": seconds, "peak_mb": peak} | counter.counts())
            print(rows[-1], flush=True)
    path = Path(__file__).parent / "results" / f"number_ends_{args.machine}.csv"
    table = pd.DataFrame(rows).round({"seconds": 2, "further_s": 2, "peak_mb": 0})
    if path.exists():
        before = pd.read_csv(path, keep_default_na=False)
        table = pd.concat([before[before["code"] != args.code], table])
    table.to_csv(path, index=False)


if __name__ == "__main__":
    main()
