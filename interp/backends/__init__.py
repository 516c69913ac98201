"""Where continuations are written: here, by a vLLM server, or by vLLM in this process.

All backends share one interface, one form of records and one meaning of every setting. Internals
are read by `interp.Model` alone: text of another backend is replayed there, by its token ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling

OnDone = Callable[[int, Generation], None]
"""Called with a prompt's index and continuation as it ends, in the thread of the caller."""
OnEnded = Callable[[int, "Generation | BackendError"], None]
"""Called like `OnDone`, and also with the error of each prompt that was not continued."""


class BackendError(RuntimeError):
    """A backend did not do what was asked; the message names the prompt and quotes the backend."""


class BackendLost(UserError):
    """A backend is gone and writes nothing more; the message says why."""


class Backend(Protocol):
    """Writes continuations of token ids."""

    @property
    def name(self) -> str:
        """The model's name, as in the records."""
        ...

    @property
    def max_positions(self) -> int | None:
        """Most tokens of a prompt and its continuation together; None if not known."""
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
        """Continue every prompt, as `each` does, and stop at the first one that is not continued.

        Raises:
            UserError: as `each`.
            BackendError: a prompt was not continued as asked.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """Name and version of the backend that writes, for the record of a run."""
        ...

    def close(self) -> None:
        """Release what the backend took to write: devices, processes. A second call does nothing.

        Weights and servers that others made stay as they are. A closed backend writes nothing more.
        """
        ...


class Generates(ABC):
    """Base of backends: implements `generate` by their `each`."""

    @abstractmethod
    def each(self, prompts: Sequence[Sequence[int]], sampling: Sampling, on_ended: OnEnded) -> None:
        """Continue every prompt, telling `on_ended` of each; see `Backend.each`."""

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
        """Do nothing, since nothing was taken: see `Backend.close`."""
        return
