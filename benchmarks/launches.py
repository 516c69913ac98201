"""Counts of what a GPU pays for: kernels launched and waits of the host, of packs and of decoding.

`python benchmarks/launches.py` writes `benchmarks/results/launches.csv`. The model runs on an
emulated device (`tests/emulated_devices.py`), where the package makes the choices that it makes on
a GPU, so the counts are exact and need no quiet machine. They do not depend on how wide a model is:
by default it has the layers and heads of SmolLM2-135M, random weights and a width of 72.

Columns:
    what, model, shape  what is run, on which model, and on what
    plain_ops           operations of the yardstick: one plain forward of transformers, or one
                        decoding step of transformers for the same rows in a padded batch
    ops, ratio          operations, and how many times those of the yardstick
    forwards            forwards of the model
    syncs               times that the host waits for the device, or the device for the host
    copies              transfers between host and device that neither waits for
    attention_calls     attention calls per layer

Rows of `ask` are as probes ask: labels whole, their numbers' ends, and the baseline once more
alone, which takes a second forward. Large packs are asked under FlexAttention; this device has
none, and each call of it is counted as one of plain attention. Items are SLRC with its default
settings on sums of 6 steps, whose answers and texts a random model writes to their limits.

An operation is a call that PyTorch's dispatcher gets on tensors of the device, after composite ones
have been taken apart, but for linear layers and attention (one each). Views and allocations are no
operations. A decoding step is the mean of several.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pandas as pd
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import emulated_devices  # pyright: ignore[reportMissingImports]
from forest import padded, probe_set
from items_at_once import measured, random_chains
from tiny_configs import VOCABULARY, byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from faithscope import interp
from faithscope.interp import execute, flex
from faithscope.interp.forest import Branch
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interp.side_by_side import side_by_side

WHOLE = ("linear", "scaled_dot_product_attention")
"""Composite operations that count as one."""
FREE = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "detach_", "view")
"""Operations that launch nothing, beside views."""
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim")
"""Operations whose result the host waits for."""
PICKS = ("index", "index_put_", "_index_put_impl_", "index_put")
"""Operations that copy indices from the CPU, and that look for the places of a boolean index."""
COPIES = ("_to_copy", "copy_")


@cache
def kind_of(func: Any) -> tuple[str, bool, bool]:
    """The name of an operation, whether it is taken apart, and whether it launches nothing."""
    name = func._schema.name.removeprefix("aten::")
    return name, name not in WHOLE and func._can_decompose(), func.is_view or name in FREE


class Launches(TorchDispatchMode):
    """Counts operations and waits on one device while it is entered."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self.by_name: Counter[str] = Counter()
        self.syncs = self.copies = self.forwards = 0

    @property
    def ops(self) -> int:
        return self.by_name.total()

    @property
    def attention_calls(self) -> int:
        return self.by_name["scaled_dot_product_attention"]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, composite, free = kind_of(func)
        if composite:
            with self:
                return func.decompose(*args, **kwargs)
        out = func(*args, **kwargs)
        if free:
            return out
        tensors = [x for x in tree_leaves([args, kwargs, out]) if isinstance(x, torch.Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device.type != "cpu"}
        if self._device.type in places:
            self.by_name[name] += 1
            waits = self._waits(name, args, kwargs, places)
            self.syncs += waits
            self.copies += name in COPIES and len(places) > 1 and not waits
        return out

    def _waits(self, name: str, args: Any, kwargs: dict[str, Any], places: set[str]) -> bool:
        if name in COPIES:
            at_once = kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])
            return len(places) > 1 and not at_once
        if name in PICKS and self._device.type != "cpu":
            indices = [x for x in args[1] if x is not None]
            return any(x.device.type == "cpu" or x.dtype is torch.bool for x in indices)
        return name in WAITS


def launches_of(device: torch.device, do: Callable[[], Any]) -> Launches:
    """What `do` launches on `device`."""
    usual = execute.forward

    def forward(*args: Any) -> torch.Tensor:
        counted.forwards += 1
        return usual(*args)

    with Launches(device) as counted, patch.object(execute, "forward", forward):
        do()
    return counted


