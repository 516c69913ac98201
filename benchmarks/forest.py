"""Benchmark of the full probe set of one item: packed forest against the usual ways.

`python benchmarks/forest.py` writes `benchmarks/results/forest_<machine>.csv`. All methods of one
row group run in one process, in turn, so their ratios hold where absolute seconds drift. `seconds`
is process CPU time (wall time on a GPU), the median of the repeats. Rows that are measured again
replace the old ones and leave the others; `run` says which rows were measured together, each
against the naive loop of its own run (empty in rows of older versions).

Methods:
    naive       every probe a forward of its own, head at asked positions only
    padded      probes of similar length together, left-padded
    prefix_kv   the question's keys and values once, then every probe's rest by itself
    depth_first one cache, cropped back to where the next probe branches off (depth_first.py)
    dense       one forward over the trie under an N x N mask
    forest      the packed forest

vLLM with prefix caching, and ways that decode: `peers.py`.

`limit` is naive tokens ÷ trie tokens, the speed-up of a forest if every token cost the same. But a
token attends to all before it, and sharing removes the early ones, whose contexts are short.
`context_ratio` says how much longer the contexts of the remaining tokens are on average.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import platform
import random
import resource
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pandas as pd
import torch
from depth_first import depth_first
from tqdm import tqdm

from faithscope import interp
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.model import Model

T = TypeVar("T")
KEYS = ["model", "dtype", "T", "probes", "method"]
QUESTION, STEP, SUFFIX = 100, 25, 10


def probe_set(n_steps: int, vocabulary: int, seed: int = 0) -> dict[str, list[list[int]]]:
    """Token sequences of one item: question 100 tokens, steps of 25, answer suffix 10."""
    draw = random.Random(seed)

    def ids(n: int) -> list[int]:
        return [draw.randrange(100, vocabulary) for _ in range(n)]

    question, suffix = ids(QUESTION), ids(SUFFIX)
    steps = [ids(STEP) for _ in range(n_steps)]
    orders = [draw.sample(range(n_steps), n_steps) for _ in range(3)]

    def told(kept: list[int]) -> list[int]:
        return question + [t for i in kept for t in steps[i]] + suffix

    every = list(range(n_steps))
    early = [told(every[:i]) for i in range(n_steps + 1)]
    necessity = [told([i for i in every if i != t]) for t in every]
    alone = [told([t]) for t in every]
    return {
        "early_answers": early,
        "necessity": [told(every), *necessity],
        "full": early + necessity + alone + [told(o) for o in orders],
    }


@torch.inference_mode()
def naive(model: Model, sequences: list[list[int]]) -> torch.Tensor:
    return torch.stack(
        [
            model.hf(
                torch.tensor([s], device=model.device), use_cache=False, logits_to_keep=1
            ).logits[0, -1]
            for s in sequences
        ]
    )


@torch.inference_mode()
def padded(model: Model, sequences: list[list[int]], budget: int = 4096) -> torch.Tensor:
    order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
    out: dict[int, torch.Tensor] = {}
    while order:
        size = max(1, min(len(order), budget // len(sequences[order[-1]])))
        rows, order = order[-size:], order[:-size]
        width = max(len(sequences[i]) for i in rows)
        ids = torch.tensor([[0] * (width - len(sequences[i])) + sequences[i] for i in rows])
        seen = torch.tensor(
            [[0] * (width - len(sequences[i])) + [1] * len(sequences[i]) for i in rows]
        )
        logits = model.hf(
            ids.to(model.device),
            attention_mask=seen.to(model.device),
            position_ids=(seen.cumsum(-1) - 1).clamp(min=0).to(model.device),
            use_cache=False,
            logits_to_keep=1,
        ).logits[:, -1]
        out.update(zip(rows, logits, strict=True))
    return torch.stack([out[i] for i in range(len(sequences))])


@torch.inference_mode()
def prefix_kv(model: Model, sequences: list[list[int]]) -> torch.Tensor:
    shared = sequences[0][:QUESTION]
    past = model.hf(torch.tensor([shared], device=model.device), use_cache=True).past_key_values
    return torch.stack(
        [
            model.hf(
                torch.tensor([s[QUESTION:]], device=model.device),
                past_key_values=copy.deepcopy(past),
                logits_to_keep=1,
            ).logits[0, -1]
            for s in sequences
        ]
    )


def packed(execution: interp.Execution) -> Callable[[Model, list[list[int]]], torch.Tensor]:
    def run(model: Model, sequences: list[list[int]]) -> torch.Tensor:
        found = model.run([Branch(tuple(s)) for s in sequences], execution=execution)
        return torch.stack([b.logits[0] for b in found.branches])

    return run


METHODS: dict[str, Callable[[Model, list[list[int]]], torch.Tensor]] = {
    "naive": naive,
    "padded": padded,
    "prefix_kv": prefix_kv,
    "depth_first": depth_first,
    "dense": packed("dense"),
    "forest": packed("packed"),
}


def timed(model: Model, work: Callable[[], T]) -> tuple[float, float, T]:
    """Seconds, peak MB above the memory held before, and the result of `work`."""
    if model.device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held, clock = torch.cuda.memory_allocated(), time.perf_counter
    else:
        held, clock = 0, time.process_time
        _reset_peak()
    start = clock()
    out = work()
    if model.device.type == "cuda":
        torch.cuda.synchronize()
        peak = (torch.cuda.max_memory_allocated() - held) / 2**20
    else:
        peak = _peak_mb()
    return clock() - start, peak, out


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # not on this system: the peak is then the process's
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    """Peak resident size in MB since the last reset, if the system tells."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(
    model: Model, depths: list[int], repeats: int, skip: set[str], named: set[str]
) -> pd.DataFrame:
    rows = []
    for n_steps in depths:
        sets = probe_set(n_steps, min(model.hf.config.vocab_size, 40_000))
        sets = {name: sequences for name, sequences in sets.items() if name in named}
        for probes, sequences in sets.items():
            trie = Forest.of(sequences)
            contexts = [at + 1 for s in sequences for at in range(len(s))]
            longer = statistics.fmean(int(d) + 1 for d in trie.depth) / statistics.fmean(contexts)
            methods = {
                name: work
                for name, work in METHODS.items()
                if name not in skip and not (name == "dense" and n_steps > 20)
            }
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
            outs: dict[str, torch.Tensor] = {}
            for _ in tqdm(range(repeats), desc=f"T={n_steps} {probes}", disable=None):
                for name, work in methods.items():
                    seconds, peak, outs[name] = timed(
                        model, lambda w=work, x=sequences: w(model, x)
                    )
                    runs[name].append((seconds, peak))
            base = outs["naive"].float()
            for name in methods:
                ratios = [n[0] / r[0] for n, r in zip(runs["naive"], runs[name], strict=True)]
                ratio = statistics.median(ratios)
                rows.append(
                    {
                        "T": n_steps,
                        "probes": probes,
                        "n_probes": len(sequences),
                        "method": name,
                        "seconds": round(statistics.median(s for s, _ in runs[name]), 3),
                        "ratio_to_naive": round(ratio, 3),
                        "limit": round(trie.limit, 3),
                        "share_of_limit": round(ratio / trie.limit, 3),
                        "peak_mb": round(max(p for _, p in runs[name])),
                        "max_logit_gap": float((outs[name].float() - base).abs().max()),
                        "same_argmax": bool(
                            (outs[name].argmax(-1) == base.argmax(-1)).all().item()
                        ),
                        "trie_tokens": len(trie),
                        "context_ratio": round(longer, 3),
                    }
                )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--steps", default="5,10,20,40")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip", default="", help="methods to leave out, comma-separated")
    parser.add_argument("--probes", default="early_answers,necessity,full")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--chunk", type=int, help="most tokens in one forward")
    args = parser.parse_args()
    model = interp.load(args.model, dtype=args.dtype)
    if args.chunk:
        model.chunk = args.chunk
    depths = [int(t) for t in args.steps.split(",")]
    skip, named = (set(names.split(",")) for names in (args.skip, args.probes))
    table = measure(model, depths, args.repeats, skip, named)
    table.insert(0, "model", args.model)
    table.insert(1, "dtype", model.dtype)
    table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    out = Path(__file__).parent / "results" / f"forest_{args.machine}.csv"
    out.parent.mkdir(exist_ok=True)
    if out.is_file():
        table = pd.concat([pd.read_csv(out), table])
        table = table.drop_duplicates(KEYS, keep="last")
    rank = {name: i for i, name in enumerate(("early_answers", "necessity", "full", *METHODS))}
    table = table.sort_values(
        KEYS, key=lambda c: c.map(rank) if c.name in ("probes", "method") else c
    )
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
