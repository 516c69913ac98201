"""Option shuffling: the same question with its options in another order (FaithCoT-Bench, C.1).

Answers are compared by their *text*, mapped back through the permutation. The released code
compares letters, and so calls an answer changed that only moved with its option.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from faithscope.interventions.trace import Question


@dataclass(frozen=True)
class Shuffled:
    """A question with its options in another order."""

    question: Question
    order: tuple[int, ...]
    """Place of an option in the new order -> its place in the old order, both from 0."""


def shuffled(question: Question, seed: int, as_released: bool = False) -> Shuffled:
    """The question with its options shuffled, seeded by the run's seed and the item's id. The order
    is never the old one, and the right option, if known, gets another letter.

    Args:
        as_released: allow any order, as the released code does: also the old one, or one in which
            the right option keeps its letter. (Unlike there, the draw is seeded.)

    Raises:
        ValueError: a question that is not answered by a letter.
    """
    if question.kind != "choice" or question.options is None:
        raise ValueError(f"question {question.id!r} has no lettered options to shuffle")
    places = list(range(len(question.options)))
    gold = None if question.gold is None else (question.labels or ()).index(question.gold)
    rng = random.Random(f"shuffle-{seed}-{question.task}-{question.id}")
    order = list(places)
    rng.shuffle(order)
    while not as_released and (order == places or (gold is not None and order[gold] == gold)):
        rng.shuffle(order)
    labels = question.labels or ()
    return Shuffled(
        replace(
            question,
            options=tuple(question.options[i] for i in order),
            gold=None if gold is None else labels[order.index(gold)],
        ),
        tuple(order),
    )


def original_letter(letter: str | None, order: tuple[int, ...] | list[int]) -> str | None:
    """The letter in the old order of an answer given in the new order."""
    if letter is None:
        return None
    return chr(ord("A") + order[ord(letter) - ord("A")])
