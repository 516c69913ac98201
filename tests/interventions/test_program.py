"""Chains of thought as programs: what they read, where their answer comes from, and what they
compute on other numbers."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from faithscope.experiments.data.planted.data import draw_problem, true_answer, write_steps
from faithscope.interventions import NotExecutable, equations, program_of

PENS = "Ann has 3 boxes of 4 pens. She loses 2. How many pens?"
CHAIN = "Ann has 3 boxes. So there are 3 * 4 = 12 pens. Then 12 - 2 = 10 pens are left."


def test_a_word_problem_is_executed_on_other_numbers():
    program = program_of(PENS, CHAIN, "10")
    assert [i.value for i in program.inputs] == [3, 4, 2]
    assert program.routes == (1,)
    assert program.read == {0, 1, 2}
    assert program.run({}) == [12, 10]
    assert program.run({1: Fraction(5)}) == [15, 13]
    assert program.run({2: Fraction(3)}) == [12, 9]


def test_percentages_brackets_and_money_are_numbers_of_the_question():
    question = "A shirt costs $20 and is 25% off. How much are 3 shirts?"
    chain = "Each costs $20 - ($20 * 25%) = $15. So 3 * $15 = $45."
    program = program_of(question, chain, "45")
    assert program.read == {0, 1, 2}
    assert program.run({1: Fraction(50)}) == [10, 30]


def test_a_number_that_is_not_in_the_question_is_a_constant():
    program = program_of("How many days are 3 weeks?", "There are 3 * 7 = 21 days.", "21")
    assert [s.kind for s in program.operations[0].sources] == ["input", "constant"]
    assert program.run({0: Fraction(4)}) == [28]


@pytest.mark.parametrize("n_steps", [2, 3, 5])
def test_every_number_of_a_planted_chain_comes_from_its_place(n_steps: int):
    rng = random.Random(0)
    for _ in range(300):
        problem = draw_problem(rng, n_steps)
        program = program_of(problem.text, " ".join(write_steps(problem)), true_answer(problem))
        assert program.modulus == 10
        assert program.inputs[-1].name == "Hint"
        assert program.routes == (n_steps - 1,)
        assert program.read == set(range(n_steps + 1))
        for k, operation in enumerate(program.operations):
            left, right = operation.sources
            assert (right.kind, right.at) == ("input", k + 1)
            assert (left.kind, left.at) == (("result", k - 1) if k else ("input", 0))
        at, new = rng.randrange(n_steps + 1), rng.randrange(10)
        operands = (*problem.operands[:at], new, *problem.operands[at + 1 :])
        other = type(problem)(operands, problem.operators, hint=problem.hint)
        assert program.run({at: Fraction(new)})[-1] == int(true_answer(other))


def test_a_sentence_that_names_an_input_is_another_way_to_the_answer():
    question = "Compute 8 + 9 + 9 mod 10 . Hint : 6 ."
    chain = "So 8 + 9 makes 7 . So 7 + 9 makes 6 . So the Hint makes 6 ."
    program = program_of(question, chain, "6")
    assert program.routes == (1, 2)
    assert [program.before(route) for route in program.routes] == [{0, 1}, {2}]
    assert program.run({3: Fraction(2)}) == [7, 6, 2]


def test_a_text_whose_results_are_none_the_answer_has_no_way_to_it():
    program = program_of(PENS, CHAIN, "7")
    assert program.routes == ()
    assert program.read == set()


def test_a_result_that_leads_to_the_answer_again_is_no_way_of_its_own():
    question = "Compute 2 + 2 - 2 + 2 mod 10 ."
    chain = "So 2 + 2 makes 4 . So 4 - 2 makes 2 . So 2 + 2 makes 4 ."
    assert program_of(question, chain, "4").routes == (2,)


def test_a_slip_is_executed_as_the_operation_says():
    program = program_of(PENS, CHAIN.replace("12", "13").replace("10", "11"), "11")
    assert program.run({}) == [12, 10]
    assert program.operations[1].sources[0].kind == "result"


@pytest.mark.parametrize(
    ("question", "chain", "answer", "reason"),
    [
        ("How many pens?", CHAIN, "10", "question_without_numbers"),
        (PENS, "Ann has some pens and loses some.", "10", "no_operation_stated"),
        (PENS, f"{CHAIN} That is 17 percent.", "10", "number_outside_operations"),
        (PENS, CHAIN, "ten", "answer_is_no_number"),
    ],
)
def test_what_is_no_program_says_why(question: str, chain: str, answer: str, reason: str):
    with pytest.raises(NotExecutable, match=reason) as raised:
        program_of(question, chain, answer)
    assert raised.value.reason == reason


def test_a_division_by_zero_has_no_result():
    program = program_of("Share 6 pens among 3.", "Each gets 6 / 3 = 2 pens.", "2")
    assert program.run({1: Fraction(0)}) == [None]


def test_labels_of_steps_are_no_numbers_of_an_equation():
    (equation,) = equations("Step 2: 3 + 4 = 7")
    assert (equation.numbers, equation.result) == ((3, 4), 7)
