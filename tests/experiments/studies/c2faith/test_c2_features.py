"""Edit types and structural features of acausal steps."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.experiments.studies.c2faith.benchmark.features import (
    COLUMNS,
    EDIT_TYPES,
    edit_similarity,
    edit_type,
    features,
    math_symbol_density,
)
from faithscope.experiments.studies.c2faith.benchmark.items import Chain, causal_item

LONG = "Now that this is known I can go on and see that it is"


@pytest.mark.parametrize(
    ("original", "replacement", "kind"),
    [
        (f"{LONG} 120.", f"{LONG} 124.", "numeric_swap"),
        (f"{LONG} 1.5.", f"{LONG} 1.7.", "numeric_swap"),
        (f"{LONG} Six sided.", f"{LONG} Ten sided.", "numeric_swap"),
        (f"{LONG} $x + 12$.", f"{LONG} $x - 12$.", "operator_swap"),
        (f"{LONG} $x + 12$.", f"{LONG} $x - 13$.", "operator_swap"),  # not numbers only
        (rf"{LONG} $x \leq 12$.", rf"{LONG} $x \geq 12$.", "operator_swap"),
        (
            f"{LONG} wise to add $19x$ here.",
            f"{LONG} wise to subtract $19x$ here.",
            "operator_swap",
        ),
        (f"{LONG} positive.", f"{LONG} positivf.", "other_swap"),
        ("abcdefghij" * 2, "abcdefghij" + "klmnopqrst", "moderate_rewrite"),
        ("5! = 120", "4! = 24", "moderate_rewrite"),  # the paper's example, alone, is no swap
        ("abcdefgh", "stuvwxyz", "major_rewrite"),
        ("", "anything", "major_rewrite"),
    ],
)
def test_edit_types(original: str, replacement: str, kind: str) -> None:
    assert edit_type(original, replacement) == kind


@pytest.mark.parametrize(
    ("same", "kind"),
    # ten letters of which so many are kept: the ratio is same / 10, its bounds included
    [(9, "minor_rewrite"), (8, "minor_rewrite"), (7, "moderate_rewrite"), (5, "moderate_rewrite")],
)
def test_the_bounds_of_edit_types(same: int, kind: str) -> None:
    original, replacement = "abcdefghij", "abcdefghij"[:same] + "QRSTUVWXYZ"[same:]
    assert edit_similarity(original, replacement) == pytest.approx(same / 10)
    assert edit_type(original, replacement) == kind


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_pythons_and_every_edit_has_a_type(a: str, b: str) -> None:
    assert edit_similarity(a, b) == SequenceMatcher(None, a, b).ratio()
    assert edit_type(a, b) in EDIT_TYPES


def test_math_symbol_density_by_hand() -> None:
    assert math_symbol_density("x = 12") == 3 / 6
    assert math_symbol_density(r"$\frac{1}{2}$") == 9 / 13
    assert math_symbol_density("So it is, then.") == 0
    assert math_symbol_density("") == 0


def test_the_frame() -> None:
    chain = Chain("c", "P", tuple(f"{LONG} {i}0." for i in range(1, 6)))
    frame = features([causal_item(chain, 2, f"{LONG} 90.", "rule:numeric")])
    assert list(frame.columns) == list(COLUMNS)
    (row,) = frame.to_dict("records")
    assert (row["item"], row["chain"], row["method"]) == ("c.causal", "c", "rule:numeric")
    assert (row["target"], row["n_steps"], row["relative_position"]) == (2, 5, 0.5)
    assert (row["n_words"], row["n_chars"]) == (15, len(LONG) + 4)
    assert row["edit_type"] == "numeric_swap"
    assert list(features([]).columns) == list(COLUMNS)


def test_long_steps_are_compared_where_they_differ() -> None:
    a, b = "a" * 300_000, "b" * 1000
    assert edit_similarity(f"{a}1{b}", f"{a}2{b}") == pytest.approx(1, abs=1e-5)
    assert edit_type(f"{a} adds 1{b}", f"{a} adds 2{b}") == "numeric_swap"
    assert edit_similarity("x" * 5000, "x" * 5000) == 1
    assert edit_type(a, "c" * 300_000) == "too_long"
    assert edit_similarity("", "") == 1
