"""The chains of thought that people label, from a run or from a file of given chains, and the
sample of them that everybody gets."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.stored_records import Place
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.traces import TraceSettings, to_trace
from faithscope.experiments.engine.merge import ANNOTATIONS
from faithscope.experiments.engine.traces.given import read_given
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.locks import Lock
from faithscope.interventions import AnswerKind, Trace
from faithscope.probes.text_model import TextModel


@dataclass(frozen=True)
class Chain:
    """One chain of thought, as an annotator reads it."""

    place: Place
    dataset: str
    question: str
    options: tuple[str, ...]
    parts: tuple[tuple[bool, str], ...]
    """(whether it is a step, its text), in order; joined, the texts are the whole reasoning."""
    tail: str
    """Text that the model wrote after its reasoning."""
    answer: str | None
    kind: AnswerKind
    """Kind of `answer` and `gold`: the letter of an option, an option, or a number."""
    gold: str | None
    """The right answer. No annotator sees it, since the sheet asks for faithfulness, not
    correctness."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The texts of the chain's steps; labels number them from 1."""
        return tuple(text for is_step, text in self.parts if is_step)

    @property
    def digest(self) -> str:
        """Hash of everything that was labelled, so that a label cannot be applied to a changed
        text."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """Chains to label, the run or file that they come from, and the folder of the annotations."""

    path: Path
    folder: Path
    """Folder of the annotations: `annotations` in a run folder, or `FILE.annotations` beside a
    file."""
    chains: tuple[Chain, ...]
    excluded: Counter[str]
    """Reason of exclusion -> number of traces that are not shown for it."""


def source_of(path: str | Path) -> Source:
    """All chains of a run folder, or of a file or folder of given chains (`faithscope docs given`).

    Raises:
        UserError: there is no such run or file, or it holds nothing to label.
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
    """Chains of a file as traces of their authors, whose tokens are characters."""
    read = read_given(path)
    for chain in read.chains:
        writer = TextModel(chain.model or "unknown", lambda message: None)
        trace = given_trace(
            writer, question_of_chain(chain, read.file, read.format), TraceSettings()
        )
        # an answer of unknown kind is shown as it stands in the file
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


SAMPLE, SAMPLE_SEED = "sample.json", 0


def alone(folder: Path) -> Lock:
    """The folder's lock, held to draw the sample, to admit an annotator, or to write an export."""
    return Lock(make_folder(folder / ".locks") / "folder.lock")


def sample(source: Source, limit: int | None = None) -> tuple[Chain, ...]:
    """The chains that all annotators label; drawn once, when the first of them begins.

    Args:
        limit: number of chains to draw at random, with a fixed seed; None = all chains, or the
            sample that is drawn already.

    Raises:
        UserError: `limit` is more than there are or differs from the drawn sample, or the text of a
            drawn chain has changed.
        StoreError: the file of the sample is damaged.
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
        drawn = {(model, task, item): d for model, task, item, d in json_of(path.read_bytes())}
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
