"""The chains of thought that people are to label: of a run, or of a file of given chains."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from faithscope.experiments.analysis.records import Place
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.traces import TraceSettings, to_trace
from faithscope.experiments.engine.merge import ANNOTATIONS
from faithscope.experiments.engine.traces.given import read_given
from faithscope.interp.errors import UserError
from faithscope.interventions import AnswerKind, Trace
from faithscope.probes.text_model import TextModel


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
    kind: AnswerKind
    """What `answer` and `gold` are: the letter of an option, an option, a number."""
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
    """Of the annotations: `annotations` in a run folder, `FILE.annotations` beside a file."""
    chains: tuple[Chain, ...]
    excluded: Counter[str]
    """Reason -> how many traces are not shown for it."""


def source_of(path: str | Path) -> Source:
    """All chains of a run folder, or of a file or folder of given chains (docs/given.md).

    Raises:
        UserError: there is no such run or file, or nothing to label in it.
    """
    path = Path(path).expanduser()
    given = path.is_file() or (path.is_dir() and not (path / "config.yaml").is_file())
    if given:
        folder, traces = path.with_name(f"{path.name}.annotations"), list(_given(path))
        reasons = [None if trace.counted_steps else "no_step" for trace in traces]
    else:
        run = load_run(path)
        folder, records = run.path / ANNOTATIONS, list(run.records("trace"))
        traces = [to_trace(record) for record in records]
        reasons = [record.get("excluded") for record in records]
    chains = tuple(_of_trace(t) for t, why in zip(traces, reasons, strict=True) if not why)
    excluded = Counter(str(why) for why in reasons if why)
    if not chains:
        counted = ", ".join(f"{n} {reason}" for reason, n in excluded.items()) or "none is there"
        raise UserError(f"{path}: has no traces to label ({counted}); give a run that has some")
    return Source(path, folder, chains, excluded)


def _given(path: Path) -> Iterator[Trace]:
    """Chains of a file as traces of who wrote them, character by character."""
    read = read_given(path)
    for chain in read.chains:
        writer = TextModel(chain.model or "unknown", lambda message: None)
        trace = given_trace(
            writer, question_of_chain(chain, read.file, read.format), TraceSettings()
        )
        # an answer of no known kind is shown as the file has it
        yield replace(trace, answer=trace.answer or chain.answer)


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
        kind=question.kind,
        gold=question.gold,
    )
