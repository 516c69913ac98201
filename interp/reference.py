"""Reference for the checks at load: trees of seeded text and plain transformers' logits."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from faithscope.interp import attention
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interp.noise import rounding, size

MARGIN = 2.5
"""Largest sound difference, in multiples of the rounding noise. Sound models show 0.4 to 1.2."""
COPIES = 2
"""Number of draws of the rounding noise."""


@dataclass(frozen=True)
class Tree:
    """Branches of several shapes over one trunk, and their plain logits."""

    model: Model
    shapes: dict[str, list[Branch]]
    """Name of a tree's shape -> its branches; the first is the longest chain."""
    limit: int | None
    """The window, chunk or limit of positions beyond which all but the trunk lies, if any."""
    gaps: list[float] = field(default_factory=list)
    """max |Δlogit| of every comparison made so far."""

    @classmethod
    def of(cls, model: Model, seed: int, limit: int | None = None) -> Tree:
        """A trunk that ends just past `limit`, or of 12 tokens, and what branches off there."""
        n = 12 if limit is None else limit + 2
        # all queries attend to the first tokens, which are far noisier than the rest
        first = 2 if limit is None else limit - 3
        ids = text(model, n + 40, seed)
        trunk, rest = ids[:n], ids[n:]
        chain, (b, c, d) = trunk + rest[:10], (rest[10:17], rest[17:21], rest[21:23])
        stem = trunk[:-5] + b[:3]
        shapes = {
            "a chain": [Branch(chain, ask=tuple(range(first, len(chain))))],
            "a star of leaves": [Branch(trunk + rest[i : i + 2]) for i in (23, 25, 27, 29)],
            "nested branches": [
                Branch(x, ask=(-4, -3, -2, -1))
                for x in (stem + c, trunk[:-5] + b, stem + c[:2] + d)
            ],
        }
        if limit is None:
            shapes["leaves at many depths"] = [
                Branch(trunk[:at] + rest[31 + i : 33 + i]) for i, at in enumerate((2, 5, 8))
            ]
        else:
            shapes = {name: shape[:2] for name, shape in shapes.items()}
        return cls(model, shapes, limit)

    @property
    def chain(self) -> Branch:
        return next(iter(self.shapes.values()))[0]

    @property
    def branches(self) -> list[Branch]:
        return [b for shape in self.shapes.values() for b in shape]

    @property
    def tokens(self) -> int:
        """Tokens that checking the tree takes: plain, rounded twice, packed, twice one by one."""
        return sum(len(b.ids) for b in self.branches) + (COPIES + 4) * len(self.chain.ids)

    @cached_property
    def plain(self) -> dict[tuple[int, ...], Tensor]:
        """A branch's ids -> (A, V) float32 logits at its asked positions."""
        others = [b for b in self.branches if b is not self.chain]
        longest = max(len(b.ids) for b in others)
        places = [[p % len(b.ids) for p in b.ask] for b in others]
        asked = sorted({p for each in places for p in each})
        # tokens change nothing before them, so short branches are padded with tokens
        padded = [b.ids + b.ids[-1:] * (longest - len(b.ids)) for b in others]
        # no more tokens at once than the chain's forward takes
        rows = [
            x
            for i in range(0, len(padded), 4)
            for x in forward(self.model, padded[i : i + 4], asked)
        ]
        logits = {self.chain.ids: self._rounded[0]}
        for branch, each, row in zip(others, places, rows, strict=True):
            logits[branch.ids] = row[[asked.index(p) for p in each]]
        return logits

    @cached_property
    def noise(self) -> Noise:
        """The noise of rounding, measured in plain forwards of the chain."""
        return Noise.of(self._rounded[1:] - self._rounded[0])

    @cached_property
    def _rounded(self) -> Tensor:
        """(1 + COPIES, A, V) logits of the chain: plain, then with each draw of rounding noise."""
        with rounding(self.model):
            return forward(self.model, [self.chain.ids] * (1 + COPIES), self.chain.ask)

    def fault(self, read: Tensor, plain: Tensor) -> str | None:
        """The fault of (A, V) logits `read` that should equal `plain`, as in `Noise.fault`."""
        read = read.to(plain.device)
        self.gaps.append(float((read - plain).abs().max()))
        return self.noise.fault(read, plain)


