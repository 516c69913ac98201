"""A step that no longer follows: one number, operator or comparison exchanged by rule.

C2-Faith (section 3.1) has a language model rewrite the step; its valid ways to break causality
include the three here, which need no model and are known to the token. An exchange that leaves a
written-out calculation true, or a sum of numbers at its value, is refused; one that makes the step
contradict itself (`3 + 84 = 252`), which can be seen without the other steps, is taken only if the
step allows no other. No rule can decide whether x = 5 follows from the rest of the chain, so that
case is made unlikely: a number is only exchanged for one that stands nowhere in the chain, never
within a supposition, a bound or a negated sentence.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Literal, get_args

from faithscope.interventions.calculation import calculations, is_wrong_alone, value_at
from faithscope.interventions.corrupt import Change
from faithscope.interventions.swaps import (
    NUMBER_WORD,
    NUMBER_WORDS,
    comparator_flips,
    numeric_swaps,
    operator_swaps,
    sentence_at,
)

Rule = Literal["numeric", "operator", "comparator"]
RULES: tuple[Rule, ...] = get_args(Rule)

Reason = Literal["nothing_to_change", "supposition", "may_stay_true", "number_known", "repeats"]
"""Why a step cannot be replaced: it has no number, operator or comparison to exchange; all of them
are only supposed; the exchange may leave the step true; every other number stands elsewhere in the
chain; the new step would repeat another step."""

_SENTENCE_END = r"[.!?](?=\s|$)|\n|$"
_SUPPOSED = re.compile(
    # a supposition up to its "then" if it has one, else up to its comma
    rf"\b(?:if|when|whenever|unless)\b(?:(?:(?!{_SENTENCE_END}).){{0,400}}\bthen\b|.*?(?:,|;|{_SENTENCE_END}))"
    r"|\b(?:suppos\w+|assum\w+|guess\w*|try(?:ing)?(?!\s+to\b)|for (?:example|instance)"
    r"|denot\w+|define\b|let\s+\$?\\?[a-zA-Z](?![\w'’]))"
    rf".*?(?:{_SENTENCE_END})",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|no|never|cannot|neither|impossible)\b|n['’]t\b", re.IGNORECASE)
_WRITTEN = re.compile(rf"\d+(?:,\d{{3}})*(?:\.\d+)?|{NUMBER_WORD.pattern}", re.IGNORECASE)
_SIDES = re.compile(
    r"(?<![\w.)}])([-−]?\d+(?:\.\d+)?)[\s$]*"
    r"(<=|>=|[<>≤≥]|\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt)(?![a-zA-Z]))"
    r"[\s$]*([-−]?\d+(?:\.\d+)?)(?![\w.^({\\])"
)
_FEW_POWERS = re.compile(
    # matches i, not \pi, x_i or sin; 1 and 0, not 10 and 1.1
    r"(?:(?<![a-zA-Z\\_{])i|(?<![\w.,])[01]|\(\s*[-−]\s*(?:1|i)\s*(?:\\right)?\))\s*"
    r"\^\s*(?:\{[^{}]*|[-−]?)$"
)
"""A base before an exponent that has few powers: i, -i, -1, 1 or 0, so that `i^{-900}` equals
`i^{-100}`."""
_NEAR = 80
"""Number of characters before a number that are searched for such a base."""
_MOST_TRIED = 300
"""Most exchanges of one rule that are tried in a step."""


@dataclass(frozen=True)
class Replacement:
    """A step rewritten so that it no longer follows from the chain."""

    text: str
    rule: Rule
    change: Change
    """The characters of the original step that changed, and their new text."""


@dataclass(frozen=True)
class NoReplacement:
    """A step that no rule can break."""

    reason: Reason


@dataclass(frozen=True)
class AcausalStep:
    """The step of a chain that was replaced."""

    target: int
    """Index of the replaced step, from 0."""
    replacement: Replacement
    passed_over: tuple[tuple[int, Reason], ...]
    """Steps drawn before the target that could not be replaced, with the reasons."""


@dataclass(frozen=True)
class NoAcausalStep:
    """A chain none of whose allowed steps can be replaced."""

    passed_over: tuple[tuple[int, Reason], ...]


def acausal_replacement(
    text: str, seed: int | str, others: Sequence[str] = (), rules: Sequence[Rule] = RULES
) -> Replacement | NoReplacement:
    """Exchange one load-bearing token of a step, or tell why none can be exchanged.

    Args:
        text: the step; LaTeX is understood.
        seed: draws the order of the rules, the place and the new digit.
        others: the problem and the chain's other steps. No number that stands there is written, and
            no step that says the same as one of them.
        rules: those that may be used.
    """
    rng = random.Random(f"acausal-{seed}-{text}")
    known = {_value(n) for t in (text, *others) for n in _WRITTEN.findall(t)}
    texts = {_plain(t) for t in (text, *others)}
    refused: Counter[Reason] = Counter()
    wrong_alone: Replacement | None = None
    for rule in rng.sample(list(rules), len(rules)):
        for change in islice(_candidates(rule, text, rng, seed), _MOST_TRIED):
            new = text[: change.start] + change.new + text[change.end :]
            reason = _objection(text, new, change, known, texts)
            if reason is not None:
                refused[reason] += 1
            elif not is_wrong_alone(new) or is_wrong_alone(text):
                return Replacement(new, rule, change)
            else:
                wrong_alone = wrong_alone or Replacement(new, rule, change)
    if wrong_alone is not None:
        return wrong_alone
    return NoReplacement(refused.most_common(1)[0][0] if refused else "nothing_to_change")


def acausal_step(
    steps: Sequence[str],
    order: Sequence[int],
    seed: int | str,
    problem: str = "",
    rules: Sequence[Rule] = RULES,
) -> AcausalStep | NoAcausalStep:
    """The first step of `order` that can be replaced, with its replacement.

    With a uniform order this is the paper's uniform draw of a target if the first step drawn can be
    replaced; steps passed over are named with the reason.
    """
    passed_over: list[tuple[int, Reason]] = []
    for target in order:
        others = (problem, *(s for i, s in enumerate(steps) if i != target))
        replacement = acausal_replacement(steps[target], f"{seed}-{target}", others, rules)
        if isinstance(replacement, Replacement):
            return AcausalStep(target, replacement, tuple(passed_over))
        passed_over.append((target, replacement.reason))
    return NoAcausalStep(tuple(passed_over))


def _candidates(rule: Rule, text: str, rng: random.Random, seed: int | str) -> Iterator[Change]:
    if rule == "numeric":
        return numeric_swaps(text, rng, seed)
    return operator_swaps(text, rng) if rule == "operator" else comparator_flips(text, rng)


def _objection(
    text: str, new: str, change: Change, known: set[Fraction], texts: set[str]
) -> Reason | None:
    """Why `change` may leave the step as valid as it was; None if it breaks the step."""
    if any(m.start() <= change.start < m.end() for m in _SUPPOSED.finditer(text)):
        return "supposition"
    if _plain(new) in texts:
        return "repeats"
    at = change.start
    if any(c.holds and c.start <= at < c.end for c in calculations(new)):
        return "may_stay_true"
    if (value := value_at(new, at)) is not None and value == value_at(text, at):
        return "may_stay_true"
    if any(_compares_truly(m) for m in _SIDES.finditer(new) if m.start() <= at < m.end()):
        return "may_stay_true"
    if change.rule == "number":
        start, end = sentence_at(text, at)
        if _NEGATED.search(text, start, end):
            return "may_stay_true"
        if _FEW_POWERS.search(text, max(0, at - _NEAR), at):
            return "may_stay_true"
        written = next(m for m in _WRITTEN.finditer(new) if m.start() <= at < m.end())
        if _value(written.group()) in known:
            return "number_known"
    return None


def _compares_truly(m: re.Match[str]) -> bool:
    left, right = (Fraction(m[i].replace("−", "-")) for i in (1, 3))
    sign = m[2].removeprefix("\\").removesuffix("slant")
    if sign in ("<", "lt"):
        return left < right
    if sign in (">", "gt"):
        return left > right
    return left <= right if sign in ("<=", "≤", "le", "leq") else left >= right


def _value(written: str) -> Fraction:
    in_words = NUMBER_WORDS.get(written.lower())
    return Fraction(written.replace(",", "") if in_words is None else in_words)


def _plain(text: str) -> str:
    return "".join(text.lower().split())
