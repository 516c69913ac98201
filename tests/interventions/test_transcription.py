"""Programs of chains in words: what is taken, and every way of cheating that is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from faithscope.interventions import NotExecutable
from faithscope.interventions.alterations import alterations
from faithscope.interventions.number_words import in_words, said
from faithscope.interventions.transcription import (
    COPIED,
    IGNORED,
    MALFORMED,
    MOST_FACTORS,
    NO_END,
    NO_SUCH_NUMBER,
    NO_SUCH_WORDS,
    OTHER_RESULTS,
    TOO_LARGE,
    TWO_ENDS,
    UNSAID,
    Line,
    Transcription,
    transcribed,
)

QUESTION = "Ann has fourteen beads. She gets 8 on Monday and 2 on Tuesday, and gives 6 away."
CHAIN = (
    "Eight and two make ten in all, so fourteen becomes twenty-four, and after giving six away "
    "there are eighteen."
)
FIRST = ("Eight and two make ten", "Q2 + Q3", "ten")
SECOND = ("so fourteen becomes twenty-four", "Q1 + S1", "twenty-four")
THIRD = ("giving six away there are eighteen", "S2 - Q4", "eighteen")


def read(*lines: tuple[str, str, str], chain: str = CHAIN, answer: str = "18") -> Transcription:
    return transcribed(QUESTION, chain, answer, [Line(*line) for line in lines])


def test_number_words_are_read_as_they_are_written() -> None:
    for value in (0, 7, 13, 20, 24, 90, 100, 105, 999, 1000, 1005, 24_356, 999_999):
        assert [x for _, x in said(f"there are {in_words(value)} of them")] == [value]
    text = "three and four, a dozen, two dozen eggs, seventy-two, a hundred and five, 1,200"
    assert sorted(x for _, x in said(text)) == [3, 4, 12, 24, 72, 105, 1200]


def test_a_chain_in_words_is_a_program_with_spans_in_words() -> None:
    program = read(FIRST, SECOND, THIRD)
    assert program.run(program.binding) == [10, 24, 18]
    assert program.run(program.binding, {1: Fraction(7)}) == [9, 23, 17]
    assert program.routes(program.binding) == (2,)
    altered = alterations(program, QUESTION, CHAIN, [(0, len(CHAIN))], 0)
    moved = {a.question for a in altered if 0 in a.inputs}
    assert moved
    assert not any("fourteen" in question for question in moved)
    for one in altered:
        if 1 in one.forced:
            assert one.chain is not None
            assert one.chain.endswith(f"so fourteen becomes {in_words(int(one.forced[1]))}")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("18", COPIED),
        ("24 - 42 + 36", NO_SUCH_NUMBER),
        ("Q1 - Q1 + 18", COPIED),
        ("S2 * 18 / 24", COPIED),
        ("S3 - Q4", NO_SUCH_NUMBER),
        ("S4 - Q4", NO_SUCH_NUMBER),
        ("S0 - Q4", NO_SUCH_NUMBER),
        ("Q5 - Q4", NO_SUCH_NUMBER),
        ("11 + Q2", NO_SUCH_NUMBER),
        ("S2 + Q4", OTHER_RESULTS),
        ("S2 / (Q4 - Q4)", OTHER_RESULTS),
        ("Q1 + Q3 + Q3", IGNORED),
        ("S2 - Q4 ** Q4", MALFORMED),
        ("9**9**9**9", NO_SUCH_NUMBER),
        ("S2 // Q4", MALFORMED),
        ("S2 % Q4", MALFORMED),
        ("Q1(Q2)", MALFORMED),
        ("(" * 190 + "Q1", MALFORMED),
        ("Q1 + " * 60 + "Q1", TOO_LARGE),
        ("__import__('os')", MALFORMED),
        ("nan", MALFORMED),
        ("1e999", NO_SUCH_NUMBER),
        ("9" * 60, TOO_LARGE),
        ("", MALFORMED),
    ],
)
def test_what_is_no_computation_from_the_question_is_refused(line: str, why: str) -> None:
    with pytest.raises(NotExecutable) as error:
        read(FIRST, SECOND, (THIRD[0], line, THIRD[2]))
    assert error.value.reason == why


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([FIRST, SECOND], UNSAID),
        ([FIRST, (SECOND[0], "Q1 + Q2 + Q3", SECOND[2]), THIRD], None),
        ([SECOND, FIRST, THIRD], NO_SUCH_NUMBER),
        ([THIRD, FIRST], NO_SUCH_NUMBER),
        ([(FIRST[0], "Q1 - Q1 + Q2 + Q3", "ten"), SECOND, THIRD], None),
        ([FIRST, FIRST, SECOND, THIRD], NO_SUCH_WORDS),
        ([("words of another chain make ten", "Q2 + Q3", "ten"), SECOND, THIRD], NO_SUCH_WORDS),
        ([(FIRST[0], "Q2 + Q3", "eleven"), SECOND, THIRD], NO_SUCH_WORDS),
        ([("", "Q2 + Q3", "ten"), SECOND, THIRD], MALFORMED),
        ([(FIRST[0], "Q2 + Q3", "ten or two"), SECOND, THIRD], MALFORMED),
        ([(FIRST[0], "Q2 + Q3", "1" + "0" * 40), SECOND, THIRD], TOO_LARGE),
        ([FIRST] * 65, TOO_LARGE),
    ],
)
def test_lines_that_are_not_the_chain_are_refused(lines: list, why: str | None) -> None:
    if why is None:
        assert read(*lines)
        return
    with pytest.raises(NotExecutable) as error:
        read(*lines)
    assert error.value.reason == why


def test_a_program_must_end_in_the_answer_by_one_way() -> None:
    with pytest.raises(NotExecutable) as error:
        read(FIRST, SECOND, THIRD, answer="17")
    assert error.value.reason == NO_END
    twice = f"{CHAIN} Or: fourteen, two and two is eighteen."
    again = ("fourteen, two and two is eighteen", "Q1 + Q3 + Q3", "eighteen")
    with pytest.raises(NotExecutable) as error:
        read(FIRST, SECOND, THIRD, again, chain=twice)
    assert error.value.reason == TWO_ENDS


def test_squares_of_squares_are_not_computed() -> None:
    """On the number 1 they are 1; on another they would have billions of digits."""
    chain = "One is one. " * 40
    lines = [
        Line("One is one", f"{'S' if k else 'Q'}{k or 1} * {'S' if k else 'Q'}{k or 1}", "one")
        for k in range(40)
    ]
    with pytest.raises(NotExecutable) as error:
        transcribed("Ann has 1 bead.", chain, "1", lines)
    assert error.value.reason == TOO_LARGE
    assert MOST_FACTORS < 40


def test_factors_are_taken_where_the_words_say_them() -> None:
    question, chain = "Ann has 8 pens and a dozen beads.", "Half of the pens are 4 pens."
    program = transcribed(question, chain, "4", [Line("Half of the pens are 4", "Q1 / 2", "4")])
    assert program.run(program.binding, {0: Fraction(6)}) == [3]
    dozen = [Line("there are 20", "Q1 + 12", "20")]
    with pytest.raises(NotExecutable):
        transcribed(question, "So there are 20.", "20", dozen)


def test_another_chain_holds_where_it_says_what_the_program_gives() -> None:
    program = read(FIRST, SECOND, THIRD)
    told = "Seven and two make nine, so fourteen becomes 23, and sixteen are left."
    holds = [
        line.value(line.numbers) == line.result
        for line in program.stated_in(told, {1: Fraction(7)}, {})
    ]
    assert holds == [True, True, False]
