"""Cues as declarations: a name, a text, the place that it takes, the answer that it points to, and
the words that mention it.

`cues.yaml` holds those that come with faithscope; a config and Python declare others alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interventions import Question
from faithscope.probes.framing import Asking, Cue
from faithscope.probes.patterns import pattern_problem
from faithscope.probes.settings import Settings, as_several
from faithscope.probes.text_model import Message
from faithscope.probes.wrong_answer import wrong_answer

if TYPE_CHECKING:
    from jinja2 import Template

Role = Literal["user", "assistant"]
Place = Literal["above", "below", "system", "turn_before"]
PLACES = ("target", "target_text", "labels", "options", "question", "prompt", "gold")
"""Names that the text of a cue may hold in double braces."""
TARGETS = ("other", "wrong", "gold", "random", "none")
FIXED = "fixed:"
TEXT_FILES, CUE_FILES = (".jinja", ".j2", ".txt"), (".yaml", ".yml")
NO_OPTIONS, NO_GOLD = "no_options", "no_gold_answer"
OWN_ANSWER, NO_OTHER = "cue_points_to_own_answer", "no_other_option"
"""Why a cue is not put: its target is drawn from options, and there are none; or follows from a
right answer that is not known; it points to the answer that the model gives anyway; no option is
left for it."""


class Turn(BaseModel):
    """One turn of an earlier exchange, by the user or by the assistant."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    user: StrictStr | None = None
    assistant: StrictStr | None = None


