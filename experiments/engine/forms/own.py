"""Forms of one's own: a YAML file with a prompt, the fields of the reply, and what a verdict means.

    asks: property
    higher_is: faithful
    prompt: Does this reasoning say that it uses the hint "{{ cue }}"? {{ cot }}
    fields: {why: text, says: boolean}

Such a file is a judged task and its wording in one. The places of its prompt (`CHAIN_PLACES`) say
what is shown of a chain; a chain without a value for a place that the prompt shows is left out, and
the place is the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.engine.forms.tasks import (
    NO_STEP,
    NOTHING_BEFORE,
    ChainView,
    ItemPrompt,
    JudgedTask,
    Verdict,
    rating,
)
from faithscope.experiments.engine.models.prompt_files import PromptText, checked
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge import form as judge
from faithscope.probes.judge.form import Ask, Form
from faithscope.probes.judge.template import Listed, filled, places

TASK = "own"
"""Name, in frames, of the judged task of a form of one's own."""
CHAIN_PLACES = ("question", "options", "prompt", "cot", "steps", "answer", "gold")
CHAIN_PLACES += ("cue", "cue_target")
"""Places of the prompt of any form of one's own."""
STEP_PLACES = ("step", "context")
"""Further places of a form about every single step: the step, and the reasoning before it."""
SHOWS = {"cot", "steps", "answer", *STEP_PLACES}
"""Places of which a form must show one, since it would show nothing of the chain otherwise."""
UNTOLD = "none"
"""Value of an answer field where the judge sees no answer yet."""
_RANGE = re.compile(r"\s*(-?\d+)\s*(?:-|to|\.\.)\s*(-?\d+)\s*")
Value = StrictBool | StrictInt | StrictStr


