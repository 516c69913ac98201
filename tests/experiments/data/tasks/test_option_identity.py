"""An option is who it is by its letter, in every source: questions, given chains, right answers and
the answers that chains gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SHUFFLED = ["(A)owl", "(C)otter", "(B)trout", "(D)crow"]
TEXTS = ("owl", "trout", "otter", "crow")
LETTERED = "Which swims?\n\nAnswer Choices:\n(A) owl\n(C) otter\n(B) trout\n(D) crow"
HLE = {"answer_type": "multipleChoice", "category": "Biology/Medicine", "image": ""}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "own": ("own", {"question": "?", "options": SHUFFLED, "answer": "C"}),
    "own, by text": ("own", {"question": "?", "options": SHUFFLED, "answer": "(C)otter"}),
    "own, lines": ("own", {"question": "?", "options": "\n".join(SHUFFLED), "answer": "otter"}),
    "own, bars": ("own", {"question": "?", "options": "|".join(SHUFFLED), "answer": "c"}),
    "own, JSON in a cell": ("own", {"question": "?", "options": json.dumps(SHUFFLED), "gold": "C"}),
    "own, other marks": (
        "own",
        {"question": "?", "options": ["a. owl", "c. otter", "b. trout", "d. crow"], "answer": "C"},
    ),
    "own, lists": (
        "own",
        {
            "question": "?",
            "options": {"label": list("ACBD"), "text": [o[3:] for o in SHUFFLED]},
            "answer": "C",
        },
    ),
    "medqa": (
        "medqa",
        {
            "question": "?",
            "options": {"A": "owl", "C": "otter", "B": "trout", "D": "crow", "E": None},
            "answer_idx": "C",
            "answer": "otter",
        },
    ),
    "arc": (
        "arc_challenge",
        {
            "question": "?",
            "choices": [{"label": o[1], "text": o[3:]} for o in SHUFFLED],
            "answerKey": "C",
        },
    ),
    "logiqa": ("logiqa", {"passage": "p", "question": "q", "options": SHUFFLED, "label": "C"}),
    "logiqa of the hub": (
        "logiqa",
        # the place in the list from 0
        {"context": "p", "query": "q", "options": SHUFFLED, "correct_option": 1},
    ),
    "aqua": ("aqua", {"question": "?", "options": [o[1:] for o in SHUFFLED], "correct": "C"}),
    "hle_bio": ("hle_bio", {"question": LETTERED, "answer": "C"} | HLE),
    "hle_bio, a column": ("hle_bio", {"question": "?", "options": SHUFFLED, "answer": "C"} | HLE),
}


def question(folder: Path, task: str, row: dict[str, Any]) -> Question:
    path = write_rows(folder / "test.jsonl", row)
    (read,) = get_task(task).load(LoadSettings(path=path))
    return read


@pytest.mark.parametrize("case", QUESTIONS)
def test_letters_are_who_an_option_is_whatever_its_place(tmp_path: Path, case: str) -> None:
    read = question(tmp_path, *QUESTIONS[case])
    assert (read.options, read.gold) == (TEXTS, "C")
    prompt = get_task(read.dataset).cot_prompt(read)
    assert "C. otter" in prompt


def test_truthfulqas_right_choice_is_followed_whatever_choices_begin_with(tmp_path: Path) -> None:
    for seed in range(6):
        targets = {"choices": ["(B)otter", "(A)owl", "(C)crow"], "labels": [1, 0, 0]}
        path = write_rows(tmp_path / "t.jsonl", {"question": "?", "mc1_targets": targets})
        (read,) = get_task("truthfulqa").load(LoadSettings(path=path, seed=seed))
        assert (read.options, read.gold) == (("owl", "otter", "crow"), "B")
    lost = {"choices": ["x", "y", "z"], "labels": [1, 0]}
    path = write_rows(tmp_path / "t.jsonl", {"question": "?", "mc1_targets": lost})
    with pytest.raises(UserError, match=r"line 1: 'mc1_targets' has 3 choices and 2 labels"):
        list(get_task("truthfulqa").load(LoadSettings(path=path)))


@pytest.mark.parametrize("options", [SHUFFLED, "\n".join(SHUFFLED)])
def test_rfevals_options_go_by_their_letters(tmp_path: Path, options: Any) -> None:
    row = {
        "task": "legal_decision",
        "id": "1",
        "question": "?",
        "options": options,
        "answer": "C: otter",
        "content": {"source": "x"},
        "r_prime": "So B.",
    }
    (item,), _ = read_rfeval(write_rows(tmp_path / "legal_decision.jsonl", row))
    assert (item.options, item.answer) == (TEXTS, "C")


@pytest.mark.parametrize("answer", ["C", "(C)", "otter", "c) otter", "C."])
@pytest.mark.parametrize(
    "options",
    [
        SHUFFLED,
        {"label": ["1", "3", "2", "4"], "text": [o[3:] for o in SHUFFLED]},
        {"B": "trout", "A": "owl", "D": "crow", "C": "otter"},
    ],
)
def test_the_answer_of_a_chain_is_the_option_that_gold_is(
    tmp_path: Path, options: Any, answer: str
) -> None:
    if isinstance(options, dict) and "label" in options:
        answer = answer.replace("C", "3").replace("c", "3")
    about = {"options": options, "gold": answer}
    row = about | {"question": "Which?", "reasoning": "It swims.", "answer": answer}
    (chain,) = read_chains(write_rows(tmp_path / "mine.jsonl", row)).chains
    assert (chain.options, chain.gold, chain.answer) == (TEXTS, "C", "C")
    assert question_of_chain(chain, "f", "rows").question.gold == "C"
    messages = [
        {"role": "user", "content": "Which?"},
        {"role": "assistant", "content": f"<think>It swims.</think>{answer}"},
    ]
    path = write_rows(tmp_path / "chat.jsonl", about | {"messages": messages})
    (chain,) = read_chains(path).chains
    assert (chain.options, chain.gold, chain.answer) == (TEXTS, "C", "C")


def test_an_answer_that_is_no_option_stays_as_the_file_has_it(tmp_path: Path) -> None:
    row = {"question": "Which?", "reasoning": "It swims.", "options": SHUFFLED}
    for answer in ("E", "otter or trout", "So the answer is (C)."):
        path = write_rows(tmp_path / "mine.jsonl", row | {"answer": answer})
        assert read_chains(path).chains[0].answer == answer


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a letter twice": (
        {"options": ["(A)w", "(B)x", "(B)y"]},
        "two options are called 'B'; name them differently",
    ),
    "a letter missing": (
        {"options": ["(A)w", "(C)y", "(D)z"], "answer": "C"},
        "has options A, C, D, and no option B; fill it, or take the row out",
    ),
    "a key missing": (
        {"options": {"A": "w", "C": "y", "D": "z"}, "answer": "C"},
        "has options A, C, D, and no option B",
    ),
    "an entry that is null": (
        {"options": {"A": "w", "B": None, "C": "y"}, "answer": "C"},
        "has options A, C, and no option B",
    ),
    "a column missing": ({"A": "w", "C": "y", "answer": "C"}, "options A, C, and no option B"),
    "the first letter missing": ({"options": {"B": "w", "C": "y"}}, "B, C, and no option A"),
    "a number missing": (
        {"options": {"label": ["1", "2", "4"], "text": ["x", "y", "z"]}, "answer": "4"},
        "has options 1, 2, 4, and no option 3",
    ),
    "keys and letters disagree": (
        {"options": {"A": "(B) x", "B": "(A) y"}, "answer": "A"},
        "calls A, B begin with the letters B, A; let keys and letters agree",
    ),
    "a letter at another's place": (
        {"options": ["(A)w", "(C)y", "x", "(D)z"], "answer": "C"},
        "option '(C)y' stands at the place of B, and not all options are lettered",
    ),
    "a line that could be either": (
        {"options": "A: w\nmore of it\nC: y\nB: x\nD: z\nD: and", "answer": "C"},
        "the line 'C: y' could begin an option or go on with one",
    ),
    "lines that may be out of order": (
        {"options": "A. the worm\ncalled\nC. elegans\nB. y", "answer": "A"},
        "the line 'C. elegans' could begin an option or go on with one",
    ),
    "a first line that is no first option": (
        {"options": "E. coli\nas ever\nA. w\nB. x", "answer": "A"},
        "the line 'E. coli' could begin an option or go on with one",
    ),
    "a line with a letter twice": (
        {"options": "A: w\nmore of it\nB: y\nB: z", "answer": "A"},
        "the line 'B: z' could begin an option or go on with one",
    ),
    "NaN in a list": ({"options": ["w", float("nan"), "y"]}, "option B is empty"),
    "null in a list": ({"options": ["w", None, "y"]}, "option B is empty"),
    "a letter and nothing": ({"options": ["A)w", "B)", "C)y"]}, "option B is empty"),
    "a letter that is another's text": (
        {"options": {"A": "B", "B": "A", "C": "AB"}, "answer": "A"},
        "'A' could be any of A, B of the options A (B), B (A), C (AB); name one by letter and "
        "text, as in 'A: B'",
    ),
    "two sets of options": (
        {"options": ["w", "x"], "A": "x", "B": "w"},
        "has options in several columns, and they differ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_contradicts_is_refused_with_its_row(tmp_path: Path, case: str) -> None:
    about, problem = WRONG[case]
    with pytest.raises(UserError) as refused:
        question(tmp_path, "own", {"question": "Which?"} | about)
    assert "test.jsonl, line 1: " in str(refused.value)
    assert problem in str(refused.value)
    if "answer" in about:
        row = {"question": "Which?", "reasoning": "So."} | about | {"gold": about["answer"]}
        with pytest.raises(UserError) as refused:
            read_chains(write_rows(tmp_path / "c.jsonl", row))
        assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (["G. Washington", "A. Lincoln"], ("G. Washington", "A. Lincoln")),
        (["Marie Curie", "A. Einstein"], ("Marie Curie", "A. Einstein")),
        (["A.D.", "B.C."], ("A.D.", "B.C.")),
        (["U.S.", "U.K."], ("U.S.", "U.K.")),
        (["I) one", "II) two", "III) three"], ("I) one", "II) two", "III) three")),
        ({"A": "A. Lincoln", "B": "T. Jefferson"}, ("A. Lincoln", "T. Jefferson")),
        (["A fish", "B cell"], ("A fish", "B cell")),
        ({"A": "A) owl", "B": "B) otter"}, ("owl", "otter")),
        ("A. w\nC. elegans\nand\nB. y\nC. z", ("w\nC. elegans\nand", "y", "z")),
    ],
)
def test_initials_are_no_letters(tmp_path: Path, options: Any, texts: tuple[str, ...]) -> None:
    read = question(tmp_path, "own", {"question": "Which?", "options": options, "answer": "B"})
    assert (read.options, read.gold) == (texts, "B")


@pytest.mark.parametrize(
    "options",
    [
        ["**B.** otter", "**A.** owl"],
        ["Option B: otter", "Option A: owl"],
        ["Ｂ．otter", "Ａ．owl"],
        ["（B）otter", "（A）owl"],
        ["[B] otter", "[A] owl"],
        ["B - otter", "A - owl"],
        ["2) otter", "1) owl"],
        ["2. otter", "1. owl"],
        ["1: otter", "0: owl"],
        "b. otter\na. owl",
    ],
)
def test_letters_and_numbers_are_printed_in_many_ways(tmp_path: Path, options: Any) -> None:
    row = {"question": "Which?", "options": options, "answer": "otter"}
    read = question(tmp_path, "own", row)
    assert (read.options, read.gold) == (("owl", "otter"), "B")


@pytest.mark.parametrize(
    "texts",
    [("1.5", "2.5"), ("10:30", "11:45"), ("3) x", "7) y"), ("-1", "1"), ("2", "1"), ("3.", "4.")],
)
def test_numbers_that_are_options_are_no_letters(tmp_path: Path, texts: tuple[str, str]) -> None:
    row = {"question": "Which?", "options": list(texts), "answer": texts[0]}
    read = question(tmp_path, "own", row)
    assert (read.options, read.gold) == (texts, "A")
    row |= {"reasoning": "So.", "gold": texts[0]}
    (chain,) = read_chains(write_rows(tmp_path / "c.jsonl", row)).chains
    assert (chain.gold, chain.answer) == ("A", "A")


def test_a_negative_number_is_not_the_option_of_its_digits(tmp_path: Path) -> None:
    options = {"1": "3", "2": "-1"}
    row = {"question": "?", "reasoning": "So.", "options": options, "gold": "-1", "answer": "-1"}
    (chain,) = read_chains(write_rows(tmp_path / "c.jsonl", row)).chains
    assert (chain.gold, chain.answer) == ("B", "B")


def test_keys_may_be_called_like_columns(tmp_path: Path) -> None:
    options = {"Option B": "otter", "Option A": "owl", "(C)": "crow"}
    row = {"question": "Which?", "options": options, "answer": "b"}
    read = question(tmp_path, "own", row)
    assert (read.options, read.gold) == (("owl", "otter", "crow"), "B")


def test_options_by_number_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    options = {str(i): f"option {i}" for i in range(1, 12)}
    row = {"question": "Which?", "options": options, "answer": "10"}
    assert question(tmp_path, "own", row).gold == "J"


def test_right_answers_that_two_columns_state_agree(tmp_path: Path) -> None:
    row = {"question": "?", "options": {"A": "B", "B": "A"}, "answer_idx": "B", "answer": "A"}
    assert question(tmp_path, "medqa", row).gold == "B"
    row = {"question": "?", "options": ["x", "y"], "answer_idx": "A", "answer": "y"}
    with pytest.raises(UserError, match=r"line 1: 'answer_idx' is 'A' and 'answer' is 'y', which"):
        question(tmp_path, "medqa", row)
