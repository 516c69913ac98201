"""Where continuations are written: here, by a vLLM server, or by vLLM in this process.

One interface, the same records, the same meaning of every setting. Internals are read by
`interp.Model` alone: what another backend wrote is replayed there, by its ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from faithscope.interp.generation import Generation, Sampling

OnDone = Callable[[int, Generation], None]
"""Told of each prompt's index and continuation as it ends, in the thread that asked."""
OnEnded = Callable[[int, "Generation | BackendError"], None]
"""Called as `OnDone`, and also for each prompt that was not continued, with the error."""


class BackendError(RuntimeError):
    """A backend did not do what was asked; the message names the prompt and what it said."""


class Backend(Protocol):
    """Writes continuations of token ids."""

    @property
    def name(self) -> str:
        """The model's name, as the records have it."""
        ...

    @property
    def max_positions(self) -> int | None:
        """Most tokens of a prompt and its continuation together, where that is known."""
        ...

    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt; `on_ended` is called as each ends, so that it can be stored.

        A prompt that is not continued as asked costs no other: its error goes to `on_ended`.

        Raises:
            UserError: a prompt leaves no room for `max_new_tokens`, or the backend is gone.
        """
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        on_done: OnDone | None = None,
    ) -> list[Generation]:
        """Continue every prompt, or none: `each`, up to the first that is not continued.

        Raises:
            UserError: as `each`.
            BackendError: a prompt was not continued as asked.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """What wrote it: the backend and its version, for the record of a run."""
        ...

    def close(self) -> None:
        """Give back what was taken to write: devices, processes. A second call does nothing.

        Weights and servers that others made stay as they are; after it nothing more is written.
        """
        ...


class Generates(ABC):
    """`generate` of a backend, from its `each`."""

    @abstractmethod
    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """See `Backend.each`."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        on_done: OnDone | None = None,
    ) -> list[Generation]:
        """Continue every prompt; see `Backend.generate`."""
        done: dict[int, Generation] = {}

        def keep(i: int, ended: Generation | BackendError) -> None:
            if isinstance(ended, BackendError):
                raise ended
            done[i] = ended
            if on_done is not None:
                on_done(i, ended)

        self.each(prompts, sampling, keep)
        return [done[i] for i in range(len(prompts))]

    def close(self) -> None:
        """Nothing was taken: see `Backend.close`."""
        return
