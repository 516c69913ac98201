"""Steps tile the reasoning, and begin where a reader would say they do."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithscope.interventions import segment, split_conclusion, tile
from faithscope.interventions.segment import MODES
from faithscope.interventions.sentences import sentence_starts


def words(text: str) -> list[str]:
    """Word-like pieces, white space in front, as most tokenizers cut."""
    return re.findall(r"\s*\S+|\s+$", text)


def texts(text: str, **settings) -> list[str]:
    return [s.text.strip() for s in segment(words(text), **settings)]


@pytest.mark.parametrize(
    "sentences",
    [
        ("The price is $1,200.50.", "That is 3.14 times as much."),
        ("See Dr. Smith (i.e. the author) on it.", "Fig. 3 shows e.g. a cat vs. a dog."),
        ("The U.S. team of J. K. Smith won.", "It took approx. 5 hours."),
        ("Let $x = 3. Then$ hold for now.", "So \\(a. B\\) and \\[c. D\\] are whole."),
        ("Write \\begin{align}x. Y\\end{align} there.", "It costs $5.", "Then it costs $10."),
        ("Use `a.b. C` for the call.", "```py\nx = 1. \n\nprint. Y\n```", "That prints one."),
        ("So 3 + 4 makes 7 .", "So 7 - 2 makes 5 .", "So 5 + 9 makes 4 ."),
        ('The review says "terrible acting."', "**It is negative.**", "Right?", "Yes... it is!"),
        ("He was (so he said.) early.", "Then he left."),
        ("影片很差。", "故事很好。"),
        ("So C(6, 0) = 1.", "Then gcd(a, b) * lcm(a, b) is 200.", "So it is n!/(r!(n-r)!), I say."),
    ],
)
def test_sentences_stay_whole(sentences):
    for gap in (" ", "\n", "\r\n", "\n\n", "  "):
        text = gap.join(sentences)
        starts = sentence_starts(text)
        ends = (*starts[1:], len(text))
        assert [text[a:b].strip() for a, b in zip(starts, ends, strict=True)] == list(sentences)


@pytest.mark.parametrize(
    "sentences",
    [
        ("So C(6, 0) = 1.", "Then gcd(a, b) * lcm(a, b) = 200."),
        ("We have (2x + 10) + (x + 1) + x = 100.", "If f(2x - 5) = 2(2x - 5) - 5, stop."),
        ("It is (4 choose 2) * (1/4)^2.", "So P(X = 2) = 6 * (1/16)."),
        ("This is n!/(r!(n-r)!), where n is 5.", "So 9! / (3! * (9 - 3)!) = 84 in all."),
        ("It would give 4! = 24 ways.", "Canceling 12! from both leaves 3! * 2 of them."),
        ("The values are 15, 16, ..., 29 here.", "That is 33.333...% of it."),
        ("She has 30 lbs. of carrots.", "She gives them to Ms. Thompson."),
        ("x is in [0, 1. 5) or so.", "Then (see Eq. 3. It holds) we go on."),
        ("(It is an aside. It is long.)", "Then we go on."),
    ],
)
def test_formulas_and_brackets_stay_whole(sentences):
    for gap in ("\n", "\n\n"):
        assert [t.strip() for t in texts(gap.join(sentences), mode="sentences")] == list(sentences)


def test_a_bracket_that_is_not_closed_in_its_paragraph_keeps_nothing_whole():
    text = "We add (so to say three. Then we add four.\n\nIt is fine.) That is all of it."
    assert len(texts(text)) == 4
    assert texts("The acting is bad :( so it goes. The story is good.")[1] == "The story is good."


PARTS = ["So", "Step 1:", "1.", "f(x", "(", ")", "[", "]", "0, 1)", "5!", "=", "e.g.", "...", "b)"]
PARTS += [". ", "! ", "? ", ".", "\n", "\n\n", " ", " ", "Then we add it", "3.5", "we", "{", "}"]


@given(st.lists(st.sampled_from(PARTS), max_size=40), st.randoms(use_true_random=False))
@settings(max_examples=400)
@pytest.mark.in_time(2)
@pytest.mark.parametrize("mode", MODES)
def test_no_step_begins_inside_a_closed_bracket_and_steps_tile(mode, parts, draw):
    text = "Now " + "".join(parts)
    cuts = sorted({0, len(text), *(draw.randint(0, len(text)) for _ in range(len(text) // 3))})
    pieces = [text[a:b] for a, b in pairwise(cuts)]
    steps = segment(pieces, mode=mode, n_tokens=draw.choice([10, 1000]))
    assert [s.tokens[0] for s in steps] == [0, *(s.tokens[1] for s in steps[:-1])]
    assert steps[-1].tokens[1] == len(pieces)
    assert "".join(s.text for s in steps) == text
    begins = [s.chars[0] + len(s.text) - len(s.text.lstrip()) for s in steps]
    for a, b in closed_brackets(text):
        assert not [at for at in begins if a < at < b], text[a:b]


def closed_brackets(text: str) -> list[tuple[int, int]]:
    """Every bracket that is closed in its paragraph, found one by one; "1)" and "b)" open lines."""
    spans = []
    for paragraph in re.finditer(r"(?:(?!\n[^\S\n]*\n).)+", text, re.DOTALL):
        plain = re.sub(r"(?m)^([^\S\n]*)(\d{1,3}|[A-Za-z])\)", r"\1\2.", paragraph.group())
        for start in (i for i, c in enumerate(plain) if c in "([{"):
            depth = 0
            for i in range(start, len(plain)):
                depth += (plain[i] in "([{") - (plain[i] in ")]}")
                if depth == 0:
                    spans.append((paragraph.start() + start, paragraph.start() + i + 1))
                    break
    return spans


def test_line_breaks_end_a_sentence_unless_the_line_runs_on():
    text = "48/2 = 24 clips in May\nThe total\nof both is 72"
    assert texts(text) == ["48/2 = 24 clips in May", "The total\nof both is 72"]


def test_a_lone_marker_belongs_to_its_item():
    assert texts("1. We add three.\n2. We add four.", mode="sentences") == [
        "1. We add three.",
        "2. We add four.",
    ]
    assert texts("We do it.\nStep 2:\nWe add four to it.", mode="sentences")[-1] == (
        "Step 2:\nWe add four to it."
    )


def test_numbered_items_are_steps_and_the_text_around_them_sentences():
    text = (
        "Let us look at it closely. Here we go:\n\n1. Compute 3 + 4. It is 7.\n"
        "2. Then add 5.\n   It gives 12.\n\n3. The result is fine.\n\nSo it is twelve. That is all."
    )
    assert texts(text) == [
        "Let us look at it closely.",
        "Here we go:",
        "1. Compute 3 + 4. It is 7.",
        "2. Then add 5.\n   It gives 12.",
        "3. The result is fine.",
        "So it is twelve.",
        "That is all.",
    ]


@pytest.mark.parametrize(
    "markers",
    [
        ("Step 1: ", "Step 2: ", "Step 3: "),
        ("**Step 1:** ", "**Step 2:** ", "**Step 3:** "),
        ("### Step 1: Look\n\n", "### Step 2: Think\n\n", "### Step 3: Say\n\n"),
        ("1. ", "2. ", "3. "),
        ("1) ", "2) ", "3) "),
        ("**1.** ", "**2.** ", "**3.** "),
        ("1. **Look**:\n", "2. **Think**:\n", "3. **Say**:\n"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_markers(markers, newline):
    body = "The review is bad. It says so."
    items = [(m + body).replace("\n", newline) for m in markers]
    assert texts((newline * 2).join(items)) == items


def test_step_markers_inside_a_line():
    assert texts("Step 1: add 3 and 4. We get 7. Step 2: take 2 away. We get 5.") == [
        "Step 1: add 3 and 4. We get 7.",
        "Step 2: take 2 away. We get 5.",
    ]


def test_numbers_at_line_starts_that_do_not_count_up_are_no_list():
    assert texts("There were\n7. That is not\n3. A list it is not.")[0].startswith("There were")
    assert len(segment(words("7. Foo is here now.\n3. Bar is here now."))) == 2


def test_auto_takes_thoughts_for_long_reasoning_only():
    block = "The first one. The second one is longer than that. " * 20
    long = f"{block}\n\n{block}\n\n{block}"
    assert len(segment(words(long))) == 3
    assert len(segment(words(long), mode="sentences")) == 120
    assert len(segment(words("The first one is it.\n\nAnd the second. Then the third one."))) == 3


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("We add three. Then we add four.", "sentence"),
        ("1. We add three.\n2. Then we add four.", "item"),
        ("\n\n".join(["We add three. Then we add four. " * 20] * 5), "thought"),
    ],
)
def test_a_trace_says_what_its_steps_are(make_trace, text, unit):
    assert make_trace(text).unit == unit


def test_paragraphs_keep_code_and_display_math_whole():
    text = "We compute:\n\n```py\nx = 1\n\ny = 2\n```\n\n\\[\na\n\nb\n\\]\n\nDone with it now."
    assert texts(text, mode="paragraphs") == [
        "We compute:",
        "```py\nx = 1\n\ny = 2\n```",
        "\\[\na\n\nb\n\\]",
        "Done with it now.",
    ]


def test_short_stretches_are_kept_but_not_counted():
    steps = segment(words("Sure! The acting is terrible. So it goes."))
    assert [(s.text.strip(), s.counted) for s in steps] == [
        ("Sure!", False),
        ("The acting is terrible.", True),
        ("So it goes.", False),
    ]
    assert all(s.counted for s in segment(words("Sure! Yes."), min_chars=4))


@pytest.mark.parametrize(
    "sentences",
    [
        [
            "三盒每盒四支笔，共十二支。",
            "她丢了其中的两支笔。",
            "十二减二等于10。",
            "3盒都还在桌上。",
        ],
        ["箱は3つあります。", "合計は12本です。", "そのうち2本をなくした。"],
        ["상자가 세 개 있다. ", "펜은 모두 열두 자루다. "],
        ["لدي ثلاث علب. ", "في كل علبة أربعة أقلام؟ "],
    ],
)
def test_a_sentence_is_as_long_as_its_script_makes_it(sentences):
    steps = segment(list("".join(sentences)))
    assert [(s.text, s.counted) for s in steps] == [(text, True) for text in sentences]


@pytest.mark.parametrize("text", ["十支。", "はい。", "نعم.", "네.", "So it is."])
def test_a_word_or_two_is_no_step_in_any_script(text):
    assert [s.counted for s in segment(list(text))] == [False]


def test_a_token_goes_with_its_first_visible_character():
    pieces = ["One is here", ". Two", " is there", ".", "\n\n", " \n", "", "", "😀", " three is."]
    steps = tile(pieces, sentence_starts("".join(pieces)))
    assert [s.tokens for s in steps] == [(0, 2), (2, 6), (6, 10)]
    assert steps[2].text == "😀 three is."


def test_long_text_is_cut_in_linear_time():
    pieces = words("The acting is terrible. But the story is good. " * 3000)
    assert len(segment(pieces, mode="sentences")) == 6000


def test_nothing_gives_no_steps():
    assert segment([]) == ()
    assert [s.counted for s in segment([" ", "\n"])] == [False]


def test_unknown_mode_is_named():
    with pytest.raises(ValueError, match="'lines'; use one of auto, sentences"):
        segment(["a"], mode="lines")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("reasoning", "statement"),
    [
        ("3 + 4 makes 7.", " Therefore, the answer is 7."),
        ("So 5 + 9 makes 4 .", " Therefore the answer is 4 ."),
        ("Sold 48/2 = 24 clips.", "\n#### 72"),
        ("Adding 3 and 4 gives 7,", " so the answer is 7."),
        ("We add them up.", "\n\nThe final answer is:\n\n$$\\boxed{12}$$"),
        ("We add them up.", " So, the final numerical answer is 4 * 2 = 8 bolts."),
        ("We add them up.", " The answer is 12. I hope that helps!"),
        ("It is slow. It is great.", " Overall, the sentiment of the review is negative."),
        ("The tone is warm. It is kind.", "\n\n**Sentiment: positive**"),
        ("The tone is warm. It is kind.", "\n\npositive"),
        ("Option A fails. Option C fails too.", "\n\nAnswer: B"),
        ("The answer is not clear yet. We go on.", " So the correct answer is (B)."),
        ("The first part of the review is positive. The rest is a mess.", ""),
        ("", "The answer is 7."),
        ("", ""),
    ],
)
def test_conclusion_is_split_off(reasoning, statement):
    pieces = words(reasoning + statement)
    at = split_conclusion(pieces)
    assert "".join(pieces[:at]) == reasoning
    assert "".join(pieces[at:]) == statement


@pytest.mark.parametrize(
    ("reasoning", "statement"),
    [
        ("她丢了其中的两支笔。", "答案是10。"),
        ("十二减二等于十，两支都不见了，", "所以答案是10。"),
        ("そのうち2本をなくした。", "答えは10です。"),
        ("펜은 모두 열두 자루다. ", "답은 10입니다."),
        ("У меня три коробки. ", "Ответ: 10."),
        ("الأقلام عشرة بلا شك. ", "الجواب هو 10."),
    ],
)
def test_a_conclusion_is_split_off_in_other_scripts(reasoning, statement):
    pieces = list(reasoning + statement)
    at = split_conclusion(pieces)
    assert ("".join(pieces[:at]), "".join(pieces[at:])) == (reasoning, statement)


def test_a_next_question_of_the_responses_own_is_no_reasoning():
    reasoning, question = (
        "Nine eggs at 2 each make 18.",
        "\n\nQuestion: Tom has 4 and buys 5.\n#### 9",
    )
    pieces = words(f"{reasoning}\n#### 18{question}")
    at = split_conclusion(pieces)
    assert "".join(pieces[:at]) == reasoning
    assert "".join(pieces[at:]) == f"\n#### 18{question}"


def test_conclusion_patterns_are_the_callers():
    pieces = words("It is slow. Verdict of mine, positive. Bye.")
    assert split_conclusion(pieces, patterns=["verdict of"], closing=[]) == 3
    assert split_conclusion(pieces, patterns=[], closing=[]) == len(pieces)