@dataclass(frozen=True)
class Noise:
    """How far rounding moves the logits of one text: median and maximum over positions."""

    middle: float
    most: float
    logit: float
    """The largest |Δlogit| of all positions and tokens."""

    @classmethod
    def of(cls, difference: Tensor) -> Noise:
        sizes = size(difference).flatten()
        return cls(float(sizes.median()), float(sizes.max()), float(difference.abs().max()))

    def fault(self, other: Tensor, plain: Tensor) -> str | None:
        """The fault of (A, V) logits `other` that should equal `plain`; None if there is none.

        The median position shows faults that are nearly everywhere, the worst position a fault of
        one. (Experts chosen otherwise make a few positions, and so the worst, noisy.) A likeliest
        token is wrong if plain transformers has it further behind than noise could move it.
        """
        gap = Noise.of(other - plain)
        behind = plain.amax(-1) - plain.gather(-1, other.argmax(-1, keepdim=True))[..., 0]
        if (
            gap.middle <= MARGIN * self.middle
            and gap.most <= MARGIN * self.most
            and float(behind.max()) <= MARGIN * self.logit
        ):
            return None
        return (
            f"max |Δlogit| {gap.logit:.2g}, {times(gap.middle, self.middle):.3g} times the "
            f"rounding noise at the median position and {times(gap.most, self.most):.3g} times at "
            "the worst, "
            f"{int((behind > MARGIN * self.logit).sum())} wrong argmaxes"
        )


def times(gap: float, noise: float) -> float:
    """The size of a gap in units of the rounding noise; infinite where rounding moves nothing."""
    return gap / noise if noise else float("inf")


@torch.inference_mode()
def forward(model: Model, sequences: Sequence[Sequence[int]], asked: Sequence[int]) -> Tensor:
    """(B, A, V) float32 logits of sequences of one length, as transformers alone computes them."""
    ids = torch.tensor([list(s) for s in sequences], device=model.device)
    at = list(asked)  # a list: see `execute.forward`
    with attention.plain(model.hf):
        if model.structure.keeps_logits:
            logits = model.hf(ids, use_cache=False, logits_to_keep=at).logits
            return logits.float().cpu()
        return model.hf(ids, use_cache=False).logits[:, at].float().cpu()


@torch.inference_mode()
def generated(model: Model, prompt: Sequence[int], steps: int) -> tuple[list[int], Tensor]:
    """A prompt continued by transformers' own greedy `generate`.

    Returns:
        the prompt with all written tokens but the last, and the (steps, V) logits of each step.
    """
    ids = torch.tensor([list(prompt)], device=model.device)
    with attention.plain(model.hf):
        out = model.hf.generate(  # pyright: ignore
            ids,
            attention_mask=torch.ones_like(ids),
            min_new_tokens=steps,
            max_new_tokens=steps,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    return out.sequences[0, :-1].tolist(), torch.cat(out.logits).float().cpu()


@contextmanager
def eager(model: Model) -> Iterator[None]:
    """A context in which the family's own plain attention runs, the only one that gives weights."""
    name = str(model.hf.config._attn_implementation)
    model.hf.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.hf.set_attn_implementation(name)


@torch.inference_mode()
def rows(model: Model, ids: Sequence[int]) -> Tensor:
    """(1 + COPIES, L, H, P) attention of the last token, as transformers alone computes it, and
    with its layers and linear maps rounded otherwise."""
    batch = torch.tensor([list(ids)] * (1 + COPIES), device=model.device)
    with eager(model), rounding(model, linear=True):
        layers = model.hf(batch, output_attentions=True, use_cache=False).attentions
    return torch.stack([layer[:, :, -1].float().cpu() for layer in layers], dim=1)


def text(model: Model, n: int, seed: int = 0) -> tuple[int, ...]:
    """`n` token ids drawn by the seed, control tokens left out."""
    avoid = set(model.tokenizer.all_special_ids)
    draw = random.Random(seed)
    usable = [i for i in range(min(len(model.tokenizer), 4000)) if i not in avoid]
    return tuple(draw.choices(usable, k=n))
