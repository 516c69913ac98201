"""In how many ways an answer is spelled where it is scored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.data.tasks.spelling import (
    letter_surfaces,
    number_surfaces,
    word_surfaces,
)
from faithscope.interventions.trace import Question


def spelled(number: str, question: str, reasoning: str = "", conclusion: str = "") -> set[str]:
    return {text for _, text in number_surfaces([number], question, reasoning, conclusion)}


def test_a_number_is_spelled_as_question_and_reasoning_spell_theirs():
    assert spelled("70000", "How much?") == {" 70000", " 70,000"}
    with_dollars = {f" {mark}{n}" for mark in ("", "$") for n in ("70000", "70,000")}
    assert spelled("70000", "It costs $80,000. How much?") == with_dollars
    assert spelled("70", "", "He pays **$2.50**, so **$70.00**") == {
        f" {mark}70{cents}" for mark in ("", "**$") for cents in ("", ".00")
    }
    assert spelled("12.5", "", "1.25 and 2") == {" 12.5", " 12.50"}
    assert spelled("-1234", "") == {" -1234", " -1,234"}
    assert spelled("1/3", "$5") == {" 1/3", " $1/3"}


def test_a_number_is_boxed_where_the_model_boxes_its_answers():
    displays = {":\n\\[\n\\boxed{94", ":\n\\[ \\boxed{94"}
    for conclusion in ("So it is \\(\\boxed{94}\\).", "\\[ \\boxed{94} \\]"):
        found = spelled("94", "", "**1** and **2**", conclusion)
        assert found == {" 94", " \\(\\boxed{94", *displays}
    assert spelled("94", "", "It is $\\boxed{94}$.") == {" 94", " $\\boxed{94", *displays}
    assert spelled("94", "", "\\boxed{94}") == {" 94", " \\boxed{94", *displays}
    assert spelled("94", "", "Then \\(36 + 18\\) is 54.") == {" 94", " \\(94"}
    # the question's boxes are not the model's
    assert spelled("94", "Put it in \\boxed{}.") == {" 94"}


def test_operators_and_brackets_before_a_number_are_no_currency():
    assert spelled("7", "", "3*70=210, (5), x=4, 60/1, -3, 1,000") == {" 7"}


NUMBER = st.from_regex(r"\A-?(0|[1-9][0-9]{0,6})([.][0-9]{1,3}[1-9])?\Z")


@pytest.mark.slow
@given(st.lists(NUMBER, min_size=1, max_size=6, unique=True), st.sampled_from(["", "$2.50", "3.0"]))
def test_every_spelling_reads_as_its_number_and_none_is_two(numbers: list[str], style: str):
    numbers = list(dict.fromkeys(n for x in numbers if (n := canonical_number(x))))
    surfaces = number_surfaces(numbers, style)
    assert len({text for _, text in surfaces}) == len(surfaces)
    assert all(canonical_number(text) == number for number, text in surfaces)
    assert {number for number, _ in surfaces} == set(numbers)


def test_words_and_letters_may_be_set_off():
    assert {" positive", " Positive", " **positive", ' "positive'} <= {
        text for _, text in word_surfaces(["positive"])
    }
    with_article = word_surfaces(["insect"], articles={"insect": "an"})
    assert {("insect", " an insect"), ("insect", " insect")} <= set(with_article)
    letters = letter_surfaces("AB")
    assert {" B", " (B", " **B", ": B"} <= {text for letter, text in letters if letter == "B"}
    boxed = {text for _, text in letter_surfaces("AB", "so \\(\\boxed{A}\\)")}
    assert {" \\(\\boxed{B", " \\(\\boxed{\\text{B"} <= boxed - {text for _, text in letters}
    # "a" is an article before it is an option
    assert all("a" not in text for _, text in letters)


def test_the_labels_of_a_number_task_know_the_question():
    question = Question("q", "gsm8k", "A house costs $80,000.", "number", "70000")
    assert ("70000", " $70,000") in get_task("gsm8k").labels(question, None)