class DeclaredCue(BaseModel):
    """A cue as `cues` of a config declares it.

    Raises:
        pydantic.ValidationError (a ValueError): a key is missing or unknown, the text is no
            template of the known places, or target and text do not fit each other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    """Name of the cue in records and tables."""
    text: StrictStr | tuple[Turn, ...]
    """The text, a Jinja template with the places `PLACES`, or the path of a file that holds it; of
    `turn_before` also a list of turns."""
    place: Place
    """Where the text stands: a paragraph above or below the user's message; the system message; or
    an exchange before the message. A single text there is what the assistant replied to the same
    message."""
    target: StrictStr = "other"
    """The answer that the cue points to: `other`, an option that is not the model's uncued answer;
    `wrong`, one that is neither this nor the right answer; `gold`, the right answer; `random`, any
    option; `fixed:ANSWER`; or `none` for a cue that names no answer. Options are drawn by the run's
    seed."""
    mention: StrictStr | None = None
    """Regular expression of words with which reasoning mentions the cue, in any case; null leaves
    out this classifier."""

    @field_validator("text", mode="before")
    @classmethod
    def _of_a_file(cls, text: Any) -> Any:
        if not isinstance(text, str) or "\n" in text or not text.endswith(TEXT_FILES):
            return text
        try:
            return Path(text).expanduser().read_text("utf-8").strip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{text!r} cannot be read as a file of text ({error})") from None

    @field_validator("target", mode="before")
    @classmethod
    def _null_is_none(cls, target: Any) -> Any:
        return "none" if target is None else target

    @field_validator("mention")
    @classmethod
    def _pattern(cls, mention: str | None) -> str | None:
        if mention is not None and (problem := pattern_problem(mention)):
            raise ValueError(problem)
        return mention

    @model_validator(mode="after")
    def _fits(self) -> DeclaredCue:
        turns = self.turns
        if self.place != "turn_before" and not isinstance(self.text, str):
            raise ValueError(f"text: a list of turns is of place turn_before, not {self.place}")
        if any(x.user is None for x in turns[::2]) or any(x.assistant is None for x in turns[1::2]):
            raise ValueError("text: turns go user, assistant, user, assistant …, one key each")
        if any(None not in (x.user, x.assistant) for x in turns) or len(turns) % 2:
            raise ValueError("text: turns go user, assistant, user, assistant …, one key each")
        if not all(text.strip() for text in self.texts):
            raise ValueError("text: is empty; write what the cue says")
        used = {name for text in self.texts for name in _names(text)}
        if unknown := sorted(used - {*PLACES}):
            known = ", ".join(f"{{{{ {place} }}}}" for place in PLACES)
            guess = did_you_mean(unknown[0], PLACES)
            raise ValueError(f"text: unknown place {unknown[0]!r}{guess}; known: {known}")
        drawn = self.target in TARGETS
        if not drawn and not (self.target.startswith(FIXED) and self.target[len(FIXED) :].strip()):
            targets = (*TARGETS, f"{FIXED}ANSWER")
            guess = did_you_mean(self.target, targets)
            raise ValueError(f"target: {self.target!r} is none of {', '.join(targets)}{guess}")
        names_it = bool(used & {"target", "target_text"})
        if self.target == "none" and names_it:
            raise ValueError("target: none names no answer, and the text has a place for one")
        if drawn and self.target != "none" and not names_it:
            raise ValueError(
                f"target: {self.target!r} differs from question to question, and the text has no "
                "{{ target }}; put one in, or say target: none for a cue that names no answer"
            )
        return self

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of an earlier exchange that is written out; none of any other cue."""
        return () if isinstance(self.text, str) else self.text

    @property
    def texts(self) -> list[str]:
        """All texts of the cue, as templates."""
        if isinstance(self.text, str):
            return [self.text]
        return [turn.user or turn.assistant or "" for turn in self.text]

    @property
    def fixed(self) -> str | None:
        """The answer that the cue points to in every question; None if that differs."""
        return self.target[len(FIXED) :].strip() if self.target.startswith(FIXED) else None

    def pointed(self, question: Question, own: str, seed: int) -> tuple[str | None, str | None]:
        """The answer that the cue points to, None for one that names none; and why the cue is not
        put to the question, None if it is.

        Args:
            own: the model's uncued answer.

        Raises:
            ValueError: the fixed answer is no option of the question.
        """
        labels, gold = question.labels or (), question.gold
        if self.target == "none":
            return None, None
        if self.target in ("wrong", "gold") and gold is None:
            return None, NO_GOLD
        if self.target in ("other", "random") and not labels:
            return None, NO_OPTIONS
        if problem := self.misfit(question):
            raise UserError(problem)
        pools = {
            "other": [x for x in labels if x != own],
            "wrong": [x for x in labels if x not in (own, gold)],
            "random": [*labels],
        }
        if self.target == "wrong" and not labels:
            near = wrong_answer(question, own, seed)
            pools["wrong"] = [] if near is None else [near]
        pool = pools.get(self.target, [self.fixed or gold or ""])
        if not pool:
            return None, NO_OTHER
        chosen = drawn(question, pool, seed)
        return (chosen, None) if chosen != own else (None, OWN_ANSWER)

    def misfit(self, question: Question) -> str | None:
        """Why the cue can point to no answer of the question; None if it can."""
        labels = question.labels or ()
        if self.fixed is None or not labels or self.fixed in labels:
            return None
        return (
            f"cue {self.name!r} has the target {self.target!r}, and the options of question "
            f"{question.id!r} are {', '.join(labels)}; name one of these, or draw the target "
            f"({', '.join(TARGETS[:-1])})"
        )

    def put(self, question: Question, asking: Asking, target: str | None) -> Cue:
        """The cue in the conversation that asks the question."""
        texts = dict(zip(question.labels or (), question.options or (), strict=False))
        places = {
            "target": target,
            "target_text": texts.get(target or "", target),
            "labels": [*(question.labels or asking.answers)],
            "options": [*(question.options or ())],
            "question": question.text,
            "prompt": asking.asked,
            "gold": question.gold,
        }
        said = [_template(text).render(places).strip("\n") for text in self.texts]
        whole = "\n\n".join(said)
        sent = placed(asking.asked, whole, self.place)
        if self.turns:
            pairs = zip(said[::2], said[1::2], strict=True)
            before = (turn for user, assistant in pairs for turn in exchange(user, assistant))
            sent = Message(asking.asked, before=tuple(before))
        return Cue(sent.user, whole, self.mention, sent.system, sent.before)


def placed(message: str, text: str, place: Place) -> Message:
    """The conversation of a user's message with the text of a cue in its place; before the message,
    the text is what the assistant replied to the same message."""
    if place == "system":
        return Message(message, text)
    if place == "turn_before":
        return Message(message, before=exchange(message, text))
    return Message("\n\n".join((text, message) if place == "above" else (message, text)))


def exchange(user: str, assistant: str) -> tuple[tuple[Role, str], tuple[Role, str]]:
    """(role, text) of a question and its reply."""
    return ("user", user), ("assistant", assistant)


@cache
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)


@cache
def _template(text: str) -> Template:
    return _environment().from_string(text)


def _names(text: str) -> set[str]:
    from jinja2 import TemplateError, meta

    try:
        return meta.find_undeclared_variables(_environment().parse(text))
    except TemplateError as error:
        raise ValueError(f"text: is no template: {error}") from None


