"""Option shuffling: the same question with its options in another order (FaithCoT-Bench, C.1).

What is compared is the *text* of the answer, mapped back through the permutation: the released code
compares letters, and so calls every answer changed that only moved with its option.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from faithscope.interventions.trace import Question

SHUFFLED = "option_shuffling"


@dataclass(frozen=True)
class Shuffled:
    """A question in another order of its options."""

    question: Question
    order: tuple[int, ...]
    """Place in the new order -> place in the old one, both from 0."""


def shuffled(question: Question, seed: int, as_released: bool = False) -> Shuffled:
    """Options in an order drawn with the seed and the item's id: never the old one, and the right
    option has another letter wherever it is known.

    Args:
        as_released: take any order, as the released code does: the old one, too, and one that
            leaves the right option where it was. (Its draws have no seed; ours have one here, too.)

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
    """The letter that an answer in the new order has in the old one."""
    if letter is None:
        return None
    return chr(ord("A") + order[ord(letter) - ord("A")])
