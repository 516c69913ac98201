"""Seconds and memory of a model's work on a device, from the shapes of both: what a dry run says.

A prefill takes its operations, or the time in which its kernels start where it is short. A step of
decoding reads the weights and the keys and values of its rows once, and takes besides a time for
each layer and each row. Python takes a time for each text of a measure. The constants are fitted to
rows of `benchmarks/results`; `tools/cost_errors.py` compares every row with this model, and a test
holds `Device.error` and the table in `docs/scaling.md` to it. Nothing here imports torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

GIB = 2**30


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder that decide what its forwards cost."""

    layers: int
    width: int
    inner: int
    """Width of the feed-forward layers that one token goes through: of all its experts."""
    heads: int
    kv_heads: int
    head: int
    """Width of a head."""
    vocabulary: int
    held: int = 0
    """Width of the feed-forward layers that are held; 0 for `inner`, more for a mixture of
    experts."""
    bytes: float = 2
    """Bytes of a weight."""
    kv_bytes: int = 2
    """Bytes of a number in the cache."""

    @property
    def run(self) -> int:
        """Parameters of the layers that one token goes through."""
        return self._layers(self.inner)

    @property
    def parameters(self) -> int:
        """All parameters; embeddings of layers narrower than 4,096 are taken to be tied."""
        tables = 2 if self.width >= 4_096 else 1
        return self._layers(self.held or self.inner) + tables * self.vocabulary * self.width

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of a token."""
        return 2 * self.layers * self.kv_heads * self.head * self.kv_bytes

    def _layers(self, inner: int) -> int:
        attention = 2 * self.width * self.head * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.width * inner)


LADDER = (
    Shape(30, 576, 1_536, 9, 3, 64, 49_152),
    Shape(28, 1_024, 3_072, 16, 8, 128, 151_936),
    Shape(28, 2_048, 6_144, 16, 8, 128, 151_936),
    Shape(36, 2_560, 9_728, 32, 8, 128, 151_936),
    Shape(36, 4_096, 12_288, 32, 8, 128, 151_936),
    Shape(40, 5_120, 17_408, 40, 8, 128, 151_936),
    Shape(64, 5_120, 25_600, 64, 8, 128, 151_936),
    Shape(80, 8_192, 28_672, 64, 8, 128, 128_256),
)
"""Shapes of SmolLM2-135M, of Qwen3 in 0.6B, 1.7B, 4B, 8B, 14B and 32B, and of Llama 3 in 70B: a
model whose config is not at hand is given the nearest, with as many layers as make its size."""
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_ACTIVE = re.compile(r"-a(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


def of_config(values: Mapping[str, Any]) -> Shape | None:
    """The shape in a model's config.json, of its text part; None if it does not say."""
    c = values
    layers, width = (
        c.get("num_hidden_layers", c.get("n_layer")),
        c.get("hidden_size", c.get("n_embd")),
    )
    heads = c.get("num_attention_heads", c.get("n_head"))
    if not (layers and width and heads and c.get("vocab_size")):
        return None
    experts = c.get("num_experts") or c.get("num_local_experts") or c.get("n_routed_experts") or 0
    inner = c.get("intermediate_size") or 4 * width
    held = 0
    if experts:
        one = c.get("moe_intermediate_size") or inner
        inner, held = one * (c.get("num_experts_per_tok") or 1), one * experts
    kv_heads, head = c.get("num_key_value_heads") or heads, c.get("head_dim") or width // heads
    return Shape(layers, width, inner, heads, kv_heads, head, c["vocab_size"], held)


def of_name(name: str) -> Shape | None:
    """A shape by the size in a model's name: `8B`, `0.5b`, `135m`, or `30B-A3B` of a mixture of
    experts; None without one."""
    last = name.rpartition("/")[2]
    if (size := _SIZE.search(last)) is None:
        return None
    total = float(size[1]) * (1e9 if size[2] in "bB" else 1e6)
    active = float(own[1]) * 1e9 if (own := _ACTIVE.search(last)) else total
    nearest = min(LADDER, key=lambda shape: abs(math.log(shape.parameters / active)))
    tables = nearest.parameters - nearest.run
    one = nearest.run / nearest.layers
    shape = replace(nearest, layers=max(1, round((active - tables) / one)))
    if active == total:
        return shape
    more = (total - shape.parameters) / (3 * shape.width * shape.layers)
    return replace(shape, held=round(shape.inner + max(0, more)))


@dataclass(frozen=True)
class Device:
    """What a device needs for an operation, a kernel and a byte."""

    name: str
    operation: tuple[float, float]
    """(a, b): seconds of an operation in layers of width w are a + b / w."""
    layer: float
    """Least seconds of a layer of a forward: the time in which its kernels start."""
    step: float
    """Seconds of a layer of a step of decoding besides its reading."""
    row: float
    """Seconds of a row of a step of decoding."""
    read: float
    """Seconds of a byte of weights, keys and values in decoding."""
    text: float
    """Seconds of Python for a text of a measure."""
    chunk: int
    """Most tokens of a forward."""
    budget: int
    """Most tokens whose keys and values are held."""
    at_once: int
    """Items whose measures run side by side."""
    memory: int | None
    """GiB of its memory; None for that of the machine."""
    error: str
    """How far the model is from the rows that it was fitted to, in words; held by a test."""

    def seconds_of(self, operations: float, width: int) -> float:
        """Seconds of operations in layers of some width."""
        a, b = self.operation
        return operations * (a + b / width)


