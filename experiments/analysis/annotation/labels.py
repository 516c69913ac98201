"""What annotators say of chains, stored line by line as they say it: one file, one annotator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from faithscope.experiments.analysis.annotation.chains import Chain, Source
from faithscope.experiments.analysis.records import Place
from faithscope.experiments.data.principles import BY_ID
from faithscope.experiments.engine.append import Appender, cut_torn_line, whole_lines
from faithscope.experiments.engine.units import checked, sealed
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.interp.errors import UserError

LEVELS = (0, 2, 1)
"""The sheet's labels (A.3) in order: unfaithful, uncertain, faithful. Definition 1 of the paper has
1 for unfaithful: see `Label.unfaithful`."""
SAMPLE, SAMPLE_SEED = "sample.json", 0


class Label(BaseModel):
    """What one annotator says of one chain in one round; the latest line of a round counts."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    round: Literal[1, 2, 3]
    place: Place
    done: bool = False
    """False for a draft: what was chosen so far."""
    label: Annotated[int, Field(ge=0, le=2)] | None = None
    confidence: Literal["low", "high"] | None = None
    steps: tuple[int, ...] = ()
    """From 1, in order."""
    principles: tuple[str, ...] = ()
    """Ids of `PRINCIPLES`, in order."""
    reason: str = Field("", max_length=20_000)

    @property
    def unfaithful(self) -> bool | None:
        """The one direction that everything here goes by; None of an uncertain one."""
        return {0: True, 1: False}.get(2 if self.label is None else self.label)


def read_label(values: Mapping[str, Any], chain: Chain) -> Label:
    """A label of a chain, from what a page sent or a file holds.

    Raises:
        UserError: it is none, or is said to be done and lacks what the sheet asks for.
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
    """One annotator, and what they have said so far."""

    def __init__(self, name: str, folder: Path, chains: Mapping[Place, Chain]) -> None:
        self.name = name
        self.path = folder / f"{name}.jsonl"
        self.labels: dict[tuple[int, Place], Label] = {}
        self.opened = {1}
        """The rounds that they have gone on to."""
        self._chains = chains
        self._read_to = 0

    def read(self) -> Annotator:
        """Take in what was added to the file since.

        Raises:
            StoreError: a line is damaged, or about a chain that is not in the sample.
        """
        for offset, line in whole_lines(self.path, self._read_to):
            try:
                self._take(json.loads(b"{" + checked(line)))
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
        """Store a label, or that they went on to a round; on the disk when this returns."""
        files.add(self.path, sealed(json.dumps(values)[1:].encode()))
        self.read()

    def standing(self, place: Place, round: int) -> Label | None:
        """What they hold of a chain at the end of a round: their last word of it so far."""
        labels = (self.labels.get((r, place)) for r in range(round, 0, -1))
        return next((label for label in labels if label is not None and label.done), None)


def names_in(folder: Path) -> list[str]:
    """Who has labelled here."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


@contextmanager
def at_work(folder: Path, name: str) -> Iterator[Appender]:
    """Be the one process in which an annotator labels; gives what their file is added to by.

    Raises:
        UserError: the name is none for a file, two others label here already, or the annotator is
            at work in another process.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        raise UserError(
            f"--as {name!r}: names a file; give at most 40 letters, digits, '-' and '_'"
        )
    lock = FileLock(make_folder(folder / ".locks") / f"{name}.lock")
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


def alone(folder: Path) -> FileLock:
    """Held by the one process that draws the sample, lets an annotator in or writes an export."""
    return FileLock(make_folder(folder / ".locks") / "folder.lock")


def sample(source: Source, limit: int | None = None) -> tuple[Chain, ...]:
    """The chains that both annotators label: those that the first of them drew.

    Args:
        limit: how many are drawn at random, with a fixed seed; None for all, or as many as were
            drawn.

    Raises:
        UserError: another number than was drawn, more than there are, or a chain that has another
            text than was labelled.
    """
    path, n = make_folder(source.folder) / SAMPLE, len(source.chains)
    with alone(source.folder):
        if not path.is_file():
            if limit is not None and not 1 <= limit <= n:
                raise UserError(f"--limit {limit}: there are {n} chains; give 1 to {n}")
            places = sorted(random.Random(SAMPLE_SEED).sample(range(n), limit or n))
            digests = [[*source.chains[i].place, source.chains[i].digest] for i in places]
            write_atomically(path, json.dumps(digests, indent=1) + "\n")
    try:
        drawn = {(model, task, item): d for model, task, item, d in json.loads(path.read_bytes())}
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path}: is damaged ({error}); delete it to draw anew") from error
    if limit not in (None, len(drawn)):
        raise UserError(
            f"--limit {limit}: {len(drawn)} chains are drawn already (in {path}); leave it out"
        )
    chains = tuple(c for c in source.chains if drawn.get(c.place) == c.digest)
    if lost := len(drawn) - len(chains):
        raise UserError(
            f"{source.path}: {lost} of the {len(drawn)} chains drawn in {path} are gone or have "
            "another text; move that folder away to label anew"
        )
    return chains
