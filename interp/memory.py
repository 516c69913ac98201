"""Retries with smaller packs when memory runs out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    # vLLM's own environment lacks packages that a model needs
    from faithscope.interp.loaded import LoadedModel

FLOOR = 256
"""The least token budget, and the least tokens in one forward, that retries go down to."""

T = TypeVar("T")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device, or the machine, has no memory left."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    words = ("out of memory", "can't allocate memory", "cannot allocate memory")
    return isinstance(error, RuntimeError) and any(w in str(error).lower() for w in words)


def within_memory(model: LoadedModel, work: Callable[[], T], on_less: Callable[[int], None]) -> T:
    """The result of `work`, tried again with half the token budget while memory runs out.

    Smaller packs give the same numbers up to float rounding. The smaller budget is kept for later
    work; if even the least did not help, the budget was not the cause, and it is restored.

    Args:
        on_less: called with the new budget, once `work` succeeded with it.

    Raises:
        MemoryError: `work` does not fit with the least budget either.
    """
    before = model.token_budget, model.chunk
    while True:
        try:
            result = work()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if model.token_budget <= FLOOR:
                least, (model.token_budget, model.chunk) = model.token_budget, before
                raise MemoryError(
                    f"{model.name}: out of memory on {model.device} even with a token budget of "
                    f"{least}; lower generation.batch_size or max_new_tokens, quantize the "
                    "weights (model.quantize), or take a device with more memory"
                ) from error
        else:
            if model.token_budget < before[0]:
                on_less(model.token_budget)
            return result
        # Outside of `except` the error is gone, and with it the tensors that its traceback held.
        shrink(model)
        free()


def shrink(model: LoadedModel, times: int = 1) -> None:
    """Halve the token budget of a model, and the tokens of one forward, down to `FLOOR`."""
    for _ in range(times):
        model.token_budget = max(FLOOR, model.token_budget // 2)
        model.chunk = max(min(FLOOR, model.chunk), model.chunk // 2)


def free() -> None:
    """Collect garbage, and return unused cached memory to the accelerator."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
