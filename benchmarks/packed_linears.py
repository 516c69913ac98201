"""Benchmark of linear layers whose weights are packed beforehand for oneDNN, on a CPU in float32.

`python benchmarks/packed_linears.py` writes `benchmarks/results/packed_linears_<machine>.csv`: a
row per shape of layer and number of rows (tokens), then one per number of rows for a forward of the
whole model. `ratio` is process CPU time of PyTorch's own `linear` by that with packed weights, the
two taken in turn; of a layer the best of five, of the model the median of six.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from faithscope import interp

COPIES = 8
"""Number of layers of one shape that are run in turn, so that their weights leave the caches."""


def packed(weight: Tensor, bias: Tensor | None, rows: int) -> Callable[[Tensor], Tensor]:
    whole = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, whole, bias, "none", [], "")


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(layers: list[Callable[[Tensor], Tensor]], x: Tensor, repeats: int) -> None:
    for _ in range(repeats):
        for layer in layers:
            layer(x)


def of_layers(shapes: list[tuple[int, int]], counts: list[int]) -> list[dict[str, Any]]:
    table = []
    for rows in counts:
        for outputs, inputs in shapes:
            x = torch.randn(1, rows, inputs)
            copies = COPIES if outputs * inputs < 1e7 else 1
            weights = [torch.randn(outputs, inputs) / inputs**0.5 for _ in range(copies)]
            plain = [lambda x, w=w: nn.functional.linear(x, w) for w in weights]
            ways = {"plain": plain, "packed": [packed(w, None, rows) for w in weights]}
            repeats = max(1, int(2e8 / (rows * outputs * inputs * copies)))
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(5):
                for name, layers in ways.items():
                    took = seconds(partial(in_turn, layers, x, repeats))
                    best[name] = min(best[name], took / repeats / copies)
            gap = float((ways["plain"][0](x) - ways["packed"][0](x)).abs().max())
            row = {"what": "layer", "rows": rows, "outputs": outputs, "inputs": inputs}
            speeds = {f"{n}_gflops": 2e-9 * rows * outputs * inputs / s for n, s in best.items()}
            table.append(row | speeds | {"ratio": best["plain"] / best["packed"], "max_gap": gap})
            print(table[-1], flush=True)
    return table


def of_model(name: str, counts: list[int]) -> list[dict[str, Any]]:
    model = interp.load(name, dtype="float32", verify_model=False)
    layers = [m for m in model.hf.modules() if isinstance(m, nn.Linear)]
    table = []
    for rows in counts:
        ids = torch.randint(100, 40_000, (1, rows))
        ready = [packed(layer.weight, layer.bias, rows) for layer in layers]
        took: dict[str, list[float]] = {"plain": [], "packed": []}
        logits: dict[str, Tensor] = {}

        def forward(way: str, ids: Tensor = ids, logits: dict[str, Tensor] = logits) -> None:
            logits[way] = model.hf(ids, use_cache=False, logits_to_keep=8).logits

        for _ in range(6):
            for way in took:
                for layer, forward_packed in zip(layers, ready, strict=True):
                    layer.__dict__.pop("forward", None)
                    if way == "packed":
                        vars(layer)["forward"] = forward_packed
                took[way].append(seconds(lambda way=way: forward(way)))
        for layer in layers:
            layer.__dict__.pop("forward", None)
        ratio = statistics.median(took["plain"]) / statistics.median(took["packed"])
        gap = float((logits["plain"] - logits["packed"]).abs().max())
        table.append({"what": f"{name} forward", "rows": rows, "ratio": ratio, "max_gap": gap})
        print(table[-1], flush=True)
    return table


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    shapes = [(576, 576), (1536, 576), (576, 1536), (49152, 576)]
    table = pd.DataFrame(of_layers(shapes, args.rows) + of_model(args.model, args.rows))
    path = Path(__file__).parent / "results" / f"packed_linears_{args.machine}.csv"
    table.round({"plain_gflops": 0, "packed_gflops": 0, "ratio": 2}).to_csv(path, index=False)


if __name__ == "__main__":
    main()