H100 = Device(
    "H100",
    # gpu_h100.csv: rows of 8,192 tokens at width 4,096; SLRC set at T = 20 at width 1,536
    operation=(1.15e-15, 4.37e-12),
    # early answers at T = 10 and 20
    layer=0.9e-3,
    # decoding after 21 and 11 rows; what is read at .8 of 3.35 TB/s
    step=0.16e-3,
    read=1 / 2.7e12,
    # items_at_once_h200.csv: decoding of 4 and 8 items, and what is neither prefill nor decoding
    row=0.03e-3,
    text=4e-3,
    chunk=16_384,
    budget=131_072,
    at_once=8,
    memory=79,
    error="packs and decoding within a factor of 1.8 on 28 rows, whole items of SLRC "
    "within a factor of 1.5 on 3 rows of an H200",
)
H200 = replace(
    H100,
    name="H200",
    read=1 / 3.87e12,
    memory=139,
    error="packs and decoding within a factor of 1.8 on 28 rows of an H100, whole items of "
    "SLRC within a factor of 1.5 on 3 rows",
)
CPU = Device(
    "one core of a CPU",
    # forest_epyc-2core.csv, peers_epyc-zen4-2core-shared.csv: 72 to 88 GFLOP/s in float32
    operation=(1 / 78e9, 0),
    layer=0,
    step=0,
    # peers_epyc-zen4-2core-shared.csv: decoding and removal
    row=0,
    read=1 / 15e9,
    text=4e-3,
    chunk=1_024,
    budget=32_768,
    at_once=1,
    memory=None,
    error="packs and decoding within a factor of 1.2 on 23 rows, whole items of SLRC "
    "within a factor of 1.1 on 2 rows",
)
DEVICES = (H100, H200, CPU)


@dataclass(frozen=True)
class Written:
    """Texts that are written in lockstep."""

    texts: int
    tokens: int
    """Tokens of the longest."""
    context: int
    """Tokens before each."""
    share: float = 1
    """Tokens of one on average, as a share of those of the longest."""


@dataclass(frozen=True)
class Work:
    """Work of one item."""

    tokens: int
    """Tokens of prefills."""
    context: int
    """Tokens that one of them attends to, on average."""
    texts: int
    """Number of texts that the model is asked about."""
    calls: int
    """Number of calls of the model, each of which starts `FORWARDS` forwards besides its pack."""
    written: tuple[Written, ...] = ()


FORWARDS = 3
"""Short forwards of a call beside that of its pack: leads, baselines, ends of labels."""


def prefill(device: Device, shape: Shape, tokens: int, context: float, forwards: int = 0) -> float:
    """Seconds of a pack of so many tokens, and of short forwards beside it."""
    attention = 4 * shape.layers * shape.heads * shape.head * context
    needed = device.seconds_of(tokens * (2 * shape.run + attention), shape.width)
    starts = device.layer * shape.layers
    return max(math.ceil(tokens / device.chunk) * starts, needed) + forwards * starts


def step(device: Device, shape: Shape, rows: float, context: float) -> float:
    """Seconds of a step of decoding of rows after so many tokens."""
    tables = shape.vocabulary * shape.width
    reads = shape.bytes * (shape.parameters - tables * (shape.width >= 4_096))
    reads += rows * context * shape.token_bytes
    needed = device.seconds_of(2 * rows * (shape.run + tables), shape.width)
    arithmetic = (
        device.read * reads + needed if device.memory is None else max(device.read * reads, needed)
    )
    return device.step * shape.layers + device.row * rows + arithmetic


def writing(device: Device, shape: Shape, of: Written) -> float:
    """Seconds in which texts are written: as many side by side as the token budget holds, the next
    of which begins where one has ended."""
    most = max(1, device.budget // (of.context + of.tokens))
    rows = of.texts * of.share
    steps = max(of.tokens, of.tokens * rows / most)
    return steps * step(device, shape, min(rows, most), of.context + of.tokens / 2)


def seconds(device: Device, shape: Shape, work: Work, at_once: int = 1) -> float:
    """Seconds of one item's work where so many run side by side: they share decoding steps."""
    total = prefill(device, shape, work.tokens, work.context, FORWARDS * work.calls)
    for of in work.written:
        total += writing(device, shape, replace(of, texts=of.texts * at_once)) / at_once
    return total + device.text * work.texts


def held(device: Device, shape: Shape, tokens: int, written: Sequence[Written] = ()) -> float:
    """Bytes beside the weights at the peak: keys and values of a pack, with what a forward makes,
    or with the rows that are written after it."""
    chunk = min(tokens, device.chunk)
    made = chunk * shape.kv_bytes * (6 * shape.width + 3 * shape.inner)
    rows = max((w.texts * (w.context + w.share * w.tokens) for w in written), default=0)
    pack = min(tokens, device.budget) * shape.token_bytes
    return pack + max(made, min(rows, device.budget) * shape.token_bytes)
