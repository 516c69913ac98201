"""Benchmark of the engine on a GPU, at the size of an 8B Llama: `python benchmarks/gpu.py`.

It writes `benchmarks/results/gpu_<machine>.csv`, a row as soon as it is measured: one table for
whoever has a card. Without `--model` the weights are random, of `random_model.py`'s shape, and made
on the device. With `--device cpu` it only shows that it runs: kernels and memory are not counted.

Work:
    slrc set        a question, a chain in T steps, and its early answers, removals, isolations and
                    three shuffles (`forest.probe_set`), at growing lengths of the chain
    early answers   the early answers alone
    rows            attention rows of 20 tokens of one chain, against a plain forward
    decoding        a step of greedy decoding of the removals' continuations
    tracing         four labels of two tokens after every token of a chain

Methods of the sets: `naive` (a forward for each probe), `padded` (batches of similar length),
`depth_first` (one cache, cropped and continued), and the packed forest: `runs` (run by run), `mask`
(one call a layer under an additive mask), `flex` (FlexAttention) and `packed` (as users get it).

Columns:
    seconds             median wall time of the repeats, after one run that is not counted; of one
                        repeat where that run took over two seconds
    ratio               seconds of `padded` (of `plain` for rows and decoding) divided by these
    tokens              tokens that go through the model
    share_of_ceiling    2 x weights x tokens / seconds over the rate of a matrix product of
                        8,192 x 8,192 x 8,192, measured in the same run; attention counts as nothing
    kernels             kernels and copies that the device ran, by its own count
    peak_mb             peak memory above what the model holds
    max_logit_gap       greatest difference from `naive`, of logits
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import torch

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import forest
from depth_first import depth_first
from launches import plain_decoding, plain_forward
from random_model import SIZES, random_llama
from tiny_configs import byte_tokenizer

from faithscope import interp
from faithscope.interp import execute
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interp.prefill import Way

Work = Callable[[], Any]
KEYS = ["model", "dtype", "device", "work", "shape", "method"]
NEW = 96
"""Tokens that are decoded."""


def ways(sequences: list[list[int]]) -> dict[str, Callable[[Model], torch.Tensor]]:
    """The methods of a set of probes: (B, V) logits at the end of each."""
    return {
        "naive": lambda m: forest.naive(m, sequences),
        "padded": lambda m: forest.padded(m, sequences, 16_384),
        "depth_first": lambda m: depth_first(m, sequences),
        "runs": lambda m: in_way(m, sequences, "runs"),
        "mask": lambda m: in_way(m, sequences, "mask"),
        "flex": lambda m: in_way(m, sequences, "flex"),
        "packed": lambda m: in_way(m, sequences, None),
    }


def in_way(model: Model, sequences: list[list[int]], way: Way | None) -> torch.Tensor:
    """Logits at the end of each sequence, from one pack whose forwards attend in one way."""
    pack = Forest.of(sequences)
    found: dict[int, torch.Tensor] = {}
    ends = [int(path[-1]) for path in pack.paths]
    execute.prefill(
        model,
        pack,
        ends,
        lambda here, logits: found.update(zip(here, logits, strict=True)),
        chunk=model.chunk,
        way=way,
    )
    return torch.stack([found[n] for n in ends])


def timed(work: Work, repeats: int) -> tuple[float, float, Any]:
    """Median seconds, peak MB above the memory held before, and the result."""
    start, seconds = time.perf_counter(), []
    on_gpu = torch.cuda.is_available()
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    out = work()
    wait()
    repeats = 1 if time.perf_counter() - start > 2 else repeats
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated() if on_gpu else 0
    for _ in range(repeats):
        del out
        start = time.perf_counter()
        out = work()
        wait()
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() if on_gpu else 0
    return statistics.median(seconds), (peak - held) / 2**20, out


def ceiling(device: torch.device, size: int = 8_192) -> float:
    """Operations a second of a bfloat16 matrix product, on random numbers."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds, _, _ = timed(lambda: [a @ b for _ in range(20)], 3)
    return 20 * 2 * size**3 / seconds