@contextmanager
def flex_attention(model: Model) -> Iterator[None]:
    """A context in which packs may run under FlexAttention, as far as its calls are counted: each
    is one of plain attention, whose output means nothing."""

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any):
        n = query.shape[1] // key.shape[1]
        k, v = (x[:, :, :1].repeat_interleave(n, 1) for x in (key, value))
        return torch.nn.functional.scaled_dot_product_attention(query, k, v).transpose(1, 2)

    with patch.object(flex, "attend", attend), patch.object(model, "flex_reason", None):
        yield


class Step(NamedTuple):
    """Mean counts of one decoding step."""

    ops: float
    syncs: float
    attention_calls: float


STEPS = 4
Decoded = Callable[[int], Any]
"""A function that decodes a number of tokens."""


def step_of(device: torch.device, decode: Decoded, first: int = 2) -> Step:
    """Mean counts of the `STEPS` decoding steps after the first ones of `decode`."""
    few, more = (launches_of(device, lambda n=n: decode(n)) for n in (first, first + STEPS))
    return Step(
        (more.ops - few.ops) / STEPS,
        (more.syncs - few.syncs) / STEPS,
        (more.attention_calls - few.attention_calls) / STEPS,
    )


@torch.inference_mode()
def plain_forward(model: Model, ids: Sequence[int]) -> torch.Tensor:
    tokens = torch.tensor([list(ids)], device=model.device)
    return model.hf(tokens, use_cache=False, logits_to_keep=1).logits


@torch.inference_mode()
def plain_decoding(model: Model, prompts: Sequence[Sequence[int]], n: int) -> None:
    """Greedy decoding of a left-padded batch by transformers' own forward and cache."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=model.device)
    seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    seen = torch.cat([seen, torch.ones(len(prompts), n, dtype=torch.long)], 1).to(model.device)
    positions, past = (seen[:, :width].cumsum(-1) - 1).clamp(min=0), None
    for i in range(n):
        out = model.hf(
            ids,
            attention_mask=seen[:, : width + i],
            position_ids=positions,
            past_key_values=past,
            use_cache=True,
            logits_to_keep=1,
        )
        past, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        positions = positions[:, -1:] + 1


def of_packs(model: Model, depths: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of packs of every probe set: as one pack, and in the usual ways."""
    layers, rows = model.n_layers, []
    for n_steps in depths:
        vocabulary = min(model.hf.config.vocab_size, 40_000)
        for probes, sequences in probe_set(n_steps, vocabulary).items():
            plain = launches_of(model.device, lambda s=sequences: plain_forward(model, s[0]))
            branches = [Branch(tuple(s)) for s in sequences]
            ways: dict[str, Callable[[], Any]] = {
                "padded batches": lambda s=sequences: padded(model, s),
                "pack": lambda b=branches: model.run(b),
            }
            for what, do in ways.items():
                counted = launches_of(model.device, do)
                rows.append(
                    {
                        "what": what,
                        "shape": f"{probes}, T = {n_steps}, {len(sequences)} branches",
                        **_of(counted, plain.ops, layers),
                    }
                )
    return rows


def asked(model: Model, sequences: Sequence[Sequence[int]], **how: Any) -> Any:
    """Asks for a number after sequences as probes do, where the first is what others are compared
    with."""
    labels = [[model.encode(f" {x}") for x in (7, 70, 75)]] * len(sequences)
    return model.ask(sequences, labels, boundary="number", repeat=[0], **how)


