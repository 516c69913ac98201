"""Benchmark of regenerating chains: each up to its own limit and read as it grows, against one
limit for all.

`python benchmarks/regenerate.py` writes `benchmarks/results/regenerate_<machine>.csv`. Chains that
the model writes to GSM8K questions are corrupted at each step and written anew, three ways:
`longest`: every chain up to the longest limit of its item, cut afterwards, its whole text decoded
at every token for the stop test; `own`: up to its own limit, decoded so; `regenerate`: up to its
own limit, the stop test reading what is new. The answers are the same token for token, or nothing
is written. Seconds are process CPU time (wall time on a GPU), the least of `--repeats`.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from forest import timed

from faithscope import interp
from faithscope.experiments.data.traces import TraceSettings, make_traces
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp import lockstep
from faithscope.interp.detokenise import decode
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model
from faithscope.interventions import (
    NotCorruptible,
    NotWritable,
    Trace,
    corrupt_step,
    truncate_after_step,
)
from faithscope.probes.regenerate import _Concluded

WAYS = ("longest", "own", "regenerate")


class WholeText:
    """The text of ids that arrive one at a time, with all ids decoded again at each."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._ids = tokenizer, []

    def add(self, token: int) -> str:
        self._ids.append(token)
        return decode(self._tokenizer, self._ids)


def corrupted(model: Model, trace: Trace) -> list[Trace]:
    """Traces up to each step, with that step corrupted."""
    made = []
    for step in trace.counted_steps:
        try:
            edited = corrupt_step(trace, step.index, 0, model.encode, model.pieces)
        except (NotCorruptible, NotWritable):
            continue
        made.append(truncate_after_step(edited, step.index))
    return made


def written(
    model: Model, items: Sequence[tuple[list[tuple[int, ...]], list[int]]], way: str
) -> list[tuple[int, ...]]:
    """The new tokens of every chain."""
    out: list[tuple[int, ...]] = []
    for prefixes, limits in items:
        asked = [max(limits)] * len(limits) if way == "longest" else limits
        replies = model.ask(prefixes, max_new_tokens=asked, stop=[_Concluded() for _ in prefixes])
        generated: list[Generation] = [r.generated for r in replies if r.generated is not None]
        out += [g.ids[:limit] for g, limit in zip(generated, limits, strict=True)]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--task", default="gsm8k")
    parser.add_argument("--path", help="of the questions; the hub's without")
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256, help="most of a chain")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    model = interp.load(args.model, dtype=args.dtype)
    asked = questions(args.task, args.items, path=args.path)
    items = []
    for trace in make_traces(model, asked, TraceSettings(max_new_tokens=args.tokens)):
        upto = corrupted(model, trace)
        whole = len(trace.reasoning_ids)
        limits = [int(1.5 * max(0, whole - len(t.reasoning_ids))) + 32 for t in upto]
        if upto:
            items.append(([t.prompt_ids + t.reasoning_ids for t in upto], limits))
    n_chains = sum(len(limits) for _, limits in items)

    def run(way: str) -> Callable[[], list[tuple[int, ...]]]:
        return lambda: written(model, items, way)

    growing, seconds, peaks, texts = lockstep.GrowingText, {}, {}, {}
    for _ in range(args.repeats):
        for way in WAYS:
            lockstep.GrowingText = growing if way == "regenerate" else WholeText  # pyright: ignore
            took, peak, texts[way] = timed(model, run(way))
            seconds[way] = min(took, seconds.get(way, took))
            peaks[way] = max(peak, peaks.get(way, peak))
    if not texts["longest"] == texts["own"] == texts["regenerate"]:
        raise AssertionError("the three ways wrote different tokens; no times are written")
    about = {"model": args.model, "dtype": model.dtype, "items": len(items), "chains": n_chains}
    about["new_tokens"] = sum(map(len, texts["own"]))
    rows = [
        about
        | {"way": way, "seconds": seconds[way]}
        | {"ratio_to_longest": seconds["longest"] / seconds[way], "peak_mb": peaks[way]}
        for way in WAYS
    ]
    table = pd.DataFrame(rows)
    out = Path(__file__).parent / "results" / f"regenerate_{args.machine}.csv"
    table.round(6).to_csv(out, index=False)
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
