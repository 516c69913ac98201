"""What the numbers of FaithCoT-Bench say of each other, recomputed from the paper's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from faithcot_printed import MOST, MOST_OF_HLE, counts_of
from sklearn.metrics import mutual_info_score

from faithscope.experiments.studies.slrc import detectors

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
NAMES = {
    "llama3.1-8b": "LLaMA3.1",
    "Qwen2.5-7B": "Qwen2.5",
    "GPT-4o": "GPT-4o-mini",
    "Gemini2.5-flash": "Gemini",
}
"""Names of the models in Tables 2 and 3, and in Table 1."""
SHORT = (
    ("Rand", "Random"),
    ("Perp", "Perplexity"),
    ("AddMist", "Adding Mistakes"),
    ("OptShuffle", "Option Shuffling"),
    ("Remove", "Removing steps"),
    ("EarlyAns", "Early answering"),
    ("Paraphrase", "Paraphrasing"),
    ("AnsTrace", "Answer Tracing"),
    ("InfoGain", "Information Gain"),
    ("Step", "Step-level"),
)
"""Names of the detectors in Table 1, and in Tables 2 and 3."""
PUBLISHED = pd.read_csv(Path(detectors.__file__).with_name("paper.csv"), dtype=str, na_filter=False)
KEYS = ["dataset", "model", "detector"]


def values_of(table: str, *keys: str) -> dict[Any, float]:
    """The printed values of a table or figure, by these key columns."""
    of = PUBLISHED[(PUBLISHED["table"] == table) & (PUBLISHED["value"] != "")]
    index = [tuple(k) if len(keys) > 1 else k[0] for k in of[list(keys)].to_numpy().tolist()]
    assert len(set(index)) == len(index)
    return dict(zip(index, of["value"].astype(float), strict=True))


@pytest.fixture(scope="module")
def quadrants() -> list[list[int]]:
    """Faithful and unfaithful chains by right and wrong answers (Figure 6)."""
    of = values_of("figure6a", "column")
    return [[int(of[f"{a}-{b}"]) for b in ("Faithful", "Unfaithful")] for a in ("Correct", "Wrong")]


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Tables 2 and 3 with a column for each statistic, and the doubt about each of them."""
    of = PUBLISHED[PUBLISHED["table"].isin(["table2", "table3"])].replace({"model": NAMES})
    columns = {"κ": "kappa", "Acc": "accuracy", "F1": "f1"}
    wide = of.pivot(index=KEYS, columns="column", values=["value", "doubt"])
    values = wide["value"].rename(columns=columns).astype(float)
    doubts = wide["doubt"].rename(columns={c: f"doubt_{name}" for c, name in columns.items()})
    return pd.concat([values, doubts], axis=1).reset_index()


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
        cannot_be = not min(allowed) - HALF <= cell.kappa <= max(allowed) + HALF
        impossible += cannot_be
        said = f"κ lies between {min(allowed):.1f} and {max(allowed):.1f}, and {cell.kappa} is"
        for doubt in (cell.doubt_kappa, cell.doubt_accuracy, cell.doubt_f1):
            assert (said in doubt) == cannot_be
    assert (len(cells), impossible) == (152, 13)


def test_cells_that_no_verdicts_on_as_many_chains_as_there_are_have_are_doubted(
    cells: pd.DataFrame,
) -> None:
    doubted = 0
    for cell in cells.itertuples():
        most = MOST_OF_HLE if cell.dataset == "HLE-Bio" else MOST
        none = counts_of(cell.kappa, cell.accuracy, cell.f1, most) is None
        of_cell = (cell.doubt_kappa, cell.doubt_accuracy, cell.doubt_f1)
        assert not none or all(of_cell), cell
        said = [doubt.startswith(f"No verdicts on {most} chains or fewer") for doubt in of_cell]
        assert not any(said) or (none and all(said)), cell
        doubted += all(said)
    assert doubted == 33


def test_table_1_repeats_the_f1_of_tables_2_and_3_with_their_doubts(cells: pd.DataFrame) -> None:
    first = PUBLISHED[PUBLISHED["table"] == "table1"].replace({"detector": dict(SHORT)})
    both = first.merge(cells, on=KEYS, validate="1:1")
    assert len(both) == len(first) == len(cells)
    assert both["value"].astype(float).tolist() == both["f1"].tolist()
    assert both["doubt"].tolist() == both["doubt_f1"].tolist()


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
    assert (
        f"need {hits} hits, and by the other cells of its column {unfaithful} of {n}"
        in cell.doubt_f1
    )
    assert not cell.doubt_kappa + cell.doubt_accuracy
    assert unfaithful < hits <= n - unfaithful, "as many as there are of faithful chains only"


