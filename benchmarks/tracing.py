"""Benchmark of answer tracing at every token: the packed forest against a loop of forwards.

`python benchmarks/tracing.py` writes `benchmarks/results/tracing_<machine>.csv`. A reasoning
of random tokens is cut after every token, a cue put after it and each of the options, of two
tokens each, scored. The naive loop runs one forward per cut and option; it is timed on evenly
spaced cuts (`sampled_cuts`) and its seconds are scaled by tokens to all of them. `limit` is
naive tokens / trie tokens. Seconds are process CPU time (wall time on a GPU).
"""

from __future__ import annotations

import argparse
import platform
import random
from pathlib import Path

import pandas as pd
import torch
from forest import timed

from faithscope import interp
from faithscope.interp.forest import Forest
from faithscope.interp.model import Model

PROMPT, CUE, OPTIONS, LABEL = 100, 8, 4, 2


@torch.inference_mode()
def naive(model: Model, sequences: list[list[int]]) -> torch.Tensor:
    """Summed log-probs of the last `LABEL` tokens of each sequence, by one forward each."""
    found = []
    for ids in sequences:
        logits = model.hf(
            torch.tensor([ids[:-1]], device=model.device), use_cache=False, logits_to_keep=LABEL
        ).logits[0]
        log_probs = logits.float().log_softmax(-1)
        found.append(sum(log_probs[i, t] for i, t in enumerate(ids[-LABEL:])))
    return torch.stack(found)  # pyright: ignore


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--tokens", type=int, default=500, help="of reasoning")
    parser.add_argument("--cuts", type=int, default=16, help="cuts that the naive loop runs")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    model = interp.load(args.model, dtype=args.dtype)
    draw = random.Random(0)
    vocabulary = min(model.hf.config.vocab_size, 40_000)

    def ids(n: int) -> list[int]:
        return [draw.randrange(100, vocabulary) for _ in range(n)]

    prompt, reasoning, cue = ids(PROMPT), ids(args.tokens), ids(CUE)
    labels = [ids(LABEL) for _ in range(OPTIONS)]
    at = list(range(args.tokens + 1))
    prefixes = [[*prompt, *reasoning[:i], *cue] for i in at]
    whole = [[*p, *label] for p in prefixes for label in labels]
    stride = max(1, args.tokens // max(1, args.cuts - 1))
    sampled = [i for i in at if i % stride == 0]
    asked = [[*prefixes[i], *label] for i in sampled for label in labels]

    slow, slow_mb, expected = timed(model, lambda: naive(model, asked))
    fast, fast_mb, found = timed(
        model,
        lambda: torch.tensor([a.log_probs for a in model.ask(prefixes, [labels] * len(prefixes))]),
    )
    gap = (found[sampled].flatten() - expected.cpu()).abs().max()
    every = slow * sum(map(len, whole)) / sum(map(len, asked))
    limit = sum(map(len, whole)) / len(Forest.of([s[:-1] for s in whole]))
    rows = [
        {"method": "naive", "seconds": every, "ratio_to_naive": 1.0, "peak_mb": slow_mb},
        {"method": "forest", "seconds": fast, "ratio_to_naive": every / fast, "peak_mb": fast_mb},
    ]
    about = {"model": args.model, "dtype": model.dtype, "tokens": args.tokens, "options": OPTIONS}
    table = pd.DataFrame([about | row for row in rows])
    table["limit"] = limit
    table["share_of_limit"] = table["ratio_to_naive"] / limit
    table["sampled_cuts"] = [len(sampled), len(at)]
    table["max_log_prob_gap"] = float(gap)
    out = Path(__file__).parent / "results" / f"tracing_{args.machine}.csv"
    table.round(6).to_csv(out, index=False)
    print(table.round(4).to_string(index=False))


if __name__ == "__main__":
    main()
