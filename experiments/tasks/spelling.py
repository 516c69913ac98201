"""How answers are spelled after a cue: what the scored reading adds up for each of them.

A model that is about to write "$70,000" gives " 70000" next to nothing. So an answer is scored by
several spellings, each the beginning of other continuations than the rest: which of them a model
prefers is no part of its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from interventions.trace import Trace

MOST_LEARNT = 2
"""So many marks before a number are taken from the texts; every one doubles what is scored."""
_LEADS = (" ", " **", ' "', ": ", "\n")
_LETTER_LEADS = (*_LEADS, " (")
_BOXED = (" \\boxed{", " \\(\\boxed{", ":\n\\[\n\\boxed{", ":\n\\[ \\boxed{")
"""How a model that boxes its answers goes on after a cue, in the line or set off from it."""
_MARKED = re.compile(r"(?<![^\s(])((?:\*\*)?(?:\\\()?(?:\\?[$€£¥₹])?)(?=[-−]?\d)")
"""Currency and markup that a number is written with. Brackets and operators stand before others."""


def word_surfaces(labels: Mapping[str, str], written: str = "") -> tuple[tuple[str, str], ...]:
    """Each label with the texts that say it after a cue: in bold type, quoted, capitalised, ….

    Args:
        labels: canonical answer -> how it is said ("a mammal").
        written: what the model wrote (`written_by`): where it has a LaTeX box, boxes are tried.
    """
    return tuple(
        dict.fromkeys(
            (label, f"{lead}{cased}")
            for label, text in labels.items()
            for lead in (*_LEADS, *_boxes_of_text(written))
            for cased in (text, text.lower(), text[:1].upper() + text[1:])
        )
    )


def letter_surfaces(letters: Iterable[str], written: str = "") -> tuple[tuple[str, str], ...]:
    """Each letter of an option with the texts that say it after a cue: `B`, `(B`, `**B`, ….

    Args:
        written: as of `word_surfaces`.
    """
    leads = (*_LETTER_LEADS, *_boxes_of_text(written))
    return tuple((letter, f"{lead}{letter}") for letter in letters for lead in leads)


def written_by(trace: Trace | None) -> str:
    """The reasoning and the conclusion of a trace; nothing where there is none."""
    return "" if trace is None else f"{''.join(trace.pieces)}\n{trace.tail_text}"


def _boxes(written: str) -> tuple[str, ...]:
    return _BOXED if "\\boxed{" in written else ()


def _boxes_of_text(written: str) -> tuple[str, ...]:
    return tuple(f"{box}{font}" for box in _boxes(written) for font in ("", "\\text{"))


def number_surfaces(
    numbers: Iterable[str], question: str, reasoning: str = "", conclusion: str = ""
) -> tuple[tuple[str, str], ...]:
    """Each number with the texts that say it after a cue.

    Thousands are written with and without commas. What stands before a number (a currency, bold
    type, LaTeX) is taken from the conclusion first, then from the reasoning, then from the
    question; decimals of a whole number are tried where these have such, LaTeX boxes where the
    model wrote one.

    Args:
        numbers: canonical (`experiments.numbers`).
        conclusion: how the model stated its answer after the reasoning, if it did.
    """
    texts = (conclusion, reasoning, question)
    marks = [mark for text in texts for mark, _ in Counter(_MARKED.findall(text)).most_common()]
    learnt = list(dict.fromkeys(filter(None, marks)))[:MOST_LEARNT]
    leads = (" ", *(f" {mark}" for mark in learnt), *_boxes(f"{reasoning}\n{conclusion}"))
    all_texts = "\n".join(texts)
    endings = [""]
    if re.search(r"\d\.\d\d\b", all_texts):
        endings.append(".00")
    if re.search(r"\d\.0\b", all_texts):
        endings.append(".0")
    return tuple(
        dict.fromkeys(
            (number, f"{lead}{spelling}")
            for number in numbers
            for lead in leads
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