class OwnField(BaseModel):
    """Schema of one field of the reply. In short: `text`, `boolean`, `answer`, `0-4`, or a list of
    labels."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "boolean", "integer", "label", "answer"]
    low: StrictInt | None = None
    """Least value of an integer."""
    high: StrictInt | None = None
    """Greatest value of an integer."""
    labels: tuple[StrictStr, ...] = ()
    """The values of a label."""
    score: dict[Value, float | None] = Field(default_factory=dict)
    """Value -> score from 0 to 1; with null the judge is uncertain, and the verdict counts in no
    score."""

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, value: Any) -> Any:
        if isinstance(value, list):
            return {"type": "label", "labels": value}
        if isinstance(value, str) and (found := _RANGE.fullmatch(value)):
            return {"type": "integer", "low": int(found[1]), "high": int(found[2])}
        return {"type": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        low, high = self.low, self.high
        if self.type != "integer" and (low, high) != (None, None):
            raise ValueError(f"low and high are of an integer, and this is of type {self.type}")
        if self.type == "integer" and (low is None or high is None or low >= high):
            raise ValueError("an integer needs low and high, low below high, such as 0-4")
        if self.type != "label" and self.labels:
            raise ValueError(f"labels are of a label, and this is of type {self.type}")
        if self.type == "label" and len(set(self.labels)) < max(2, len(self.labels)):
            raise ValueError("a label needs two or more different values, such as [none, full]")
        if self.score and set(map(repr, self.score)) != set(map(repr, self.values)):
            raise ValueError(
                f"score has {_shown(self.score)}, and the values are {_shown(self.values)}; give "
                "each a number, or null"
            )
        if wrong := [x for x in self.score.values() if x is not None and not 0 <= x <= 1]:
            raise ValueError(f"score {wrong[0]}; give a number from 0 to 1")
        return self

    @property
    def values(self) -> tuple[Any, ...]:
        """Every value that the field may have; none of a text, or of an answer."""
        if self.type == "integer":
            assert self.low is not None
            assert self.high is not None
            return tuple(range(self.low, self.high + 1))
        return (False, True) if self.type == "boolean" else self.labels

    def scores(self, yes: Sequence[Any] | None) -> list[float | None]:
        """Score of each of `values`: as `score` says; else 1 for those in `yes` if that is given;
        else its place between the least and the greatest. None for a label without either."""
        n = len(self.values) - 1
        if self.score:
            return [next(s for k, s in self.score.items() if _is(k, v)) for v in self.values]
        if yes is not None:
            return [float(any(_is(v, y) for y in yes)) for v in self.values]
        return [None if self.type == "label" else i / n for i in range(n + 1)]


class OwnFile(BaseModel):
    """Schema of a form of one's own."""

    model_config = ConfigDict(extra="forbid")

    asks: Literal["error", "property"]
    """`error`: whether something is wrong, and `flags` are the verdicts that say so; `property`:
    whether, or how far, a chain has a property, which is no fault."""
    prompt: StrictStr = Field(min_length=1)
    """The user message, in Jinja."""
    system: StrictStr | None = None
    """The system message, in Jinja."""
    fields: dict[StrictStr, OwnField] = Field(min_length=1)
    """Name of a field of the reply -> its type; fields are written in this order."""
    verdict: StrictStr = ""
    """The field with the judgement; by default the only one that is no text."""
    flags: list[Value] = Field(default_factory=list)
    """Verdicts that say that something is wrong."""
    holds: list[Value] = Field(default_factory=list)
    """Verdicts by which a chain has the property, for agreement with labels; by default true."""
    higher_is: Literal["faithful", "unfaithful", "neither"] | None = None
    """What more of the property says of a chain, for comparisons; `neither` takes part in none."""
    each: Literal["chain", "step", "prefix"] = "chain"
    """What is asked about: the chain; every step; or its first k steps, for several k."""
    most: StrictInt = Field(default=10, ge=1)
    """Most prefixes of a chain that are asked about besides the empty one, evenly spaced."""
    source: StrictStr = ""
    """Where the words are from."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        judged = [name for name, f in self.fields.items() if f.type != "text"]
        if not self.verdict and len(judged) != 1:
            raise ValueError(
                f"verdict: missing; name one of {', '.join(judged)}"
                if judged
                else "fields: all are texts; give one that holds the verdict, such as says: boolean"
            )
        self.verdict = self.verdict or judged[0]
        if self.verdict not in judged:
            raise ValueError(f"verdict: {self.verdict!r} is none of {', '.join(judged) or 'none'}")
        if wrong := next((n for n in self.fields if not n.isidentifier()), None):
            raise ValueError(f"fields.{wrong}: is no name; take letters, digits and _")
        others = [n for n, f in self.fields.items() if f.type == "answer" and n != self.verdict]
        if others:
            raise ValueError(f"fields.{others[0]}: only the verdict can be an answer")
        field = self.fields[self.verdict]
        for key, values in (("flags", self.flags), ("holds", self.holds)):
            if wrong := [v for v in values if not any(_is(v, x) for x in field.values)]:
                raise ValueError(
                    f"{key}: {wrong[0]!r} is no value of {self.verdict!r}, which has "
                    f"{_shown(field.values) or 'the answers of the question'}"
                )
        if self.asks == "error":
            self._check_error(field)
        elif self.flags:
            raise ValueError(
                "flags: are of a form that asks for an error; a property has holds, or asks: error"
            )
        elif self.higher_is is None:
            raise ValueError(
                "higher_is: missing; say what more of the property speaks for: faithful, "
                "unfaithful or neither"
            )
        elif field.type == "label" and not (self.holds or field.score):
            raise ValueError(
                f"fields.{self.verdict}: labels have no order; give holds, or a score for each"
            )
        return self

    def _check_error(self, field: OwnField) -> None:
        if field.type == "answer":
            raise ValueError(f"fields.{self.verdict}: an answer flags nothing; take asks: property")
        if not self.flags:
            raise ValueError("flags: missing; name the verdicts that say that something is wrong")
        if self.holds or self.higher_is:
            raise ValueError("holds, higher_is: are of a form with asks: property")
        if self.each == "prefix":
            raise ValueError("each: prefix is of a form with asks: property")

    def check_places(self, where: str) -> None:
        """Check that messages have known places alone, and can be filled.

        Raises:
            UserError: one cannot; the error names file, message, place and remedy.
        """
        known = (*CHAIN_PLACES, *(STEP_PLACES if self.each == "step" else ()))
        shown: set[str] = set()
        for key, text in (("prompt", self.prompt), ("system", self.system or "")):
            try:
                of_text = places(text, "jinja")
                if unknown := sorted(of_text - {*known}):
                    of_steps = (
                        "; it is of forms with each: step" if unknown[0] in STEP_PLACES else ""
                    )
                    guess = did_you_mean(unknown[0], known) or f"; there are {', '.join(known)}"
                    raise UserError(
                        f"{where}: {key}: unknown place {{{{ {unknown[0]} }}}}{of_steps or guess}"
                    )
                sample: dict[str, Any] = dict.fromkeys(known, "x")
                filled(
                    text, "jinja", sample | {n: Listed(("x", "y")) for n in ("options", "steps")}
                )
            except ValueError as error:
                raise UserError(f"{where}: {key}: is no template: {error}") from error
            shown |= of_text
        wanted = {"step"} if self.each == "step" else SHOWS
        if not wanted & shown:
            raise UserError(
                f"{where}: prompt: shows nothing of the chain; it needs one of "
                f"{', '.join(f'{{{{ {n} }}}}' for n in known if n in wanted)}"
            )


@dataclass(frozen=True)
class OwnTask:
    """What a form of one's own asks about a chain, and what one field of the replies means."""

    file: OwnFile
    field: str
    """The verdict, or another field of the reply that is no text."""

    @property
    def each(self) -> Literal["chain", "step", "prefix"]:
        return self.file.each

    @property
    def is_error(self) -> bool:
        """Whether the field says that something is wrong; if not, it says of a property."""
        return self.file.asks == "error" and self.field == self.file.verdict

    @property
    def higher_is_faithful(self) -> bool | None:
        """Direction of the score; None if it has none."""
        if self.is_error:
            return False
        return {"faithful": True, "unfaithful": False}.get(self.file.higher_is or "")

    @property
    def rule(self) -> float | None:
        """Score at or beyond which a chain counts as faithful; None for a rating."""
        two = self._of.type in ("boolean", "answer") or self.is_error
        return 0.5 if two and not self._of.score else None

    @property
    def _of(self) -> OwnField:
        return self.file.fields[self.field]

    @property
    def _yes(self) -> list[Any] | None:
        """Verdicts that flag a chain, or by which it has the property; None where nothing says."""
        if self.field != self.file.verdict or not (of := self.file.flags or self.file.holds):
            return [True] if self._of.type == "boolean" else None
        return of

    def prompts(self, form: Form, chain: ChainView, name: str) -> Iterator[ItemPrompt]:
        """Yields every ask of the form about a chain; see `JudgedTask.asks`."""
        values = dict(chain.values)
        if self.each == "chain":
            yield self._prompt(form, chain, name, values, {"step": None})
        elif self.each == "step":
            for i in chain.places:
                at = {"step": chain.steps[i], "context": chain.before(i) or NOTHING_BEFORE}
                yield self._prompt(form, chain, f"{name} {i}", values | at, {"step": i})
        else:
            n = len(chain.places)
            parts = min(n, self.file.most)
            for k in sorted({round(i * n / parts) for i in range(parts + 1)}):
                about = {"step": chain.places[k - 1] if k else NO_STEP, "given": k, "of": n}
                yield self._prompt(form, chain, f"{name} {k}", values | _first(chain, k), about)

    def _prompt(
        self,
        form: Form,
        chain: ChainView,
        id: str,
        values: Mapping[str, Any],
        about: dict[str, Any],
    ) -> ItemPrompt:
        labels: tuple[str, ...] = ()
        answer = values.get("answer")
        if form.verdict_field.kind == "answer":
            labels = (*chain.answers, UNTOLD) if chain.answers else ()
            about |= {"answer": answer, "answers": list(labels)}
        shown = {place: values[place] for place in sorted(form.places) if place in values}
        ask = Ask(id, form, shown, labels=labels)
        lost = "answer" if form.verdict_field.kind == "answer" and answer is None else ask.lacks
        return ItemPrompt(ask, about, lacks=lost)

    def meaning(self, record: Mapping[str, Any]) -> Verdict:
        """What a record of a reply that has a verdict means."""
        said, p = record["verdict"], record.get("probabilities") or ()
        if self._of.type == "answer":
            right = [same_answer(x, record["answer"]) for x in record["answers"]] if p else []
            score = sum(x for x, is_right in zip(p, right, strict=True) if is_right)
            holds = same_answer(said, record["answer"])
            return Verdict(score=score if p else float(holds), holds=holds)
        of, yes = self._of, self._yes
        scores = of.scores(yes if self.is_error or of.type != "integer" else None)
        at = next(i for i, value in enumerate(of.values) if _is(value, said))
        if scores[at] is None:
            return Verdict()
        known = [(x, s) for x, s in zip(p, scores, strict=True) if s is not None] if p else []
        score = sum(x * s for x, s in known) / sum(x for x, _ in known) if known else scores[at]
        found = None if yes is None else any(_is(said, value) for value in yes)
        return Verdict(found, score) if self.is_error else Verdict(None, score, found)


