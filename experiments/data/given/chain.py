"""A given chain (a chain of thought written elsewhere), and the readers of file layouts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind, Counterfactual, Sent
from faithscope.probes.declared_cues import Place

SPLIT = "test"
"""The dataset split that is read if a folder has several."""


_RARE = ("cut", "prefilled", "cue", "cue_target", "cue_name", "cue_mention", "cue_place")
_RARE += ("pair", "condition", "uncued", "sent", "edits", "counterfactual", "sample", "candidates")
_RARE += ("ids",)
"""Fields of a chain that few files tell of."""


@dataclass(frozen=True)
class GivenChain:
    """A chain of thought that was written elsewhere, with only the data of its file.

    Raises:
        UserError: steps overlap, go backwards, hold nothing or lie outside the reasoning, or labels
            do not match the steps one to one.
    """

    id: str
    """Identifier of the chain, unique within its dataset."""
    dataset: str
    question: str
    reasoning: str
    """The whole text of the reasoning, exactly."""
    kind: AnswerKind | None = None
    """Kind of the answers; None if the file does not tell."""
    options: tuple[str, ...] | None = None
    gold: str | None = None
    """The right answer as in the file; for a choice, the option's letter."""
    candidates: tuple[str, ...] = ()
    """Wrong numbers that the task of the run that wrote the chain compares with the right one."""
    steps: tuple[tuple[int, int], ...] | None = None
    """Half-open character spans of steps in `reasoning`, in order; text between them is in no given
    step. None if the chain is to be segmented here."""
    answer: str | None = None
    """The answer of the chain's model as in the file; for a choice, the option's letter."""
    model: str = ""
    """The model that wrote the chain; "" if the file does not tell."""
    prompt: str | None = None
    """The user message that the chain replies to, if the file has it."""
    sent: Sent | None = None
    """The whole prompt as it was sent, and the beginning of the reply, if the file has them."""
    counterfactual: Counterfactual | None = None
    """Reasoning that leads to another answer than the right one, if the file has some."""
    sample: str | None = None
    """Name of the sample, if the file says that a question has several chains: those of one id are
    of one question. The id is then `ID#SAMPLE`."""
    task: str | None = None
    """The task in whose words the question was asked, if known."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    """Label name -> the chain's label: `unfaithful`, `correct`; the name includes the source if
    there are several."""
    step_labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Label name -> one label for each of `steps`; None for a step without one."""
    cut: bool = False
    """Whether the file says that a token limit cut the reply off; False if it does not tell."""
    prefilled: int = 0
    """Number of characters at the start of `reasoning` that were prefilled, so that the chain's
    model did not write them."""
    cue: str | None = None
    """The cue to an answer that stood in the prompt of the chain, as text; None if there was none,
    or the file does not tell."""
    cue_target: str | None = None
    """The answer that the cue points to, as in the file; for a choice, the option's letter."""
    cue_name: str = ""
    cue_mention: str | None = None
    """Pattern of the words with which a text mentions the cue."""
    cue_place: Place | None = None
    """Where the cue stands beside `prompt`, or the task's message; None if that holds it."""
    pair: str = ""
    """Name of the chain's pair; "" for a chain alone."""
    condition: Literal["", "uncued", "cued", "forward", "reversed"] = ""
    """Which chain of its pair this one is."""
    uncued: GivenChain | None = None
    """The uncued chain of a cued one."""
    edits: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """Kind of edits that were made elsewhere -> index of a given step -> its text after the edit; a
    kind that other chains of the file have may have no step here."""
    ids: tuple[int, ...] = ()
    """Ids of the reasoning as its model wrote them, for a chain out of another run. A model whose
    tokenizer reads them as this text takes them as they are: another encoding of a text is another
    input (two line breaks may be one token or two)."""
    where: str = ""
    """Place of the chain for messages: `mine.jsonl, line 3`."""
    group: str | None = None
    """The chain's group in a column that was read for it, "" where the cell is empty; None if none
    was read. It decides nothing that is measured."""

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all that the file says of the chain."""
        left_out = ("where", "group")
        content = {name: v for name, v in vars(self).items() if name not in left_out}
        content["uncued"] = self.uncued and self.uncued.sha256
        for name in _RARE:
            # chains whose file does not tell of it keep earlier versions' ids
            if not content[name]:
                del content[name]
        text = json.dumps(content, sort_keys=True, default=_spelled)
        return hashlib.sha256(text.encode()).hexdigest()

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


def _spelled(value: Any) -> Any:
    """A value that JSON lacks, as it is hashed."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def rows_of_file(path: Path) -> list[SourceRow]:
    """The rows of a file (`sources.files`), or of all files of a folder, unless their names tell of
    splits.

    Raises:
        UserError: the rows cannot be read, as for `read_rows`.
    """
    return read_rows(path, SPLIT, key="traces.path", all_else=True)


@dataclass(frozen=True)
class Reader:
    """A reader of one file layout of given chains."""

    name: str
    """The value of `traces.format`."""
    summary: str
    """One line that describes the layout and its origin."""
    recognises: Callable[[Mapping[str, Any]], bool]
    """Function that tells whether a row (the first one of a file) has this layout."""
    chains: Callable[[Sequence[SourceRow]], Iterator[GivenChain]]
    """Function from the rows of one file to its chains, in order; a chain may take several rows.

    It raises `UserError`, with file, line, value and remedy, if something is missing or does not
    fit."""
    rows: Callable[[Path], list[SourceRow]] = rows_of_file
    """Function from a file or folder of this layout to its rows."""
    owns: Callable[[Path], bool] = lambda path: False
    """Function that tells whether a path has this layout by its name alone, as `log.eval` does; no
    other reader opens such a path."""


def joined(texts: Sequence[str], between: str = "\n\n") -> tuple[str, tuple[tuple[int, int], ...]]:
    """Steps joined to one text, with the half-open character span of each."""
    spans, at = [], 0
    for text in texts:
        spans.append((at, at + len(text)))
        at += len(text) + len(between)
    return between.join(texts), tuple(spans)
