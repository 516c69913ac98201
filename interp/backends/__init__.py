"""Where continuations are written: here, by a vLLM server, or by vLLM in this process.

One interface, the same records, the same meaning of every setting. Internals are read by
`interp.Model` alone: what another backend wrote is replayed there, by its ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from interp.generation import Generation, Sampling

OnDone = Callable[[int, Generation], None]
"""Told of each prompt's index and continuation as it ends, in the thread that asked."""


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

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        on_done: OnDone | None = None,
    ) -> list[Generation]:
        """Continue every prompt; `on_done` is called as each ends, so that it can be stored.

        Raises:
            UserError: a prompt leaves no room for `max_new_tokens`, or the backend is gone.
            BackendError: a prompt was not continued as asked.
        """
        ...

    def describe(self) -> Mapping[str, str]:
        """What wrote it: the backend and its version, for the record of a run."""
        ...
