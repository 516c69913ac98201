"""`@probe`: declares all that a run has to know of a measure, beside the measure's code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from faithscope.probes.record import Record
from faithscope.probes.settings import Settings

Word = Literal["cue", "labels", "reprompts", "direct", "asked", "spoken", "cues"]
"""Parts of a task that a measure may depend on: the answer cue, the labels, the prompts that quote
reasoning, those that ask without reasoning, the prompt that the trace was written to, whether the
task is in a natural language, and its own cues."""


class Size(NamedTuple):
    """Expected size of a trace and its model, before either is known; the defaults are guesses."""

    steps: int = 5
    tokens: int = 25
    """Number of tokens per step."""
    layers: int = 30
    prompt: int = 100
    """Number of tokens before the reasoning."""
    cue: int = 4
    """Number of tokens of the answer cue."""
    labels: int = 8
    """Number of tokens that are run to score the labels."""
    heads: int = 16
    """Number of attention heads per layer."""
    width: int = 2048
    """Numbers in a hidden state."""

    @property
    def reasoning(self) -> int:
        return self.steps * self.tokens

    @property
    def rewritten(self) -> int:
        """Most tokens that are expected of a chain that is written anew."""
        return self.reasoning * 3 // 2 + 32


class Branches(NamedTuple):
    """Branches that a probe runs, by what they share with the unedited chain.

    A branch of each kind runs, of its own: the reasoning after a step, on average one half
    (`late`); all of the reasoning (`other`); a step (`steps`); nothing but what stands after the
    reasoning (`ends`).
    """

    late: int = 0
    other: int = 0
    steps: int = 0
    ends: int = 0
    repeated: bool = True
    """Whether the unedited chain is run once more alone, for the noise floor."""
    scored: bool = True
    """Whether labels are scored after each branch."""


class Texts(NamedTuple):
    """Texts that a probe lets the model write side by side."""

    n: int
    tokens: int
    """Tokens of the longest."""
    share: float = 1
    """Tokens of one on average, as a share of these."""


class Stored(NamedTuple):
    """Hidden states that a probe reads of one trace, and those that it stores."""

    bytes: int
    """Size of the stored arrays on disk."""
    tokens: int
    """Number of tokens whose states of all layers are held while they are read."""
    sites: int = 1
    """Number of states of a token in each layer."""


class OtherChain(NamedTuple):
    """Another chain of the same model and task, about another question."""

    item: str
    asked: str
    """The message that it was written to."""
    text: str
    answer: str | None
    """The answer that it states; None if that is unknown."""


GUESS = Size()
UNLISTED = 1_000
"""Place in lists of a probe that states none: after all others."""


@dataclass(frozen=True)
class Probe:
    """One measure that a run can ask for."""

    name: str
    """Name of the probe in configs, records and tables: that of its function and file."""
    summary: str
    """Description of the measure in one line."""
    measure: Callable[..., list[Record]]
    """Function (model, trace, `Asking`, settings) -> records; with `from_outside`, the model may be
    a `probes.text_model.TextModel`."""
    settings: type[Settings]
    words: tuple[Word, ...]
    """Parts of the task that the measure's numbers depend on."""
    calls: Callable[[Size, Any], int]
    """Number of texts that the model runs or writes, given size and settings, if every edit of the
    trace can be made; fewer are run of a trace without a number to corrupt, or where a later
    question depends on the model's reply. `tests/test_every_probe.py` compares it with what is
    run."""
    branches: Callable[[Size, Any], Branches | None] | None = None
    """The branches that one trace takes besides its unedited chain, given size and settings; None
    if their tokens cannot be foretold."""
    writes: Callable[[Size, Any], Sequence[Texts]] | None = None
    """The texts that the model writes about one trace, given size and settings, in the order in
    which they are written; None if these follow from the settings' `max_new_tokens` and
    `answer_tokens`, as far as they have these."""
    trained: Callable[[Size, Any], int] | None = None
    """Tokens of texts on which weights are trained, given size and settings, once for every update;
    None of a probe that trains none."""
    quoted: Callable[[Size, Any], int] | None = None
    """Steps that all calls together quote; None if each call quotes the whole reasoning."""
    stored: Callable[[Size, Any], Stored] | None = None
    """Hidden states of one trace that are read and stored, given size and settings; None of a probe
    that stores none."""
    reads_labels: bool = False
    """Whether all numbers of the measure, but those of records whose `reading` is `generated`, are
    read off the answers' labels, and mean little if these have little probability."""
    follows_answer: bool = False
    """Whether numbers of the measure follow one answer, the one that the chain states or else the
    forced choice: its records have the fields of `probes.reference_answer`."""
    on_excluded: bool = False
    """Whether the probe runs even if the trace cannot be edited: it asks about the question
    alone."""
    from_outside: Mapping[str, tuple[str, ...]] | None = None
    """Setting -> the values that it may have for an API model, of which only texts are known; None
    if such a model cannot be measured."""
    samples_steps: bool = False
    """Whether the probe edits steps one by one, and only those of a trace's sample if it has one
    (`Trace.is_sampled`); its lists have None for the others."""
    papers: tuple[str, ...] = ()
    """Papers whose printed tables or detectors are of the measure (`docs/papers`). Only of such a
    measure may a study's tables, figures and words say something of their own; any other measure
    has all it needs in its two files."""
    listed: int = UNLISTED
    """Place of the probe in lists and tables; probes of one place are sorted by name."""
    reads_programs: bool = False
    """Whether the measure takes, as `programs`, what models wrote that read the chain as a program
    (`probes.program_reader.Written`); none without such models."""
    takes_others: int = 0
    """How many of the next chains of the run that are about other questions of the task the measure
    takes, as `others` (`OtherChain`); it gets fewer where the run has fewer."""
    alone: bool = False
    """Whether nothing else may run on the model while the measure is taken: it changes the
    weights for a while."""
    version: int = 1
    """Version of the measure, raised when its numbers change on the same traces: records of a run
    are of one version. `tests/test_versions.py` fails if that was forgotten."""

    def quotes(self, size: Size, settings: Any) -> int:
        """Number of steps that all calls together quote."""
        if self.quoted is not None:
            return self.quoted(size, settings)
        return self.calls(size, settings) * size.steps

    def texts(self, size: Size, settings: Any) -> Sequence[Texts]:
        """The texts that the model writes; without `writes` no more than as many as `calls`."""
        if self.writes is not None:
            return self.writes(size, settings)
        tokens = getattr(settings, "answer_tokens", 0)
        if hasattr(settings, "max_new_tokens"):
            tokens = settings.max_new_tokens or size.rewritten
        return [Texts(self.calls(size, settings), tokens)] if tokens else []


