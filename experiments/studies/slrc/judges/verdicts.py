"""Rows of verdicts on chains and their steps, and what the labels of the chains say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from faithscope.experiments.analysis.comparison.scores import says_faithful
from faithscope.experiments.analysis.verdicts import ChainVerdict, meaning_of, verdict_of
from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.tasks import NO_STEP, TASKS
from faithscope.experiments.studies.slrc.judges.asking import Asked
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain
from faithscope.probes.record import Record

NO_STEPS, FAILED, NOT_RUN = "no_steps", "failed", "not_run"
Row = dict[str, Any]
VERDICT = {
    "judge": "",
    "reading": "generated | scored",
    "form": "the prompt",
    "task": "name of the judged task",
    "dataset": "",
    "model": "the model that wrote the chain",
    "item": "id of the question, or of a chain from a file",
    "chain": "name of the chain, unique in the run",
    "cut": "whether a token limit cut the chain off, as its file says; see `report.cut`",
    "outcome": "parsed, or why there is no verdict: the reply's outcome, uncertain, no_steps …",
    "flag": "whether something is wrong; none for forms that rate",
    "score": "higher is worse",
    "first": "the first step that is wrong, from 0; -1 where none is",
    "rating": "the verdict itself, for forms that rate or classify",
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
    "score": "higher is worse",
    "outcome": "parsed, or why there is no verdict",
}


def chain_row(
    name: str,
    chain: JudgedChain,
    form: TaskForm,
    asked: Asked,
    records: Sequence[Record],
    without: str,
) -> Row:
    """The row of one chain, from one judge's records with one form and reading.

    Args:
        name: name of the chain, unique in the run.
        without: why there is no verdict if there are no records.
    """
    high = form.form.verdict_field.high
    verdict = verdict_of(form.judged, records, high) if records else ChainVerdict(without)
    return {
        "judge": asked.judge,
        "reading": asked.reading,
        "form": form.form.name,
        "task": form.task,
        "dataset": chain.dataset,
        "model": chain.model,
        "item": chain.id,
        "chain": name,
        "cut": chain.cut,
        **verdict._asdict(),
    }


def step_rows(chain: JudgedChain, row: Row, records: Sequence[Record]) -> Iterator[Row]:
    """Rows of one chain's steps, for forms that give verdicts on steps.

    A form that names the first wrong step says that the steps before it are right, and nothing of
    the steps after it.
    """
    names = ("judge", "reading", "form", "dataset", "model", "item", "chain", "cut")
    about = {name: row[name] for name in names}
    task = TASKS[row["task"]]
    if task.by_step:
        for r in records:
            said = meaning_of(task, r)
            yield about | {
                "step": r["step"],
                "flag": said.flag,
                "score": said.score,
                "outcome": r["outcome"],
                **labels_of(chain, r["step"]),
            }
    elif task.names_a_step:
        named = row["rating"]
        for i in chain.places:
            known = named is not None and (named == NO_STEP or i <= named)
            flag = (i == named) if known else None
            score = None if flag is None else float(flag)
            said = {"step": i, "flag": flag, "score": score, "outcome": row["outcome"]}
            yield about | said | labels_of(chain, i)


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