class Bench:
    """Measures work on one model; prints and stores a row as soon as it is measured."""

    def __init__(self, model: Model, repeats: int, out: Path) -> None:
        self.model, self.repeats, self.out = model, repeats, out
        on_gpu = model.device.type == "cuda"
        self.device = torch.cuda.get_device_name() if on_gpu else platform.processor() or "CPU"
        self.counts = on_gpu
        self.rate = ceiling(model.device, 8_192 if on_gpu else 256)
        layers = sum(p.numel() for layer in model.structure.layers for p in layer.parameters())
        self.flops_of_a_token = 2 * layers
        self.rows: list[dict[str, Any]] = []
        print(f"{self.rate / 1e12:.0f} TFLOP/s in a matrix product", flush=True)

    def add(
        self, work: str, shape: str, method: str, tokens: int, do: Work, *, count: bool = True
    ) -> Any:
        seconds, peak, out = timed(do, self.repeats)
        count = count and self.counts and seconds < 1
        kernels = sum(e.count for e in kernels_of(do)) if count else None
        share = self.flops_of_a_token * tokens / seconds / self.rate
        row: dict[str, Any] = {
            "work": work,
            "shape": shape,
            "method": method,
            "seconds": round(seconds, 4),
            "tokens": tokens,
            "share_of_ceiling": round(share, 3),
            "kernels": kernels,
            "peak_mb": round(peak),
        }
        self.rows.append(row)
        print(*row.values(), sep="  ", flush=True)
        self.save()
        return out

    def save(self) -> None:
        """Write the rows so far; rows of other work stay in the file."""
        table = self.table()
        about = {"model": self.model.name, "dtype": self.model.dtype, "device": self.device}
        for i, (name, value) in enumerate(about.items()):
            table.insert(i, name, value)
        table["torch"] = torch.__version__
        table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        if self.out.is_file():
            table = pd.concat([pd.read_csv(self.out), table]).drop_duplicates(KEYS, keep="last")
        self.out.parent.mkdir(exist_ok=True)
        table.to_csv(self.out, index=False)

    def table(self) -> pd.DataFrame:
        table = pd.DataFrame(self.rows)
        bases = table[table.method.isin(["padded", "plain"])]
        base = bases.set_index(["work", "shape"]).seconds
        keys = list(zip(table.work, table["shape"], strict=True))
        ratio = [base.get(key, float("nan")) for key in keys] / table.seconds
        table.insert(4, "ratio", ratio.round(2))
        return table


def sets(bench: Bench, shapes: Sequence[tuple[int, int]], skip: set[str]) -> None:
    """Probe sets of chains of (T steps, tokens a step)."""
    for n_steps, step in shapes:
        forest.STEP = step
        made = forest.probe_set(n_steps, 40_000)
        for work, name in (("slrc set", "full"), ("early answers", "early_answers")):
            sequences = made[name]
            pack = Forest.of(sequences)
            shape = f"T={n_steps}, {forest.QUESTION} + {n_steps * step} tokens"
            outs: dict[str, torch.Tensor] = {}
            for method, do in ways(sequences).items():
                if method in skip or (method == "mask" and len(pack) > 16_384):
                    continue
                shared = method not in ("naive", "padded")
                tokens = len(pack) if shared else pack.naive_tokens
                try:
                    outs[method] = bench.add(
                        work,
                        shape,
                        method,
                        tokens,
                        lambda d=do: d(bench.model),
                        count=method not in ("naive", "depth_first"),
                    )
                except Exception as error:
                    print(f"{work} {shape} {method}: {type(error).__name__}: {error}"[:600])
                    if bench.counts:
                        torch.cuda.empty_cache()
                    continue
                if "naive" in outs:
                    gap = (outs[method].float() - outs["naive"].float()).abs().max()
                    bench.rows[-1]["max_logit_gap"] = round(float(gap), 3)
                    bench.save()
            outs.clear()


