"""The chains of a run with everything that the run says of each: the common content of all exports.

Every study's runs have them, since they are made from the study's items and scores.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    LABELS,
    PLACE,
    STEP_LABEL,
    Scores,
    digest,
)
from faithscope.experiments.analysis.item_view import ItemView
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.traces.scores import place as place_of_trace
from faithscope.experiments.config.study import study_of
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.traces.given import RUN
from faithscope.interp.errors import UserError

Row = Mapping[str, Any]
"""One row of a frame of `Scores`, by column."""
Rows = Sequence[Row]
Place = Mapping[str, Any]
"""The columns `scores.PLACE` of a chain; `model` is the one that wrote it."""


@dataclass(frozen=True)
class ChainStep:
    """A stretch of the reasoning, with the scores and labels of a run."""

    text: str
    counted: bool = True
    """Whether an intervention may touch it."""
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuredChain:
    """A chain of a run, and what the run measured of it."""

    place: Place
    chain: GivenChain
    """The chain as another run would read it."""
    steps: tuple[ChainStep, ...]
    """All steps; joined, their texts are the reasoning."""
    message: str
    """The user message that the chain replies to, as far as it is known; else the question."""
    tail: str = ""
    """Text that the model wrote after its reasoning."""
    excluded: str = ""
    """Why no probe edits the chain; empty for the others."""
    scores: Rows = ()
    """Rows of `Scores.items` that are no labels, with and without a value."""

    @property
    def id(self) -> str:
        """Id of the chain: the same in every run in which the same text stands at the same
        place."""
        return digest([*map(str, self.place.values()), self.chain.reasoning])

    @property
    def values(self) -> dict[str, float]:
        """Measure -> score, for the measures that have one."""
        return {r["measure"]: r["value"] for r in _known(self.scores)}

    @property
    def missing(self) -> dict[str, str]:
        """Measure -> why the chain has no score of it."""
        return {r["measure"]: r["missing"] for r in self.scores if r["missing"]}


def measured_chains(run: Run) -> list[MeasuredChain]:
    """Every chain of a run, in the order of its items. A chain that several models read is there
    once, with the scores of all readers.

    Raises:
        UserError: the run holds no chains of its own.
    """
    report = study_of(stored_config(run.path)).report()
    scores: Scores | None = run.once(report.scores) if report.scores else None
    items, steps = _by_place(scores, "items"), _by_place(scores, "steps")
    chains: dict[tuple[str, ...], MeasuredChain] = {}
    for place, make in _chains(run):
        at = tuple(str(place[name]) for name in PLACE)
        if at not in chains:
            chains[at] = make(items[at], steps[at])
    if not chains:
        read = [str(path) for path in run.config.made_of.values()]
        other = f"export the runs that it reads: {', '.join(read)}" if read else "start it first"
        raise UserError(f"{run.path}: holds no chains of its own to export; {other}")
    return list(chains.values())


def _by_place(scores: Scores | None, name: str) -> defaultdict[tuple[str, ...], list[Row]]:
    rows: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in [] if scores is None else getattr(scores, name).to_dict("records"):
        rows[tuple(str(row[column]) for column in PLACE)].append(row)
    return rows


def _chains(run: Run) -> Iterator[tuple[Place, Callable[[Rows, Rows], MeasuredChain]]]:
    """Yields (place, function from the rows of items and of steps to the measured chain) for every
    chain, from the stored traces if the run has some, else from the study's items."""
    if any(key[0] == "trace" for key in run.index):
        for record in run.records("trace"):
            place = place_of_trace(record)
            yield place, partial(_of_trace, run, record, place)
        return
    for item in study_of(stored_config(run.path)).report().items.of(run):
        if item.place is not None:
            place = item.place()
            yield place, partial(_of_view, item.view, place)


def _of_trace(run: Run, record: Record, place: Place, items: Rows, steps: Rows) -> MeasuredChain:
    where = f"{run.path}, trace of {record['item']} by {record['model']}"
    row = SourceRow(str(record["item"]), record, where)
    (chain,) = RUN.chains([row])
    given = record["origin"].get("given") or {}
    if not given:
        chain = replace(chain, labels=_labels(items))
    labels, credits = given.get("step_labels", {}), _credits(steps)
    parts = [
        ChainStep(
            step["text"],
            step["counted"],
            credits.get(step["index"], {}),
            {
                name: of_steps[step["index"]]
                for name, of_steps in labels.items()
                if of_steps[step["index"]] is not None
            },
        )
        for step in record["steps"]
    ]
    return MeasuredChain(
        place,
        chain,
        tuple(parts),
        question_of_chain(chain, str(run.path), RUN.name).prompt,
        (record.get("tail_text") or "").strip(),
        record.get("excluded") or "",
        _scores(items),
    )


def _of_view(make: Callable[[], ItemView], place: Place, items: Rows, steps: Rows) -> MeasuredChain:
    view = make()
    texts, credits = list(view.step_texts), _credits(steps)
    numbered = [step.number is not None for step in view.steps] if view.chain is None else None
    counted = [bool(text.strip()) for text in texts]
    if numbered is not None:
        counted = [a and b for a, b in zip(counted, numbered, strict=True)]
    labels: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in steps:
        if row["family"] == STEP_LABEL:
            labels[row["step"]][row["measure"]] = _plain(row["value"])
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    spans = [span for span, of in zip(pairwise(ends), counted, strict=True) if of]
    names = dict.fromkeys(name for of in labels.values() for name in of)
    chain = GivenChain(
        id=str(place["item"]),
        dataset=place["dataset"],
        question=view.question,
        reasoning="".join(texts),
        gold=view.gold,
        steps=tuple(spans),
        answer=view.answer,
        model=place["model"],
        labels=_labels(items),
        step_labels={
            name: tuple(labels[i].get(name) for i, of in enumerate(counted) if of) for name in names
        },
        where=view.title,
    )
    parts = [
        ChainStep(text, counts, credits.get(i, {}), labels[i])
        for i, (text, counts) in enumerate(zip(texts, counted, strict=True))
    ]
    return MeasuredChain(place, chain, tuple(parts), view.question, scores=_scores(items))


def _scores(items: Rows) -> tuple[Row, ...]:
    return tuple(row for row in items if row["family"] not in LABELS)


def _labels(items: Rows) -> dict[str, Any]:
    return {r["measure"]: _plain(r["value"]) for r in _known(items) if r["family"] in LABELS}


def _known(rows: Rows) -> Iterator[Row]:
    return (row for row in rows if not row["missing"])


def _credits(steps: Rows) -> dict[int, dict[str, float]]:
    """Index of a step -> measure -> its value there; labels are left out."""
    credits: dict[int, dict[str, float]] = defaultdict(dict)
    for row in steps:
        if row["family"] not in LABELS and not math.isnan(row["value"]):
            credits[row["step"]][row["measure"]] = row["value"]
    return credits


def _plain(value: float) -> Any:
    """A label's number, as true or false where it is 1 or 0."""
    return bool(value) if value in (0, 1) else value
