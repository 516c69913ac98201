"""How a tiny model of `tiny_models` is served here, and how far that lies from transformers
without us, past every window and chunk of its config.

`benchmarks/all_families.py` does the same with every family of transformers, from disk.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import torch
from tiny_models import byte_tokenizer, random_weights

from faithscope.interp import attention
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.loading import wrap


class Service(NamedTuple):
    """What comes of loading a family."""

    family: str
    how: str
    """packed, loop or refused."""
    reason: str | None
    gap: float | None
    """Largest |Δlogit| to plain forwards, at every position of every branch."""


def service(family: str, dtype: torch.dtype = torch.float32) -> Service:
    """Load a tiny model of `family` and compare a bushy forest of it with plain forwards."""
    try:
        model = wrap(random_weights(family, dtype), byte_tokenizer(), name=family)
    except UserError as error:
        return Service(family, "refused", str(error), None)
    branches = [Branch(s, ask=tuple(range(len(s)))) for s in bushy()]
    run = model.run(branches)
    gaps = [
        float((plain_logits(model.hf, b.ids) - r.logits).abs().max())
        for b, r in zip(branches, run.branches, strict=True)
    ]
    return Service(family, run.execution, model.tree_reason, max(gaps))


@torch.inference_mode()
def plain_logits(hf, ids) -> torch.Tensor:
    """(P, V) float32 logits of one sequence, by transformers alone."""
    with attention.plain(hf):
        return hf(torch.tensor([list(ids)]), use_cache=False).logits[0].float()


def bushy(seed: int = 0, n: int = 9, length: int = 40) -> list[tuple[int, ...]]:
    """Sequences that share prefixes of many lengths, longer than the sliding windows."""
    draw = random.Random(seed)
    trunk = draw.choices(range(256), k=length)
    return [
        tuple(trunk[: draw.randint(1, length)] + draw.choices(range(256), k=draw.randint(1, 12)))
        for _ in range(n)
    ]


def gap(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max())
