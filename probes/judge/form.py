"""Forms: the question to a judge, and the fields of its reply.

A form is a prompt with places for the item's values, and the fields of the JSON object to reply
with. API models, an open model's generation and its log-probs of the verdict all answer the same
form, so that the three can be compared item by item.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Protocol

from faithscope.probes.judge.template import MissingPlace, Syntax, filled, places

VerdictValue = int | str | bool
"""The value of a verdict: a number, a label, or true or false."""


@dataclass(frozen=True)
class Field:
    """One field of a reply."""

    name: str
    """Path of the field in the reply; dots go into objects: `transition.identifies_flaw`."""
    kind: Literal["text", "integer", "label", "boolean", "answer"]
    """An answer is one of the item's labels; of an item without any it is written freely."""
    low: int | None = None
    """The least value of an integer."""
    high: int | None = None
    """The greatest value of an integer; None if the item sets it (a step index)."""
    labels: tuple[str, ...] = ()
    """The values that a label may have; none if the item sets them (answer options)."""
    optional: bool = False
    """Whether a text may be null."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names on the path to the field."""
        return tuple(self.name.split("."))


@dataclass(frozen=True)
class Form:
    """A judge task: prompt, fields, and which of them is the verdict."""

    name: str
    template: str
    """The prompt, with `{place}` for every value of an ask; literal braces are doubled."""
    fields: tuple[Field, ...]
    verdict: str
    """Name of the field that holds the judgement; never a text field."""
    cue: str = ""
    """Prefill of the open model's reply before log-probs of the verdict are read: all up to the
    number, the label (with or without its opening quote), or true or false."""
    system: str | None = None
    """The system message, with places like the template's."""
    syntax: Syntax = "format"
    """Language of template and system message: `{place}`, or Jinja."""

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
    def places(self) -> frozenset[str]:
        """Names of the places of template and system message."""
        return places(self.template, self.syntax) | places(self.system or "", self.syntax)

    @cached_property
    def sha256(self) -> str:
        """The sha256 of everything that the form tells the judge; every record keeps it."""
        content = asdict(self)
        for f in content["fields"]:
            # forms without labels or optional texts keep the hash of versions that had neither
            for name in ("labels", "optional"):
                if not f[name]:
                    del f[name]
        if self.syntax == "format":
            del content["syntax"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Ask:
    """One item put to a judge."""

    id: str
    """Id of the ask, unique among the asks of one form in one run."""
    form: Form
    values: Mapping[str, Any]
    """Place in the template -> the item's text there, or its texts (`template.Listed`)."""
    high: int | None = None
    """The greatest verdict that this item allows, if the form leaves it open."""
    labels: tuple[str, ...] = ()
    """The labels that this item allows, if the form leaves them open."""

    @property
    def name(self) -> str:
        """Name of the ask, different for every ask and every writing of a run."""
        return f"{self.form.name}/{self.id}"

    @property
    def prompt(self) -> str:
        """The user message.

        Raises:
            MissingPlace: it shows a place that the item has no value for (`lacks`).
        """
        return filled(self.form.template, self.form.syntax, self.values)

    @property
    def system(self) -> str | None:
        """The system message, with places as in `prompt`."""
        system = self.form.system
        return None if system is None else filled(system, self.form.syntax, self.values)

    @property
    def lacks(self) -> str | None:
        """The first place that the messages show and the item has no value for; None if there is
        none."""
        try:
            _ = (self.prompt, self.system)
        except MissingPlace as error:
            return error.place
        return None

    @property
    def range(self) -> range:
        """Every possible verdict of this ask, for a form whose verdict is a number."""
        f = self.form.verdict_field
        high = f.high if f.high is not None else self.high
        if f.kind != "integer" or f.low is None or high is None:
            raise ValueError(
                f"judge form {self.form.name!r}, item {self.id!r}: the verdict {f.name!r} has no "
                "bounds; give them in the form or with the item"
            )
        return range(f.low, high + 1)

    def writes(self, f: Field) -> bool:
        """Whether a judge writes the value of a field freely, where others are chosen."""
        return f.kind == "text" or (f.kind == "answer" and not self.labels)

    def choices(self, of: Field | None = None) -> tuple[VerdictValue, ...]:
        """Every value that the field `of` (by default the verdict) may have in this ask, in order.

        Raises:
            ValueError: the field is a text, or neither form nor item says which values it may have.
        """
        f = of or self.form.verdict_field
        what = f"judge form {self.form.name!r}, item {self.id!r}: {f.name!r}"
        if f.kind == "boolean":
            return (False, True)
        if f.kind in ("label", "answer"):
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
    """Id of the writing, unique in one run."""
    prompt: str
    system: str | None = None
    before: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """(role, text) of the turns before the prompt, which is the user's turn."""
    draw: int = 1
    """Number of the draw of a reply to one prompt, from 1; each draw is cached separately."""
    schema: Mapping[str, Any] | None = None
    """JSON schema of a reply that is to be JSON, for services that hold their models to one."""

    @property
    def name(self) -> str:
        """Name of the writing, different for every ask and every writing of a run."""
        return self.id

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
    """Tokens of one ask, over all its attempts; zero if the server reports nothing.

    A budget counts the most that was allowed in place of such zeros (`probes.judge.spend`).
    """

    calls: int = 0
    input_tokens: int = 0
    """Input tokens, including those that the provider had cached."""
    output_tokens: int = 0
    """Output tokens, including those of the reasoning."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: n + getattr(other, name) for name, n in vars(self).items()})


@dataclass(frozen=True)
class Reply:
    """A judge's reply to one ask, parsed, or the reason why there is none."""

    outcome: Outcome
    values: Mapping[str, Any] = field(default_factory=dict)
    """Field name -> value, if the reply was parsed."""
    text: str = ""
    """The last attempt's text as it came, without its thinking."""
    thinking: str = ""
    problem: str = ""
    """Why the reply did not parse, or what the server said."""
    extra_fields: int = 0
    """Number of fields of a parsed reply that its form does not have; they are ignored."""
    usage: Usage = field(default_factory=Usage)
    requested: str = ""
    """Request for the form that was put below the prompt (`probes.judge.parse.sent`); empty if the
    reply was held to the form instead."""
    served: str = ""
    """Name of the model that answered, by the service: the version behind a name that may move."""
    from_cache: bool = False
    seconds: float = 0.0
    probabilities: tuple[float, ...] = ()
    """The probability of every verdict of the ask's range, in order; empty without log-probs."""
    mass: float | None = None
    """The model's probability of all verdicts together, if log-probs were read. Near zero, the
    model would have written something else, and the verdicts' shares say little."""

    def to_record(self) -> dict[str, Any]:
        """The reply, word for word, and its usage, as fields of a record."""
        values = asdict(self)
        return values | values.pop("usage")

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Reply:
        """The reply in a record that has the fields of `to_record`."""
        own = {f.name: record[f.name] for f in fields(cls) if f.name != "usage"}
        return cls(**own, usage=Usage(**{f.name: record[f.name] for f in fields(Usage)}))


def no_reply(reply: Reply) -> str:
    """Why there is no reply, so that the next start asks again; empty for any reply."""
    something = reply.usage.output_tokens or reply.text or reply.thinking
    broken = reply.outcome == "unparsed" and not something
    return reply.problem if broken or reply.outcome == "failed" else ""


OnReply = Callable[[Any, Reply], None]
"""A function that takes each ask with its reply as soon as the reply is there, to store it."""


class Judge(Protocol):
    """Anything that can answer asks: an API model, an open model, its log-probs.

    All take writings, too, but those that choose among values (`ScoringJudge`, `ForcedJudge`).
    """

    name: str

    def ask_all(self, asks: Sequence[Ask], on_reply: OnReply) -> None:
        """Give every ask exactly one reply, in any order; `on_reply` takes one at a time."""
        ...
