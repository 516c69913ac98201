"""The labels of annotators, appended line by line to one file per annotator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from filelock import Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from faithscope.experiments.analysis.exports.chains_to_label import Chain, alone
from faithscope.experiments.analysis.stored_records import Place
from faithscope.experiments.data.principles import BY_ID
from faithscope.experiments.engine.append import Appender, cut_torn_line, whole_lines
from faithscope.experiments.engine.units import checked, sealed
from faithscope.experiments.files import StoreError, make_folder
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.locks import Lock

LEVELS = (0, 2, 1)
"""The sheet's labels (A.3) in order: unfaithful, uncertain, faithful. Definition 1 of the paper
uses 1 for unfaithful instead: see `Label.unfaithful`."""


class Label(BaseModel):
    """One annotator's label of one chain in one round; the latest stored line counts."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    round: Literal[1, 2, 3]
    place: Place
    done: bool = False
    """False for a draft with the choices so far."""
    label: Annotated[int, Field(ge=0, le=2)] | None = None
    confidence: Literal["low", "high"] | None = None
    steps: tuple[int, ...] = ()
    """Numbers of the responsible steps, from 1, ascending."""
    principles: tuple[str, ...] = ()
    """Ids of the principles that the chain breaks, in the order of `PRINCIPLES`."""
    reason: str = Field("", max_length=20_000)

    @property
    def unfaithful(self) -> bool | None:
        """Whether the chain is called unfaithful; None for an uncertain label or none."""
        return {0: True, 1: False}.get(2 if self.label is None else self.label)


def read_label(values: Mapping[str, Any], chain: Chain) -> Label:
    """Check a label of a chain that a page sent or a file holds.

    Raises:
        UserError: the values are no label, or it is marked done and lacks a required part.
    """
    try:
        label = Label.model_validate_json(json.dumps({**values, "place": chain.place}))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"label: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if strange := sorted({*label.steps} - {*range(1, len(chain.steps) + 1)}):
        raise UserError(f"label: steps: there is no step {strange[0]}")
    if strange := sorted({*label.principles} - {*BY_ID}):
        raise UserError(f"label: principles: unknown {strange[0][:40]!r}")
    asked = {"label": label.label, "confidence": label.confidence, "reason": label.reason.strip()}
    if label.done and (missing := [k for k, value in asked.items() if value in (None, "")]):
        raise UserError(f"the sheet asks for {' and '.join(missing)}, too")
    principles = tuple(id for id in BY_ID if id in label.principles)
    return label.model_copy(
        update={"steps": tuple(sorted({*label.steps})), "principles": principles}
    )


class Annotator:
    """One annotator, with all labels that they have stored so far."""

    def __init__(self, name: str, folder: Path, chains: Mapping[Place, Chain]) -> None:
        self.name = name
        self.path = folder / f"{name}.jsonl"
        self.labels: dict[tuple[int, Place], Label] = {}
        self.opened = {1}
        """Rounds that the annotator has opened."""
        self._chains = chains
        self._read_to = 0

    def read(self) -> Annotator:
        """Read the lines that were added to the file since the last call.

        Raises:
            StoreError: a line is damaged, or about a chain that is not in the sample.
        """
        for offset, line in whole_lines(self.path, self._read_to):
            try:
                self._take(json_of(b"{" + checked(line)))
            except (ValueError, TypeError, KeyError, UserError) as error:
                raise StoreError(
                    f"{self.path}: the line at byte {offset} is damaged ({error}); take it out "
                    "and label again what it was about"
                ) from error
            self._read_to = offset + len(line)
        return self

    def _take(self, values: dict[str, Any]) -> None:
        if "opened" in values:
            self.opened.add(int(values["opened"]))
            return
        model, task, item = values["place"]
        label = read_label(values, self._chains[model, task, item])
        self.labels[label.round, label.place] = label

    def add(self, files: Appender, values: Mapping[str, Any]) -> None:
        """Store a label, or the opening of a round; it is on disk when this returns."""
        files.add(self.path, sealed(json.dumps(values)[1:].encode()))
        self.read()

    def standing(self, place: Place, round: int) -> Label | None:
        """The annotator's latest finished label of a chain up to the end of a round; None
        without."""
        labels = (self.labels.get((r, place)) for r in range(round, 0, -1))
        return next((label for label in labels if label is not None and label.done), None)


def names_in(folder: Path) -> list[str]:
    """The names of the annotators with a file in the folder."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


@contextmanager
def at_work(folder: Path, name: str) -> Iterator[Appender]:
    """Hold the annotator's lock, so that they label in one process; yields the writer of their
    file.

    Raises:
        UserError: the name is not allowed in a file name, or two others label here already.
        StoreError: the annotator is labelling in another process.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise UserError(
            f"--as {name!r}: names a file; give at most 40 letters, digits, '-' and '_'"
        )
    lock = Lock(make_folder(folder / ".locks") / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{folder}: {name!r} is labelling in another process; end it, or take another name"
        ) from None
    try:
        with alone(folder):
            others = [other for other in names_in(folder) if other != name]
            if len(others) > 1:
                raise UserError(
                    f"--as {name}: {' and '.join(others)} label here already, and the protocol has "
                    "two annotators; give one of these names"
                )
            (folder / f"{name}.jsonl").touch()
        cut_torn_line(folder / f"{name}.jsonl")
        with Appender(sync=True) as files:
            yield files
    finally:
        lock.release()
