"""Continuation of one sequence by transformers' own `generate`, for models a tree cannot serve.

What a decoding step needs besides its token differs by family: positions counted from the first
token where no layer's cache tells them (Bamba, MiniMax), a cache under another name (Mamba).
`generate` provides it, since each family overrides the parts that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from faithscope.interp.detokenise import GrowingText
from faithscope.interp.execute import check_finite
from faithscope.interp.generation import Generation
from faithscope.interp.leads import gaps
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.lockstep import greedy


@torch.inference_mode()
def continue_one_by_one(
    model: LoadedModel,
    prefix: Sequence[int],
    max_new_tokens: int,
    *,
    choose: Callable[[Tensor], Tensor] | None = None,
    stop: Callable[[str], bool] | None = None,
    end_ids: frozenset[int] | None = None,
) -> Generation:
    """The oracle of `lockstep.decode`: one sequence, transformers' own cache and positions.

    `choose` is given (1, V) float32 logits and gives the (1,) next token (greedy by default).

    Raises:
        FloatingPointError: the logits of a step are not finite.
    """
    ends = model.end_ids if end_ids is None else end_ids
    written: list[int] = []
    led: list[float] = []
    text = GrowingText(model.tokenizer)
    over: Generation | None = None

    def ended(why: Literal["stop", "length"], end_id: int | None = None) -> Generation:
        return Generation(tuple(written), why, end_id, gaps=tuple(led))

    def pick(_: Tensor, logits: Tensor) -> Tensor:
        nonlocal over
        if over is not None:
            # on some devices transformers checks one step late whether decoding is over
            return logits
        check_finite(model, logits)
        token = int((choose or greedy)(logits))
        if not choose:
            led.extend(gaps(logits))
        if token in ends:
            over = ended("stop", token)
        else:
            written.append(token)
            if stop is not None and stop(text.add(token)):
                over = ended("stop")
            elif len(written) >= max_new_tokens:
                over = ended("length")
        return torch.full_like(logits, -torch.inf).index_fill_(
            -1, torch.tensor([token], device=logits.device), 0.0
        )

    def is_over(ids: Tensor, _: Any, **__: Any) -> Tensor:
        return torch.full((len(ids),), over is not None, device=ids.device)

    tokens = torch.tensor([list(prefix)], device=model.device)
    with _no_defaults(model.hf):
        model.hf.generate(  # pyright: ignore
            tokens,
            attention_mask=torch.ones_like(tokens),
            generation_config=GenerationConfig(max_new_tokens=max_new_tokens, do_sample=False),
            logits_processor=[pick],
            stopping_criteria=[is_over],
        )
    assert over is not None
    return over


@contextmanager
def _no_defaults(hf: PreTrainedModel) -> Iterator[None]:
    """Switches off the checkpoint's generation settings: end tokens, penalties, forced tokens."""
    own, hf.generation_config = hf.generation_config, GenerationConfig()
    try:
        yield
    finally:
        hf.generation_config = own
