"""Equality of free answers: of numbers by value, of expressions by math-verify, else of words."""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Any

from faithscope.experiments.data.latex import as_read, boxes
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.statements import without_tags

_LONGEST = 200
_IN_WORDS = re.compile(
    r"(?<![\\A-Za-z])(?!sqrt|frac|pi\b|log|sin|cos|tan|exp|infty|left|right)[^\W\d_]{3,}"
)
_HUGE = re.compile(r"(?:\^|\*\*)\s*+(?:\{\s*+)?-?(?:\d{4}|[^{}]{0,40}\^)|\d{4}\s*!|!\s*!")
"""What would take the memory of a machine to compute: `10^{10^{10}}`."""


def same_answer(one: str, other: str) -> bool:
    r"""Whether two free answers are the same: `1,000` and `10^3`, `\sqrt{3}/2` and
    `\frac{\sqrt{3}}{2}`, `(3,125)` and `(3, 125)`, "Paris" and "paris.".

    Where both are numbers (`canonical_number`), their values are compared; where both are
    mathematical, math-verify says whether they are equal, each read whole (units and variables are
    factors, so that `2ab` is not 2); else their words are.
    """
    numbers = canonical_number(one), canonical_number(other)
    if None not in numbers:
        return numbers[0] == numbers[1]
    one, other = _bare(one), _bare(other)
    if one.casefold() == other.casefold():
        return bool(one)
    return _is_expression(one) and _is_expression(other) and _equal(one, other)


def _bare(text: str) -> str:
    text = without_tags(text)
    boxed = boxes(text)
    text = text[slice(*boxed[-1][1])] if boxed else text
    return " ".join(as_read(text).replace("$", " ").split()).rstrip(".")


def _is_expression(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and not _IN_WORDS.search(text) and not _HUGE.search(text)


def _equal(one: str, other: str) -> bool:
    # Not at the top: sympy takes seconds to import, and few answers are expressions.
    from math_verify import verify

    ours, theirs = _parsed(one), _parsed(other)
    return bool(ours) and bool(theirs) and verify(ours, theirs, timeout_seconds=None)


@cache
def _settings() -> list[Any]:
    from math_verify import LatexExtractionConfig
    from math_verify.parser import NormalizationConfig

    # it would warn at every call that a text may take long: `_HUGE` and `_LONGEST` see to that,
    # since its own limit is a signal, which threads do not have
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    reading = NormalizationConfig(basic_latex=True, malformed_operators=True, boxed="none")
    return [LatexExtractionConfig(normalization_config=reading)]


def _parsed(text: str) -> list[Any]:
    from math_verify import parse

    unlimited: Any = None  # which it takes, and its signature does not say
    return parse(f"${text}$", _settings(), fallback_mode="no_fallback", parsing_timeout=unlimited)
