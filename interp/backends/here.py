"""Transformers in this process, on faithscope's packed prefill and lockstep decoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import transformers

from faithscope.interp.backends import Generates, OnEnded
from faithscope.interp.backends.checks import check_room
from faithscope.interp.generation import Sampling
from faithscope.interp.placement import devices_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model


@dataclass(frozen=True)
class Here(Generates):
    """A loaded model as a `Backend`; prompts share the prefill of common prefixes."""

    model: Model
    batch_size: int | None = None
    """Number of prompts decoded in lockstep, in the order given: in bf16 the tokens depend on which
    prompts share a batch. None takes all at once, within the model's token budget."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def max_positions(self) -> int | None:
        return self.model.max_positions

    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt; see `Backend.each`.

        Raises:
            UserError: a prompt leaves no room for `max_new_tokens`.
            FloatingPointError: the model's logits are not finite.
        """
        limits = sampling.limits_of(len(prompts))
        check_room(self.name, prompts, limits, self.max_positions)
        seeds = sampling.seeds(len(prompts))
        for batch in _batches(range(len(prompts)), self.batch_size):
            self.model.generate(
                [prompts[i] for i in batch],
                [limits[i] for i in batch],
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                repetition_penalty=sampling.repetition_penalty,
                seed=[seeds[i] for i in batch],
                end_ids=frozenset(sampling.stop_ids),
                on_done=lambda i, generation, b=batch: on_ended(b[i], generation),
            )

    def describe(self) -> Mapping[str, str]:
        """Versions of the libraries that write here, the dtype, and the number of accelerators."""
        places = {d for d in devices_of(self.model.hf) if d.type != "cpu"}
        devices = {"devices": str(len(places))} if places else {}
        return {
            "backend": "transformers",
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "dtype": self.model.dtype,
            "batch_size": str(self.batch_size or "all"),
            **devices,
        }


def _batches(indices: range, size: int | None) -> Iterable[range]:
    step = size or max(len(indices), 1)
    return (indices[at : at + step] for at in range(0, len(indices), step))
