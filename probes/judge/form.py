"""What a judge is asked and in what form it must reply.

A form is a prompt with places for the item, and the fields of the JSON object to be given back.
The same form is answered by a model behind an API, by an open model's generation and by its
log-probs of the verdict, so that the three can be compared item by item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

Verdict = int | str | bool
"""A number, a label, or yes or no."""


@dataclass(frozen=True)
class Field:
    """One field of a reply."""

    name: str
    """The path to it in the reply; dots go into objects: `transition.identifies_flaw`."""
    kind: Literal["text", "integer", "label", "boolean"]
    low: int | None = None
    """The least value of an integer."""
    high: int | None = None
    """The greatest value of an integer; None where the item says (a step index)."""
    labels: tuple[str, ...] = ()
    """The values that a label may have; none where the item says (answer options)."""
    optional: bool = False
    """Whether a text may be null."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names on the way to it."""
        return tuple(self.name.split("."))


@dataclass(frozen=True)
class Form:
    """A judge task: prompt, fields, and which of them is the verdict."""

    name: str
    template: str
    """The prompt, with `{place}` for every value of an ask; braces of its own are doubled."""
    fields: tuple[Field, ...]
    verdict: str
    """The name of the field that is the judgement; no text."""
    cue: str = ""
    """How the open model's reply begins where log-probs of the verdict are read, up to where the
    number, the label (its opening quote may be there), or true or false stands."""
    system: str | None = None
    """The system message, with places like the template's."""

    def __post_init__(self) -> None:
        verdict_fields = [f for f in self.fields if f.name == self.verdict]
        if not verdict_fields or verdict_fields[0].kind == "text":
            raise ValueError(
                f"judge form {self.name!r}: verdict {self.verdict!r} is no integer, label or "
                f"boolean field of {', '.join(f.name for f in self.fields)}"
            )
        for f in self.fields:
            self._check(f)

    def _check(self, f: Field) -> None:
        what = f"judge form {self.name!r}: field {f.name!r}"
        if not all(f.path):
            raise ValueError(f"{what}: a dot stands between two names; write a.b")
        if any(o is not f and o.path[: len(f.path)] == f.path for o in self.fields):
            raise ValueError(f"{what} is there twice, or also holds fields; rename one")
        if len(set(f.labels)) < len(f.labels) or (f.labels and f.kind != "label"):
            raise ValueError(f"{what}: labels {f.labels}: give different ones, to a label only")
        if f.optional and f.kind != "text":
            raise ValueError(f"{what}: a {f.kind} cannot be optional; only a text may be null")

    @property
    def verdict_field(self) -> Field:
        return next(f for f in self.fields if f.name == self.verdict)

    @property
    def sha256(self) -> str:
        """The sha256 of everything that the judge is told; every record keeps it."""
        content = asdict(self)
        for f in content["fields"]:
            # forms without them keep the hash they had before there were any
            for name in ("labels", "optional"):
                if not f[name]:
                    del f[name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Ask:
    """One item put to a judge."""

    id: str
    """Unique among the asks of one form in one run."""
    form: Form
    values: Mapping[str, str]
    """What stands at the places of the template."""
    high: int | None = None
    """The most that the verdict may be here, where the form leaves it open."""
    labels: tuple[str, ...] = ()
    """What a label may be here, where the form leaves it open."""

    @property
    def prompt(self) -> str:
        return self.form.template.format(**self.values)

    @property
    def system(self) -> str | None:
        return None if self.form.system is None else self.form.system.format(**self.values)

    @property
    def range(self) -> range:
        """Every verdict that is possible here, of a form whose verdict is a number."""
        f = self.form.verdict_field
        high = f.high if f.high is not None else self.high
        if f.kind != "integer" or f.low is None or high is None:
            raise ValueError(
                f"judge form {self.form.name!r}, item {self.id!r}: the verdict {f.name!r} has no "
                "bounds; give them in the form or with the item"
            )
        return range(f.low, high + 1)

    def choices(self, of: Field | None = None) -> tuple[Verdict, ...]:
        """Every value that a field may have here, in order; of the verdict where none is named.

        Raises:
            ValueError: it is a text, or neither form nor item says what it may be.
        """
        f = of or self.form.verdict_field
        what = f"judge form {self.form.name!r}, item {self.id!r}: {f.name!r}"
        if f.kind == "boolean":
            return (False, True)
        if f.kind == "label":
            if not (labels := f.labels or self.labels):
                raise ValueError(f"{what} has no labels; give them in the form or with the item")
            return labels
        if f.kind == "integer" and f.name == self.form.verdict:
            return tuple(self.range)
        if f.kind == "text" or f.low is None or f.high is None:
            raise ValueError(
                f"{what} has no bounds to be chosen within; give low and high, or let the judge "
                "write (structured: prompt)"
            )
        return tuple(range(f.low, f.high + 1))


@dataclass(frozen=True)
class Writing:
    """A prompt whose reply is taken as text: a rewritten step, a chain of thought, an answer."""

    id: str
    """Unique in one run."""
    prompt: str
    system: str | None = None
    before: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """Turns that come before the prompt, which is the user's."""
    draw: int = 1
    """Which draw of a reply to the same words: of another one no earlier is taken from a cache."""

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation without its system message, the prompt last."""
        messages = [*self.before, ("user", self.prompt)]
        return [{"role": role, "content": content} for role, content in messages]


Outcome = Literal[
    "parsed",  # a reply of the form; of a writing, a text
    "unparsed",  # a reply, asked for again, that is not of the form
    "truncated",  # cut off before its end, by the token limit
    "unclosed_thinking",  # thinking without an end, and so no answer
    "refused",  # the model declined
    "filtered",  # the provider's content filter stopped it
    "overflow",  # the prompt is longer than the model reads
    "failed",  # no reply at all, after the retries
]


@dataclass(frozen=True)
class Usage:
    """Tokens of one ask, all its attempts together; zero where the server says nothing.

    What is written down as spent has an estimate there (`probes.judge.charges`).
    """

    calls: int = 0
    input_tokens: int = 0
    """Those among them that the provider had cached, too."""
    output_tokens: int = 0
    """Those of the reasoning, too."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """What a judge gave back."""

    outcome: Outcome
    values: Mapping[str, Any] = field(default_factory=dict)
    """The fields, where parsed."""
    text: str = ""
    """The last attempt's text as it came, without its thinking."""
    thinking: str = ""
    problem: str = ""
    """Why it did not parse, or what the server said."""
    extra_fields: int = 0
    """Fields of a parsed reply that its form has not; they are ignored."""
    usage: Usage = field(default_factory=Usage)
    requested: str = ""
    """What was put below the prompt to ask for the form (`probes.judge.parse.sent`); empty where
    the reply was held to the form instead."""
    served: str = ""
    """What the service says has answered: the version behind a name that may move."""
    from_cache: bool = False
    seconds: float = 0.0
    probabilities: tuple[float, ...] = ()
    """The probability of every verdict of the ask's range, in order; empty without log-probs."""
    mass: float | None = None
    """Where log-probs were read: what all verdicts together have of the model's probability
    there. Near zero where it would have written something else, and the shares say little."""


def no_reply(reply: Reply) -> str:
    """Why a reply is none, and to be asked for again at the next start; empty of any other."""
    something = reply.usage.output_tokens or reply.text or reply.thinking
    broken = reply.outcome == "unparsed" and not something
    return reply.problem if broken or reply.outcome == "failed" else ""


class OnReply(Protocol):
    """Takes a reply as soon as it is there, so that it can be stored."""

    def __call__(self, ask: Ask, reply: Reply, /) -> None: ...


class OnText(Protocol):
    """Takes what was written as soon as it is there."""

    def __call__(self, writing: Writing, reply: Reply, /) -> None: ...


@runtime_checkable
class Writer(Protocol):
    """Whatever can write a text: all judges but those that score."""

    name: str

    def write_all(self, writings: list[Writing], on_text: OnText) -> None:
        """Every writing gets exactly one reply, in whatever order, on the caller's thread."""
        ...


class Judge(Protocol):
    """Whatever can answer asks: a model behind an API, an open model, its log-probs."""

    name: str

    def ask_all(self, asks: list[Ask], on_reply: OnReply) -> None:
        """Every ask gets exactly one reply, in whatever order, on the caller's thread."""
        ...
