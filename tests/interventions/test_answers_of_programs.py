"""What an answer says: options that a value picks, several numbers, and combined or chosen ones."""

from __future__ import annotations

from fractions import Fraction

import pytest

from faithscope.experiments.data.asking import asking_for
from faithscope.experiments.data.tasks import TASKS
from faithscope.interventions import NotExecutable, Question, from_ids, program_of
from faithscope.interventions.alterations import alterations
from faithscope.interventions.answers import (
    numbers_of,
    options_of,
    value_named,
    without_options,
)
from faithscope.probes.interchange import of_options, with_its_options
from faithscope.probes.program_evidence import Reply, evidence

SUM = "What is 12 * 4 - 8?\nA. 40\nB. 44\nC. 36\nD. 48"
STEPS = "12 * 4 = 48. 48 - 8 = 40."
WAYS = "Ann buys 12 red and 15 blue pens at 4 dollars each. How much is that?"
BOTH = "One way: 12 * 4 = 48, 15 * 4 = 60, 48 + 60 = 108. Another: 12 + 15 = 27, 27 * 4 = 108. "


def reason_of(question: str, chain: str, answer: str) -> str:
    with pytest.raises(NotExecutable) as raised:
        program_of(question, chain, answer)
    return raised.value.reason


@pytest.mark.parametrize(
    ("question", "values"),
    [
        (SUM, {"A": 40, "B": 44, "C": 36, "D": 48}),
        ("How much? 1) $1,200 2) $-7. My teacher says option 2.", {}),
        ("How much? 1) 1,200 dollars 2) 90 dollars. Option 2?", {"1": 1200, "2": 90}),
        ("How much? (a) 1.5 kg (b) -2 kg", {"A": Fraction(3, 2), "B": -2}),
        ("A) 3 boxes of 4 pens B) 5 boxes", {}),
        ("Ann has 2. 3 pens are lost", {}),
        ("A) 12 C) 15", {}),
        ("A) 12", {}),
        ("A) none B) some", {}),
    ],
)
def test_options_are_numbers_that_are_labelled_in_order(question, values):
    assert {o.label: o.value for o in options_of(question)} == values


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("12, 30", ("12", "30")),
        ("(12,30)", ("12", "30")),
        ("38 and 6.5", ("38", "6.5")),
        ("x = 8, y = -4", ("8", "-4")),
        ("3:2:1", ("3", "2", "1")),
        ("12,300", ()),
        ("12", ()),
        ("B", ()),
        ("", ()),
        ("1, 2, 3, 4, 5", ()),
    ],
)
def test_an_answer_may_consist_of_several_numbers(answer, numbers):
    assert numbers_of(answer) == numbers


def test_an_option_is_picked_by_the_value_in_which_the_text_ends():
    program = program_of(SUM, f"{STEPS} So the answer is A.", "A")
    assert [x.value for x in program.inputs] == [12, 4, 8]
    assert program.routes(program.binding) == (1,)
    assert program_of(SUM, STEPS, "(a)").routes(program.binding) == (1,)
    assert program_of(SUM, STEPS, "40").options
    other = program_of(SUM, STEPS, "C")  # another option than that of its result
    assert other.routes(other.binding) == ()


def test_a_value_that_no_option_has_picks_the_nearest_only_if_the_text_says_so():
    slip = "12 * 4 = 49. 49 - 8 = 41."
    assert reason_of(SUM, slip, "A") == "number_outside_operations"
    program = program_of(SUM, f"{slip} The closest is A.", "A")
    assert (program.nearest, program.answer) == (True, 41)
    assert reason_of(SUM, f"{slip} The closest is D.", "D") == "number_outside_operations"


def test_a_number_that_is_a_label_or_a_result_is_left_out():
    question = "Ann has 5 pens and loses 3. How many? 1) 4 2) 3"
    assert reason_of(question, "5 - 3 = 2.", "2") == "answer_names_an_option"


def test_labels_of_numbered_options_are_no_numbers_of_a_chain():
    options = options_of("How much? 1) 5 2) 84")
    chain = "It is 84. So the answer is 2. That is 2) 84. (5 - 3) * 4 = 8."
    blank = "It is 84. So the answer is  . That is  ) 84. (5 - 3) * 4 = 8."
    assert without_options(chain, options) == blank
    assert without_options(chain, options_of(SUM)) == chain


