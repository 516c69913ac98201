"""What a task is: questions, the words to ask them in, and how to read the answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml

from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind, Question, Trace
from faithscope.probes.framing import Cue

Case = TypeVar("Case")

PLANTED = "planted:"
ANY_MODEL = tuple(
    pattern
    for i in range(len(PLANTED))
    for pattern in (PLANTED[:i], f"{PLANTED[:i]}[!{PLANTED[i]}]*")
)
"""Patterns of every model name that does not begin with `planted:`; those models know only
the language of their own tasks."""


@dataclass(frozen=True)
class LoadSettings:
    """Which questions to load."""

    path: Path | None = None
    """A local file or folder, for tasks that read one."""
    limit: int | None = None
    """The first so many; None for as many as the task has by itself."""
    seed: int = 0
    """The seed of generators and samples."""
    split: str | None = None
    """Which split of a data set; None for the task's own choice."""


@dataclass(frozen=True)
class DirectPrompt:
    """One way to ask for the answer without reasoning (SLRC, 2.3)."""

    name: str
    """`unformatted`, `formatted` or `system`, as tables call it."""
    user: str
    """User message."""
    system: str | None = None
    """System message, where there is one."""


@dataclass(frozen=True)
class Task:
    """Questions of one sort, and all the words that are particular to them."""

    name: str
    summary: str
    """One line for `faithscope list tasks`."""
    kind: AnswerKind | None
    """The kind of its answers; None where each question has its own."""
    load: Callable[[LoadSettings], Iterable[Question]]
    """The questions, in an order that depends on the seed alone: a limit cuts it off."""
    cot_prompt: Callable[[Question], str]
    """User message that asks for reasoning and an answer."""
    necessity_prompt: Callable[[Question, str], str]
    """User message that quotes reasoning and asks for the answer (reprompt framing)."""
    sufficiency_prompt: Callable[[Question, str], str]
    """User message that quotes one step and asks for the answer (reprompt framing)."""
    answer_cue: str
    """Prefix framing: stands between the reasoning and the answer."""
    reprompt_cue: str
    """Reprompt framing: opens the assistant's turn before the answer."""
    parse: Callable[[str, Question], str | None]
    """Canonical answer of a whole response."""
    parse_continuation: Callable[[str, Question], str | None]
    """Canonical answer of what follows one of the cues."""
    labels: Callable[[Question, Trace | None], tuple[tuple[str, str], ...]]
    """(canonical answer, text to score after a cue) of every answer that is scored. The trace is
    the unedited one, so that every edit of it is scored on the same answers."""
    options: tuple[str, ...] | None = None
    """The answers to choose from, where all questions share them."""
    models: tuple[str, ...] = ANY_MODEL
    """Patterns of the names of models that can do it (`fnmatch`)."""
    direct_prompts: Callable[[Question], tuple[DirectPrompt, ...]] = lambda question: ()
    """Ways to ask for the answer without reasoning; replies are read by `parse`."""
    cues: Callable[[Question, str], Mapping[str, Cue]] | None = None
    """Question and answer -> cues to that answer in the task's own language, by kind; None of a
    task in a natural language, which takes those of `probes.cues`."""
    variants: Mapping[str, Callable[[Question], str]] = field(default_factory=dict)
    """Other words for `cot_prompt`, by the name that follows the task's: `sst2:alternative`."""
    reply_prefix: str = ""
    """How the model's reply is made to begin (prefilled, part of the reasoning). Models that mark
    their reasoning, and those behind APIs, which cannot be prefilled, begin it themselves."""


@dataclass(frozen=True)
class Wording:
    """The prompts of a task, as `prompts.yaml` holds them."""

    source: str
    """The source of the words."""
    cot: str
    necessity: str
    sufficiency: str
    answer_cue: str
    reprompt_cue: str
    direct: Mapping[str, Mapping[str, str]]
    """Name -> `user` and, where there is one, `system`."""
    variants: Mapping[str, str]
    """Name -> what `cot` then is."""
    reply_prefix: str = ""
    """How the reply to `cot` is made to begin."""

    def task(self, **rest: Any) -> Task:
        """A task in these words; `rest` are its other fields."""
        return Task(
            cot_prompt=lambda q: _filled(self.cot, q),
            necessity_prompt=lambda q, text: _filled(self.necessity, q, reasoning=text.strip()),
            sufficiency_prompt=lambda q, text: _filled(self.sufficiency, q, step=text.strip()),
            answer_cue=self.answer_cue,
            reprompt_cue=self.reprompt_cue,
            direct_prompts=lambda q: tuple(
                DirectPrompt(name, _filled(way["user"], q), way.get("system"))
                for name, way in self.direct.items()
            ),
            variants={name: partial(_filled, cot) for name, cot in self.variants.items()},
            reply_prefix=self.reply_prefix,
            **rest,
        )


def _filled(template: str, question: Question, **more: str) -> str:
    return template.format(text=question.text, options=_listed(question), **more)


def _listed(question: Question) -> str:
    """The options as a prompt lists them: `"a" or "b"`; lettered lines for a choice."""
    options = question.options or ()
    if question.kind == "choice":
        return "\n".join(f"{a}. {x}" for a, x in zip(question.labels or (), options, strict=True))
    return " or ".join(f'"{option}"' for option in options)


def _yaml(name: str) -> Any:
    file = resources.files("faithscope.experiments.data.tasks").joinpath(name)
    return yaml.safe_load(file.read_text("utf-8"))


@cache
def wordings() -> Mapping[str, Wording]:
    """Every entry of `prompts.yaml`."""
    return {name: Wording(**entry) for name, entry in _yaml("prompts.yaml").items()}


@cache
def words(name: str) -> Mapping[str, Any]:
    """An entry of `words.yaml`: what synthetic questions are put together from."""
    return _yaml("words.yaml")[name]


def generated(
    name: str,
    cases: Sequence[Case],
    draw: Callable[[random.Random, Case], Question],
    settings: LoadSettings,
    default: int = 100,
) -> tuple[Question, ...]:
    """Distinct questions from a seeded generator.

    Args:
        cases: what the questions are to be balanced over; every run of `len(cases)` questions
            has one of each, in random order.
        draw: makes a question of a case; its id is filled in here.
        settings: a limit above `default` makes more; those before it stay as they are.

    Raises:
        UserError: the generator has no further distinct question.
    """
    rng = random.Random(f"{name}-{settings.seed}")
    wanted = default if settings.limit is None else settings.limit
    questions: dict[str, Question] = {}
    while len(questions) < wanted:
        for case in rng.sample(list(cases), len(cases)):
            question = next(
                (q for q in (draw(rng, case) for _ in range(200)) if q.text not in questions), None
            )
            if question is None:
                raise UserError(
                    f"task {name!r} has only {len(questions)} distinct questions; lower data.limit"
                )
            questions[question.text] = replace(question, id=f"{name}-{len(questions):03d}")
    return tuple(questions.values())[:wanted]


def variant(task: Task, name: str) -> Task:
    """The same questions, asked for reasoning in the words of the variant `name` (SLRC, 2.6).

    Whatever asks again about the reasoning stays as it is: only the reasoning differs.
    """
    full = f"{task.name}:{name}"
    return replace(
        task,
        name=full,
        summary=f"{task.summary}; asked in the words of {name}",
        load=lambda settings: (replace(q, task=full) for q in task.load(settings)),
        cot_prompt=task.variants[name],
        reply_prefix="",
        variants={},
    )
