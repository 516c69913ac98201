"""Does a screen of steps pay on a device: `python benchmarks/screening.py`.

A chain of `--length` tokens in `--steps` steps is screened (`probes.screening`: an estimate of
every step's removal) and, in the same process, `--exact` of its steps drawn at random are removed
one by one. It writes `benchmarks/results/screening_<machine>.csv`: seconds (wall time on a GPU,
process time on a CPU), peak memory above what the model holds (of the process on a CPU), and
`worth`, the number of exact removals that take as long as the screen.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from forest import timed
from long_chains import asking, long_trace
from random_model import SIZES, random_llama
from tiny_configs import byte_tokenizer

from faithscope import interp
from faithscope.interp.loading import wrap
from faithscope.probes import PROBES
from faithscope.probes.screening import estimates

SCORED = {"framings": ["prefix"], "readings": ["scored"], "edits": ["remove"], "shuffles": 0}
"""Settings of SLRC under which steps are removed, and kept alone, and nothing else is done."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model's name; by default random weights")
    parser.add_argument("--size", choices=SIZES, default="8b", help="of the random model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--length", type=int, default=8_192, help="tokens of the chain")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--exact", type=int, default=20, help="steps that are removed")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    if args.model:
        model = interp.load(args.model, device=args.device)
    else:
        hf = random_llama(args.device, args.size)
        model = wrap(hf, byte_tokenizer(), name=f"random:llama-{args.size}")
    trace, settings = long_trace(model, args.length, args.steps), PROBES["slrc"].settings(**SCORED)
    drawn = trace.sampling(args.exact, 0)
    does: dict[str, Callable[[], Any]] = {
        "screen": lambda: estimates(model, trace, asking()),
        "exact": lambda: PROBES["slrc"].measure(model, drawn, asking(), settings),
    }
    args.out.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name, do in does.items():
        with torch.inference_mode():
            do()
            seconds, peak, _ = timed(model, do)
        rows.append(
            {
                "model": model.name,
                "dtype": model.dtype,
                "device": str(model.device),
                "tokens": len(trace.reasoning_ids),
                "steps": len(trace.counted_steps),
                "work": name,
                "of_steps": len(trace.counted_steps) if name == "screen" else args.exact,
                "seconds": round(seconds, 3),
                "peak_mb": round(peak),
                "run": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
            }
        )
        print(rows[-1], flush=True)
        table = pd.DataFrame(rows)
        if len(rows) == len(does):
            table["worth"] = round(rows[0]["seconds"] / (rows[1]["seconds"] / args.exact), 1)
        table.to_csv(args.out / f"screening_{args.machine}.csv", index=False)


if __name__ == "__main__":
    main()