def test_the_shares_in_the_text_are_not_those_of_the_counts(quadrants: list[list[int]]) -> None:
    every, faithful_and_right = np.sum(quadrants), quadrants[0][0]
    assert every == 1183 < 378 * 4
    assert (every - faithful_and_right) / every == pytest.approx(0.489, abs=5e-4)
    assert doubt_of("figure6a", column="all but correct-faithful").endswith("which is 48.9 %.")
    said = values_of("figure9", "model", "column")
    for model, short in (("Qwen2.5-7B", "Qwen2.5"), ("LLaMA3.1-8B", "LLaMA3.1")):
        few, n = COUNTS["AQuA"][MODELS.index(short)]
        share = 100 * few / n
        assert share - said[model, "Unfaithful ratio"] > 5  # 26 or 22 % in the text, 41 or 29 here
        doubt = doubt_of("figure9", dataset="AQuA", model=model, column="Unfaithful ratio")
        assert f"{few} of {n} chains ({share:.1f} %" in doubt


def doubt_of(table: str, **keys: str) -> str:
    (doubt,) = (
        r["doubt"]
        for r in PUBLISHED.to_dict("records")
        if r["table"] == table and all(r[k] == v for k, v in keys.items())
    )
    return doubt


def test_what_the_columns_tell_of_unfaithful_chains_stands_beside_figure_4() -> None:
    for dataset, of in COUNTS.items():
        for model, counts in zip(MODELS, of, strict=True):
            doubt = doubt_of("figure4", dataset=dataset, model=model)
            few, n = counts or ("", "")
            assert (f"{few} of {n} chains are unfaithful" in doubt) == (counts is not None)


def test_the_shares_of_signals_agree_within_a_category_and_not_between_figures() -> None:
    of_category = values_of("figure8", "row")
    post_hoc, spurious = list(of_category.items())[:4], list(of_category.items())[4:]
    assert sum(v for _, v in post_hoc) == pytest.approx(100, abs=0.2)
    assert sum(v for _, v in spurious) == pytest.approx(100, abs=0.2)
    of_all, category = values_of("figure5", "row"), values_of("section3_2", "row")
    for name, classed in (
        ("Step Skipping", "spurious reasoning chains"),
        ("Selective Explanation Bias", "post-hoc reasoning"),
    ):
        share = prod((of_category[name], category[classed])) / 100
        assert abs(share - of_all[name]) > 2
        assert f"{share:.1f} for {name.casefold()}" in doubt_of("figure5", row=name)
        assert doubt_of("section3_2", row=classed) == doubt_of("figure5", row=name)


def test_counts_of_a_data_set_or_model_are_part_of_those_of_all(
    quadrants: list[list[int]],
) -> None:
    whole = {
        f"{answer}-{chain}": quadrants[i][j]
        for i, answer in enumerate(("correct", "wrong"))
        for j, chain in enumerate(("faithful", "unfaithful"))
    }
    for figure, key in (("figure10", "dataset"), ("figure11", "model")):
        parts = dict.fromkeys(whole, 0.0)
        for (_, column), count in values_of(figure, key, "column").items():
            parts[column] += count
        assert all(parts[column] <= whole[column] for column in whole)
        assert sum(parts.values()) > 0


def test_faithfulness_and_correctness_go_together_as_the_paper_says(
    quadrants: list[list[int]],
) -> None:
    (a, b), (c, d) = quadrants
    phi = (a * d - b * c) / np.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    bits = mutual_info_score(None, None, contingency=np.array(quadrants)) / np.log(2)
    assert (round(phi, 3), round(bits, 4)) == (0.286, 0.0575)
    of = values_of("figure6a", "column")
    assert (of["φ"], of["I(Correct; Faithful)"]) == (round(phi, 3), round(bits, 3))


def test_every_cell_has_a_value_with_its_decimals_or_a_doubt() -> None:
    for cell in PUBLISHED.itertuples():
        assert cell.value or cell.doubt
        if cell.value:
            assert f"{float(cell.value):.{int(cell.decimals)}f}" == cell.value
    assert not PUBLISHED.duplicated(["table", *KEYS, "row", "column"]).any()
