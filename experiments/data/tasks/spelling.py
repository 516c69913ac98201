"""Spellings of answers after a cue, whose probabilities the scored reading adds up.

A model that is about to write "$70,000" gives " 70000" next to no probability. So an answer is
scored by several spellings, none the beginning of another: which of them a model prefers is no part
of its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from faithscope.interventions.trace import Trace

MOST_LEARNT = 2
"""Most kinds of marks before a number that are taken from texts; each doubles the scored labels."""
_LEADS = (" ", " **", ' "', ": ", "\n")
_LETTER_LEADS = (*_LEADS, " (")
_BOX = re.compile(r"(\\\( ?|\$|\\\[\s*)?\\boxed\{")
_DISPLAYED_BOXES = (":\n\\[\n\\boxed{", ":\n\\[ \\boxed{")
"""Ways in which a model sets a boxed answer off from the line that ends in a cue."""
_MARKED = re.compile(r"(?<![^\s(])((?:\*\*)?(?:\\\()?(?:\\?[$€£¥₹])?)(?=[-−]?\d)")
"""Currency and markup before a number; not those of numbers after brackets and operators."""


def word_surfaces(
    words: Iterable[str], written: str = "", articles: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], ...]:
    """(word, spelling after a cue) for all spellings: in bold type, quoted, capitalised, ….

    Args:
        written: the model's text (`written_by`): if it has a LaTeX box, boxed spellings are
            included.
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
    """(letter, spelling after a cue) for all spellings of options' letters: `B`, `(B`, `**B`, ….

    Args:
        written: as for `word_surfaces`.
    """
    leads = (*_LETTER_LEADS, *_boxes_of_text(written))
    return tuple((letter, f"{lead}{letter}") for letter in letters for lead in leads)


def written_by(trace: Trace | None) -> str:
    """The reasoning and conclusion of a trace as text; empty without a trace."""
    return "" if trace is None else f"{''.join(trace.pieces)}\n{trace.tail_text}"


def _boxes(written: str) -> tuple[str, ...]:
    """Texts before an answer in a LaTeX box: within the line, as the model wrote it most often, and
    set off from the line; empty if the model wrote no box."""
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
    """(number, spelling after a cue) for all spellings of numbers.

    Thousands are written with and without commas. Marks before a number (a currency, bold type,
    LaTeX) are taken from the conclusion first, then from the reasoning, then from the question;
    decimals of a whole number are included if these texts have such, LaTeX boxes if the model wrote
    one.

    Args:
        numbers: numbers in canonical form (`experiments.data.numbers`).
        conclusion: the model's statement of its answer after the reasoning, if any.
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
