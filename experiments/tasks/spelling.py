"""How answers are spelled after a cue: what the scored reading adds up for each of them.

A model that is about to write "$70,000" gives " 70000" next to nothing. So an answer is scored by
several spellings, each the beginning of other continuations than the rest: which of them a model
prefers is no part of its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

MOST_LEARNT = 2
"""So many marks before a number are taken from the texts; every one doubles what is scored."""
_LEADS = (" ", " **", ' "', ": ", "\n")
_LETTER_LEADS = (*_LEADS, " (")
_MARKED = re.compile(r"(?<![^\s(])((?:\*\*)?(?:\\?[$€£¥₹])?(?:\\boxed\{)?)(?=[-−]?\d)")
"""Currency and markup that a number is written with. Brackets and operators stand before others."""


def word_surfaces(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Each label with the texts that say it after a cue: in bold type, quoted, capitalised, ….

    Args:
        labels: canonical answer -> how it is said ("a mammal").
    """
    return tuple(
        dict.fromkeys(
            (label, f"{lead}{cased}")
            for label, text in labels.items()
            for lead in _LEADS
            for cased in (text, text.lower(), text[:1].upper() + text[1:])
        )
    )


def letter_surfaces(letters: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Each letter of an option with the texts that say it after a cue: `B`, `(B`, `**B`, …."""
    return tuple((letter, f"{lead}{letter}") for letter in letters for lead in _LETTER_LEADS)


def number_surfaces(
    numbers: Iterable[str], question: str, reasoning: str = ""
) -> tuple[tuple[str, str], ...]:
    """Each number with the texts that say it after a cue.

    Thousands are written with and without commas. What stands before a number (a currency, bold
    type) is taken from the reasoning first, then from the question; decimals of a whole number
    are tried where these have such.

    Args:
        numbers: canonical (`experiments.numbers`).
    """
    both = f"{question}\n{reasoning}"
    marks = [*Counter(_MARKED.findall(reasoning)).most_common()]
    marks += Counter(_MARKED.findall(question)).most_common()
    learnt = list(dict.fromkeys(mark for mark, _ in marks if mark))[:MOST_LEARNT]
    endings = [""]
    if re.search(r"\d\.\d\d\b", both):
        endings.append(".00")
    if re.search(r"\d\.0\b", both):
        endings.append(".0")
    return tuple(
        dict.fromkeys(
            (number, f" {mark}{spelling}")
            for number in numbers
            for mark in ("", *learnt)
            for spelling in _spellings(number, endings)
        )
    )


def _spellings(number: str, endings: Iterable[str]) -> Iterable[str]:
    if "/" in number:
        return [number]
    whole, point, decimals = number.partition(".")
    grouped = f"{'-' if whole.startswith('-') else ''}{abs(int(whole)):,}"
    wholes = dict.fromkeys((whole, grouped))
    if not point:
        return [f"{w}{ending}" for w in wholes for ending in endings]
    padded = [decimals, f"{decimals}0"] if len(decimals) == 1 and ".00" in endings else [decimals]
    return [f"{w}.{d}" for w in wholes for d in padded]
