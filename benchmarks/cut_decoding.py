"""Benchmark of texts written under edits against plain lockstep decoding of the same prompts.

`python benchmarks/cut_decoding.py` writes `benchmarks/results/cut_decoding_<machine>.csv`, a row
per way of writing. All ways continue the same prompts in one lockstep and write equally many
tokens, since no token ends a text:

    plain      without edits
    cut        no written token attends to a third of its own prompt, another one in every second
               text
    steered    a direction is added after the middle layer to every written token, in another dose
               for each text
    both       cut and steered

Ways take turns within a repeat, so that a machine that does other work slows them alike; a ratio is
that of one repeat, and the median, the least and the greatest of the repeats are written. Seconds
are process CPU time (wall time on a GPU). Cut and steered decoding are to take at most 1.5 times as
long as plain decoding.
"""

from __future__ import annotations

import argparse
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import torch
from forest import timed

from faithscope import interp, questions
from faithscope.interp.edits import Edit, Knockout, Steer
from faithscope.interp.model import Model

BOUND = 1.5
"""Largest ratio that is allowed."""
Edits = Sequence[Sequence[Edit]]


def ways(model: Model, prompts: Sequence[Sequence[int]]) -> dict[str, Edits]:
    """Way -> the edits of each prompt."""
    width = model.hf.config.get_text_config().hidden_size
    direction = torch.randn(width, generator=torch.Generator().manual_seed(0)) / width**0.5
    cuts, steers = [], []
    for i, ids in enumerate(prompts):
        n, third = len(ids), len(ids) // 3
        cuts.append(Knockout((n, None), (third * (i % 2), third * (i % 2) + third)))
        middle = model.n_layers // 2
        steers.append(Steer("residual", middle, direction, 20.0 * (i + 1), (n, None)))
    return {
        "plain": [()] * len(prompts),
        "cut": [(cut,) for cut in cuts],
        "steered": [(steer,) for steer in steers],
        "both": list(zip(cuts, steers, strict=True)),
    }


def measure(
    model: Model, prompts: Sequence[Sequence[int]], new_tokens: int, repeats: int
) -> pd.DataFrame:
    """A row per way of writing, with its time and the ratio to plain decoding."""
    every = ways(model, prompts)
    seconds: dict[str, list[float]] = {way: [] for way in every}
    peaks: Mapping[str, float] = dict.fromkeys(every, 0.0)
    texts = {}
    for _ in range(repeats):
        for way, edits in every.items():
            took, peak, written = timed(
                model,
                lambda edits=edits: model.generate(
                    prompts, new_tokens, edits=edits, end_ids=frozenset()
                ),
            )
            seconds[way].append(took)
            peaks = {**peaks, way: max(peaks[way], peak)}
            texts[way] = [text.ids for text in written]
    if any(len(ids) != new_tokens for of_way in texts.values() for ids in of_way):
        raise AssertionError("a text ended early; no times are written")
    if any(texts[way] == texts["plain"] for way in every if way != "plain"):
        raise AssertionError("an edit changed no text; no times are written")
    rows = []
    for way, of_way in seconds.items():
        ratios = [a / b for a, b in zip(of_way, seconds["plain"], strict=True)]
        rows.append(
            {
                "model": model.name,
                "dtype": model.dtype,
                "device": model.device.type,
                "prompts": len(prompts),
                "prompt_tokens": sum(map(len, prompts)),
                "new_tokens": new_tokens,
                "repeats": repeats,
                "way": way,
                "seconds": min(of_way),
                "ratio_to_plain": statistics.median(ratios),
                "ratio_least": min(ratios),
                "ratio_greatest": max(ratios),
                "peak_mb": peaks[way],
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--task", default="sequential_math")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48, help="written after each prompt")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    model = interp.load(args.model, dtype=args.dtype)
    asked = questions(args.task, args.prompts)
    prompts = [model.prompt(task.cot_prompt(question)).ids for task, question in asked]
    table = measure(model, prompts, args.tokens, args.repeats)
    out = Path(__file__).parent / "results" / f"cut_decoding_{args.machine}.csv"
    table.round(6).to_csv(out, index=False)
    print(table.round(4).to_string(index=False))
    over = table[table["ratio_to_plain"] > BOUND]
    if len(over):
        raise SystemExit(f"more than {BOUND} times plain decoding: {', '.join(over['way'])}")


if __name__ == "__main__":
    main()
