"""Equations in a text, and one error put into one of them."""

from __future__ import annotations

import time

import pytest

from faithscope.interventions import (
    NotCorruptible,
    Question,
    Trace,
    calculations,
    from_ids,
    miscalculate,
    miscalculation,
)
from faithscope.interventions.calculation import is_wrong_alone


def found(text: str) -> list[tuple[str, bool, list[str]]]:
    return [
        (text[c.start : c.end], c.holds, [text[a:b] for a, b, _ in c.targets])
        for c in calculations(text)
    ]


@pytest.mark.parametrize(
    ("text", "equation", "targets"),
    [
        ("So 3 + 4 = 7.", "3 + 4 = 7", ["4", "7"]),
        ("1. 5 - 3 = 2", "5 - 3 = 2", ["3", "2"]),
        ("Step 2: 12 * 3 = 36 eggs", "12 * 3 = 36", ["3", "36"]),
        (r"\( 3 \times 4 = 12 \)", r"( 3 \times 4 = 12", ["4", "12"]),
        ("$5 * $2 = $<<5*2=10>>10.", "5*2=10", ["2", "10"]),
        ("16 eggs - 3 eggs - 4 eggs = 9", "16 eggs - 3 eggs - 4 eggs = 9", ["3", "4", "9"]),
        ("(3 + 4) * 2 = 14", "(3 + 4) * 2 = 14", ["4", "2", "14"]),
        ("2 + 3 * 4 = 14", "2 + 3 * 4 = 14", ["3", "4", "14"]),
        ("10 / 3 = 3.33", "10 / 3 = 3.33", ["3", "3.33"]),
        ("20% * 50 = 10", "20% * 50 = 10", ["50", "10"]),
        ("5 x 3 = 15", "5 x 3 = 15", ["3", "15"]),
        ("1,200 + 300 = 1,500", "1,200 + 300 = 1,500", ["300", "1,500"]),
        ("8 - 11 = -3", "8 - 11 = -3", ["11", "3"]),
        ("3 + 4 makes 7", "3 + 4 makes 7", ["4", "7"]),
    ],
)
def test_an_equation_that_holds(text: str, equation: str, targets: list[str]) -> None:
    assert found(text) == [(equation, True, targets)]


@pytest.mark.parametrize(
    "text",
    [
        "Step 1 - 3 + 4 = 7",
        "from 1990-1995 is 5 years, or so",
        "in 2020-2021 is 12 months long",
        "3 + 4 = 8",
        "The answer is 12.",
        "1. First. 2. Second = 2",
        "9-11 is 3",
        "See steps 1 and 2",
        "10 / 0 = 3",
    ],
)
def test_no_error_is_put_where_no_calculation_holds(text: str) -> None:
    assert miscalculation(text, 0) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_error_makes_the_equation_false_and_touches_nothing_else(seed: int) -> None:
    text = "In 2019, Step 3: he buys 4 boxes (2 * 6 = 12). So 12 + 30 = 42."
    change = miscalculation(text, seed)
    assert change is not None
    changed = text[: change.start] + change.new + text[change.end :]
    assert [c.holds for c in calculations(changed)].count(False) == 1
    differ = [i for i, (a, b) in enumerate(zip(text, changed, strict=True)) if a != b]
    assert differ == [change.start]
    targets = {a: rule for c in calculations(text) for a, _, rule in c.targets}
    assert targets[change.start] == change.rule


def trace_of(coder, text: str) -> Trace:
    ids = coder.encode(text)
    return from_ids(Question("q", "made", "?", "number"), (1, 2), ids, coder.pieces(ids))


def test_every_other_token_keeps_its_id(coder) -> None:
    text = "He has 12 eggs in 2020. So 3 + 4 = 7. Then 7 - 2 = 5 are left for him."
    trace = trace_of(coder, text)
    edited = miscalculate(trace, 0, coder.encode, coder.pieces)
    (edit,) = edited.edits
    assert edit.kind == "corrupt"
    assert edit.detail["rule"] in ("operand", "result")
    at = edit.detail["char"]
    assert edited.reasoning_text == text[:at] + edit.detail["new"] + text[at + 1 :]
    assert len(edited.reasoning_ids) == len(trace.reasoning_ids)
    changed = [
        i
        for i, (a, b) in enumerate(zip(trace.reasoning_ids, edited.reasoning_ids, strict=True))
        if a != b
    ]
    assert len(changed) == 1


def test_a_short_stretch_may_hold_the_error(coder) -> None:
    trace = trace_of(coder, "Let me add these up for you now.\n3 + 4 = 7\nThat was a sum of two.")
    assert not all(s.counted for s in trace.steps)
    assert "3 + 4 = 7" not in miscalculate(trace, 0, coder.encode, coder.pieces).reasoning_text


def test_a_chain_without_a_calculation_is_refused(coder) -> None:
    with pytest.raises(NotCorruptible, match="no step has a calculation that holds"):
        miscalculate(
            trace_of(coder, "The acting was superb in 2019."), 0, coder.encode, coder.pieces
        )


@pytest.mark.parametrize(
    "text", ["1 + " * 3000, "(" * 5000, "1 a b + " * 2000, "1 - 1 = 0. " * 500]
)
def test_degenerate_texts_cost_little(text: str) -> None:
    started = time.perf_counter()
    miscalculation(text, 0)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "3 + 84 = 252",
        r"$\binom{3}{1} = 8$ ways",
        r"so $\frac{12}{\frac{2}{3}} = 68.$",
        "$f(2) = 2^2 - 1 = 0$",
        r"$\frac{17}{40} \times 160 = 17 \times 4 = 48$",
        r"$\sqrt{9} + 1 = 5$",
        "the sum is $-1 - 7 - 1 - 1 = -4$",
    ],
)
def test_what_is_wrong_whatever_stands_around_it(text: str) -> None:
    assert is_wrong_alone(text)


@pytest.mark.parametrize(
    "text",
    [
        "3 * 84 = 252",
        "a + 3 = 7",
        "x^2 - 2 = 0",
        "7 = 3 + b",
        "2(3) = 6 and 3(1 + 1) = 6",
        "where x = 2 and y = 1",
        r"$7\cdot2^3\cdot3 = 168 = 2^3 \cdot 21$",
        "$-22 + 2 = -20$",
        "10 = 3 mod 7",
    ],
)
def test_what_is_not_wrong_by_itself(text: str) -> None:
    assert not is_wrong_alone(text)