PROBES: dict[str, Probe] = {}
"""Name -> probe; filled when `faithscope.probes` is imported."""

F = TypeVar("F", bound=Callable[..., list[Record]])


def probe(
    summary: str,
    *,
    words: tuple[Word, ...],
    calls: Callable[[Size, Any], int],
    branches: Callable[[Size, Any], Branches | None] | None = None,
    writes: Callable[[Size, Any], Sequence[Texts]] | None = None,
    trained: Callable[[Size, Any], int] | None = None,
    quoted: Callable[[Size, Any], int] | None = None,
    stored: Callable[[Size, Any], Stored] | None = None,
    reads_labels: bool = False,
    follows_answer: bool = False,
    on_excluded: bool = False,
    from_outside: Mapping[str, tuple[str, ...]] | None = None,
    samples_steps: bool = False,
    papers: tuple[str, ...] = (),
    listed: int = UNLISTED,
    reads_programs: bool = False,
    takes_others: int = 0,
    alone: bool = False,
    version: int = 1,
) -> Callable[[F], F]:
    """Registers a function of (model, trace, asking, settings) under its own name.

    The annotation of the function's fourth argument is the settings' class; for the rest see
    `Probe`.
    """

    def register(function: F) -> F:
        fourth = list(inspect.signature(function).parameters.values())[3]
        settings = function.__globals__[fourth.annotation]
        known = PROBES.get(function.__name__)
        if known is not None and known.measure.__module__ != function.__module__:
            raise ValueError(f"{function.__name__!r} is a probe of {known.measure.__module__}")
        PROBES[function.__name__] = Probe(
            function.__name__,
            summary,
            function,
            settings,
            words,
            calls,
            branches,
            writes,
            trained,
            quoted,
            stored,
            reads_labels,
            follows_answer,
            on_excluded,
            from_outside,
            samples_steps,
            papers,
            listed,
            reads_programs,
            takes_others,
            alone,
            version,
        )
        return function

    return register
