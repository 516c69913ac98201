"""A chain of thought that was written elsewhere, and what reads a layout of such chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import Row
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind

SPLIT = "test"
"""The split that is read of a folder that has several."""


@dataclass(frozen=True)
class GivenChain:
    """A chain of thought that was written elsewhere, as its file has it; nothing is filled in.

    Raises:
        UserError: steps that overlap, go backwards, hold nothing or lie outside the reasoning, or
            labels that are not one for each step.
    """

    id: str
    """Unique within its dataset."""
    dataset: str
    question: str
    reasoning: str
    """The whole text, exactly."""
    kind: AnswerKind | None = None
    """None where the file does not tell."""
    options: tuple[str, ...] | None = None
    gold: str | None = None
    """The right answer as the file has it; a choice's as a letter."""
    steps: tuple[tuple[int, int], ...] | None = None
    """Half-open character spans in `reasoning`, in order. Text between them is in no given step.
    None: the chain is to be segmented here."""
    answer: str | None = None
    """What the chain's model answered, as the file has it; the option of a choice as a letter."""
    model: str = ""
    """The model that wrote it; "" where the file does not tell."""
    prompt: str | None = None
    """The user message that it was written under, where the file has it."""
    task: str | None = None
    """The task in whose words it was asked, where that is known."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Of the chain, by name: `unfaithful`, `correct`; with the source in the name where there are
    several."""
    step_labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """By name, one for each of `steps`; None where a step has none."""
    cut: bool = False
    """Whether the file says that a token limit cut the reply off; False where it does not tell."""
    where: str = ""
    """`mine.jsonl, line 3`: for messages."""

    def __post_init__(self) -> None:
        at = 0
        for i, (start, end) in enumerate(self.steps or ()):
            if not at <= start <= end <= len(self.reasoning):
                raise UserError(
                    f"{self.where}: step {i} spans the characters {start} to {end}, but the step "
                    f"before it ends at {at} and the reasoning at {len(self.reasoning)}; give "
                    "steps in order that do not overlap"
                )
            if not self.reasoning[start:end].strip():
                raise UserError(f"{self.where}: step {i} holds no text; take it out, or fill it")
            at = end
        for name, labels in self.step_labels.items():
            if self.steps is None or len(labels) != len(self.steps):
                n = 0 if self.steps is None else len(self.steps)
                raise UserError(
                    f"{self.where}: {len(labels)} labels {name!r} for {n} steps; give one for "
                    "each step, null where there is none"
                )


def rows_of_file(path: Path) -> list[Row]:
    """The rows of JSON lines, JSON, CSV, TSV or Parquet, or of a folder of such files.

    Raises:
        UserError: as `read_rows`.
    """
    return read_rows(path, SPLIT)


@dataclass(frozen=True)
class Reader:
    """One layout in which chains lie."""

    name: str
    """The value of `traces.format`."""
    summary: str
    """One line: what the layout is, and where it comes from."""
    recognises: Callable[[Mapping[str, Any]], bool]
    """Whether a row (the first one of a file) is in this layout."""
    chains: Callable[[Sequence[Row]], Iterator[GivenChain]]
    """The chains of the rows of one file, in order; a chain may take several rows.

    Raises UserError: something is missing or does not fit; names file, line, value and remedy."""
    rows: Callable[[Path], list[Row]] = rows_of_file
    """How its files become rows."""
    owns: Callable[[Path], bool] = lambda path: False
    """Whether a path is in this layout by its name alone, as `log.eval` is; such a path is opened
    by no other reader."""


def joined(texts: Sequence[str], between: str = "\n\n") -> tuple[str, tuple[tuple[int, int], ...]]:
    """Steps that a file holds one by one as one text, and where in it each stands."""
    spans, at = [], 0
    for text in texts:
        spans.append((at, at + len(text)))
        at += len(text) + len(between)
    return between.join(texts), tuple(spans)
