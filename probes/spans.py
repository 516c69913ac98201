"""Spans: named places in the tokens of a prompt and its chain, by role, by pattern or by label.

    spans:
      expert: {regex: "(?i)professor [^.]*", in: prompt}
      checks: {tag: kind, is: check}
      opening: steps 1-3

A span has every token that holds one of its characters, also the tokens that spell only a part of
one. Tokens are those of the chain as it is read: nothing is encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interventions import Question, Step, Trace
from faithscope.probes.answer_token import Span, regions_of_prompt, token_span
from faithscope.probes.patterns import matched, pattern_problem
from faithscope.probes.settings import ADDED, Settings

if TYPE_CHECKING:
    from faithscope.interp.model import Model
    from faithscope.probes.framing import Asking

Place = Literal["prompt", "reasoning", "all"]
Which = Literal["only", "first", "last", "all"]
ROLES = {
    "prompt": "the prompt without its first token, on which heads rest that look at nothing",
    "template": "the prompt without its first token, the question and its options",
    "question": "the question, up to its last option",
    "options": "the texts of the options",
    "cue": "the cue of a given chain, where it stands in the prompt",
    "reasoning": "the reasoning",
    "step": "all counted steps; `step 3`, `steps 2-4` and `last step` are some of them",
    "answer": "what follows the reasoning: what closes it, the answer cue, and the answer itself",
}
"""Word for a span of every chain -> its meaning."""
_STEPS = re.compile(r"last step|step ([1-9]\d*)|steps ([1-9]\d*)-([1-9]\d*)")
_NAME = re.compile(r"(?!(?:x|later)$)[A-Za-z_][\w.-]*")
NOT_FOUND, TWICE = "span_not_found", "span_found_twice"
"""Why a chain has no such span; a record's reason adds the name: `span_not_found: cue`."""
How = str | dict[str, Any]
"""A role; or the keys of a pattern (`regex`, `in`, `which`) or a label (`tag`, `is`)."""


def role_problem(word: str) -> str | None:
    """Why a word is no role; None if it is one."""
    if word in ROLES:
        return None
    if found := _STEPS.fullmatch(word):
        _, first, last = found.groups()
        backwards = first is not None and int(first) > int(last)
        return f"{word!r} ends before it begins" if backwards else None
    if re.fullmatch(r"steps? \S+", word):
        return f"{word!r}: steps count from 1, as in step 3 or steps 2-4"
    if word == "later":
        return "'later' depends on what is cut off: it stands for the queries of a cut alone"
    guess = did_you_mean(word, [*ROLES, "last step"])
    return f"unknown role {word!r}{guess or '; known: ' + ', '.join([*ROLES, 'last step'])}"


def _how(how: Any) -> How:
    """
    Raises:
        ValueError: it is no role, pattern or label.
    """
    if isinstance(how, str):
        if problem := role_problem(how):
            raise ValueError(f"{problem}; or give {{regex: …}} or {{tag: …, is: …}}")
        return how
    keys = set(how) if isinstance(how, dict) else set()
    if "regex" in keys and keys <= {"regex", "in", "which"}:
        pattern = {"in": "all", "which": "only"} | how
        for key, known in (("in", get_args(Place)), ("which", get_args(Which))):
            if pattern[key] not in known:
                raise ValueError(f"{key}: {pattern[key]!r} is none of {', '.join(known)}")
        if problem := pattern_problem(pattern["regex"]):
            raise ValueError(problem)
        return pattern
    if keys == {"tag", "is"} and isinstance(how["tag"], str):
        return how
    raise ValueError(
        f"{how!r} is neither a role ({', '.join(ROLES)}) nor a pattern ({{regex: …, in: "
        f"{'|'.join(get_args(Place))}, which: {'|'.join(get_args(Which))}}}) nor a label of steps "
        "({tag: …, is: …})"
    )


