"""What is asked about a given chain: its question, and the task whose words are used."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from faithscope.experiments.data.answers import marked_answer
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.numbers import canonical_number, reads_as_number
from faithscope.experiments.data.tasks import TASKS, Task, get_task, task_problem
from faithscope.experiments.data.tasks.own import OWN
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind, Question

ANSWERED_BY: dict[AnswerKind, str] = {
    "choice": "the letter of an option",
    "label": "one of the options",
    "number": "a number",
}


@dataclass(frozen=True)
class Asked:
    """A given chain, its question, and the task whose words are used about it."""

    chain: GivenChain
    task: Task
    question: Question
    kind: AnswerKind | None
    """None where nobody tells; `question.kind` is then `number`, for want of another."""
    file: str
    format: str

    @property
    def prompt(self) -> str:
        """The user message: the file's own, else that of the task, else the bare question."""
        if self.chain.prompt is not None:
            return self.chain.prompt
        return self.question.text if self.kind is None else self.task.cot_prompt(self.question)

    @property
    def sha256(self) -> str:
        """Of all that the file says of the chain."""
        content = {name: v for name, v in asdict(self.chain).items() if name != "where"}
        if not self.chain.cut:
            # most files do not say, and their chains keep the ids that they had
            del content["cut"]
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def asked_about(
    chain: GivenChain,
    file: str,
    format: str,
    task: str | None = None,
    kind: AnswerKind | None = None,
) -> Asked:
    """What is asked about a chain, and in which words.

    Args:
        task: whose words; by default the chain's own, else those of the task that its dataset is
            the name of, else `own`, which has words for every kind of answer.
        kind: of its answers, where neither file nor task tell; `number` is none of a chain whose
            right answer is no number. Where nobody does, a chain without
            options whose right answer reads as a number is answered by one; without a right answer
            the one given counts, and without that the one that the chain marks (`\\boxed{…}`).

    Raises:
        UserError: its kind is not the task's, its gold answer is none of its kind, or options are
            missing.
    """
    own = chain.task if chain.task and task_problem(chain.task) is None else None
    chosen = get_task(name) if (name := task or own) else TASKS.get(chain.dataset, OWN)
    if kind == "number" and chain.gold is not None and canonical_number(chain.gold) is None:
        kind = None
    known = chain.kind or chosen.kind or kind or _kind_by_answer(chain)
    if task is None and chosen.kind not in (None, known):
        chosen = OWN
    if chosen.kind not in (None, known):
        raise UserError(
            f"{chain.where}: its answer is {ANSWERED_BY[known] if known else 'of no known kind'}, "
            f"and task {chosen.name!r} has answers of kind {chosen.kind!r}; give another "
            "traces.task, or none"
        )
    options = chain.options if chain.options is not None else chosen.options
    lacking = known in ("choice", "label") and len(options or ()) < 2
    if lacking and (chain.kind, task, kind) == (None, None, None):
        # the data set's name alone says so, and there is nothing to choose from
        known, lacking = None, False
    if lacking:
        raise UserError(
            f"{chain.where}: answers of kind {known!r} need at least two options; give them in "
            "the file, or leave the kind open"
        )
    gold = None if known is None or chain.gold is None else _canonical(chain, known, chain.gold)
    try:
        question = Question(
            chain.id,
            chain.dataset,
            chain.question,
            known or "number",
            gold,
            options if known not in (None, "number") else None,
            task=chosen.name,
        )
    except ValueError as error:
        raise UserError(f"{chain.where}: {error}") from error
    return Asked(chain, chosen, question, known, file, format)


def _kind_by_answer(chain: GivenChain) -> AnswerKind | None:
    said = chain.gold or chain.answer or marked_answer(chain.reasoning)
    return "number" if not chain.options and said and reads_as_number(said) else None


def _canonical(chain: GivenChain, kind: AnswerKind, text: str) -> str:
    if kind != "number":
        return text.strip()
    value = canonical_number(text)
    if value is None:
        raise UserError(
            f"{chain.where}: the gold answer {text[:40]!r} is not one number that can be read "
            "whole; give plain digits, or leave it out"
        )
    return value
