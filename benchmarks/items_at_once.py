"""Benchmark of probes that run side by side: `python benchmarks/items_at_once.py`.

It measures SLRC with its default edits and readings on several chains: one chain after the other,
and some at once, whose packs and decoding steps are shared (`interp.side_by_side`). It writes
`benchmarks/results/items_at_once_<machine>.csv`, a row as soon as it is measured; rows of other
work stay. Before a row is measured its chains are asked about once with short answers, so that
nothing is compiled within it.

Without `--model` the weights are random, of the size of an 8B Llama, and the chains are sums of
`--steps` steps in bytes (some 24 tokens a step): a random model writes to the limit of every
regenerated chain, as a reasoning model nearly does. With it, the chains are those that the model
writes to the bundled word problems.

Columns:
    at_once     chains side by side
    seconds     wall time on an accelerator, process CPU time on a CPU, of all chains
    ratio       seconds an item of one chain after the other divided by these, where both are known
    prefill     share of the seconds in prefills
    decoding    share in greedy decoding
    boundaries  share in tokens that are run after separators of numbers
    peak_mb     peak memory above what the model holds (accelerators only)
    same        share of the records' lists of flips that are those of the first row measured
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from forest import timed
from random_model import SIZES, random_llama, word_tokenizer

from faithscope import interp
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.data.traces import TraceSettings, asking_for, make_traces
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp import execute, lockstep
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interp.side_by_side import side_by_side
from faithscope.interventions import Origin, Question, Trace, from_ids
from faithscope.probes import PROBES

TASK = get_task("word_problems")
FLIPS = ("necessary", "sufficient", "reordered", "corrupt_flips", "regenerate_flips")


def random_chains(model: Model, n: int, n_steps: int) -> list[Trace]:
    """Sums of `n_steps` steps as traces of a model that cannot write them."""
    traces = []
    for item in range(n):
        draw, total, text = random.Random(item), 0, ""
        for _ in range(n_steps):
            added = draw.randint(2, 30)
            text += f"So {total} + {added} makes {total + added}.\n"
            total += added
        asked = f"Question {item}. " + "Start at 0 and add the numbers one after the other. " * 2
        ids = model.encode(text)
        question = Question(f"sum-{item}", TASK.name, asked, kind="number", gold=str(total))
        traces.append(
            from_ids(
                question,
                model.prompt(asked).ids,
                ids,
                model.pieces(ids),
                answer=str(total),
                origin=Origin(model.name),
            )
        )
    return traces


def measured(model: Model, traces: Sequence[Trace], at_once: int, **changes: int) -> list[Any]:
    """The SLRC records of each trace."""
    settings = PROBES["slrc"].settings(**changes)

    def job(trace: Trace, m: Model) -> list[Any]:
        return PROBES["slrc"].measure(m, trace, asking_for(m, TASK, trace), settings)

    records: list[Any] = []
    for start in range(0, len(traces), at_once):
        jobs = [partial(job, trace) for trace in traces[start : start + at_once]]
        records += side_by_side(model, jobs)
    for outcome in records:
        if isinstance(outcome, Exception):
            raise outcome
    return records


PHASES = {
    (execute, "prefill"): "prefill",
    (lockstep, "decode"): "decoding",
    (execute, "one_more"): "boundaries",
}
"""(module, function) -> the phase that its time counts to."""


@contextmanager
def phases(model: Model) -> Iterator[dict[str, float]]:
    """Seconds that are spent in each phase while the context is open."""
    clock = time.perf_counter if model.device.type == "cuda" else time.process_time
    spent = dict.fromkeys(PHASES.values(), 0.0)
    usual = {of: getattr(*of) for of in PHASES}

    def timing(of: tuple[Any, str]) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = clock()
            out = usual[of](*args, **kwargs)
            if model.device.type == "cuda":
                torch.cuda.synchronize()
            spent[PHASES[of]] += clock() - start
            return out

        return run

    for of in PHASES:
        setattr(*of, timing(of))
    try:
        yield spent
    finally:
        for of, function in usual.items():
            setattr(*of, function)


def flips(records: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(map(str, map(r.get, FLIPS))) for of_trace in records for r in of_trace]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model's name; by default random weights")
    parser.add_argument("--size", choices=SIZES, default="8b", help="of the random model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--steps", default="10,20", help="of the random model's chains")
    parser.add_argument("--at-once", default="1,2,4,8")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    sets: dict[str, list[Trace]] = {}
    if args.model:
        model = interp.load(args.model, device=args.device)
        asked = questions(TASK.name, args.items)
        sets["written"] = [
            t for t in make_traces(model, asked, TraceSettings()) if len(t.counted_steps) > 1
        ]
    else:
        hf = random_llama(args.device, args.size)
        model = wrap(hf, word_tokenizer(), name=f"random:llama-{args.size}")
        for n in map(int, args.steps.split(",")):
            sets[f"T={n}"] = random_chains(model, args.items, n)
    rows: list[dict[str, Any]] = []
    for name, traces in sets.items():
        alone: list[tuple[Any, ...]] = []
        for at_once in map(int, args.at_once.split(",")):
            measured(model, traces[:at_once], at_once, answer_tokens=2, regenerate_tokens=2)
            with phases(model) as spent:
                seconds, peak, records = timed(model, partial(measured, model, traces, at_once))
            alone = alone or flips(records)
            same = [a == b for a, b in zip(alone, flips(records), strict=True)]
            rows.append(
                {
                    "model": model.name,
                    "dtype": model.dtype,
                    "chains": name,
                    "items": len(traces),
                    "tokens": round(sum(len(t.reasoning_ids) for t in traces) / len(traces)),
                    "at_once": at_once,
                    "seconds": round(seconds, 2),
                    **{name: round(s / seconds, 3) for name, s in spent.items()},
                    "peak_mb": round(peak),
                    "same": round(sum(same) / len(same), 3),
                }
            )
            print(rows[-1], flush=True)
            save(rows, args.out / f"items_at_once_{args.machine}.csv")


KEYS = ["model", "dtype", "chains", "items", "at_once"]


def save(rows: list[dict[str, Any]], out: Path) -> None:
    """Write rows beside those of other work that the file has."""
    table = pd.DataFrame(rows)
    if out.is_file():
        table = pd.concat([pd.read_csv(out), table]).drop_duplicates(KEYS, keep="last")
    an_item = table.seconds / table["items"]
    alone = an_item[table.at_once == 1].groupby(table.chains).first()
    table = table.drop(columns="ratio", errors="ignore")
    table.insert(7, "ratio", (table.chains.map(alone) / an_item).round(2))
    out.parent.mkdir(exist_ok=True)
    table.to_csv(out, index=False)


if __name__ == "__main__":
    main()
