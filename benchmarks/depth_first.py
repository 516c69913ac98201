"""Peer of the forest: depth-first reuse of keys and values in plain transformers.

This is what a competent user writes without a packed forward: one cache, sequences in sorted order,
so that those with a common prefix follow each other. The cache is cropped back to where the next
sequence branches off, and only its own tokens are run: every token of the trie once, as in the
forest. But each sequence is a forward of its own, a few tokens long.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import DynamicCache

from faithscope.interp.model import Model


def shared_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the longest common prefix of two token sequences."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@torch.inference_mode()
def depth_first(model: Model, sequences: list[list[int]]) -> torch.Tensor:
    """(B, V) logits at the end of every sequence.

    `DynamicCache.crop` takes tokens off full-attention layers alone: a model with sliding windows
    or a recurrent state has no such peer.
    """
    cache, before = DynamicCache(config=model.hf.config), []
    logits: dict[int, torch.Tensor] = {}
    for i in sorted(range(len(sequences)), key=lambda i: sequences[i]):
        ids = sequences[i]
        # the last token is always run, since its logits are wanted
        kept = min(shared_prefix(before, ids), len(ids) - 1)
        if kept < len(before):
            cache.crop(kept - len(before))
        rest = torch.tensor([ids[kept:]], device=model.device)
        out = model.hf(rest, past_key_values=cache, use_cache=True, logits_to_keep=1)
        logits[i], before = out.logits[0, -1], ids
    return torch.stack([logits[i] for i in range(len(sequences))])