def test_every_altered_question_has_the_value_of_the_program_and_the_old_one_among_its_options():
    program = program_of(SUM, STEPS, "A")
    places = set()
    for one in alterations(program, SUM, STEPS, [(0, 12), (13, 25)], 0):
        values = [o.value for o in options_of(one.question)]
        assert len(values) == len(set(values)) == 4
        (end,) = program.routes(program.binding)
        told = program.run(program.binding, one.inputs, one.forced)[end]
        assert {told, Fraction(40)} <= set(values)
        if one.whole:
            assert values.index(Fraction(40)) == 0
        else:
            places.add(values.index(told))
    assert len(places) > 2


def answers(chain: str, question: str = SUM) -> str:
    """The letter of the last result."""
    last = Fraction(chain.rstrip(". ").split()[-1])
    return next((o.label for o in options_of(question) if o.value == last), "A")


def steps_of(question: str, begun: str = "") -> str:
    a, b, c = (int(question.split()[i].rstrip("?")) for i in (2, 4, 6))
    product = int(begun.split()[-1]) if begun.count("=") == 1 else a * b
    if begun.count("=") == 2:
        return f"{begun}."
    return f"{a} * {b} = {product}. {product} - {c} = {product - c}."


@pytest.mark.parametrize(
    ("picks", "least"),
    [
        (lambda question, chain: answers(chain, question), 1),
        (lambda question, chain: "A", 0),
        (lambda question, chain: answers(steps_of(question), question), 0),
    ],
    ids=["reads its text", "a fixed letter", "computes from the question"],
)
def test_only_who_picks_by_the_text_is_predicted_by_it(picks, least):
    program = program_of(SUM, STEPS, "A")
    altered = alterations(program, SUM, STEPS, [(0, 12), (13, 25)], 0)
    chains = [a.chain if a.whole else steps_of(a.question, a.chain or "") for a in altered]
    replies = [Reply(picks(a.question, c), c) for a, c in zip(altered, chains, strict=True)]
    found = evidence(program, STEPS, altered, replies)
    assert found.left == 1
    assert found.score == pytest.approx(least, abs=0.5 if not least else 0)


PAIR = "Ann has 50 pens, Ben 40. Ann gives 12 to Ben. How many has each?"
LINES = "50 - 12 = 38. 40 + 12 = 52."


def lines_of(question: str, begun: str = "") -> str:
    a, b, c = (int("".join(filter(str.isdigit, question.split()[i]))) for i in (2, 5, 8))
    whole = [f"{a} - {c} = {a - c}. ", f"{b} + {c} = {b + c}."]
    n = begun.count("=")
    return (f"{begun}. " if begun else "") + "".join(whole[n:])


@pytest.mark.parametrize("second_from_the_first", [False, True])
def test_each_number_of_a_pair_must_follow_from_the_text(second_from_the_first):
    def answer(question, chain):
        one, two = (int(part.split(".")[0]) for part in chain.split("= ")[1:3])
        if second_from_the_first:
            a, b, _ = (int("".join(filter(str.isdigit, question.split()[i]))) for i in (2, 5, 8))
            two = a + b - one
        return f"{one}, {two}"

    program = program_of(PAIR, LINES, "38, 52")
    assert [p.answer for p in (program, *program.others)] == [38, 52]
    altered = alterations(program, PAIR, LINES, [(0, 13), (14, 26)], 0)
    chains = [a.chain if a.whole else lines_of(a.question, a.chain or "") for a in altered]
    replies = [Reply(answer(a.question, c), c) for a, c in zip(altered, chains, strict=True)]
    found = evidence(program, LINES, altered, replies)
    assert (found.score == 1) is not second_from_the_first
    short = evidence(program, LINES, altered, [Reply(r.answer.split(",")[0], "") for r in replies])
    assert {o.excuse for o in short.outcomes} == {"no_answer"}


@pytest.mark.parametrize(
    ("says", "sign", "gives"),
    [
        ("If they differ, I take the mean of the two.", "mean", 110),
        ("I average both results.", "mean", 110),
        ("My answer lies half way between them.", "mean", 110),
        ("To be careful I report the lower one.", "min", 108),
        ("Whichever is larger counts.", "max", 112),
    ],
)
def test_a_text_may_combine_its_ways(says, sign, gives):
    program = program_of(WAYS, BOTH + says, "108")
    (end,) = program.routes(program.binding)
    assert program.binding[end][0].sign == sign
    assert program.run(program.binding, {}, {2: Fraction(112)})[end] == gives


@pytest.mark.parametrize(
    "says",
    [
        "I do not take the mean of the two.",
        "I take the first way.",
        "The lower shelf is not needed for the answer.",
        "The mean of the two is easy to give: 108 + 108 = 216.",
    ],
)
def test_other_words_combine_nothing(says):
    program = program_of(WAYS, BOTH + says, "108")
    assert not any(one.open for one in program.operations)


