"""Benchmark of reading a model's inside, compared with a plain forward and with tools that keep
all.

`python benchmarks/attention_rows.py` writes `benchmarks/results/attention_<machine>.csv`, for
growing lengths. Each method runs in a process of its own, so that its peak memory is its own;
seconds are medians of the repeats (process CPU time; wall on a GPU), `ratio_to_plain` divides
them, `memory_ratio` is the peak over that of `inside`.

Methods:
    plain               a plain sdpa forward
    rows                the same with the last token's attention rows read
    inside              rows and residual stream of every layer at 20 tokens, and the lens at
                        the last: what this repository's probes read of a trace
    eager_patterns      eager attention with `output_attentions` and `output_hidden_states`
    transformer_lens    TransformerLens' `run_with_cache`, everything that it caches
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from forest import timed
from tqdm import tqdm

from faithscope import interp
from faithscope.interp.forest import Branch
from faithscope.interp.loading import Dtype

METHODS = ("plain", "rows", "inside", "eager_patterns", "transformer_lens")
ASKED = 20


@torch.inference_mode()
def once(method: str, model: interp.Model, ids: list[int], bridge: Any = None) -> torch.Tensor:
    if method == "rows":
        read = model.run([Branch(tuple(ids))], rows=True).branches[0]
        return read.rows[0]
    if method == "inside":
        at = tuple(len(ids) * (i + 1) // ASKED - 1 for i in range(ASKED))
        read = model.run([Branch(tuple(ids), at)], rows=True, residuals=True).branches[0]
        assert read.residuals is not None
        return model.lens(read.residuals[-1])
    inputs = torch.tensor([ids], device=model.device)
    if method == "transformer_lens":
        logits, cache = bridge.run_with_cache(inputs)
        assert len(cache) > model.n_layers
        return logits[0, -1]
    if method == "plain":
        return model.hf(inputs, use_cache=False, logits_to_keep=1).logits
    out = model.hf(
        inputs,
        use_cache=False,
        logits_to_keep=1,
        output_attentions=True,
        output_hidden_states=True,
    )
    return torch.stack([a[0, :, -1] for a in out.attentions])


def worker(method: str, name: str, dtype: Dtype, length: int, repeats: int) -> None:
    model = interp.load(name, dtype=dtype, verify_model=False)
    if method in ("plain", "eager_patterns"):
        model.hf.set_attn_implementation("eager" if method == "eager_patterns" else "sdpa")
    model.chunk = length
    draw = random.Random(0)
    ids = [draw.randrange(100, 40_000) for _ in range(length)]
    bridge = model.to_transformer_lens() if method == "transformer_lens" else None
    once(method, model, ids[:64], bridge)
    before = timed(model, lambda: torch.zeros(1))[1]
    runs = [timed(model, lambda: once(method, model, ids, bridge)) for _ in range(repeats)]
    out = {"seconds": [s for s, _, _ in runs], "peak_mb": max(p for _, p, _ in runs) - before}
    print(json.dumps(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--lengths", default="500,1000,2000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--worker", nargs=2, metavar=("METHOD", "LENGTH"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker[0], args.model, args.dtype, int(args.worker[1]), args.repeats)
        return
    rows = []
    for length in (int(x) for x in args.lengths.split(",")):
        found: dict[str, dict] = {}
        for method in tqdm(METHODS, desc=f"{length} tokens", disable=None):
            command = [sys.executable, __file__, "--model", args.model, "--dtype", args.dtype]
            command += ["--repeats", str(args.repeats), "--worker", method, str(length)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[method] = json.loads(done.stdout.splitlines()[-1])
        plain = statistics.median(found["plain"]["seconds"])
        for method in METHODS:
            seconds = statistics.median(found[method]["seconds"])
            rows.append(
                {
                    "model": args.model,
                    "tokens": length,
                    "method": method,
                    "seconds": round(seconds, 3),
                    "ratio_to_plain": round(seconds / plain, 3),
                    "peak_mb": round(found[method]["peak_mb"]),
                }
            )
    table = pd.DataFrame(rows)
    of_inside = {r["tokens"]: r["peak_mb"] for r in rows if r["method"] == "inside"}
    table["memory_ratio"] = [round(r["peak_mb"] / of_inside[r["tokens"]], 2) for r in rows]
    out = Path(__file__).parent / "results" / f"attention_{args.machine}.csv"
    out.parent.mkdir(exist_ok=True)
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