def declared(values: Any, where: str) -> tuple[DeclaredCue, ...]:
    """The cues of a list, as a file or config holds it.

    Raises:
        ValueError: the list does not declare cues, or two of one name; with key and remedy.
    """
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise ValueError(f"{where}: is no list of cues; each has name, text and place")
    cues = []
    for i, value in enumerate(values):
        try:
            cues.append(DeclaredCue.model_validate(value))
        except ValidationError as error:
            raise ValueError("\n".join(f"{where}[{i}]{p}" for p in problems_of(error))) from None
    return tuple(_different(cues))


def problems_of(error: ValidationError) -> list[str]:
    """Lines `.key: problem` of a cue that does not validate."""
    keys, lines = list(DeclaredCue.model_fields), {}
    for e in error.errors():
        place = next((str(x) for x in e["loc"]), "")
        if e["type"] == "missing" and place in keys:
            places = ", ".join(get_args(Place))
            line = f"{place}: missing; a cue has name, text and place ({places})"
        elif e["type"] == "extra_forbidden" and place not in keys:
            line = f"{place}: unknown key{did_you_mean(place, keys)}; known here: {', '.join(keys)}"
        else:
            message = e["msg"].removeprefix("Value error, ")
            # a check of several keys names its key itself
            line = message if not place else f"{place}: {message}, got {e['input']!r}"
        lines[f".{line}"] = None
    return [*lines]


@cache
def shipped() -> dict[str, DeclaredCue]:
    """Name -> cue that comes with faithscope."""
    file = resources.files(__package__ or "").joinpath("cues.yaml")
    return {cue.name: cue for cue in declared(yaml.safe_load(file.read_text("utf-8")), "cues.yaml")}


def _chosen(value: Any) -> Any:
    """A cue's name or declaration, once checked.

    Raises:
        ValueError: no cue of this name comes with faithscope, or the declaration does not fit.
    """
    if isinstance(value, dict):
        try:
            return DeclaredCue.model_validate(value)
        except ValidationError as error:
            raise ValueError("\n".join(problems_of(error))) from None
    if isinstance(value, str) and value not in shipped():
        guess = did_you_mean(value, list(shipped())) or f"; known: {', '.join(shipped())}"
        raise ValueError(
            f"unknown cue {value!r}{guess}; or declare one: {{name: …, text: …, place: below}}"
        )
    return value


def _listed(values: Any) -> Any:
    """The entries of a list of cues, with the cues of each file that is named in place of one.

    Raises:
        ValueError: a file cannot be read, or is no list of cues.
    """
    values = [values] if isinstance(values, dict) else as_several(values)
    if not isinstance(values, list | tuple):
        return values
    entries: list[Any] = []
    for value in values:
        if isinstance(value, str) and value.endswith(CUE_FILES):
            entries += _of_file(value)
        else:
            entries.append(value)
    return entries


def _of_file(name: str) -> tuple[DeclaredCue, ...]:
    try:
        read = yaml_of(Path(name).expanduser().read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(
            f"{name}: cannot be read as YAML ({' '.join(str(error).split())})"
        ) from None
    return declared(read, name)


def _different(cues: Sequence[str | DeclaredCue]) -> Any:
    names = [cue if isinstance(cue, str) else cue.name for cue in cues]
    if twice := [n for i, n in enumerate(names) if n in names[:i]]:
        raise ValueError(f"two cues have the name {twice[0]!r}; name each differently")
    return cues


CueChoice = Annotated[StrictStr | DeclaredCue, BeforeValidator(_chosen)]
"""The name of a cue that comes with faithscope, or a declaration."""
CueChoices = Annotated[tuple[CueChoice, ...], BeforeValidator(_listed), AfterValidator(_different)]
"""Cues of different names; a file that declares some may stand in their place."""


class PutsCues(Settings):
    """Settings of a probe that puts cues to the model."""

    cues: CueChoices = ()
    """Cues: names of those that come with faithscope, declarations, or files of declarations
    (`faithscope docs cues`)."""

    def misfit_of(self, question: Question) -> str | None:
        misfits = (cue.misfit(question) for cue in resolved(self.cues))
        return next((f"cues: {problem}" for problem in misfits if problem), None)


def resolved(chosen: Sequence[str | DeclaredCue]) -> list[DeclaredCue]:
    """The declarations of cues that are named or declared."""
    return [shipped()[cue] if isinstance(cue, str) else cue for cue in chosen]


def drawn(question: Question, pool: Sequence[str], seed: int) -> str:
    """The answer that a cue points to; one draw serves all cues with the same answers to choose
    from."""
    return random.Random(f"cue-{seed}-{question.task}-{question.asked_id}").choice(pool)
