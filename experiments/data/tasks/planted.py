"""The tasks of the planted models, which know no other language.

The prompt is the question alone. In the reprompt framing the remaining steps follow the question,
as if the model had written them, and the answer cue ends the model's input, as in the prefix
framing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from faithscope.experiments.data.planted.data import (
    ANSWER_CUE,
    DIGITS,
    OPERATORS,
    UNWRITTEN,
    apply,
    parse_answer,
    problem_of,
    result_of,
    write_steps,
)
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import questions
from faithscope.experiments.data.tasks.task import LoadSettings, Task
from faithscope.interventions.trace import Question, Trace
from faithscope.probes.framing import Cue

DEFAULT_LIMIT = 100
"""Number of questions that are drawn without a limit, since the generator has no end."""


def parse(text: str, question: Question) -> str | None:
    """The digit after the last answer cue, or the first word of `text` if that is a digit.

    The second case reads the text that a model writes after a given cue. None in all other cases.
    """
    digit = parse_answer(text)
    words = text.split(maxsplit=1)
    return digit or (words[0] if words and words[0] in DIGITS else None)


def labels(question: Question, trace: Trace | None = None) -> tuple[tuple[str, str], ...]:
    """The ten digits, each with the text by which it is scored."""
    return tuple((digit, f" {digit}") for digit in DIGITS)


def reprompt(question: Question, steps: str) -> str:
    """The question and the remaining steps, as if the model had written them."""
    return f"{question.text} {steps.strip()}"


def cues(question: Question, answer: str) -> dict[str, Cue]:
    """Kind -> cue to `answer`: another `hint`, and, as `question`, another hint together with
    another last operation, so that the question has another answer.

    A text mentions the first by naming the hint; no text could mention the second, which reads as
    the question itself. The second is left out if the last operand has few possible digits
    (`UNWRITTEN`) and none of them leads to the answer.
    """
    problem = problem_of(question.text)
    hinted = replace(problem, hint=int(answer))
    offered = {"hint": Cue(hinted.text, f"Hint : {answer} .", r"\bHint\b")}
    steps, last = write_steps(problem), problem.operators[-1]
    carried = int(result_of(steps[-2])) if len(steps) > 1 else problem.operands[0]
    silent = any(p.silent for p in PLANTS.values() if p.task == question.dataset)
    operations = [
        (operator, operand)
        for operator in sorted(OPERATORS, key=lambda operator: operator != last)
        for operand in (UNWRITTEN if silent else range(10))
        if apply(carried, operator, operand) == int(answer)
    ]
    if operations:
        operator, operand = operations[0]
        other = replace(
            hinted,
            operands=(*problem.operands[:-1], operand),
            operators=(*problem.operators[:-1], operator),
        )
        offered["question"] = Cue(other.text, other.text, None)
    return offered


def _task(name: str, summary: str) -> Task:
    readers = [p.name for p in PLANTS.values() if p.task == name]

    def load(settings: LoadSettings) -> Sequence[Question]:
        # all planted models of this task read the same questions
        return questions(readers[0], settings.limit or DEFAULT_LIMIT, settings.seed)

    return Task(
        name=name,
        summary=summary,
        kind="label",
        load=load,
        cot_prompt=lambda question: question.text,
        necessity_prompt=reprompt,
        sufficiency_prompt=reprompt,
        answer_cue=ANSWER_CUE,
        reprompt_cue=ANSWER_CUE,
        parse=parse,
        parse_continuation=parse,
        labels=labels,
        models=tuple(f"planted:{reader}" for reader in readers),
        cues=None if name == "planted_select" else cues,
    )


PLANTED = _task("planted", "chains of additions modulo 10, for the planted models")
PLANTED_SELECT = _task("planted_select", "the same, asking for the result of one named step")
PLANTED_1 = _task("planted_1", "the same with one operation, for the model that says nothing")
PLANTED_2 = _task("planted_2", "the same in two steps, for the planted models of that length")
PLANTED_4 = _task("planted_4", "the same in four operations, for the model that writes three")
PLANTED_5 = _task("planted_5", "the same in five steps, for the planted models of that length")
PLANTED_6 = _task("planted_6", "the same in six operations, for the model that writes five")
