"""Readings at the token whose output is the answer: its attention, and each layer's lens.

Shared by the probes that read at this token and by studies whose texts are no traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from faithscope.probes.framing import naming

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from faithscope.interp.model import Model

Span = tuple[int, int]


def attention_row(model: Model, rows: Sequence[Tensor], what: str) -> Float[np.ndarray, "L H P"]:
    """The attention of the one asked token in every layer and head, as float64.

    Raises:
        FloatingPointError: the attention is not finite; the message names `what`.
    """
    row = rows[0].double().cpu().numpy()
    if not np.isfinite(row).all():
        raise FloatingPointError(
            f"{what}: attention rows are not finite in {model.dtype}; set model.dtype to float32, "
            "or check the checkpoint"
        )
    return row


def attention_to(
    row: Float[np.ndarray, "L H P"], spans: Iterable[Span]
) -> Float[np.ndarray, "L H"]:
    """The share of every head's attention row that goes to the half-open `spans`."""
    return sum((row[..., a:b].sum(axis=-1) for a, b in spans), np.zeros(row.shape[:2]))


def regions_of_prompt(n: int, question: Span | None) -> dict[str, tuple[Span, ...]]:
    """The regions that tile the first `n` tokens of a prompt: `first_token`, an attention sink
    without meaning; `question`, without spans if its text was not found; `template`, the rest.

    Args:
        question: token span of the question's text; None if it was not found.
    """
    a, b = (n, n) if question is None else (max(1, question[0]), question[1])
    template = ((1, a), (b, n))
    return {
        "first_token": ((0, 1),),
        "template": tuple((x, y) for x, y in template if x < y),
        "question": ((a, b),) if a < b else (),
    }


def token_span(pieces: Sequence[str], start: int, end: int) -> Span:
    """Half-open span of the tokens that hold the characters from `start` to `end` (excluded).

    A token that spells only the beginning of a character has an empty piece, and belongs to the
    next token that has none.
    """
    offsets = np.cumsum([0, *map(len, pieces)])
    begins = offsets[np.searchsorted(offsets, start, side="right") - 1]
    return int(np.searchsorted(offsets, begins)), int(np.searchsorted(offsets, end))


def lens_log_probs(model: Model, streams: Tensor, logits: Tensor, what: str) -> Tensor:
    """(L+1, V) log-probabilities (float64) by the lens after every layer, embeddings first.

    The last layer's log-probabilities are the model's own, up to rounding that may break a tie.

    Args:
        streams: (L+1, D) residual streams at the answer token.
        logits: (1, V) logits of the model at this token.

    Raises:
        FloatingPointError: the logits are not finite; the message names `what`.
    """
    import torch

    from faithscope.interp.execute import check_finite

    with naming(what):
        check_finite(model, logits)
    with torch.inference_mode():
        every = torch.cat([model.lens(streams[:-1]), logits])
        return every.double().log_softmax(-1).cpu()


def of_options(log_probs: Tensor, first: Mapping[str, set[int]]) -> Tensor:
    """(L+1, options) log-probabilities that one of an option's first tokens comes next."""
    import torch

    return torch.stack([log_probs[:, sorted(ids)].logsumexp(-1) for ids in first.values()], dim=-1)