def _declared(values: Any) -> dict[str, How]:
    """
    Raises:
        ValueError: a name or a declaration does not fit; the message begins with the name.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{values!r} is no mapping from names to spans")
    for name in values:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot name a span; use letters, digits, '_', '.' and '-', and neither "
                "'later' nor 'x'"
            )
    made = {}
    for name, how in values.items():
        try:
            made[name] = _how(how)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return made


Spans = Annotated[dict[str, Any], BeforeValidator(_declared)]
"""Name -> how the span is found."""


class TakesSpans(Settings):
    """Settings of a probe that takes declared spans."""

    spans: Annotated[Spans, ADDED] = Field(default={})
    """Spans by name, besides those of the key `spans` of the whole config, and before them: a role,
    `{regex: …, in: …, which: …}` or `{tag: …, is: …}` (`faithscope docs spans`)."""

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the spans and roles that the numbers depend on."""
        return tuple(self.spans)

    def decides(self) -> dict[str, Any]:
        used = {name: self.spans[name] for name in self.named if name in self.spans}
        others = {name: x for name, x in super().decides().items() if name != "spans"}
        return others | ({"spans": used} if used else {})

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        problems = (problem_of(name, self.spans) for name in dict.fromkeys(self.named))
        return [*super().misfits(models), *(f"spans: {x}" for x in problems if x)]

    def misfit_of_chains(
        self, step_labels: Mapping[str, Collection[Any]], cued: bool
    ) -> str | None:
        for name in dict.fromkeys(self.named):
            how = how_of(name, self.spans)
            if how == "cue" and not cued:
                return f"spans: {name!r} is the cue of given chains, and none here has one"
            if isinstance(how, dict) and "tag" in how:
                there = step_labels.get(how["tag"])
                if there is None:
                    known = ", ".join(step_labels) or "none"
                    guess = did_you_mean(how["tag"], step_labels) or f"; known: {known}"
                    return f"spans.{name}: no chain has step labels {how['tag']!r}{guess}"
                if not any(_same(x, how["is"]) for x in there):
                    values = ", ".join(sorted({str(x) for x in there if x is not None})[:10])
                    return f"spans.{name}: no step has {how['tag']}: {how['is']!r}; it is {values}"
        return None


def problem_of(name: str, declared: Mapping[str, How]) -> str | None:
    """Why there is no span of a name; None if it is declared, or a role."""
    if name in declared or role_problem(name) is None:
        return None
    if re.fullmatch(r"steps? .*|later", name):
        return role_problem(name)
    guess = did_you_mean(name, [*declared, *ROLES, "last step"])
    return (
        f"unknown span {name!r}{guess or '; it is no role, either: ' + ', '.join(ROLES)}; declare "
        "others under spans"
    )


def how_of(name: str, declared: Mapping[str, How]) -> How:
    """How the span of a name is found: as declared, or else by its role.

    Raises:
        UserError: there is no span of this name.
    """
    if problem := problem_of(name, declared):
        raise UserError(problem)
    return declared.get(name, name)


def question_chars(text: str, question: Question) -> Span | None:
    """Half-open span of the characters from the question to the end of the last option after it;
    None if its text is not there."""
    wanted = question.text.strip()
    start = text.rfind(wanted) if wanted else -1
    if start < 0:
        return None
    end = start + len(wanted)
    if question.kind == "choice":
        for option in question.options or ():
            at = text.find(option.strip(), end)
            end = at + len(option.strip()) if at >= 0 else end
    return start, end


class Found(NamedTuple):
    """The spans of one chain by their names."""

    spans: dict[str, tuple[Span, ...]]
    """Name -> its half-open token spans, in order, counted from the prompt's first token."""
    missing: dict[str, str]
    """Name -> why the chain has no such span: `span_not_found: NAME`, `span_found_twice: NAME`."""


def find(
    model: Model,
    trace: Trace,
    asking: Asking,
    names: Iterable[str],
    declared: Mapping[str, How] | None = None,
) -> Found:
    """The spans of a chain in `prefix` framing.

    Args:
        names: names of declared spans, and roles.

    Raises:
        UserError: a name is neither declared nor a role, or a pattern takes more than
            `patterns.PATIENCE` seconds.
    """
    chain, found = _Chain(model, trace, asking), Found({}, {})
    for name in dict.fromkeys(names):
        of = chain.spans(name, how_of(name, declared or {}))
        if isinstance(of, str):
            found.missing[name] = f"{of}: {name}"
        else:
            found.spans[name] = of
    return found


