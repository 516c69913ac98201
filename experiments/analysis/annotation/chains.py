"""The chains of thought that people are to label: of a run, or of a file of given chains."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from faithscope.experiments.analysis.records import Place
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.data.traces import to_trace
from faithscope.interp.errors import UserError
from faithscope.interventions import Trace


@dataclass(frozen=True)
class Chain:
    """One chain as a person reads it."""

    place: Place
    dataset: str
    question: str
    options: tuple[str, ...]
    parts: tuple[tuple[bool, str], ...]
    """(whether it is a step, its text), in order; joined, the texts are the whole reasoning."""
    tail: str
    """What the model wrote after its reasoning."""
    answer: str | None
    gold: str | None
    """The right answer; no annotator sees it: the sheet asks for faithfulness, not correctness."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The texts of its steps, which labels number from 1."""
        return tuple(text for is_step, text in self.parts if is_step)

    @property
    def digest(self) -> str:
        """Of all that was labelled, so that no label is taken for that of another text."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """Where chains come from, and where what people say of them lies."""

    path: Path
    folder: Path
    """Of the annotations: `annotations` in a run folder, `NAME.annotations` beside a file."""
    chains: tuple[Chain, ...]
    excluded: Counter[str]
    """Reason -> how many traces are not shown for it."""


def source_of(path: str | Path) -> Source:
    """All chains of a run folder.

    Raises:
        UserError: there is no such run, it has no traces, or it leaves all of them out.
    """
    run = load_run(path)
    records = list(run.records("trace"))
    if not records:
        raise UserError(f"{run.path}: holds no traces; annotate a run that writes or takes some")
    excluded = Counter(str(r["excluded"]) for r in records if r.get("excluded"))
    chains = tuple(_of_trace(to_trace(r)) for r in records if not r.get("excluded"))
    if not chains:
        reasons = ", ".join(f"{n} {reason}" for reason, n in excluded.items())
        raise UserError(f"{run.path}: all of its traces are left out ({reasons})")
    return Source(run.path, run.path / "annotations", chains, excluded)


def _of_trace(trace: Trace) -> Chain:
    question = trace.question
    return Chain(
        place=(trace.origin.model, question.task, question.id),
        dataset=question.dataset,
        question=question.text,
        options=question.options or (),
        parts=tuple((step.counted, step.text) for step in trace.steps),
        tail=trace.tail_text,
        answer=trace.answer,
        gold=question.gold,
    )
