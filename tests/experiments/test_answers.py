"""Parsers of answers, on what models really write."""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.experiments.data.answers import (
    first_label,
    first_number,
    last_category,
    last_label,
    last_number,
)
from faithscope.experiments.data.choices import first_choice, last_choice
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
        ("It comes to 15-3", None),
        ("- 3 apples are left", "3"),
        ("3/4 of the cake", "0.75"),
        ("It takes 2 1/2 hours.", "2.5"),
        ("about 1/3.", "1/3"),
        ("= 1.5 \\times 10^{3}", "1500"),
        ("roughly 2e5.", "200000"),
        ("The answer is 5km.", "5"),
        ("between 10,20", None),
        ("The result:\n\n70000", "70000"),
        ("The answer is 42.\n\nStep 4: Check.", "42"),
        ("The total is 42.\n4. Check the result", "42"),
        ("The answer is 12, as the 3rd row says", "12"),
        ("She has H2O and x2", None),
        ("No number at all", None),
        ("", None),
        ("1/0", None),
        ("Year 12/25/2024", None),
        # what is marked or stated outweighs what is only mentioned after it
        ("The answer is 10. It took 3 steps of 2 minutes.", "10"),
        ("**Answer: 18**\n\nHere 9 * 2 is used in step 3 of 4", "18"),
        ("Final answer: 12 pens, since 3 * 4 = 12 and 1 box is 4", "12"),
        ("Answer: 48/2 = 24 in May. Together 48 + 24 = 72.", "72"),
        ("The answer is 10. She had to wait 2 minutes.", "10"),
        ("The answer is 12 more than 5, so 17.", "17"),
        ("18\n\nShe sells 9 eggs for $2 each.", "18"),
        ("The answer is 10. Wait, that leaves out one box: 12.", "12"),
        ("The answer is eighteen. It took 9 and 2.", None),
        ("The answer is 10 or 12.", None),
        ("The answer is 3 to 5.", None),
        ("The answer is 3-5.", None),
        ("The answer is 3 and 5.", None),
        ("The answer is either 3 or 5.", None),
        ("The answer is somewhere between 10 and 12 pens.", None),
        ("The answer is 3.14 to 2 decimal places.", "3.14"),
        ("The answer is 12-3 = 9", "9"),
        # a range, or two that are offered, is not one number where it is mentioned either
        ("It is between 3 and 5", None),
        ("It is between 3 pens and 5 pens.", None),
        ("It goes from 3 to 5.", None),
        ("It goes from $3 to $5.", None),
        ("It is 3-5.", None),
        ("It is 3–5 pens.", None),
        ("It is 3 to 5 pens.", None),
        ("It is 3 or 4.", None),
        ("So she needs either 3 pens or 4 pens.", None),
        ("一共3到5支。", None),
        ("#### between 3 and 5", None),
        ("It is between 3 and 5, so 4.", "4"),
        ("The sum of 3 and 5 is 8.", "8"),
        ("She gives 3 pens to 5 children.", "5"),
        ("It comes to 12-3 = 9.", "9"),
        ("It is 3.14 to 2 decimal places.", "3.14"),
        # a bound in words is its number
        ("It is at least 5.", "5"),
        ("It is 10**3.", "1000"),
        ("It is **10**.", "10"),
        ("It takes $5k.", "5000"),
        ("It takes 5k.", None),
        ("It takes 5M people.", None),
        ("It takes 5m of rope.", "5"),
        ("She has 5 dozen eggs.", "5"),
        ("The answer is not 5.", None),
        ("There are 12 pens, not 5.", "12"),
        ("So it is 12 rather than 5.", "12"),
        ("答案不是10。", None),
        ("\\boxed{3} or \\boxed{4}", None),
        ("It is 3. So \\boxed{5\\sqrt{2}}", None),
        ("So 12 out of 20 pass.", "12"),
        ("She earns $18 (9 * 2).", "18"),
        ("The area is 12 cm^2.", "12"),
        ("It is 10^3.", "1000"),
        ("It takes 2 hours and 30 minutes.", None),
        ("It begins at 2:30.", None),
        ("She has 3 + 4.", None),
        ("Here 18 > 5.", None),
        ("It costs $2.5 million.", "2500000"),
        ("Both were ill with COVID-19.", None),
        # the next question of the template is another's
        ("That makes 18.\n#### 18\n\nQuestion: Tom has 4 pens and buys 5.\n#### 9", "18"),
        ("#### 18\n\nTom has 4 pens and buys 5.\n#### 9", "18"),
        ("The answer is 18.\n\nProblem: 4 and 5?\nThe answer is 9.", "18"),
        ("\\boxed{18}\n\nQ: 4 and 5?\nA: \\boxed{9}", "18"),
        ("Question: 9 eggs?\nAnswer: 18", "18"),
        ("#### Step 1\nWe add 3.\n#### 18", "18"),
        # words end where their script ends
        ("答案是10。", "10"),
        ("所以还剩10支笔。", "10"),
        ("一共120元", "120"),
        ("答えは10です。", "10"),
        ("合計は1,200円です。", "1200"),
        ("답은 10입니다.", "10"),
        ("คำตอบคือ10", "10"),
        ("الجواب هو ١٬٢٠٠", "1200"),
        ("共1.2万元", "12000"),
        ("差是-3。", "-3"),
        ("答案是１２。", "12"),
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
        (" 12 hours and 30 minutes", None),
        (" 10 or 12", None),
        (" between 3 and 5.", None),
        (" 3-5", None),
        (" not 5.", None),
        (" 5\\sqrt{2}", None),
        ("是10。", "10"),
        ("10支笔。", "10"),
        (" $\\frac{1}{2}$", "0.5"),
        (":\n\\[\n\\boxed{30}\n\\]", "30"),
        (" unclear.\n12", None),
        ("", None),
        (" 3200 / 16 * 2 =", None),
        (" 3200 / 16 * 2 pounds.", None),
        (" 3 + 4 = 7 * 2", None),
        (" 3 + 4 = 7*2", None),
        (" 70*2.", None),
        (" 3 apples * 60.", None),
        (" 18 (9*2)", "18"),
        (" goes from 3 pens to 5 pens", None),
        (" 10^3", "1000"),
        (" 2 million", "2000000"),
        (" 3 + 4 = 7 = 7", "7"),
        (" 70+ people", None),
        (" 12 x-rays", "12"),
        (" 12 - 15 of them", None),
    ],
)
def test_first_number(text, expected):
    assert first_number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\frac{-3}{4}", "-0.75"),
        ("-\\dfrac{1}{3}", "-1/3"),
        ("\\tfrac13", "1/3"),
        ("12\\text{ cm}^2", "12"),
        ("12\\,\\mathrm{m/s}^{2}", "12"),
        ("2\\frac{1}{2}", "2.5"),
        ("-2 1/2", "-2.5"),
        ("2½", "2.5"),
        ("10^3", "1000"),
        ("10³", "1000"),
        ("2^{-3}", "0.125"),
        ("(-3)^2", "9"),
        ("\\sqrt{16}", "4"),
        ("30^\\circ", "30"),
        ("1.5 \\times 10^{-3}", "0.0015"),
        ("12 out of 20", "12"),
        ("18 (that is 3 x 6)", "18"),
        ("3 \\times 6 = 18", "18"),
        ("x = 5", "5"),
        ("x_1 = 5", "5"),
        ("1 000", "1000"),
        ("1_000", "1000"),
        ("1\\,000", "1000"),
        ("1,00,000", "100000"),
        ("٣", "3"),
        ("5 hours", "5"),
        *(
            (text, None)
            for text in ("5\\sqrt{2}", "\\frac{\\sqrt{2}}{2}", "pi/2", "2\\pi", "4*sqrt(2)")
        ),
        *(
            (text, None)
            for text in ("2x", "3n + 1", "x > 5", "\\pm 3", "5!", "3i", "e^2", "2^x", "5(√3 + 1)")
        ),
        *(
            (text, None)
            for text in ("10 or 12", "5 - 10", "(3, 4)", "2:30", "1,5", "1.234,5", "5th", "1/2/3")
        ),
        *(
            (text, None)
            for text in ("5 feet 3 inches", "A = 5, B = 6", "15% of 200", "1/0", "twelve", "")
        ),
    ],
)
def test_what_cannot_be_read_whole_is_no_number(text, expected):
    assert canonical_number(text) == expected


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=400))
def test_a_canonical_number_reads_back_as_itself(value):
    text = canonical_form(value)
    assert canonical_number(text) == text
    assert [n.value for n in find_numbers(text)] == [value]


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
        ("The sentiment is negative. It would be positive if the end were cut.", "negative"),
        ("Negative. A positive review would praise the end.", "negative"),
        ("**negative**\n\nThe cast is positive about it.", "negative"),
        ("The sentiment is negative. A positive review would praise it.", "negative"),
        ("It is negative. Without the end, it would have been positive.", "negative"),
        ("If it were positive, it would say so: it is negative.", "negative"),
        ("If I had to choose, it would be positive.", "positive"),
        ("The sentiment is positive. Wait, it is negative.", "negative"),
        ("Sentiment: negative\n\nReview: A joy.\nSentiment: positive", "negative"),
        ("情感是positive。", "positive"),
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
        (" anything but positive", None),
        (" far from positive: it is negative", "negative"),
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
        ("**Answer: D**\n\n- Option A: incorrect, a fish\n- Option C: incorrect, a newt", "D"),
        ("B\n\nA has no fur, and C and D are fish.", "B"),
        ("Answer: C\nOption D would be right if it had fur.", "C"),
        ("The answer is A or B", None),
        ("None of the options A-D fits", None),
        ("the answer is b, since it has fur", "B"),
        ("The answer is A because it has fur", "A"),
        ("Both A and C are correct.", None),
        ("B is correct. A, C and D are incorrect.", "B"),
        ("A is wrong, B is wrong, so C", "C"),
        ("Only D remains. A is wrong.", "D"),
        ("The correct option is (D), not (A).", "D"),
        ("The answer would be C if fish had fur; D is right.", "D"),
        ("The answer is B. Wait, C fits better. So C.", "C"),
        ("So it is B.\n\nOptions:\nA. w\nB. x\nC. y\nD. z", "B"),
        ("\\boxed{A, C}", None),
        ("\\boxed{B. otter}", "B"),
        ("Answer: B\n\nQuestion: Which one?\nA. x\nB. y\nAnswer: C", "B"),
        ("答案是B。", "B"),
        ("所以选择D", "D"),
        ("答案是A还是B？", None),
        ("正确答案为C，因为A是鱼。", "C"),
        ("選項Cが正しい", "C"),
        ("정답은 B입니다.", "B"),
        ("คำตอบคือB", "B"),
        ("الجواب هو B", "B"),
        ("Die Antwort ist B.", "B"),
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
        (" B or C", None),
        (" None of the options A-D fits", None),
        ("是B。", "B"),
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
