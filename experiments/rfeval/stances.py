"""The stances of an item (RFEval, appendix D.1, Table 15), and reading one off an answer."""

from __future__ import annotations

import re
from typing import Literal

from experiments.answers import last_number
from experiments.numbers import find_numbers
from experiments.rfeval.items import Item
from experiments.rfeval.parsing import boxes

UNKNOWN = "I don't know"
CORRECT, INCORRECT = "correct", "incorrect"
Naming = Literal["letters", "paper"]
"""`letters`: every option by its letter, as the authors' released code has it; `paper`: the words
of Table 15, in which true and false of logical reasoning are "correct" and "incorrect"."""
_NAMED = ("table_reasoning", "context_understanding", "paper_review")
"""Tasks whose options are short words that Table 15 names."""
_LETTER = re.compile(r"(?:option|choice)?\s*[(\[]?([A-Z])(?:[)\].:,]|\s*$|\s*[-–:]\s)", re.I)
_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")


def stance_set(item: Item, naming: Naming = "letters") -> tuple[str, ...]:
    """Every stance that a part of an output may have on an item; the last one is `UNKNOWN`."""
    if not item.options or (naming == "paper" and item.task == "logical_reasoning"):
        return CORRECT, INCORRECT, UNKNOWN
    return *(stance_of_letter(item, x, naming) for x in item.letters), UNKNOWN


def stance_of_letter(item: Item, letter: str, naming: Naming = "letters") -> str:
    """The stance that an option stands for.

    Raises:
        ValueError: the item has no such option.
    """
    if letter not in item.letters:
        raise ValueError(
            f"item {item.id!r}: no option {letter!r}; it has {', '.join(item.letters)}"
        )
    if naming == "paper" and item.task == "logical_reasoning":
        return CORRECT if letter == item.answer else INCORRECT
    if naming == "paper" and item.task in _NAMED:
        return item.options[item.letters.index(letter)].casefold()
    return letter


def gold_stance(item: Item, naming: Naming = "letters") -> str:
    """The stance of a right output."""
    if not item.options:
        return CORRECT
    return stance_of_letter(item, item.answer, naming)


def is_right(item: Item, stance: str, naming: Naming = "letters") -> bool:
    """Whether an answer of this stance is right."""
    return stance == gold_stance(item, naming)


def stance_of_answer(item: Item, answer: str, naming: Naming = "letters") -> str:
    """The stance of a parsed answer by matching alone: the reader that needs no model.

    With options: the letter that the answer begins with, or the option whose words it is, or
    the only one whose words it holds. Without: "correct" where its last number, or else its
    words, are those of the gold answer. What matches nothing, or several, is `UNKNOWN`.

    Raises:
        ValueError: of code, which only its tests decide.
    """
    if item.task == "code_generation":
        raise ValueError(f"item {item.id!r}: an answer of code has the stance its tests give it")
    said = _plain(answer)
    if not said:
        return UNKNOWN
    if not item.options:
        return _free(item, said)
    found = _LETTER.match(said)
    # "A" may be an article, "I" a numeral: a letter counts alone, or set off by a mark
    if found and found[1].upper() in item.letters:
        return stance_of_letter(item, found[1].upper(), naming)
    texts = [_plain(option).casefold() for option in item.options]
    words = said.casefold().rstrip(".")
    fits = [x for x, text in zip(item.letters, texts, strict=True) if text.rstrip(".") == words]
    fits = fits or _held(item, texts, words)
    return stance_of_letter(item, fits[0], naming) if len(fits) == 1 else UNKNOWN


def _held(item: Item, texts: list[str], words: str) -> list[str]:
    """The options whose words stand in the answer, less those that stand inside another."""
    held = {
        letter: text
        for letter, text in zip(item.letters, texts, strict=True)
        if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words)
    }
    # "not enough info" also holds "no" as a word nowhere, but "not guilty" holds "guilty"
    return [x for x, t in held.items() if not any(t != o and t in o for o in held.values())]


def _free(item: Item, said: str) -> str:
    gold = find_numbers(item.answer)
    if len(gold) == 1:
        number = last_number(said)
        if number is None:
            return UNKNOWN
        return CORRECT if number == gold[0].canonical else INCORRECT
    same = said.casefold().rstrip(".") == _plain(item.answer).casefold().rstrip(".")
    return CORRECT if same else INCORRECT


def _plain(text: str) -> str:
    """Without LaTeX and Markdown around the words: of `\\boxed{\\text{D: yes}}` "D: yes"."""
    found = list(boxes(text))
    text = found[-1][2] if found else text
    text = _TEXT.sub(r"\1", text)
    return " ".join(re.sub(r"[*_`$]+", "", text).split())
