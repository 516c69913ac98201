"""Parsers of answers, on what models really write."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.experiments.data.answers import (
    first_choice,
    first_label,
    first_number,
    last_category,
    last_choice,
    last_label,
    last_number,
)
from faithscope.experiments.data.numbers import canonical_form, canonical_number, find_numbers

SENTIMENT = ("positive", "negative")
NO_LABEL = ("neutral", "mixed")
NEWS = ("World", "Sports", "Business", "Sci/Tech")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", "18"),
        ("The answer is 10.", "10"),
        ("The answer is 10.0", "10"),
        ("The answer is \\boxed{10}. This took 3 steps of 2 minutes.", "10"),
        ("So the total is **$1,234.50**.", "1234.5"),
        ("$$\\boxed{1{,}234}$$", "1234"),
        ("\\[\\boxed{\\frac{3}{4}}\\]", "0.75"),
        ("\\boxed{-\\dfrac{1}{3}}", "-1/3"),
        ("\\boxed{70,\\!000 \\text{ dollars}}", "70000"),
        ("That is 15% of it", "15"),
        ("The temperature is -3 degrees.", "-3"),
        ("The change is −7.", "-7"),
        ("He owes -$5", "-5"),
        ("15-3 = 12", "12"),
        ("It comes to 15-3", "3"),
        ("- 3 apples are left", "3"),
        ("3/4 of the cake", "0.75"),
        ("It takes 2 1/2 hours.", "2.5"),
        ("about 1/3.", "1/3"),
        ("= 1.5 \\times 10^{3}", "1500"),
        ("roughly 2e5.", "200000"),
        ("The answer is 5km.", "5"),
        ("between 10,20", "20"),
        ("The result:\n\n70000", "70000"),
        ("The answer is 42.\n\nStep 4: Check.", "42"),
        ("The total is 42.\n4. Check the result", "42"),
        ("The answer is 12, as the 3rd row says", "12"),
        ("She has H2O and x2", None),
        ("No number at all", None),
        ("", None),
        ("1/0", None),
        ("Year 12/25/2024", "2024"),
        ("the answer is .5", "0.5"),
        ("so it is...18", "18"),
        ("The answer is 7 . ", "7"),
        ("the answer is\n\n10.", "10"),
        ("1" * 5000, None),
        ("1e999", None),
    ],
)
def test_last_number(text, expected):
    assert last_number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 18.", "18"),
        (" $18 per day, from 9 eggs at $2.", "18"),
        (" 18\n\nThe 3 eggs she eats", "18"),
        ("\n\n**18**\n", "18"),
        (" 3 + 4 = 7.", "7"),
        (" 3 apples + 4 apples = 7 apples and 2 pears", "7"),
        (" 16 - 3 - 4 = 9, 9 * 2 = 18", "9"),
        (" 10. Check: 5 + 6 = 11", "10"),
        (" 10. The reason is 5", "10"),
        (" \\boxed{12}", "12"),
        (" -3", "-3"),
        (" 12 hours and 30 minutes", "12"),
        (" $\\frac{1}{2}$", "0.5"),
        (":\n\\[\n\\boxed{30}\n\\]", "30"),
        (" unclear.\n12", None),
        ("", None),
        (" 3200 / 16 * 2 =", None),
        (" 3200 / 16 * 2 pounds.", None),
        (" 3 + 4 = 7 * 2", None),
        (" 3 + 4 = 7 = 7", "7"),
        (" 70+ people", None),
        (" 12 x-rays", "12"),
        (" 12 - 15 of them", None),
    ],
)
def test_first_number(text, expected):
    assert first_number(text) == expected


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=400))
def test_a_canonical_number_reads_back_as_itself(value):
    text = canonical_form(value)
    assert canonical_number(text) == text
    assert find_numbers(text)[-1].value == value


@given(st.integers(-(10**12), 10**12), st.integers(0, 5))
def test_equal_values_have_one_form(whole, zeros):
    plain = str(whole)
    forms = [f"{whole}.{'0' * zeros}", f"{whole:,}", f"**{whole}**", f"{whole}."]
    assert {last_number(form) for form in forms} == {plain}


@given(st.decimals(-(10**6), 10**6, places=4))
def test_decimals_keep_their_value(value):
    assert find_numbers(f"It is {value}.")[-1].value == Fraction(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The word 'awful' is negative, but overall it is Positive.", "positive"),
        ("**Sentiment: Negative**", "negative"),
        ('The sentiment is "positive".', "positive"),
        ("POSITIVE", "positive"),
        ("It is positive, not negative.", "positive"),
        ("It is more negative than positive.", "negative"),
        ("It is positive rather than negative.", "positive"),
        ("It is more positive than the initial negative sentiment.", "positive"),
        ("It was more than positive.", "positive"),
        ("Overall positive. There is nothing negative here.", "positive"),
        ("This isn't a positive review", None),
        ("I will conclude 'positive' or 'negative'.", None),
        ("Sentiment: positive/negative", None),
        ("It has both positive and negative sides. In the end it is negative.", "negative"),
        ("The cast is positive. So overall it is neutral.", None),
        ("positively thrilling", None),
        ("non-negative", None),
        ("", None),
    ],
)
def test_last_sentiment_keyword(text, expected):
    assert last_label(text, SENTIMENT, NO_LABEL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" positive.\nBut some would say negative", "positive"),
        (" **Negative** because the positive words are few", "negative"),
        (" not positive but negative", "negative"),
        (" positive or negative?", None),
        (" neutral, leaning positive", None),
        ("\n\nnegative", "negative"),
        ("", None),
    ],
)
def test_first_label(text, expected):
    assert first_label(text, SENTIMENT, NO_LABEL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Category: Sports\n\nIt reports on the World Cup.", "Sports"),
        ("**Category:** Sci/Tech", "Sci/Tech"),
        ("It is about sports.\n\nSo this is what it is.\n\nThat is all.\n\nReally.", "Sports"),
        ("World or Business?\n\nBusiness", "Business"),
        ("Nothing fits.", None),
    ],
)
def test_last_category(text, expected):
    assert last_category(text, NEWS) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is (B).", "B"),
        ("The answer is B. A patient with this would die.", "B"),
        ("\\boxed{C} is right. D is wrong.", "C"),
        ("\\boxed{\\text{C}}", "C"),
        ("**Answer: D**", "D"),
        ("Answer:\n\nb", "B"),
        ("The answer is a matter of taste, so C", "C"),
        ("Option B is out. The correct option is C because A is a trap", "C"),
        ("A patient has a fever.\nB. Vitamin A", "B"),
        ("A) one B) two C) three. So (B)", "B"),
        ("I think it must be B", "B"),
        ("A patient came in.", None),
        ("The answer is not B", None),
        ("The answer is E", None),
        ("", None),
    ],
)
def test_last_choice(text, expected):
    assert last_choice(text, 4) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" B", "B"),
        (" (C) because A", "C"),
        (" b.", "B"),
        ("\n**A**", "A"),
        (" A patient with B", "B"),
        (" a trap", None),
        (" \\boxed{D}", "D"),
        (" C) The third", "C"),
        (" E", None),
    ],
)
def test_first_choice(text, expected):
    assert first_choice(text, 4) == expected


def test_letters_need_a_sensible_number_of_options():
    with pytest.raises(ValueError, match="2 to 26"):
        last_choice("A", 1)


PARSERS = [
    last_number,
    first_number,
    lambda text: last_label(text, SENTIMENT, NO_LABEL),
    lambda text: last_category(text, NEWS),
    lambda text: last_choice(text, 4),
    lambda text: first_choice(text, 4),
]


@given(st.text(alphabet="0123456789.,/-$ \n\\frac{}boxed*AB()=e^x", max_size=200))
def test_no_text_breaks_a_parser(text):
    for parse in PARSERS:
        assert parse(text) is None or parse(text)


@pytest.mark.parametrize(
    "stuck",
    ["1,", "1/", "$-", "\\boxed{", "{", "3 + ", "1 ", "positive and ", "A. ", "\n", "*_", "not a "],
)
def test_parsing_takes_linear_time(stuck):
    text = stuck * (8_000 // len(stuck))
    started = time.process_time()
    for parse in PARSERS:
        parse(text)
    assert time.process_time() - started < 1.5