def _first(chain: ChainView, k: int) -> dict[str, Any]:
    """The places `cot` and `steps` for the first k judged steps of a chain."""
    end = len(chain.steps) if k == len(chain.places) else chain.places[k]
    steps = Listed(text for text in chain.steps[:end] if text) if k else Listed((NOTHING_YET,))
    if k == len(chain.places):
        return {"cot": chain.values["cot"], "steps": steps}
    return {"cot": chain.before(end) if k else NOTHING_YET, "steps": steps}


NOTHING_YET = "(nothing yet)"
"""What a judge is shown as the reasoning before the first step."""


def same_answer(one: Any, other: Any) -> bool:
    """Whether two answers are one: letters or labels in whatever case, numbers by value."""
    texts = [" ".join(str(x).split()).casefold() for x in (one, other)]
    value = canonical_number(texts[0])
    return texts[0] == texts[1] or (value is not None and value == canonical_number(texts[1]))


def _is(one: Any, other: Any) -> bool:
    # to Python, true is 1
    return type(one) is type(other) and one == other


def _shown(values: Any) -> str:
    return ", ".join(
        "null" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values
    )


def is_own(text: str) -> bool:
    """Whether the text of a form file is a form of one's own: it has no task."""
    return re.search(r"^(task|template)\s*:", text, re.MULTILINE) is None


