"""`@probe`: all that a run has to know of a measure, stated where the measure is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from faithscope.probes.record import Record
from faithscope.probes.settings import Settings

Word = Literal["cue", "labels", "reprompts", "direct", "asked", "spoken", "cues"]
"""What of a task a measure may hang on: the answer cue, the labels, the prompts that quote
reasoning, those that ask without any, the prompt that the trace was written to, whether the task
speaks a natural language, and cues of its own."""


class Size(NamedTuple):
    """The size of a trace and its model before either is there; the defaults are guesses."""

    steps: int = 5
    tokens: int = 25
    """Per step."""
    layers: int = 30


GUESS = Size()
UNLISTED = 1_000
"""The place of a probe that asks for none: after those that do."""


@dataclass(frozen=True)
class Probe:
    """One measure that a run can ask for."""

    name: str
    """Its name in configs, records and tables, which is that of the function and of its file."""
    summary: str
    """One line."""
    measure: Callable[..., list[Record]]
    """(model, trace, `Asking`, settings) -> records. Where `from_outside`, a
    `probes.text_model.TextModel` will do for a model."""
    settings: type[Settings]
    words: tuple[Word, ...]
    """Everything of the task that its numbers depend on."""
    calls: Callable[[Size, Any], int]
    """Continuations that are asked about, given the settings."""
    quoted: Callable[[Size, Any], int] | None = None
    """Steps that all calls together quote; None: each the whole reasoning."""
    reads_labels: bool = False
    """Whether all of its numbers are read off the answers' labels, and mean little where these have
    little of the probability."""
    on_excluded: bool = False
    """Whether it also runs where the trace cannot be edited: it asks about the question alone."""
    from_outside: Mapping[str, tuple[str, ...]] | None = None
    """Setting -> what it may hold for a model of which only what it writes is to be had; None
    where such a model cannot be measured."""
    listed: int = UNLISTED
    """Its place in lists and tables; probes of one place follow each other by name."""
    version: int = 1
    """Raised when its numbers come to be others on the same traces: records of a run are of one
    version. `tests/test_versions.py` fails where that was forgotten."""

    def quotes(self, size: Size, settings: Any) -> int:
        """Steps that all calls together quote."""
        if self.quoted is not None:
            return self.quoted(size, settings)
        return self.calls(size, settings) * size.steps


PROBES: dict[str, Probe] = {}
"""Every probe by its name; filled as `faithscope.probes` is imported."""

F = TypeVar("F", bound=Callable[..., list[Record]])


def probe(
    summary: str,
    *,
    words: tuple[Word, ...],
    calls: Callable[[Size, Any], int],
    quoted: Callable[[Size, Any], int] | None = None,
    reads_labels: bool = False,
    on_excluded: bool = False,
    from_outside: Mapping[str, tuple[str, ...]] | None = None,
    listed: int = UNLISTED,
    version: int = 1,
) -> Callable[[F], F]:
    """Registers a function of (model, trace, asking, settings) under its own name.

    The settings' class is what the last argument is annotated with; for the rest see `Probe`.
    """

    def register(function: F) -> F:
        *_, last = inspect.signature(function).parameters.values()
        settings = function.__globals__[last.annotation]
        PROBES[function.__name__] = Probe(
            function.__name__,
            summary,
            function,
            settings,
            words,
            calls,
            quoted,
            reads_labels,
            on_excluded,
            from_outside,
            listed,
            version,
        )
        return function

    return register
