"""Rows of verdicts on chains and their steps, and what the labels of the chains say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from faithscope.experiments.analysis.comparison.scores import says_faithful
from faithscope.experiments.analysis.verdicts import ChainVerdict, meaning_of, verdict_of
from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.tasks import NO_STEP, JudgedTask
from faithscope.experiments.studies.slrc.judges.asking import Asked
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain
from faithscope.probes.record import Record

NO_STEPS, FAILED, NOT_RUN = "no_steps", "failed", "not_run"
Row = dict[str, Any]
VERDICT = {
    "judge": "",
    "reading": "generated | scored",
    "form": "the prompt; FORM.FIELD for a further field of its replies",
    "task": "name of the judged task; own for a form of one's own",
    "asks": "error | property",
    "dataset": "",
    "model": "the model that wrote the chain",
    "item": "id of the question, or of a chain from a file",
    "chain": "name of the chain, unique in the run",
    "cut": "whether a token limit cut the chain off, as its file says; see `report.cut`",
    "outcome": "parsed, or why there is no verdict: the reply's outcome, uncertain, no_steps …",
    "flag": "whether something is wrong; none for forms that rate, or ask for a property",
    "score": "higher is worse, or more of the property",
    "first": "the first step that is wrong, from 0; -1 where none is",
    "rating": "the verdict itself, for forms that rate or classify",
    "holds": "whether the chain has the property that the form asks for; none for other forms",
    "n_asks": "asks about the chain",
    "n_without_verdict": "asks without a verdict",
}
STEP = {
    "judge": "",
    "reading": "generated | scored",
    "form": "the prompt",
    "dataset": "",
    "model": "the model that wrote the chain",
    "item": "id of the question, or of a chain from a file",
    "chain": "name of the chain, unique in the run",
    "cut": "whether a token limit cut the chain off",
    "step": "index of the step, from 0",
    "flag": "whether the step is wrong; none where the judge gave no verdict, or stopped before it",
    "score": "higher is worse, or more of the property",
    "holds": "whether the step has the property that the form asks for; none for other forms",
    "outcome": "parsed, or why there is no verdict",
}


class Measured(NamedTuple):
    """One field of the replies to a form: the verdict, or a further one of a form of one's own."""

    name: str
    """`FORM`, or `FORM.FIELD`."""
    task: JudgedTask
    """How its values are read."""
    high: int | None
    """Highest verdict of the form."""

    def records(self, records: Sequence[Record]) -> list[Record]:
        """The records with the field's value as their verdict."""
        _, _, field = self.name.partition(".")
        if not field:
            return list(records)
        values = [(r.get("values") or {}).get(field) for r in records]
        pairs = zip(records, values, strict=True)
        return [r | {"verdict": value, "probabilities": ()} for r, value in pairs]


def measured(form: TaskForm, reading: str) -> list[Measured]:
    """What is read from the replies to a form; log-probs are those of the verdict alone."""
    every = [Measured(n, task, form.form.verdict_field.high) for n, task in form.of_name.items()]
    return every[:1] if reading == "scored" else every


def chain_row(
    name: str,
    chain: JudgedChain,
    of: Measured,
    asked: Asked,
    records: Sequence[Record],
    without: str,
) -> Row:
    """The row of one chain, from one judge's records with one form and reading.

    Args:
        name: name of the chain, unique in the run.
        of: what is read from the records.
        without: why there is no verdict if there are no records.
    """
    verdict = verdict_of(of.task, records, of.high) if records else ChainVerdict(without)
    return {
        "judge": asked.judge,
        "reading": asked.reading,
        "form": of.name,
        "task": of.task.name,
        "asks": "property" if of.task.is_property else "error",
        "dataset": chain.dataset,
        "model": chain.model,
        "item": chain.id,
        "chain": name,
        "cut": chain.cut,
        **verdict._asdict(),
    }


def step_rows(
    chain: JudgedChain, row: Row, of: Measured, records: Sequence[Record]
) -> Iterator[Row]:
    """Rows of one chain's steps, for forms that give verdicts on steps.

    A form that names the first wrong step says that the steps before it are right, and nothing of
    the steps after it.
    """
    names = ("judge", "reading", "form", "dataset", "model", "item", "chain", "cut")
    about = {name: row[name] for name in names}
    task = of.task
    if task.by_step:
        for r in records:
            said = meaning_of(task, r)
            yield about | {
                "step": r["step"],
                "flag": said.flag,
                "score": said.score,
                "holds": said.holds,
                "outcome": r["outcome"],
                **labels_of(chain, r["step"]),
            }
    elif task.names_a_step:
        named = row["rating"]
        for i in chain.places:
            known = named is not None and (named == NO_STEP or i <= named)
            flag = (i == named) if known else None
            score = None if flag is None else float(flag)
            said = {"step": i, "flag": flag, "score": score, "holds": None}
            yield about | said | {"outcome": row["outcome"], **labels_of(chain, i)}


def labels_of(chain: JudgedChain, step: int) -> dict[str, Any]:
    return {name: of_steps[step] for name, of_steps in chain.step_labels.items()}


def wrong(name: str, label: Any, good: Sequence[str]) -> bool | None:
    """Whether a label says that something is wrong; None for a label that is not a yes or no.

    A number 0 or 1 is a yes or no only if the label's name says what it means: a name in `good`, or
    one that names a fault (`unfaithful`). A rating or score of 1 is neither.
    """
    is_number = not isinstance(label, bool) and label in (0, 1)
    if isinstance(label, bool) or (is_number and (name in good or not says_faithful(name))):
        return bool(label) != (name in good)
    return None


def first_wrong(chain: JudgedChain, name: str, good: Sequence[str]) -> int | None:
    """Index of the first wrong step by a label, or `NO_STEP` if all steps are right. None if a
    label that is needed to tell is missing: that of a step before the first wrong one, or, where no
    step is wrong, of any step."""
    of_steps: Mapping[int, bool | None] = {
        i: wrong(name, chain.step_labels[name][i], good) for i in chain.places
    }
    for i, is_wrong in of_steps.items():
        if is_wrong is None:
            return None
        if is_wrong:
            return i
    return NO_STEP if of_steps else None