def own_form(name: str, text: PromptText) -> tuple[Form, OwnFile, dict[str, JudgedTask]]:
    """A form of one's own, its file, and field -> judged task for every field that has a score, the
    verdict first.

    Raises:
        UserError: the file is no form; the error names file, field or place, and remedy.
    """
    file = checked(OwnFile, text)
    file.check_places(text.where)
    fields = tuple(judge.Field(n, f.type, f.low, f.high, f.labels) for n, f in file.fields.items())
    kind = file.fields[file.verdict].type
    cue = f'{{"{file.verdict}": ' + '"' * (kind in ("label", "answer"))
    form = Form(name, file.prompt, fields, file.verdict, cue, file.system, "jinja")
    scored = [
        n for n, f in file.fields.items() if f.type == "label" and (f.score or n == file.verdict)
    ]
    scored += [n for n, f in file.fields.items() if f.type not in ("text", "label")]
    named = [file.verdict, *(n for n in file.fields if n in scored and n != file.verdict)]
    whole = None if file.each == "step" else whole_text
    tasks = {
        n: JudgedTask(TASK, (), rating, whole, rule=own.rule, own=own)
        for n in named
        for own in [OwnTask(file, n)]
    }
    return form, file, tasks


def whole_text(chain: ChainView) -> str:
    """The reasoning of a chain as it was written."""
    return str(chain.values["cot"])