def rows(bench: Bench, lengths: Sequence[int]) -> None:
    """Attention rows and residual streams of 20 tokens, and a plain forward."""
    model = bench.model
    for length in lengths:
        forest.STEP = length
        ids = forest.probe_set(1, 40_000)["full"][1][:length]
        at = tuple(length * (i + 1) // 20 - 1 for i in range(20))
        does: dict[str, Work] = {
            "plain": lambda ids=ids: plain_forward(model, ids),
            "pack": lambda ids=ids: model.run([Branch(tuple(ids))]),
            "rows": lambda ids=ids, at=at: model.run([Branch(tuple(ids), at)], rows=True),
            "residuals": lambda ids=ids, at=at: model.run(
                [Branch(tuple(ids), at)], residuals=True, logits=False
            ),
        }
        for method, do in does.items():
            bench.add("rows", f"{length} tokens", method, length, do)


def decoding(bench: Bench, shapes: Sequence[tuple[int, int]]) -> None:
    """Steps of greedy decoding after the removals; seconds are those of `NEW` tokens."""
    model, ends = bench.model, frozenset({-1})
    for n_steps, step in shapes:
        forest.STEP = step
        prompts = forest.probe_set(n_steps, 40_000)["necessity"]
        shape = f"T={n_steps}, {forest.QUESTION} + {n_steps * step} tokens, {len(prompts)} rows"

        def ours(n: int, prompts: list[list[int]] = prompts) -> Any:
            return model.generate(prompts, n, end_ids=ends)

        def plain(n: int, prompts: list[list[int]] = prompts) -> Any:
            return plain_decoding(model, prompts, n)

        for method, do in {"plain": plain, "packed": ours}.items():
            first, _, _ = timed(lambda do=do: do(1), bench.repeats)
            bench.add(
                "decoding",
                shape,
                method,
                NEW * len(prompts),
                lambda do=do: do(NEW + 1),
                count=False,
            )
            # less prefill
            bench.rows[-1]["seconds"] = round(bench.rows[-1]["seconds"] - first, 4)
            bench.save()
            print(f"    {bench.rows[-1]['seconds'] / NEW * 1000:.1f} ms a step", flush=True)


def tracing(bench: Bench, lengths: Sequence[int]) -> None:
    """Four labels after every token of a chain."""
    for length in lengths:
        forest.STEP = length
        ids = forest.probe_set(1, 40_000)["early_answers"][1]
        labels = [[201 + i, 301 + i] for i in range(4)]
        prefixes = [ids[: forest.QUESTION + i] + ids[-forest.SUFFIX :] for i in range(length + 1)]
        tokens = len(Forest.of([p + label[:-1] for p in prefixes for label in labels]))
        bench.add(
            "tracing",
            f"{length} tokens",
            "packed",
            tokens,
            lambda p=prefixes, x=labels: bench.model.ask(p, [x] * len(p)),
        )


def kernels_of(do: Work) -> list[Any]:
    """What the device ran in one call, added up by kernel."""
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as seen:
        do()
        torch.cuda.synchronize()
    return [e for e in seen.key_averages() if e.device_type.name == "CUDA"]


def profile(do: Work) -> Iterator[str]:
    """The kernels that take the most time of one call, and the number of all."""
    do()
    kernels = kernels_of(do)
    yield f"{sum(e.count for e in kernels)} kernels"
    for e in sorted(kernels, key=lambda e: -e.self_device_time_total)[:12]:
        yield f"{e.self_device_time_total / 1e3:9.1f} ms {e.count:6d} {e.key[:110]}"


def pairs(text: str) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in (pair.split("x") for pair in text.split(",") if pair)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model's name; by default random weights")
    parser.add_argument("--size", choices=SIZES, default="8b", help="of the random model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quantize", choices=("8bit", "4bit"), help="of --model")
    parser.add_argument("--sets", default="10x25,20x25,10x160,10x640", help="steps x tokens each")
    parser.add_argument("--question", type=int, default=100, help="tokens of the question")
    parser.add_argument("--rows", default="2048,8192,16384", help="lengths of chains")
    parser.add_argument("--decoding", default="20x25,10x640", help="steps x tokens each")
    parser.add_argument("--tracing", default="500", help="lengths of chains")
    parser.add_argument("--skip", default="", help="methods to leave out, comma-separated")
    parser.add_argument("--profile", default="", help="steps x tokens whose packs are profiled")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    forest.QUESTION = args.question
    start = time.perf_counter()
    if args.model:
        model = interp.load(args.model, device=args.device, quantize=args.quantize)
        if args.quantize:
            model.name += f" {args.quantize}"
    else:
        hf = random_llama(args.device, args.size)
        model = wrap(hf, byte_tokenizer(), name=f"random:llama-{args.size}")
    print(*model.checks, f"ready in {time.perf_counter() - start:.0f} s", sep="\n", flush=True)
    bench = Bench(model, args.repeats, args.out / f"gpu_{args.machine}.csv")
    lengths = [[int(n) for n in given.split(",") if n] for given in (args.rows, args.tracing)]
    sets(bench, pairs(args.sets), set(args.skip.split(",")))
    decoding(bench, pairs(args.decoding))
    rows(bench, lengths[0])
    tracing(bench, lengths[1])
    for n_steps, step in pairs(args.profile):
        forest.STEP = step
        sequences = forest.probe_set(n_steps, 40_000)["full"]
        for way in ("mask", "flex"):
            print(f"profile of {way}, T={n_steps} x {step}")
            print(*profile(lambda s=sequences, w=way: in_way(model, s, w)), sep="\n")
    if bench.rows:
        print(bench.table().to_string(index=False))


if __name__ == "__main__":
    main()