def test_sums_and_differences_of_results_that_are_left_are_read_and_wrong_ones_left_out():
    question = "A room is 3 m by 4 m, another one 2 m by 5 m."
    chain = "The first has 3 * 4 = 12. The other has 2 * 5 = 10. "
    summed = program_of(question, f"{chain}The answer is the sum of both.", "22")
    assert summed.run(summed.binding, {0: Fraction(6)})[-1] == 34
    apart = program_of(question, f"{chain}The answer is the difference of the two.", "2")
    assert apart.run(apart.binding, {2: Fraction(4)})[-1] == 8
    wrong = f"{chain}The answer is the mean of the two."
    assert reason_of(question, wrong, "12") == "number_outside_operations"


FARE = "A party of 18 takes the ferry. A seat is 9 crowns, for large parties 6. What do they pay?"
LIMIT = "They are 18. A party is large if it has at least 16 people. Each pays 6. 18 * 6 = 108."


def test_a_rule_with_a_limit_chooses_another_number_of_the_question():
    program = program_of(FARE, LIMIT, "108")
    other = {
        program.run(binding, {0: Fraction(12)})[0]
        for binding in program.bindings
        if binding[0][0].kind == "input"
    }
    assert {12 * 6, 12 * 9, None} <= other
    at_it = {program.run(binding, {0: Fraction(16)})[0] for binding in program.bindings}
    assert 16 * 6 in at_it


def test_without_a_limit_no_number_is_chosen_by_one():
    program = program_of(FARE, "They are 18, a large party. 18 * 6 = 108.", "108")
    assert {s.kind for of in program.candidates for sources in of for s in sources} == {"input"}


BOXES = "Ann has 5 boxes with 12 pens and gives away 8. How many are left?"


@pytest.mark.parametrize(
    ("chain", "results"),
    [
        ("There are 5 boxes of 12 pens, so 60. Of these 8 go, which leaves 52.", [60, 52]),
        ("| 5 | 12 | 60 |\n| less | 8 | 52 |", [60, 52]),
        ("5 boxes of 12 make 60. Without 8 of them that comes up to 52.", [60, 52]),
        ("* boxes: 5 with 12, now 60\n* without 8, now 52\nThe answer is 52.", [60, 52]),
    ],
)
def test_prose_that_names_the_numbers_of_its_results_is_a_program(chain, results):
    program = program_of(BOXES, chain, "52")
    assert [one.result for one in program.operations] == results
    assert program.run(program.binding, {0: Fraction(4)}) == [48, 40]


@pytest.mark.parametrize(
    "chain",
    [
        "I think the answer is 52.",
        "First there were 60, later 52.",
        "There are 5 boxes of 12 pens, so 60. The rest is clear.",
    ],
)
def test_results_alone_are_no_program_and_neither_is_prose_without_the_answer(chain):
    assert reason_of(BOXES, chain, "52") == "no_operation_stated"


def test_an_unknown_and_a_total_are_read():
    riddle = "I multiply a number by 3, add 12 and get 60. What is it?"
    solved = program_of(riddle, "3x + 12 = 60. Less 12: 3x = 48. Divided by 3: x = 16.", "16")
    assert [one.result for one in solved.operations] == [48, 16]
    table = "| 2 | 30 | 60 |\n| 3 | 21 | 63 |\n| 4 | 25 | 100 |\n| total | 223 |"
    bill = "2 lamps at 30, 3 rugs at 21 and 4 chairs at 25 dollars."
    program = program_of(bill, table, "223")
    assert program.run(program.binding, {0: Fraction(3)})[-1] == 253


def test_the_named_value_of_an_answer():
    assert value_named(options_of(SUM), "(b)") == 44
    assert value_named(options_of(SUM), None) is None


def test_options_of_a_task_are_read_in_its_message_and_replies_by_the_changed_ones():
    texts = ("40 m", "44 m", "36 m", "none")
    task = next(one for one in TASKS.values() if one.kind == "choice")
    question = Question("1", task.name, "What is 12 * 4 - 8?", "choice", "D", texts)
    trace = from_ids(question, (), (1,), ("x",))
    asking = asking_for(None, task, trace)
    shown = with_its_options(trace, asking.asked)
    assert shown.startswith(question.text)
    assert shown in asking.asked
    assert [o.value for o in options_of(shown)] == [40, 44, 36]
    other = of_options(asking, shown.replace("40", "44x").replace("44 ", "40 ").replace("x", ""))
    assert (asking.parse("The answer is B. 40 m"), other.parse("The answer is B. 40 m")) == (
        None,
        "B",
    )
    assert with_its_options(trace, "40 m or 44 m? What is 12 * 4 - 8?") == question.text
