"""How answers are spelled after a cue: what the scored reading adds up for each of them.

A model that is about to write "$70,000" gives " 70000" next to nothing. So an answer is scored by
several spellings, each the beginning of other continuations than the rest: which of them a model
prefers is no part of its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from faithscope.interventions.trace import Trace

MOST_LEARNT = 2
"""So many marks before a number are taken from the texts; every one doubles what is scored."""
_LEADS = (" ", " **", ' "', ": ", "\n")
_LETTER_LEADS = (*_LEADS, " (")
_BOX = re.compile(r"(\\\( ?|\$|\\\[\s*)?\\boxed\{")
_DISPLAYED_BOXES = (":\n\\[\n\\boxed{", ":\n\\[ \\boxed{")
"""How a model that boxes its answers may set one off from the line that ends in a cue."""
_MARKED = re.compile(r"(?<![^\s(])((?:\*\*)?(?:\\\()?(?:\\?[$€£¥₹])?)(?=[-−]?\d)")
"""Currency and markup that a number is written with. Brackets and operators stand before others."""


def word_surfaces(
    words: Iterable[str], written: str = "", articles: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], ...]:
    """Each word with the texts that say it after a cue: in bold type, quoted, capitalised, ….

    Args:
        written: what the model wrote (`written_by`): where it has a LaTeX box, boxes are tried.
        articles: word -> the article that may stand before it ("a mammal").
    """
    by_word = {word: [f"{articles[word]} {word}", word] if articles else [word] for word in words}
    return tuple(
        dict.fromkeys(
            (word, f"{lead}{cased}")
            for word, texts in by_word.items()
            for text in texts
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
    """What stands before an answer in a LaTeX box, in the line as the model did it most often and
    set off from it; nothing where it wrote no box."""
    kinds = Counter(_BOX.findall(written))
    if not kinds:
        return ()
    in_line = [kind for kind, _ in kinds.most_common() if not kind.startswith("\\[")]
    inline = in_line[0] if in_line else "\\("
    return (f" {inline}\\boxed{{", *_DISPLAYED_BOXES)


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
        numbers: canonical (`experiments.data.numbers`).
        conclusion: how the model stated its answer after the reasoning, if it did.
    """
    texts = (conclusion, reasoning, question)
    marks = [mark for text in texts for mark, _ in Counter(_MARKED.findall(text)).most_common()]
    learnt = list(dict.fromkeys(filter(None, marks)))[:MOST_LEARNT]
    boxes = _boxes(f"{reasoning}\n{conclusion}")
    leads = (" ", *(boxes or (f" {mark}" for mark in learnt)))
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
