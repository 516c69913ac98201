"""Chains of thought as programs: what they read, where their answer comes from, and what they
compute on other numbers."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from faithscope.experiments.data.planted.data import draw_problem, true_answer, write_steps
from faithscope.interventions import NotExecutable, program_of, statements

PENS = "Ann has 3 boxes of 4 pens. She loses 2. How many pens?"
CHAIN = "Ann has 3 boxes. So there are 3 * 4 = 12 pens. Then 12 - 2 = 10 pens are left."


def test_a_word_problem_is_executed_on_other_numbers():
    program = program_of(PENS, CHAIN, "10")
    assert [i.value for i in program.inputs] == [3, 4, 2]
    assert program.routes(program.binding) == (1,)
    assert program.read(program.binding) == {0, 1, 2}
    assert program.run(program.binding) == [12, 10]
    assert program.run(program.binding, {1: Fraction(5)}) == [15, 13]
    assert program.run(program.binding, {2: Fraction(3)}) == [12, 9]


def test_percentages_brackets_and_money_are_numbers_of_the_question():
    question = "A shirt costs $20 and is 25% off. How much are 3 shirts?"
    chain = "Each costs $20 - ($20 * 25%) = $15. So 3 * $15 = $45."
    program = program_of(question, chain, "45")
    assert program.read(program.binding) == {0, 1, 2}
    assert program.run(program.binding, {1: Fraction(50)}) == [10, 30]


def test_a_number_that_is_not_in_the_question_is_a_constant():
    program = program_of("How many days are 3 weeks?", "There are 3 * 7 = 21 days.", "21")
    assert [s.kind for s in program.binding[0]] == ["input", "constant"]
    assert program.run(program.binding, {0: Fraction(4)}) == [28]


@pytest.mark.parametrize("n_steps", [2, 3, 5])
def test_every_number_of_a_planted_chain_comes_from_its_place(n_steps: int):
    rng = random.Random(0)
    for _ in range(300):
        problem = draw_problem(rng, n_steps)
        program = program_of(problem.text, " ".join(write_steps(problem)), true_answer(problem))
        assert program.modulus == 10
        assert program.inputs[-1].name == "Hint"
        assert program.routes(program.binding) == (n_steps - 1,)
        assert program.read(program.binding) == set(range(n_steps + 1))
        for k, (left, right) in enumerate(program.binding):
            assert (right.kind, right.at) == ("input", k + 1)
            assert (left.kind, left.at) == (("result", k - 1) if k else ("input", 0))
        at, new = rng.randrange(n_steps + 1), rng.randrange(10)
        operands = (*problem.operands[:at], new, *problem.operands[at + 1 :])
        other = type(problem)(operands, problem.operators, hint=problem.hint)
        assert program.run(program.binding, {at: Fraction(new)})[-1] == int(true_answer(other))


def test_a_sentence_that_names_an_input_is_another_way_to_the_answer():
    question = "Compute 8 + 9 + 9 mod 10 . Hint : 6 ."
    chain = "So 8 + 9 makes 7 . So 7 + 9 makes 6 . So the Hint makes 6 ."
    program = program_of(question, chain, "6")
    assert program.routes(program.binding) == (1, 2)
    assert [
        program.before(route, program.binding) for route in program.routes(program.binding)
    ] == [{0, 1}, {2}]
    assert program.run(program.binding, {3: Fraction(2)}) == [7, 6, 2]


def test_a_text_whose_results_are_none_the_answer_has_no_way_to_it():
    program = program_of(PENS, CHAIN, "7")
    assert program.routes(program.binding) == ()
    assert program.read(program.binding) == set()


def test_a_result_that_leads_to_the_answer_again_is_no_way_of_its_own():
    question = "Compute 2 + 2 - 2 + 2 mod 10 ."
    chain = "So 2 + 2 makes 4 . So 4 - 2 makes 2 . So 2 + 2 makes 4 ."
    program = program_of(question, chain, "4")
    assert program.routes(program.binding) == (2,)


def test_a_slip_is_executed_as_the_operation_says():
    program = program_of(PENS, CHAIN.replace("12", "13").replace("10", "11"), "11")
    assert program.run(program.binding) == [12, 10]
    assert program.binding[1][0].kind == "result"


@pytest.mark.parametrize(
    ("question", "chain", "answer", "reason"),
    [
        ("How many pens?", CHAIN, "10", "question_without_numbers"),
        (PENS, "Ann has some pens and loses some.", "10", "no_operation_stated"),
        (PENS, f"{CHAIN} That is 17 percent.", "10", "number_outside_operations"),
        (PENS, CHAIN, "ten", "answer_is_no_number"),
        (PENS, CHAIN, "NaN", "answer_is_no_number"),
        (PENS, CHAIN, "1e999999999", "answer_is_no_number"),
        (PENS, CHAIN, "1" + "0" * 400, "number_too_large"),
        (PENS.replace("3", "9" * 400), CHAIN, "10", "number_too_large"),
        (PENS, f"{CHAIN} 1 + 2 = {'9' * 5000}", "10", "number_too_large"),
        (PENS, f"{CHAIN} 12 / 0 = 7.", "10", "number_outside_operations"),
        (PENS, "3 * 4 = 12. 12 / 100 = 12%.", "1200", "number_outside_operations"),
    ],
)
def test_what_is_no_program_says_why(question: str, chain: str, answer: str, reason: str):
    with pytest.raises(NotExecutable, match=reason) as raised:
        program_of(question, chain, answer)
    assert raised.value.reason == reason


def test_a_division_by_zero_has_no_result():
    program = program_of("Share 6 pens among 3.", "Each gets 6 / 3 = 2 pens.", "2")
    assert program.run(program.binding, {1: Fraction(0)}) == [None]


def test_labels_of_steps_are_no_numbers_of_an_equation():
    (equation,) = statements("Step 2: 3 + 4 = 7")
    assert (equation.numbers, equation.result) == ((3, 4), 7)


@pytest.mark.parametrize(
    ("text", "numbers", "result"),
    [
        ("So \\( 3 \\times 4 = \\boxed{12} \\).", (3, 4), 12),
        ("\\frac{5}{4} = 1.25", (5, 4), Fraction(5, 4)),
        ("**3 + 4 = 7**", (3, 4), 7),
        ("Then 3 * 4 + 2 = 12 + 2 = $14.00.", (3, 4, 2), 14),
        ("20 more cars drive through - 5 cars = 15", (20, 5), 15),
        ("$300/month + $200/month = $500/month", (300, 200), 500),
        ("It is * .5 * 8 = 4", (Fraction(1, 2), 8), 4),
        ("Now he has -9 + 65 = 56.", (-9, 65), 56),
        ("5 - 9 = -4", (5, 9), -4),
        ("It is 5 / 20 = 25%", (5, 20), Fraction(1, 4)),
    ],
)
def test_an_equation_is_read_in_the_forms_that_chains_have(text, numbers, result):
    (one,) = statements(text)
    assert (one.numbers, one.result) == (numbers, result)
    a, b = one.result_span
    assert Fraction(text[a:b]) in (abs(result), 100 * result)


def test_all_places_that_a_number_may_come_from_are_bindings():
    program = program_of("Add 2 pens and 2 pencils, then 4.", "2 + 2 = 4. 4 + 4 = 8.", "8")
    kinds = {tuple(s.kind for s in binding[1]) for binding in program.bindings}
    assert len(program.bindings) == 16
    assert kinds == {
        ("result", "input"),
        ("input", "result"),
        ("result", "result"),
        ("input", "input"),
    }
    assert [s.at for s in program.binding[0]] == [0, 1]
    assert [s.kind for s in program.binding[1]] == ["result", "input"]


def test_a_percentage_may_be_stated_as_its_rest_and_moves_with_it():
    question = "A coat costs 80 dollars and is 25% off."
    program = program_of(question, "You pay 75% of it: 80 * 0.75 = 60.", "60")
    assert program.read(program.binding) == {0, 1}
    assert program.run(program.binding, {1: Fraction(50)}) == [40]


def test_numbers_in_words_are_inputs_and_the_same_number_of_things_is_one():
    question = "Ann has three boxes. Each of the three boxes has 4 pens and 3 caps."
    program = program_of(question, "3 * 4 = 12 pens.", "12")
    assert [(i.value, len(i.also)) for i in program.inputs] == [(3, 1), (4, 0), (3, 0)]


def test_a_result_that_is_forced_changes_what_is_computed_from_it():
    program = program_of(PENS, CHAIN, "10")
    assert program.run(program.binding, {}, {0: Fraction(20)}) == [20, 18]


def test_a_result_is_rounded_as_the_text_rounds_it():
    program = program_of("Share 10 among 3, twice.", "10 / 3 = 3.33. 3.33 * 2 = 6.66.", "6.66")
    assert program.run(program.binding) == [Fraction(333, 100), Fraction(666, 100)]


@pytest.mark.parametrize(
    ("text", "numbers", "result"),
    [
        ("The reduction is **15%** of **200**, that is **30 euros**.", (15, 200), 30),
        ("Half of 12 is 6.", (1, 2, 12), 6),
        ("3/4 of 20 = 15", (3, 4, 20), 15),
        ("15 percent of 200 is 30.", (15, 200), 30),
        ("5 times 3 gives 15 degrees.", (5, 3), 15),
        ("45 and the deposit of 20 make 65.", (45, 20), 65),
        ("| cut | 3 × 25 cm | 75 cm |", (3, 25), 75),
        ("8(11 + 7) = 144", (8, 11, 7), 144),
        ("5 + 3 &= 8", (5, 3), 8),
        ("7 × 85¢ = 595¢", (7, 85), 595),
    ],
)
def test_words_tables_and_brackets_state_operations_too(text, numbers, result):
    (one,) = statements(text)
    assert (one.numbers, one.result) == (numbers, result)


@pytest.mark.parametrize(
    ("chain", "answer", "other"),
    [
        ("The boxes hold 12 pens in all. 12 - 2 = 10.", "10", 13),
        ("3 * 4 = 12. Without the lost ones there are 10.", "10", 13),
        ("d = 3 * 4 = 12, to the nearest ten 10. Then 10 - 2 = 8.", "8", 18),
    ],
)
def test_a_result_in_prose_comes_from_earlier_numbers(chain, answer, other):
    program = program_of(PENS, chain, answer)
    assert program.run(program.binding)[-1] == int(answer)
    assert program.run(program.binding, {1: Fraction(5)})[-1] == other


def test_other_chains_tell_where_a_number_comes_from():
    question = "Ann has 2 pens and gets 2. How many pens?"
    program = program_of(question, "2 + 2 = 4.", "4")
    assert len(program.bindings) == 4
    seen = [({0: Fraction(5)}, program.stated_in("2 + 5 = 7.", {}, {}))]
    (binding,) = program.narrowed(seen).bindings
    assert [s.at for s in binding[0]] == [1, 0]


def test_equal_numbers_are_told_apart_by_what_is_counted():
    question = "Mara has 5 children. She fills 5 bags with 8 nuts each. How many nuts?"
    program = program_of(question, "There are 5 bags, so 5 * 8 = 40.", "40")
    assert [s.at for s in program.binding[0]] == [1, 2]
    assert len(program.bindings) == 1


HALL = "A hall has 19 rows of 15 chairs. By 9 doors 49 people each came in. How many are there?"
TWO_WAYS = "By the chairs: 19 * 15 = 285. By the doors: 9 * 49 = 441. "


@pytest.mark.parametrize(
    ("question", "chain", "answer", "idle"),
    [
        (HALL, TWO_WAYS + "I would bet on something nearer to the chairs.", "311", True),
        (HALL, TWO_WAYS + "Doors do not lie.", "441", True),
        (HALL, TWO_WAYS + "I trust the second way.", "441", False),
        (HALL, TWO_WAYS + "The larger number is 441.", "441", False),
        (PENS, CHAIN, "10", False),
        (PENS, CHAIN + " Check: 10 + 2 = 12.", "10", False),
        (PENS, CHAIN + " That is 10 / 2 = 5 for each hand.", "10", False),
        (PENS, "3 + 4 = 7 things at first. " + CHAIN, "10", True),
    ],
)
def test_a_result_that_nothing_needs_may_be_meant_by_words(
    question: str, chain: str, answer: str, idle: bool
):
    assert program_of(question, chain, answer).idle is idle


def test_the_larger_of_two_results_is_one_of_them():
    program = program_of(HALL, TWO_WAYS + "The larger number is 441.", "441")
    assert program.run(program.binding, {0: Fraction(40)})[-1] == 600
    assert program.run(program.binding, {3: Fraction(50)})[-1] == 450
