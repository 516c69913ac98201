"""Benchmark of writing many texts where few have room at once, over plain and packed weights.

`python benchmarks/writing.py` writes `benchmarks/results/writing_<machine>.csv`: a row for each way
in which a model writes its answers to `--items` questions, each up to `--tokens`.

    grouped     `--places` texts at a time; a group waits for its slowest
    queued      as many places; a text begins in the place of one that has ended
    together    all at once, as where memory allows it

`python benchmarks/writing.py --steps` counts steps alone and writes
`benchmarks/results/writing_steps.csv`: a random model writes as many tokens as each of the texts of
SmolLM2-135M in `tests/experiments/sampled_outputs.jsonl.gz` has (at most 166).

`weights` are `plain`, or `packed` for oneDNN (`interp.packed`). `steps` are forwards of decoding,
`seconds` process CPU time (wall time on a GPU), prefill included, the median of `--repeats`, in
which all ways take turns; `ratio` is the median of those of the first way over plain weights by a
way's, in the same repeat. The texts of all ways are the same token for token, or nothing is
written.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from forest import timed
from tiny_configs import VOCABULARY, byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from faithscope import interp
from faithscope.experiments.data.traces import prompt_of
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp import lockstep
from faithscope.interp.generate import GenerateRequest, generate_all
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

TEXTS = Path(__file__).parents[1] / "tests" / "experiments" / "sampled_outputs.jsonl.gz"
WAYS = ("grouped", "queued", "together")
Texts = list[tuple[int, ...]]


@contextmanager
def counted() -> Iterator[list[int]]:
    """A context in which the rows of every step of decoding are noted."""
    rows: list[int] = []
    call = lockstep.Steps.__call__

    def noted(self: lockstep.Steps, tokens, left: int):
        rows.append(len(tokens))
        return call(self, tokens, left)

    lockstep.Steps.__call__ = noted
    try:
        yield rows
    finally:
        lockstep.Steps.__call__ = call


def written(
    model: Model,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    places: int,
    way: str,
    lengths: Sequence[int] | None = None,
) -> Texts:
    """The new tokens of every text: at most `tokens`, or as many as `lengths` says, which is not
    known before a text ends."""
    longest, usual = max(map(len, prompts)) + tokens, model.token_budget
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    parts = [order[i : i + places] for i in range(0, len(order), places)]
    ends = None if lengths is None else frozenset[int]()
    stops = [None] * len(prompts) if lengths is None else [_After(n) for n in lengths]
    out: dict[int, tuple[int, ...]] = {}
    if way == "queued":
        model.token_budget = longest * places
    try:
        for part in parts if way == "grouped" else [order]:
            asked = [
                GenerateRequest([prompts[i]], tokens, end_ids=ends, stop=stops[i]) for i in part
            ]
            texts = generate_all(model, asked)
            out |= {i: text.ids for i, (text,) in zip(part, texts, strict=True)}
    finally:
        model.token_budget = usual
    return [out[i] for i in range(len(prompts))]


class _After:
    """Ends a text after so many tokens."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens

    def __call__(self, _: str) -> bool:
        self._left -= 1
        return self._left <= 0


def measure(
    model: Model,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    places: int,
    repeats: int,
    ways: Sequence[str] = WAYS,
) -> pd.DataFrame:
    """A row per way and weights.

    Raises:
        AssertionError: the ways wrote different tokens.
    """
    packed = model.packed
    both = {"plain": None} | ({"packed": packed} if packed is not None else {})
    cases = [(weights, way) for way in ways for weights in both]
    seconds = {case: [] for case in cases}
    steps: dict[tuple[str, str], list[int]] = {}
    first: Texts = []
    for weights, way in cases:
        model.packed = both[weights]
        written(model, prompts[:2], 2, places, way)
    try:
        for _ in range(repeats):
            for weights, way in cases:
                model.packed = both[weights]
                with counted() as rows:
                    took, _, texts = timed(
                        model, lambda way=way: written(model, prompts, tokens, places, way)
                    )
                first = first or texts
                if texts != first:
                    raise AssertionError(f"{way}, {weights}: other tokens; no times are written")
                seconds[weights, way].append(took)
                steps[weights, way] = rows
                print(f"{way} {weights}: {took:.1f} s, {len(rows)} steps", flush=True)
    finally:
        model.packed = packed
    table = []
    for case in cases:
        ratios = [a / b for a, b in zip(seconds[cases[0]], seconds[case], strict=True)]
        row = {"prompts": len(prompts), "prompt_tokens": sum(map(len, prompts))}
        row |= {"new_tokens": sum(map(len, first)), "longest": max(map(len, first))}
        row |= {"places": places, "way": case[1], "weights": case[0], "steps": len(steps[case])}
        row |= {"rows_per_step": round(statistics.mean(steps[case] or [0]), 2)}
        row |= {"seconds": round(statistics.median(seconds[case]), 2)}
        row |= {"ratio": round(statistics.median(ratios), 3)}
        row |= {"ratio_least": round(min(ratios), 3), "ratio_greatest": round(max(ratios), 3)}
        table.append(row)
    return pd.DataFrame(table)


def steps_of_texts(place_counts: Sequence[int], most: int | None = None) -> pd.DataFrame:
    """Steps that the texts of each task take in groups and from a queue."""
    tokenizer = interp.load_language("bundled:smollm2-135m").tokenizer
    lengths: dict[str, list[int]] = {}
    with gzip.open(TEXTS, "rt") as lines:
        for row in map(json.loads, lines):
            if row["model"] == "smollm2-135m":
                n = len(tokenizer.encode(row["text"], add_special_tokens=False)) + 1
                lengths.setdefault(row["task"], []).append(n)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
    )
    model = wrap(LlamaForCausalLM(config), byte_tokenizer(), name="random", verify_model=False)
    table = []
    for task, all_of in lengths.items():
        of = all_of[:most]
        for places in place_counts:
            row = {"task": task, "texts": len(of), "tokens": sum(of), "longest": max(of)}
            row |= {"places": places}
            for way in ("grouped", "queued"):
                with counted() as rows:
                    written(model, [[1, 2]] * len(of), max(of), places, way, of)
                row[way] = len(rows)
            table.append(row | {"ratio": round(row["grouped"] / row["queued"], 3)})
            print(table[-1], flush=True)
    return pd.DataFrame(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--task", default="gsm8k")
    parser.add_argument("--path", help="of the questions; the hub's without")
    parser.add_argument("--items", type=int, default=32)
    parser.add_argument("--places", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=320, help="most of a text")
    parser.add_argument("--prompt-tokens", type=int, help="of every prompt, the first ones alone")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--steps", action="store_true", help="count steps of known texts alone")
    args = parser.parse_args()
    if args.steps:
        table = steps_of_texts([8, 16])
        table.to_csv(Path(__file__).parent / "results" / "writing_steps.csv", index=False)
        return
    model = interp.load(args.model, dtype=args.dtype, verify_model=False)
    asked = questions(args.task, args.items, path=args.path)
    prompts = [
        prompt_of(model, task, question).ids[: args.prompt_tokens] for task, question in asked
    ]
    ways = args.ways.split(",")
    table = measure(model, prompts, args.tokens, args.places, args.repeats, ways)
    table.insert(0, "model", args.model)
    table.insert(1, "dtype", model.dtype)
    out = Path(__file__).parent / "results" / f"writing_{args.machine}.csv"
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
