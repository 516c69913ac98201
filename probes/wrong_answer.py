"""A wrong answer to put to a model: an option, or a number near its own."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext
from fractions import Fraction

from faithscope.interventions import Question

_NEAR = (1, -1, 2, -2, 10, -10)
_PLACES = 100
"""Digits of decimal arithmetic, more than any answer has, so that none is rounded away."""


def wrong_answer(question: Question, own: str | None, seed: int) -> str | None:
    """An answer that is neither the right one nor the model's own; None if there is none.

    For options, one is drawn by `seed`; for numbers, the answer is near: 1, 2 or 10 off the model's
    own answer (the right one, if it gave none), and not negative if that is not.
    """
    rng = random.Random(f"wrong-{seed}-{question.task}-{question.id}")
    if question.labels is not None:
        left = [x for x in question.labels if x not in (own, question.gold)]
        return rng.choice(left) if left else None
    base = own if own is not None else question.gold
    if base is None:
        return None
    taken = [Fraction(x) for x in (own, question.gold) if x is not None]
    moved = [_moved(base, by) for by in _NEAR]
    fit = [
        x for x in moved if Fraction(x) not in taken and (Fraction(x) < 0) <= (Fraction(base) < 0)
    ]
    return rng.choice(fit)


def _moved(number: str, by: int) -> str:
    """A canonical number plus `by`; for a fraction, the numerator is moved."""
    if "/" in number:
        value = Fraction(number)
        return str(Fraction(value.numerator + by, value.denominator))
    with localcontext(prec=_PLACES):
        return format(Decimal(number) + by, "f")
