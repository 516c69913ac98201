"""What the numbers of FaithCoT-Bench say of each other, recomputed from the paper's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score

HALF = 0.05
"""Half of the last digit of a cell in the paper's tables, in percent."""
COUNTS = {
    "Logic-QA": [(33, 87), (32, 96), (30, 97), (23, 98)],
    "Truthful-QA": [(39, 90), (34, 97), (20, 98), (17, 98)],
    "AQuA": [(22, 76), (36, 87), None, (9, 67)],
    "HLE-Bio": [(20, 28), (15, 35), (11, 35), None],
}
"""Unfaithful chains and all of LLaMA3.1, Qwen2.5, GPT-4o-mini and Gemini. None: too few cells of
the column hang together (AQuA with GPT-4o-mini fits 5 of 72, 73 or 74 equally badly)."""
MODELS = ["LLaMA3.1", "Qwen2.5", "GPT-4o-mini", "Gemini"]
QUADRANTS = [[605, 185], [189, 204]]
"""Faithful and unfaithful chains by right and wrong answers (Figure 6)."""


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name("paper_cells.csv"), comment="#")


def kappas(accuracy: float, f1: float) -> Iterator[float]:
    """The ends of what κ can be beside an accuracy and an F1, in percent.

    Both fix the true positives and the sum of what is flagged and what is unfaithful; how that sum
    is divided decides κ, which is lowest where it is divided evenly.
    """
    for a, f in product((accuracy - HALF, accuracy, accuracy + HALF), (f1 - HALF, f1, f1 + HALF)):
        a, f = a / 100, f / 100
        hit = f * (1 - a) / (2 * (1 - f))
        for missed in (0, (1 - a) / 2):
            flagged, unfaithful = hit + 1 - a - missed, hit + missed
            chance = 1 - flagged - unfaithful + 2 * flagged * unfaithful
            yield 100 * (a - chance) / (1 - chance)


def outcomes(cell: Any, n: int) -> tuple[int, int]:
    """The hits and the wrong verdicts of n that its accuracy and its F1 come nearest to."""
    wrong = round(n * (1 - cell.accuracy / 100))
    return round(cell.f1 * wrong / (2 * (100 - cell.f1))), wrong


def fits(cell: Any, unfaithful: int, n: int) -> bool:
    """Whether a cell is of some verdicts on n chains: its three numbers, rounded either way."""
    hit, wrong = outcomes(cell, n)
    missed = unfaithful - hit
    false = wrong - missed
    if min(missed, false, n - unfaithful - false) < 0:
        return False
    accuracy, flagged = 1 - wrong / n, hit + false
    chance = (flagged * unfaithful + (n - flagged) * (n - unfaithful)) / n**2
    found = (accuracy - chance) / (1 - chance), accuracy, 2 * hit / (2 * hit + wrong)
    printed = cell.kappa, cell.accuracy, cell.f1
    return all(abs(100 * f - p) < 2 * HALF for f, p in zip(found, printed, strict=True))


def test_thirteen_cells_hold_a_kappa_that_their_accuracy_and_f1_do_not_allow(
    cells: pd.DataFrame,
) -> None:
    impossible = 0
    for cell in cells.itertuples():
        allowed = list(kappas(cell.accuracy, cell.f1))
        impossible += not min(allowed) - HALF <= cell.kappa <= max(allowed) + HALF
    assert (len(cells), impossible) == (152, 13)


@pytest.mark.parametrize("dataset", COUNTS)
def test_the_cells_of_a_column_tell_how_many_chains_are_unfaithful(
    cells: pd.DataFrame, dataset: str
) -> None:
    for model, counts in zip(MODELS, COUNTS[dataset], strict=True):
        if counts is None:
            continue
        column = list(cells[(cells.dataset == dataset) & (cells.model == model)].itertuples())
        fitting = {
            (few, n): sum(fits(cell, few, n) for cell in column)
            for n in range(20, 101)
            for few in range(1, n)
        }
        best = max(fitting.values())
        # twice as many of both fit as well
        assert counts == min((c for c in fitting if fitting[c] == best), key=lambda c: c[1])


@pytest.mark.parametrize(
    ("dataset", "model", "f1"), [("Logic-QA", "LLaMA3.1", 77.7), ("Truthful-QA", "Qwen2.5", 76.1)]
)
def test_two_headline_f1_are_of_the_faithful_class(
    cells: pd.DataFrame, dataset: str, model: str, f1: float
) -> None:
    of = (cells.dataset == dataset) & (cells.model == model) & (cells.detector == "Faithful")
    (cell,) = cells[of].itertuples()
    unfaithful, n = COUNTS[dataset][MODELS.index(model)]
    hits, _ = outcomes(cell, n)
    assert cell.f1 == f1
    assert unfaithful < hits <= n - unfaithful, "as many as there are of faithful chains only"


def test_the_shares_in_the_text_are_not_those_of_the_counts() -> None:
    all_, unfaithful_or_wrong = np.sum(QUADRANTS), np.sum(QUADRANTS) - QUADRANTS[0][0]
    assert all_ == 1183 < 378 * 4
    assert unfaithful_or_wrong / all_ == pytest.approx(0.489, abs=5e-4)  # "nearly 40 %"
    few, n = COUNTS["AQuA"][MODELS.index("Qwen2.5")]
    assert few / n == pytest.approx(0.41, abs=5e-3)  # 26 % in the text


def test_faithfulness_and_correctness_go_together_as_the_paper_says() -> None:
    (a, b), (c, d) = QUADRANTS
    phi = (a * d - b * c) / np.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    bits = mutual_info_score(None, None, contingency=np.array(QUADRANTS)) / np.log(2)
    assert (round(phi, 3), round(bits, 4)) == (0.286, 0.0575)
