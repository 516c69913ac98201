"""The question that a given chain answers, and the task whose words are used to ask it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from faithscope.experiments.data.answers import marked_answer
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.numbers import canonical_number, reads_as_number
from faithscope.experiments.data.tasks import TASKS, Task, get_task, task_problem
from faithscope.experiments.data.tasks.own import OWN
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind, OfPair, Question, Sent
from faithscope.probes.declared_cues import placed
from faithscope.probes.text_model import Message

ANSWERED_BY: dict[AnswerKind, str] = {
    "choice": "the letter of an option",
    "label": "one of the options",
    "number": "a number",
}


@dataclass(frozen=True)
class QuestionOfChain:
    """A given chain with its question and the task whose words are used to ask it."""

    chain: GivenChain
    task: Task
    question: Question
    kind: AnswerKind | None
    """Kind of the answers; None if nothing tells: `question.kind` is then `number`."""
    file: str
    format: str

    @property
    def prompt(self) -> str:
        """The user message: the file's own (the last of several), else the task's, else the bare
        question; with the cue, if that stands in it. Of a prompt that is rendered already it is the
        one in which the question would be asked again."""
        return self.message.user

    @property
    def message(self) -> Message:
        """The conversation that the chain replies to."""
        chain, prompt = self.chain, self.chain.prompt
        if prompt is None and chain.sent is not None and isinstance(chain.sent.prompt, tuple):
            prompt = chain.sent.prompt[-1][1]
        if prompt is None:
            asked, task = self.question, self.task
            prompt = asked.text if self.kind is None else task.cot_prompt(asked)
        if chain.cue_place is None or chain.cue is None:
            return Message(prompt)
        return placed(prompt, chain.cue, chain.cue_place)

    @property
    def uncued(self) -> QuestionOfChain | None:
        """The uncued chain of a cued one."""
        plain = self.chain.uncued
        if plain is None:
            return None
        question = replace(self.question, text=plain.question, sent=plain.sent)
        return replace(self, chain=plain, question=question)

    @property
    def answer(self) -> str | None:
        """The chain's answer in canonical form, parsed like a response of the task."""
        if self.kind is None:
            return None
        said, question, task = self.chain.answer, self.question, self.task
        if said is None:
            # the last number of a chain that was cut off is one on the way
            return None if self.chain.cut else task.parse(self.chain.reasoning, question)
        bare = said.strip()
        if bare in (question.labels or ()):
            return bare
        # a whole reply states its answer at its end; anything shorter is read like the text after a
        # cue
        return task.parse(bare, question) or task.parse_continuation(f" {bare}", question)

    @property
    def sha256(self) -> str:
        """SHA-256 of all that the file says of the chain."""
        return self.chain.sha256


def question_of_chain(
    chain: GivenChain,
    file: str,
    format: str,
    task: str | None = None,
    kind: AnswerKind | None = None,
) -> QuestionOfChain:
    """The question of a given chain, and the task in whose words it is asked.

    Args:
        task: name of the task whose words to use; by default the chain's own task, else the task
            named like its dataset, else `own`, which has words for every kind of answer.
        kind: kind of the answers if neither file nor task tells; `number` does not apply to a chain
            whose right answer is no number. Without it, a chain without options is answered by a
            number if its right answer reads as one; if there is no right answer, the chain's own
            answer decides, or the one that the chain marks (`\\boxed{…}`).

    Raises:
        UserError: the kind is not the task's, the gold answer is not of that kind, or options are
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
        # only the data set's name suggests options, and the chain has none to choose from
        known, lacking = None, False
    if lacking:
        raise UserError(
            f"{chain.where}: answers of kind {known!r} need at least two options; give them in "
            "the file, or leave the kind open"
        )
    if known == "number":
        _check_number(chain)
    gold = None if known is None or chain.gold is None else _canonical(chain, known, chain.gold)
    try:
        question = Question(
            chain.id,
            chain.dataset,
            chain.question,
            known or "number",
            gold,
            options if known not in (None, "number") else None,
            chain.candidates,
            task=chosen.name,
            sent=chain.sent,
            of_pair=OfPair(chain.pair, chain.condition == "reversed")
            if chain.condition in ("forward", "reversed")
            else None,
            counterfactual=chain.counterfactual,
            sample=chain.sample,
        )
    except ValueError as error:
        raise UserError(f"{chain.where}: {error}") from error
    asked = QuestionOfChain(chain, chosen, question, known, file, format)
    said = asked.message
    if said.system is None and not said.before:
        return asked
    system = () if said.system is None else (("system", said.system),)
    prefix = chain.sent.prefix if chain.sent else ""
    sent = Sent((*system, *said.before, ("user", said.user)), prefix)
    return replace(asked, question=replace(question, sent=sent))


def _check_number(chain: GivenChain) -> None:
    """Check that the answer of a chain whose question is answered by a number is no option.

    Raises:
        UserError: it is a letter, or words of the question without a number.
    """
    said = (chain.answer or "").strip()
    letter = re.fullmatch(r"[(\[*]*[A-Za-z][)\]*.:]*", said)
    words = 0 < len(said) <= 60 and not re.search(r"\d", said) and canonical_number(said) is None
    if letter or (words and re.search(rf"\b{re.escape(said)}\b", chain.question, re.I)):
        raise UserError(
            f"{chain.where}: the answer {said!r} is no number, and the question is read as one "
            f"that is answered by a number (its right answer is {chain.gold!r}); give the options "
            "(a column options), and say how the right answer names one (traces.gold_is: index0, "
            "index1, letter or text), or give the kind of the answers (traces.kind)"
        )


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
