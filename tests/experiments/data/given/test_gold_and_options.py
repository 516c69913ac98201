"""Right answers and options of given chains, in the forms that files have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.question_of_chain import QuestionOfChain, question_of_chain
from faithscope.experiments.data.given.reading import Chains, read_chains
from faithscope.experiments.data.given.rules import GoldIs, ReadingRules
from faithscope.interp.errors import UserError

STEM = "Which of these is a mammal?"
LETTERED = f"{STEM}\nA. trout\nB. otter\nC. carp"
OPTIONS = ("trout", "otter", "carp")
REASONING = {"reasoning": "Mammals have hair.\nAn otter has fur."}


def read(folder: Path, row: dict[str, Any], gold_is: GoldIs | None = None) -> Chains:
    rules = ReadingRules(gold_is=gold_is)
    return read_chains(write_rows(folder / "mine.jsonl", REASONING | row), rules=rules)


def asked(folder: Path, row: dict[str, Any], gold_is: GoldIs | None = None) -> QuestionOfChain:
    return question_of_chain(read(folder, row, gold_is).chains[0], "mine.jsonl", "rows")


@pytest.mark.parametrize(
    "question",
    [
        LETTERED,
        f"{STEM}\n\n(A) trout\n(B) otter\n(C) carp\n\nAnswer with a letter.",
        f"{STEM}\nA) trout B) otter C) carp",
        f"{STEM} (A) trout (B) otter (C) carp",
    ],
)
@pytest.mark.parametrize("row", [{"gold": "B"}, {"answer": "B"}, {"answer": "otter"}])
def test_options_in_the_question_are_read_where_an_answer_is_one(
    tmp_path: Path, question: str, row: dict[str, Any]
) -> None:
    chains = read(tmp_path, {"question": question, **row})
    (chain,) = chains.chains
    assert (chain.kind, chain.options) == ("choice", OPTIONS)
    assert chain.question.startswith(STEM)
    assert "trout" not in chain.question
    assert (chain.gold or chain.answer) == "B"
    assert chains.notes == ("options are read from the text of the question: 1 of 1 chains",)


def test_letters_in_a_question_without_such_an_answer_are_text(tmp_path: Path) -> None:
    question = "Ann has 3 boxes.\nA. is what she calls them.\nB. is Bob. How many?"
    of = asked(tmp_path, {"question": question, "gold": 3})
    assert (of.kind, of.question.options, of.question.text) == ("number", None, question)


@pytest.mark.parametrize(
    ("gold", "how", "right"),
    [
        (1, "index0", "B"),
        (1, "index1", "A"),
        ("2.0", "index1", "B"),
        ("B", "letter", "B"),
        ("otter", "text", "B"),
        ("C", "index0", "C"),
    ],
)
def test_gold_is_an_index_only_if_said(tmp_path: Path, gold: Any, how: GoldIs, right: str) -> None:
    for row in ({"question": LETTERED, "answer": "B"}, {"question": STEM, "options": [*OPTIONS]}):
        assert asked(tmp_path, {**row, "gold": gold}, how).question.gold == right
        if how.startswith("index") and gold != "C":
            with pytest.raises(UserError, match=r"line 1: 'gold' is .*traces\.gold_is: index0"):
                read(tmp_path, {**row, "gold": gold})
    with pytest.raises(UserError, match="which is no"):
        read(tmp_path, {"question": STEM, "options": [*OPTIONS], "gold": 7}, how)
    with pytest.raises(UserError, match="the row has none"):
        read(tmp_path, {"question": STEM, "gold": gold}, how)


def test_an_answer_is_an_index_like_the_right_one(tmp_path: Path) -> None:
    row = {"question": STEM, "options": [*OPTIONS], "gold": 1, "answer": 2}
    assert asked(tmp_path, row, "index0").answer == "C"


@pytest.mark.parametrize("answer", ["B", "(b)", "otter", "**C**"])
def test_an_answer_that_is_no_number_contradicts_the_kind(tmp_path: Path, answer: str) -> None:
    row = {"question": "Which is a mammal: trout, otter, carp?", "gold": 1, "answer": answer}
    for more in ({}, {"kind": "number"}):
        with pytest.raises(UserError, match=r"line 1: the answer .*traces\.gold_is.*traces\.kind"):
            asked(tmp_path, row | more)
    for said in ("I cannot tell.", "none", "12"):
        assert asked(tmp_path, row | {"answer": said}).kind == "number"


def test_a_letter_without_options_says_what_is_lacking(tmp_path: Path) -> None:
    chains = read(tmp_path, {"question": STEM, "gold": "B"})
    assert "the file has no options" in chains.notes[0]


@pytest.mark.parametrize(
    "cell",
    [
        "['saw', 'sea']",
        "['saw' 'sea']",
        "['saw'\n 'sea']",
        "[\"saw\", 'sea']",
        "{'text': array(['saw', 'sea'], dtype=object), 'label': array(['A', 'B'], dtype=object)}",
        "saw; sea",
        "saw|sea",
        "A) saw B) sea",
        ["saw", "sea", ""],
        ["saw", "sea", None, None],
    ],
)
def test_cells_of_options_as_tables_have_them(tmp_path: Path, cell: Any) -> None:
    (chain,) = read(tmp_path, {"question": "Which cuts?", "options": cell, "gold": "saw"}).chains
    assert (chain.options, chain.gold) == (("saw", "sea"), "A")


def test_rows_that_end_early_lack_options_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "question,reasoning,gold,A,B,C\nWhich?,It cuts.,A,saw,sea\nWhat?,X.,B,a,b,c,,\n"
    )
    assert [c.options for c in read_chains(path).chains] == [("saw", "sea"), ("a", "b", "c")]
    path.write_text("question,reasoning,gold\nWhich?,It cuts.\n")
    with pytest.raises(UserError, match="has 2 cells, the header has 3"):
        read_chains(path)


def test_steps_and_labels_as_pandas_writes_them(tmp_path: Path) -> None:
    row = {
        "question": "Q?",
        "reasoning": None,
        "steps": "['a b', \"c's\"]",
        "labels": "{'x': True}",
    }
    (chain,) = read(tmp_path, row).chains
    assert (chain.reasoning, chain.labels) == ("a b\n\nc's", {"x": True})
