"""Thoughts of a think block, groups of steps, and the function of a step."""

from __future__ import annotations

import re

import pytest

from faithscope.interventions import FUNCTIONS, function_of, segment
from faithscope.interventions.segment import units

THINKING = r"""Okay, so the problem asks for the price of three boxes. Let me start with one box.

A box holds 12 pens at 2 each, so it costs

\[
12 \cdot 2 = 24

\]

where 2 is the price of a pen. Three boxes cost 3 * 24 = 72. Wait, but let me double-check that.
72 / 3 = 24, which matches.

Hmm.

Actually, two pens were lost, so the price is lower.

I made a mistake there: they were lost after the sale.

Therefore, the answer is 72."""


def words(text: str) -> list[str]:
    """Pieces like a tokenizer's: each word with the white space before it."""
    return re.findall(r"\s*\S+|\s+$", text)


def cut(text: str, mode: str = "thoughts", **how) -> list[str]:
    return [s.text.strip() for s in segment(words(text), mode=mode, **how)]  # pyright: ignore


def test_a_think_block_is_cut_where_it_turns_and_keeps_its_formulas():
    starts = [text.split(",")[0].split("\n")[0][:30] for text in cut(THINKING)]
    assert starts == [
        "Okay",
        "A box holds 12 pens at 2 each",
        "Wait",
        "Hmm.",
        "I made a mistake there: they w",
        "Therefore",
    ]
    box = cut(THINKING)[1]
    assert box.endswith("Three boxes cost 3 * 24 = 72.")
    assert "\\]" in box
    # a thought of one word goes on with the next
    assert cut(THINKING)[3].endswith("so the price is lower.")


def test_thoughts_without_turns_and_formulas_are_the_paragraphs():
    text = "The first one is it. It is.\n\nAnd the second one is there.\n\nThen the third is here."
    assert cut(text) == cut(text, "paragraphs")


def test_an_introduction_belongs_to_what_it_introduces():
    text = (
        "The sides of it are these:\n\nThe first one is three long.\n\nThe second one is four long."
    )
    assert len(cut(text)) == 2


@pytest.mark.parametrize("text", ["", " \n\n ", "Hmm.", "Hmm.\n\nWait.\n\nNo.", "a\n\n\n\nb"])
def test_texts_of_next_to_nothing_are_tiled(text):
    assert "".join(s.text for s in segment(words(text), mode="thoughts")) == text


@pytest.mark.parametrize(
    ("groups", "sizes"), [(2, [3, 3]), (4, [2, 2, 2]), (5, [2, 2, 2]), (6, None)]
)
def test_groups_join_neighbouring_steps_evenly(groups, sizes):
    sentences = [f"This is the sentence number {i} of it." for i in range(6)]
    joined = cut(" ".join(sentences), "sentences", groups=groups)
    assert [len(text.split(" This")) for text in joined] == (sizes or [1] * 6)
    assert " ".join(joined) == " ".join(sentences)
    unit = units(" ".join(sentences), "sentences", groups=groups)[0]
    assert unit == ("sentence" if sizes is None else "group")


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("Okay, so the problem asks for the price of three boxes.", "restate"),
        ("We are given that x and y add up to ten.", "restate"),
        ("First, I need to find the price of one box.", "plan"),
        ("Let's break this down step by step.", "plan"),
        ("Three boxes cost 3 * 24 = 72.", "compute"),
        (r"\[ x = \frac{-b}{2a} \]", "compute"),
        ("12 plus 30 leaves some.", "compute"),
        ("Wait, the pens come in pairs.", "backtrack"),
        ("Hmm, but **Alternatively**, we could count the pens.", "backtrack"),
        ("I made a mistake in the second line: 3 * 24 = 72.", "backtrack"),
        ("So that can't be right.", "backtrack"),
        ("Wait, let me double-check: 72 / 3 = 24.", "verify"),
        ("72 / 3 = 24, which matches.", "verify"),
        ("Does that make sense?", "verify"),
        ("So the final answer is 72.", "conclude"),
        (r"Hence \boxed{72}.", "conclude"),
        ("The boxes are blue.", "other"),
        ("所以一共是三盒。", "other"),
        ("", "other"),
    ],
)
def test_the_function_of_a_step_is_read_from_its_words(text, function):
    assert function_of(text) == function


def test_every_function_occurs_in_a_think_block():
    found = {function_of(text) for text in cut(THINKING)}
    assert found <= set(FUNCTIONS)
    assert found == {"restate", "compute", "verify", "backtrack", "conclude"}
