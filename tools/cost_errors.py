"""How far the cost model of dry runs is from every measured row: `python tools/cost_errors.py`.

It reads the rows of `benchmarks/results` that are of the package's own ways, predicts each by
`experiments/engine/cost_model.py`, and prints them; `--write` writes the table of
`docs/scaling.md`.
`tests/test_cost_model.py` holds the table and the errors that dry runs state to what is made here.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from faithscope.experiments.engine.cost_model import (
    CPU,
    H100,
    H200,
    Device,
    Shape,
    Written,
    held,
    prefill,
    seconds,
    step,
)
from faithscope.experiments.engine.traces.hours import work_of
from faithscope.probes import PROBES
from faithscope.probes.probe import Size

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks/results", ROOT / "docs/scaling.md"
BEGIN, END = "<!-- cost model -->", "<!-- /cost model -->"
SMOLLM = Shape(30, 576, 1_536, 9, 3, 64, 49_152, bytes=4, kv_bytes=4)
SHAPES = {
    "random:llama-8b": Shape(32, 4_096, 14_336, 32, 8, 128, 49_152),
    "random:llama-7.4b": Shape(32, 4_096, 14_336, 32, 8, 128, 49_152),
    "random:llama-1.5b": Shape(28, 1_536, 8_960, 12, 2, 128, 49_152),
    "bundled:smollm2-135m": SMOLLM,
}
OWN = ("packed", "pack", "rows", "residuals", "forest", "ours")
"""Ways of the package, as users get them; `mask` and `flex` are its own up to, and beyond, `MASK`
nodes."""
MASK = 2_896
WRITTEN = {"removal": 24, "decoding": 64}


class Row(NamedTuple):
    """A measured row, and what the model says of it."""

    device: Device
    kind: str
    source: str
    what: str
    measured: float
    predicted: float

    @property
    def factor(self) -> float:
        return max(self.measured / self.predicted, self.predicted / self.measured)


def rows() -> list[Row]:
    """Every row that the model is held against."""
    return [*_gpu(), *_older(), *_items(), *_cpu()]


def _read(name: str) -> Iterator[dict[str, Any]]:
    yield from pd.read_csv(RESULTS / f"{name}.csv").to_dict("records")


def _gpu() -> Iterator[Row]:
    for row in _read("gpu_h100"):
        shape, tokens, method = SHAPES[row["model"]], row["tokens"], row["method"]
        if method not in OWN and method != ("mask" if tokens <= MASK else "flex"):
            continue
        numbers = [int(n) for n in re.findall(r"\d+", row["shape"])]
        what = f"{shape.run / 1e9:.1f}B {row['work']}, {row['shape']}, {method}"
        if row["work"] == "decoding":
            _, question, chain, n = numbers
            each = step(H100, shape, n, question + chain)
            yield Row(H100, "decoding", "gpu_h100", what, row["seconds"], tokens / n * each)
            continue
        context = 100 + 0.6 * numbers[2] if len(numbers) == 3 else numbers[0] / 2
        yield Row(
            H100, "packs", "gpu_h100", what, row["seconds"], prefill(H100, shape, tokens, context)
        )
        memory = held(H100, shape, tokens) / 2**20
        yield Row(H100, "memory", "gpu_h100", what, row["peak_mb"], memory)


def _older() -> Iterator[Row]:
    for row in _read("forest_h100"):
        if row["method"] == "forest":
            context, tokens = 100 + 15 * row["T"], row["trie_tokens"]
            took = prefill(H100, SHAPES[row["model"]], tokens, context)
            what = f"T={row['T']} {row['probes']}"
            yield Row(H100, "older engine", "forest_h100", what, row["seconds"], took)
    yield from _tracing("tracing_h100", H100, "older engine")


def _tracing(name: str, device: Device, kind: str) -> Iterator[Row]:
    for row in _read(name):
        if row["method"] == "forest":
            # a question of 100 tokens, and after every token the cue and one token of each label
            tokens = 100 + row["tokens"] + (row["tokens"] + 1) * (10 + row["options"])
            took = prefill(device, SHAPES[row["model"]], tokens, row["tokens"] / 2)
            what = f"tracing, {row['tokens']} tokens"
            yield Row(device, kind, name, what, row["seconds"], took)


class _Defaults:
    """A config that changes nothing of what a measure does."""

    token_budget = None

    class steps:
        sample = screen = None


def _items() -> Iterator[Row]:
    settings = PROBES["slrc"].settings()
    for name, device, steps in (
        ("items_at_once_h200", H200, None),
        ("items_at_once_xeon-amx-2core-shared", CPU, 5),
    ):
        for row in _read(name):
            shape, n = SHAPES[row["model"]], steps or int(row["chains"][2:])
            size = Size(n, row["tokens"] // n, layers=shape.layers, prompt=150)
            work = work_of("slrc", size, settings, device, _Defaults)
            took = row["items"] * seconds(device, shape, work, row["at_once"])
            what = f"{row['items']} items, {row['at_once']} at once"
            yield Row(device, "items", name, what, row["seconds"], took)
            if device is H200:
                k = row["at_once"]
                written = [Written(w.texts * k, w.tokens, w.context) for w in work.written]
                memory = held(device, shape, work.tokens * k, written) / 2**20
                yield Row(device, "memory", name, what, row["peak_mb"], memory)


def _cpu() -> Iterator[Row]:
    for name in ("forest_epyc-2core", "forest_epyc-2core-shared", "peers_epyc-zen4-2core-shared"):
        for row in _read(name):
            if row.get("method", row.get("way")) not in OWN:
                continue
            measure = row.get("probes", row.get("measure"))
            context, tokens = 100 + 15 * row["T"], row["trie_tokens"]
            took, n = prefill(CPU, SMOLLM, tokens, context), WRITTEN.get(measure, 0)
            if n:
                took += n * step(CPU, SMOLLM, row["prefixes"], context + n / 2)
            kind = "decoding" if n else "packs"
            yield Row(CPU, kind, name, f"T={row['T']} {measure}", row["seconds"], took)
    yield from _tracing("tracing_epyc-2core", CPU, "packs")


def stated(device: Device, found: list[Row]) -> str:
    """The error of a device in words, for dry runs."""

    def within(kinds: tuple[str, ...], of: Device) -> str:
        rows = [r for r in found if r.device is of and r.kind in kinds]
        where = "" if of is device else f" of an {of.name}"
        return f"within a factor of {max(r.factor for r in rows):.1f} on {len(rows)} rows{where}"

    packs = within(("packs", "decoding"), CPU if device is CPU else H100)
    items = within(("items",), CPU if device is CPU else H200)
    return f"packs and decoding {packs}, whole items of SLRC {items}"


def table(found: list[Row]) -> str:
    """The table of the page: a line for each device, kind and file."""
    lines = [
        "| device | what | rows of | rows | predicted ÷ measured: median | least | greatest |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in found:
        key = (row.device.name, row.kind, row.source)
        groups.setdefault(key, []).append(row.predicted / row.measured)
    for (device, kind, source), ratios in groups.items():
        numbers = (statistics.median(ratios), min(ratios), max(ratios))
        cells = (device, kind, f"`{source}.csv`", str(len(ratios)), *(f"{x:.2f}" for x in numbers))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    found = rows()
    for row in found:
        numbers = (
            f"{row.measured:12,.4f} {row.predicted:12,.4f} {row.predicted / row.measured:6.2f}"
        )
        print(f"{row.device.name[:8]:9}{row.kind:22}{numbers}  {row.source}: {row.what}")
    print(table(found))
    for device in (H100, H200, CPU):
        print(f"{device.name}: {stated(device, found)}")
    if "--write" in sys.argv:
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
