"""What the paper's own tables say of how they were counted."""

from __future__ import annotations

import pandas as pd
import pytest
from rf_paper import COUNTS, TABLE_2, TABLE_13, TABLE_17, TABLE_21, TABLE_25

from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics.faithfulness import coverage_quartiles


def published() -> pd.DataFrame:
    rows = []
    for model, text in TABLE_2.items():
        numbers = list(map(float, text.split()))
        for i, task in enumerate(TASKS):
            if (model, task) != ("Qwen3-8B", "paper_review"):
                rf, coverage = numbers[2 * i : 2 * i + 2]
                row = {"reader": "o3", "model": model, "task": task, "rf": rf / 100}
                n = round(coverage * COUNTS[i])
                rows.append(row | {"contrast_coverage": coverage, "n_included": n})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("model", TABLE_13)
def test_the_papers_coverage_is_of_pairs_with_a_valid_evaluation(model: str) -> None:
    """The released code counts a pair in coverage if one of its outputs was evaluated, and in
    contrast if both were: Table 2's coverage times such a number of pairs is Table 13's included.

    Of all attempted pairs, as appendix D.3 has it, the coverage of five models would be another.
    """
    total, kept, left_out, *unknown, none = TABLE_13[model]
    assert kept + left_out + sum(unknown) + none == total
    coverage = float(TABLE_2[model].split()[-1])
    attempted = total - left_out
    low, high = kept / attempted, kept / (attempted - sum(unknown))
    assert low - 0.005 <= coverage <= high + 0.005
    off = {"Qwen3-8B", "R1-Qwen-7B", "R1-Qwen-32B", "gpt-oss-20b", "gpt-oss-120b"}
    assert (round(low, 2) != coverage) == (model in off)


@pytest.mark.parametrize("model", TABLE_25)
def test_the_papers_other_is_both_chains_broken(model: str) -> None:
    """Table 25's χ(o) is what Table 17's χ(o)=0 and Other together leave of the included pairs:
    all of Other has χ(o) = 0, and what fails χ(o′) and κ stands in a named column."""
    baseline, _, _, other = map(float, TABLE_17[model].split())
    unfaithful = 1 - float(TABLE_2[model].split()[-2]) / 100
    rounded = 0.001 * unfaithful + 0.00005
    broken = 1 - TABLE_25[model]
    assert (baseline + other) * unfaithful == pytest.approx(broken, abs=rounded)
    # without Other it is not, by more than rounding can do
    assert abs(baseline * unfaithful - broken) > rounded


def test_the_papers_failure_shares_pool_alike_by_model_and_by_task() -> None:
    """Tables 17 and 21 are of one and the same pairs."""
    by_model, by_task = [0.0] * 4, [0.0] * 4
    unfaithful = {m: TABLE_13[m][1] * (1 - float(t.split()[-2]) / 100) for m, t in TABLE_2.items()}
    for model, text in TABLE_17.items():
        shares = list(map(float, text.split()))
        assert sum(shares) == pytest.approx(1, abs=0.002)
        of = unfaithful[model] / sum(unfaithful.values())
        by_model = [a + of * b for a, b in zip(by_model, shares, strict=True)]
    weights = dict.fromkeys(TASKS, 0.0)
    for row in published().to_dict("records"):
        weights[row["task"]] += row["n_included"] * (1 - row["rf"])
    for task, text in zip(TASKS, TABLE_21, strict=True):
        shares = list(map(float, text.split()))
        assert sum(shares) == pytest.approx(1, abs=0.002)
        of = weights[task] / sum(weights.values())
        by_task = [a + of * b for a, b in zip(by_task, shares, strict=True)]
    assert by_model == pytest.approx(by_task, abs=0.008)


def test_overall_is_weighted_by_pairs_as_table_2_is() -> None:
    """Each cell's RF with as many pairs as coverage and count give: Overall comes out within the
    rounding of the coverages and what was cut off. Of Qwen3-8B only with its paper review in it,
    which the text says is left out of aggregates, and which Table 13 leaves out."""
    for model, text in TABLE_2.items():
        numbers = list(map(float, text.split()))
        cells = list(zip(numbers[0:14:2], numbers[1:14:2], COUNTS, strict=True))
        weights = [coverage * n for _, coverage, n in cells]
        pooled = sum(rf * w for (rf, _, _), w in zip(cells, weights, strict=True)) / sum(weights)
        assert pooled == pytest.approx(numbers[14], abs=1.0), model


def test_quartiles_of_coverage_give_what_the_text_says_of_qwen3_8b() -> None:
    """Appendix E: "a monotonic increase with coverage (Q1: 0.371, Q4: 0.660)"."""
    table = coverage_quartiles(published())
    mine = table.loc[(table["by"] == "model") & (table["group"] == "Qwen3-8B")]
    by_quartile = mine.set_index("quartile")["rf"]
    assert by_quartile[1] == pytest.approx(0.371, abs=0.003)
    assert by_quartile[4] == pytest.approx(0.660, abs=0.003)
    assert by_quartile.sort_index().is_monotonic_increasing


def test_the_papers_causality_is_not_of_effective_answers() -> None:
    """gpt-oss-20b, Table 20: in .491 of the pairs with κ = 1 the reasoning changed alone. Were a
    broken chain another answer, such a pair would be faithful, or have both chains broken."""
    _, _, no_influence, other = map(float, TABLE_17["gpt-oss-20b"].split())
    rf = float(TABLE_2["gpt-oss-20b"].split()[-2]) / 100
    influenced = rf + (1 - rf) * (1 - no_influence)
    assert (rf + (1 - rf) * other) / influenced < 0.42 < 0.491
    assert other / (1 - no_influence) < 0.03  # of the unfaithful alone
