"""A further model beside the one that is measured, which a probe asks about the chain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faithscope.interp.model import Model


def other_model(names: Sequence[str], model: Model) -> Model:
    """The first model of `names` that is not `model` and marks its reasoning if and only if that
    one does; else the first that is not `model`; else `model` itself.

    It is loaded on the same device and with the same dtype, and stays loaded until another is
    needed.

    Raises:
        UserError: the weights, or the tokenizer of a candidate, cannot be had.
    """
    others = [name for name in names if name != model.name]
    if not others:
        return model
    same = model.format.marks
    alike = others if len(others) == 1 else [n for n in others if _marks(n) == same]
    return _loaded((alike or others)[0], model.dtype, str(model.device))


@lru_cache(maxsize=16)
def _marks(name: str) -> bool:
    # not at the top: it brings torch, which listing the probes need not wait for
    from faithscope.interp import load_language

    return load_language(name).format.marks


@lru_cache(maxsize=1)
def _loaded(name: str, dtype: str, device: str) -> Model:
    from faithscope import interp

    # pyright cannot know that a loaded model's dtype is one that `load` takes
    return interp.load(name, dtype=dtype, device=device)  # pyright: ignore[reportArgumentType]