class _Chain:
    """The tokens and texts of a chain, and what follows it."""

    def __init__(self, model: Model, trace: Trace, asking: Asking) -> None:
        self._model, self._trace = model, trace
        self._n = len(trace.prompt_ids)
        self._end = self._n + len(trace.reasoning_ids)
        self._after = self._end + len(asking.closer_ids) + len(model.encode(asking.answer_cue))

    @cached_property
    def _prompt(self) -> tuple[str, ...]:
        return tuple(self._model.pieces(self._trace.prompt_ids))

    def spans(self, name: str, how: How) -> tuple[Span, ...] | str:
        if isinstance(how, dict):
            found = self._matches(name, how) if "regex" in how else self._labelled(how)
        else:
            found = self._role(how)
        if isinstance(found, str):
            return found
        return tuple((a, b) for a, b in found if a < b) or NOT_FOUND

    def _role(self, role: str) -> Iterable[Span] | str:
        steps = self._trace.counted_steps
        if found := _STEPS.fullmatch(role):
            one, first, last = found.groups()
            a, b = int(one or first or len(steps)), int(one or last or len(steps))
            return self._of_steps(steps[a - 1 : b]) if b <= len(steps) else NOT_FOUND
        ways: dict[str, Callable[[], Iterable[Span] | str]] = {
            "prompt": lambda: [(1, self._n)],
            "template": lambda: self._region("template"),
            "question": lambda: self._region("question"),
            "options": self._options,
            "cue": self._cue,
            "reasoning": lambda: [(self._n, self._end)],
            "step": lambda: self._of_steps(steps),
            # with neither closer nor cue, the last token of the reasoning gives the answer
            "answer": lambda: [(min(self._end, self._after - 1), self._after)],
        }
        return ways[role]()

    def _of_steps(self, steps: Iterable[Step]) -> list[Span]:
        return [(self._n + a, self._n + b) for a, b in (step.tokens for step in steps)]

    def _labelled(self, how: Mapping[str, Any]) -> list[Span]:
        given = self._trace.origin.given
        labels = given.step_labels.get(how["tag"], ()) if given else ()
        of = [s for s in self._trace.steps if s.index < len(labels)]
        return self._of_steps(s for s in of if _same(labels[s.index], how["is"]))

    def _region(self, name: str) -> tuple[Span, ...] | str:
        chars = question_chars("".join(self._prompt), self._trace.question)
        if chars is None:
            return NOT_FOUND
        return regions_of_prompt(self._n, token_span(self._prompt, *chars))[name]

    def _options(self) -> list[Span] | str:
        question, text = self._trace.question, "".join(self._prompt)
        chars = question_chars(text, question)
        if chars is None or not question.options:
            return NOT_FOUND
        at, spans = chars[0] + len(question.text.strip()), []
        for option in question.options:
            # as a word: the option "3" is not in "23"
            words = rf"(?<!\w){re.escape(option.strip())}(?!\w)"
            match = re.compile(words).search(text, at)
            if match is None:
                return NOT_FOUND
            at = match.end()
            spans.append(token_span(self._prompt, *match.span()))
        return spans

    def _cue(self) -> list[Span] | str:
        given = self._trace.origin.given
        cue = (given.cue or "").strip() if given else ""
        if not cue:
            return NOT_FOUND
        matches = [m.span() for m in re.finditer(re.escape(cue), "".join(self._prompt))]
        return self._chosen(self._prompt, 0, matches, "only")

    def _matches(self, name: str, how: Mapping[str, Any]) -> list[Span] | str:
        place, reasoning = how["in"], self._trace.pieces
        pieces = reasoning if place == "reasoning" else self._prompt
        pieces = (*pieces, *reasoning) if place == "all" else pieces
        item = self._trace.question.id
        every = matched(how["regex"], "".join(pieces), f"spans.{name}", item)
        matches = [(a, b) for a, b in every if a < b]
        return self._chosen(pieces, self._n if place == "reasoning" else 0, matches, how["which"])

    def _chosen(
        self, pieces: Sequence[str], start: int, matches: Sequence[Span], which: Which
    ) -> list[Span] | str:
        if not matches:
            return NOT_FOUND
        if which == "only" and len(matches) > 1:
            return TWICE
        some = {"first": matches[:1], "last": matches[-1:]}.get(which, matches)
        spans = (token_span(pieces, *chars) for chars in some)
        return [(start + a, start + b) for a, b in spans]


def _same(label: Any, value: Any) -> bool:
    """Whether a label of a file is the value that a config names: JSON's true is YAML's."""
    return label is not None and str(label) == str(value)
