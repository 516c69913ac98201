"""`Task`: questions, the words to ask them in, and the parsers of their answers."""

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
    """Settings that choose the questions to load."""

    path: Path | None = None
    """A local file or folder, for tasks that read one."""
    limit: int | None = None
    """Number of questions; None for the task's own number."""
    seed: int = 0
    """The seed of generators and samples."""
    split: str | None = None
    """Split of a data set; None for the task's own choice."""


@dataclass(frozen=True)
class DirectPrompt:
    """One way to ask for the answer without reasoning (SLRC, 2.3)."""

    name: str
    """Name in tables: `unformatted`, `formatted` or `system`."""
    user: str
    """Text of the user message."""
    system: str | None = None
    """Text of the system message, if there is one."""


@dataclass(frozen=True, repr=False)
class Task:
    """Questions of one sort, and all the words that are particular to them."""

    name: str
    summary: str
    """Description in one line for `faithscope list tasks`."""
    kind: AnswerKind | None
    """The kind of the task's answers; None if each question has its own."""
    load: Callable[[LoadSettings], Iterable[Question]]
    """Loader of the questions, whose order depends on the seed alone; a limit cuts it off."""
    cot_prompt: Callable[[Question], str]
    """User message that asks for reasoning and an answer."""
    necessity_prompt: Callable[[Question, str], str]
    """User message that quotes reasoning and asks for the answer (reprompt framing)."""
    sufficiency_prompt: Callable[[Question, str], str]
    """User message that quotes one step and asks for the answer (reprompt framing)."""
    answer_cue: str
    """Text between the reasoning and the answer in prefix framing."""
    reprompt_cue: str
    """Text that opens the assistant's turn before the answer in reprompt framing."""
    parse: Callable[[str, Question], str | None]
    """Function from a whole response to its answer in canonical form."""
    parse_continuation: Callable[[str, Question], str | None]
    """Function from the text after one of the cues to its answer in canonical form."""
    labels: Callable[[Question, Trace | None], tuple[tuple[str, str], ...]]
    """(canonical answer, text to score after a cue) of every answer that is scored. The trace is
    the unedited one, so that every edit of it is scored on the same answers."""
    options: tuple[str, ...] | None = None
    """The answers to choose from, if all questions share them."""
    models: tuple[str, ...] = ANY_MODEL
    """Patterns of the names of models that can do the task (`fnmatch`)."""
    direct_prompts: Callable[[Question], tuple[DirectPrompt, ...]] = lambda question: ()
    """Prompts that ask for the answer without reasoning; replies are read by `parse`."""
    cues: Callable[[Question, str], Mapping[str, Cue]] | None = None
    """Function from question and answer to cues to that answer in the task's own language, by kind;
    None for a task in a natural language, which takes the cues of `probes.cues`."""
    variants: Mapping[str, Callable[[Question], str]] = field(default_factory=dict)
    """Name of a variant (as in `sst2:alternative`) -> its words for `cot_prompt`."""
    reply_prefix: str = ""
    """Prefilled beginning of the model's reply, part of the reasoning. Models that mark their
    reasoning, and API models, which cannot be prefilled, begin the reply themselves."""

    def __repr__(self) -> str:
        return f"Task({self.name!r}: {self.summary})"


@dataclass(frozen=True)
class Wording:
    """The prompts of a task, as `prompts.yaml` holds them."""

    source: str
    """Source of the words: a paper and section."""
    cot: str
    necessity: str
    sufficiency: str
    answer_cue: str
    reprompt_cue: str
    direct: Mapping[str, Mapping[str, str]]
    """Name of a direct prompt -> its `user` message and, if there is one, `system` message."""
    variants: Mapping[str, str]
    """Name of a variant -> its text in place of `cot`."""
    reply_prefix: str = ""
    """Prefilled beginning of the reply to `cot`."""

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
    """The options in a prompt's form: `"a" or "b"`; lettered lines for a choice."""
    options = question.options or ()
    if question.kind == "choice":
        return "\n".join(f"{a}. {x}" for a, x in zip(question.labels or (), options, strict=True))
    return " or ".join(f'"{option}"' for option in options)


def _yaml(name: str) -> Any:
    file = resources.files("faithscope.experiments.data.tasks").joinpath(name)
    return yaml.safe_load(file.read_text("utf-8"))


@cache
def wordings() -> Mapping[str, Wording]:
    """Name -> entry of `prompts.yaml`."""
    return {name: Wording(**entry) for name, entry in _yaml("prompts.yaml").items()}


@cache
def words(name: str) -> Mapping[str, Any]:
    """An entry of `words.yaml`: the words that synthetic questions are made of."""
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
        cases: cases over which the questions are balanced; every run of `len(cases)` questions has
            one of each, in random order.
        draw: function that makes a question of a case; its id is filled in here.
        settings: a limit above `default` makes more questions; the first ones stay the same.

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
    """`task` with its reasoning asked for in the words of the variant `name` (SLRC, 2.6).

    Prompts that ask again about the reasoning stay the same: only the reasoning differs.
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