def of_asking(model: Model, depths: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of questions after the arms of one item, and after those of eight at once."""
    rows, vocabulary = [], min(model.hf.config.vocab_size, 40_000)
    for n_steps, at_once in [*((n, 1) for n in depths), (depths[0], 8)]:
        items = [probe_set(n_steps, vocabulary, seed)["full"] for seed in range(at_once)]
        plain = launches_of(model.device, lambda s=items[0][0]: plain_forward(model, s))
        jobs = [lambda m, s=s: asked(m, s) for s in items]
        with flex_attention(model):
            # token sets go to the device once
            asked(model, items[0][:1])
            counted = launches_of(model.device, lambda j=jobs: side_by_side(model, j))
        arms = f"{len(items[0])} branches"
        rows.append(
            {
                "what": "ask" if at_once == 1 else f"ask, {at_once} items at once",
                "shape": f"full, T = {n_steps}, {arms}",
                **_of(counted, plain.ops, model.n_layers),
            }
        )
    return rows


def of_items(model: Model, at_once: Sequence[int], n_steps: int = 6) -> list[dict[str, Any]]:
    """Rows of SLRC of some items side by side."""
    rows = []
    for n in at_once:
        traces = random_chains(model, n, n_steps)
        ids = [*traces[0].prompt_ids, *traces[0].reasoning_ids]
        plain = launches_of(model.device, lambda ids=ids: plain_forward(model, ids))
        counted = launches_of(model.device, lambda t=traces, n=n: measured(model, t, n))
        what = "SLRC item" if n == 1 else f"SLRC, {n} items at once"
        shape = f"T = {n_steps}, chains of up to {len(ids)} tokens"
        rows.append({"what": what, "shape": shape, **_of(counted, plain.ops, model.n_layers)})
    return rows


def _of(counted: Launches, plain_ops: int, layers: int) -> dict[str, Any]:
    return {
        "plain_ops": plain_ops,
        "ops": counted.ops,
        "ratio": round(counted.ops / plain_ops, 2),
        "forwards": counted.forwards,
        "syncs": counted.syncs,
        "copies": counted.copies,
        "attention_calls": round(counted.attention_calls / layers, 2),
    }


def of_decoding(model: Model, sequences: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Rows of one step of decoding all sequences together."""
    plain = step_of(model.device, lambda n: plain_decoding(model, sequences, n))
    ends: frozenset[int] = frozenset({-1})
    ways: dict[str, Decoded] = {
        "greedy": lambda n: model.generate(sequences, n, end_ids=ends),
        "greedy, with a stop": lambda n: model.generate(
            sequences, n, end_ids=ends, stop=lambda text: False
        ),
        "sampled": lambda n: model.generate(sequences, n, end_ids=ends, temperature=0.7),
    }
    steps = {"padded batch of transformers": plain}
    steps |= {way: step_of(model.device, decode) for way, decode in ways.items()}
    longest = max(map(len, sequences))
    return [
        {
            "what": f"decoding step: {what}",
            "shape": f"{len(sequences)} rows of up to {longest} tokens",
            "plain_ops": plain.ops,
            "ops": step.ops,
            "ratio": round(step.ops / plain.ops, 2),
            "syncs": step.syncs,
            "attention_calls": round(step.attention_calls / model.n_layers, 2),
        }
        for what, step in steps.items()
    ]


def narrow(device: str, layers: int = 30) -> Model:
    """A random model on `device` with the layers and heads of SmolLM2-135M, but an eighth wide."""
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=72,
        intermediate_size=192,
        num_hidden_layers=layers,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=VOCABULARY,
        tie_word_embeddings=True,
    )
    hf = LlamaForCausalLM(config).eval().to(torch.device(device))  # pyright: ignore
    return wrap(hf, byte_tokenizer(), name=f"narrow SmolLM2 ({layers} layers)", verify_model=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model of real width; much slower, same counts")
    parser.add_argument("--layers", type=int, default=30, help="layers of the default model")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--steps", default="10,20")
    parser.add_argument("--out", default=str(Path(__file__).parent / "results" / "launches.csv"))
    args = parser.parse_args()
    emulated_devices.require()
    device = "emulated:0"
    model = (
        interp.load(args.model, dtype=args.dtype, device=device, verify_model=False)
        if args.model
        else narrow(device, args.layers)
    )
    depths = [int(t) for t in args.steps.split(",")]
    rows = of_packs(model, depths)
    _, necessity, _ = probe_set(10, min(model.hf.config.vocab_size, 40_000)).values()
    rows += of_decoding(model, necessity[:8])
    rows += of_asking(model, depths) + of_items(model, (1, 8))
    table = pd.DataFrame(rows)
    table.insert(1, "model", model.name)
    table.insert(2, "dtype", model.dtype)
    table.to_csv(args.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
