"""The packaged numbers of the paper's tables (arXiv 2602.17053): that they agree with each other
where one determines another, and what they say of how they were counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rf_published import (
    CELLS,
    COVERAGE,
    INCLUDED,
    ITEMS,
    RF,
    TASK_NAMES,
    UNFAITHFUL,
    by_name,
    cells,
    grid,
)

from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.studies.rfeval.tables.faithfulness import COVERAGE_QUARTILES

VIOLATIONS = ["χ(o)=0", "χ(o′)=0", "κ=0", "Other"]
LINKS = ["r→e", "e→a", "r→a"]
SHARES = {
    **{table: VIOLATIONS for table in (17, 21)},
    **{table: LINKS for table in (18, 22)},
    **{table: ["r′→r", *LINKS] for table in (19, 23)},
    **{table: ["Both", "Reasoning", "Answer"] for table in (20, 24)},
}
"""Table of shares of one whole -> its columns."""


def published() -> pd.DataFrame:
    """The cells of Table 2 as rows of our table `rfeval`, with as many pairs as coverage gives."""
    rows = [
        {"reader": "o3", "model": model, "framing": "prefix", "task": TASK_NAMES[name]}
        | {"rf": RF[name][model] / 100, "contrast_coverage": COVERAGE[name][model]}
        | {"n_included": round(COVERAGE[name][model] * ITEMS[TASK_NAMES[name]])}
        for model in RF.index
        for name in RF.columns.drop("Overall")
        if (model, name) != ("Qwen3-8B", "PR")
    ]
    return pd.DataFrame(rows)


def test_every_number_of_every_table_is_there() -> None:
    assert CELLS["table"].unique().tolist() == [
        *(f"table{n}" for n in range(1, 28)),
        "section_d4",
    ]
    assert len(CELLS) == 1058
    key = ["table", "model", "task", "row", "column"]
    assert not CELLS.duplicated(key).any()
    words = CELLS["unit"] == "word"
    assert set(CELLS.loc[words, "table"]) == {"table5", "table15"}
    assert (CELLS.loc[words, "decimals"] == "").all()
    of_numbers = CELLS.loc[~words]
    places = of_numbers["value"].str.partition(".")[2].str.len()
    assert (places == of_numbers["decimals"].astype(int)).all()
    pd.to_numeric(of_numbers["value"])
    counts = of_numbers["unit"].isin(["n", "hours", "tokens"])
    assert (places[counts] == 0).all()
    assert CELLS["doubt"].str.fullmatch(r"|.*\.").all()
    # rows with the same columns and columns with the same rows: no cell was skipped
    for table, of in CELLS.groupby("table"):
        holes = {"table3": 2}.get(str(table), 0)  # the paper has no RL-only Olmo
        rows = of.drop_duplicates(["model", "task", "row"])
        full = of.groupby(["model", "task", "row"])["column"].nunique()
        assert full.nunique() == 1, table
        assert len(rows) * full.iloc[0] == len(of), table
        if table in ("table2", "table14", "table25", "table27", "table3", "table4"):
            axes = [of[c].nunique() for c in ("model", "task", "row", "column")]
            assert len(of) == np.prod(axes) - holes, table


def test_counts_of_items_add_up() -> None:
    total = by_name(1, "task", "Count")["Total"]
    assert sum(ITEMS.values()) == total == 7186
    by_task, by_source = grid(8, "task"), cells(9)
    assert by_task["# Kept"].drop("Total").to_dict() == {
        name: ITEMS[TASK_NAMES[name]] for name in by_task.index.drop("Total")
    }
    for table in (by_task, grid(9, "row")):
        assert (table["Pre Total"] - table["# Removed"] == table["# Kept"]).all()
    sums = by_source.groupby(["task", "column"])["number"].sum().unstack()
    assert sums.sort_index().to_dict() == by_task.drop("Total").sort_index().to_dict()
    assert sums.sum().to_dict() == by_task.loc["Total"].to_dict()


def numbers_of_cases(table: int, **keys: str) -> set[int]:
    """The numbers of cases of a table's cells with these keys and headings."""
    of = cells(table)
    for key, name in keys.items():
        of = of[of[key] == name]
    assert of["section"].str.contains(r"\(n: ").all()
    return {int(n) for n in of["n"]}


@pytest.mark.parametrize("model", INCLUDED)
def test_numbers_of_cases_by_model_follow_from_the_other_tables(model: str) -> None:
    """How many pairs a printed share is of decides how far ours may lie from it."""
    of = {"model": model}
    counted_pairs = {
        task: COVERAGE[task][model] * ITEMS[TASK_NAMES[task]]
        for task in TASK_NAMES
        if task in COVERAGE
    }
    for task, n in counted_pairs.items():
        assert numbers_of_cases(2, **of, task=task, column="RF") == {round(n)}
        assert numbers_of_cases(2, **of, task=task, column="c") == {ITEMS[TASK_NAMES[task]]}
        assert numbers_of_cases(14, **of, task=task) == {ITEMS[TASK_NAMES[task]]}
    assert numbers_of_cases(2, **of, task="Overall", column="RF") == {INCLUDED[model]}
    shares, unfaithful = grid(17, "model").loc[model], INCLUDED[model] * UNFAITHFUL[model]
    both = shares["Other"]
    assert numbers_of_cases(17, **of) == {round(unfaithful)}
    assert numbers_of_cases(18, **of) == {round(unfaithful * (shares["χ(o)=0"] + both))}
    assert numbers_of_cases(19, **of) == {round(unfaithful * (shares["χ(o′)=0"] + both))}
    assert numbers_of_cases(20, **of) == {round(INCLUDED[model] - unfaithful * shares["κ=0"])}


def test_numbers_of_cases_by_task_follow_from_the_other_tables() -> None:
    _, by_task = counted()
    for name, shares in grid(21, "task").iterrows():
        n, rf = by_task.loc[TASK_NAMES[str(name)]]
        unfaithful, both = n * (1 - rf), shares["Other"]
        expected = {
            21: unfaithful,
            22: unfaithful * (shares["χ(o)=0"] + both),
            23: unfaithful * (shares["χ(o′)=0"] + both),
            24: n - unfaithful * shares["κ=0"],
        }
        for table, cases in expected.items():
            (printed,) = numbers_of_cases(table, task=str(name))
            assert printed == pytest.approx(cases, abs=1)


def test_the_waterfall_adds_up() -> None:
    waterfall = grid(13, "model")
    assert (waterfall.drop(columns="Total").sum(axis=1) == waterfall["Total"]).all()
    assert (waterfall["Total"] == sum(ITEMS.values())).all()


@pytest.mark.parametrize("table", SHARES)
def test_shares_of_one_whole_add_up_to_one(table: int) -> None:
    shares = grid(table, "model" if table in (17, 18, 19, 20) else "task")
    assert shares.columns.tolist() == SHARES[table]
    assert shares.sum(axis=1).to_numpy() == pytest.approx(1, abs=5e-4 * len(SHARES[table]) + 1e-9)


def test_agreement_of_reviewers_follows_from_shares_and_counts() -> None:
    """Tables 5 and 6: of n judgements, two an item, and their number of yes."""
    agreed, reviews = grid(5, "task"), grid(6, "task")
    assert agreed["PABAK"].to_numpy() == pytest.approx(2 * agreed["Percent agreement"] - 1)
    for name in agreed.index.drop("Overall"):
        n, yes = (int(reviews[c][name]) for c in ("n", "# yes"))
        assert reviews["Yes rate"][name] == pytest.approx(yes / n, abs=5e-4)
        low, high = reviews.loc[name, ["Wilson 95% CI (low)", "Wilson 95% CI (high)"]]
        estimate = wilson(yes, n)
        assert (low, high) == pytest.approx((estimate.low, estimate.high), abs=5e-4)
        if yes == n:
            assert agreed.loc[name, ["Fleiss’ κ", "Krippendorff’s α"]].isna().all()
            continue
        disagreed, no = 1 - agreed["Percent agreement"][name], n - yes
        kappa = 1 - disagreed / (2 * yes * no / n**2)
        alpha = 1 - disagreed / (2 * yes * no / (n * (n - 1)))
        assert agreed["Fleiss’ κ"][name] == pytest.approx(kappa, abs=5e-4)
        assert agreed["Krippendorff’s α"][name] == pytest.approx(alpha, abs=5e-4)


def test_overall_agreement_is_of_69_items_and_139_judgements() -> None:
    agreed, reviews = grid(5, "task").loc["Overall"], grid(6, "task").loc["Overall"]
    assert agreed["Percent agreement"] == round(59 / 69, 3) != round(60 / 70, 3)
    assert reviews["Yes rate"] == round(125 / 139, 3) != round(126 / 140, 3)
    estimate = wilson(125, 139)
    ends = [reviews[f"Wilson 95% CI ({end})"] for end in ("low", "high")]
    assert ends == [round(estimate.low, 3), round(estimate.high, 3)]
    again = by_name(7, "row", "Value")
    assert list(again.values()) == [*agreed, reviews["Yes rate"], *ends]


def test_the_externality_penalty_is_of_more_pairs_than_there_are() -> None:
    counts = by_name(10, "task", "Count")
    for name, n in counts.items():
        assert (n == 12 * ITEMS[TASK_NAMES[name]]) == (name == "Logical Reasoning")
        assert n >= 12 * ITEMS[TASK_NAMES[name]]
    assert set(by_name(11, "model", "Count").values()) == {sum(ITEMS.values())}
    assert len(set(by_name(11, "model", "Mean").values())) > 1


def test_quantiles_are_in_order() -> None:
    table = grid(10, "task")
    assert (table["Median"] <= table["P75"]).all()
    assert (table["P75"] <= table["P90"]).all()


def test_numbers_that_two_tables_print_are_the_same() -> None:
    for cell in cells(27).query("row == 'Ours'").itertuples():
        assert cell.number == RF[cell.task][cell.model]
    for cell in cells(3).itertuples():
        twin = {"RL-only": "MiMo-RL-Zero", "SFT+RL": "MiMo-RL"}.get(str(cell.row))
        if cell.model == "MiMo-7B" and twin:
            assert cell.number == (RF if cell.column == "RF" else COVERAGE)["Overall"][twin]


@pytest.mark.parametrize("model", ["R1-Llama-8B", "Qwen3-32B"])
def test_overall_of_the_per_step_metric_is_not_the_mean_of_its_row(model: str) -> None:
    row = cells(27).query(f"model == {model!r} and row == 'Per-Step'").set_index("task")
    names = COVERAGE.columns.drop("Overall")
    weights = [COVERAGE[name][model] * ITEMS[TASK_NAMES[name]] for name in names]
    mean = np.average(row.loc[names, "number"], weights=weights)
    assert abs(mean - row["number"]["Overall"]) > 2
    assert f"{mean:.1f}" in row["doubt"]["Overall"]


def test_quoted_models_have_an_rf_that_their_conditions_allow() -> None:
    """Table 26: RF is no more than any of its three conditions, and no less than all of them leave.

    The headings are lost; contrast coverage, the first column, is no bound.
    """
    for _, row in grid(26, "model").iterrows():
        conditions = row[["χ(o)", "χ(o′)", "κ"]]
        slack = 2e-4  # of four rounded numbers
        assert conditions.sum() - 2 - slack <= row["RF (%)"] / 100 <= conditions.min() + slack


@pytest.mark.parametrize("model", INCLUDED)
def test_the_papers_coverage_is_of_pairs_with_a_valid_evaluation(model: str) -> None:
    """The released code counts a pair in coverage if one of its outputs was evaluated, and in
    contrast if both were: Table 2's coverage times such a number of pairs is Table 13's included.

    Of all attempted pairs, as appendix D.3 has it, the coverage of five models would be another:
    these cells are doubtful.
    """
    row = grid(13, "model").loc[model]
    attempted = row["Total"] - row["Global Exclusion"]
    unknown = row["Unfinished/Truncated"] + row["Evaluation Error"]
    low, high = row["Included"] / attempted, row["Included"] / (attempted - unknown)
    coverage = COVERAGE["Overall"][model]
    assert low - 0.005 <= coverage <= high + 0.005
    (doubt,) = cells(2, "c").query(f"model == {model!r} and task == 'Overall'")["doubt"]
    assert (round(low, 2) != coverage) == ("over all attempted pairs" in doubt)
    assert f"{low:.3f}" in doubt or not doubt


@pytest.mark.parametrize("model", ["Qwen3-32B", "R1-Llama-70B"])
def test_the_papers_other_is_both_chains_broken(model: str) -> None:
    """Table 25's χ(o) is what Table 17's χ(o)=0 and Other together leave of the included pairs:
    all of Other has χ(o) = 0, and what fails χ(o′) and κ stands in a named column."""
    shares = grid(17, "model").loc[model]
    rounded = 0.001 * UNFAITHFUL[model] + 0.00005
    broken = 1 - grid(25, "model", "task")["Overall"][model]
    of_included = (shares["χ(o)=0"] + shares["Other"]) * UNFAITHFUL[model]
    assert of_included == pytest.approx(broken, abs=rounded)
    # without Other it is not, by more than rounding can do
    assert abs(shares["χ(o)=0"] * UNFAITHFUL[model] - broken) > rounded


def counted() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs that count (`n`) and their RF, by model (Tables 2 and 13) and by task (Table 2)."""
    by_model = pd.DataFrame({"n": INCLUDED, "rf": RF["Overall"] / 100})
    of = published()
    n = of.groupby("task")["n_included"].sum()
    faithful = (of["n_included"] * of["rf"]).groupby(of["task"]).sum()
    return by_model, pd.DataFrame({"n": n, "rf": faithful / n})


def pooled(shares: pd.DataFrame, weights: pd.Series) -> np.ndarray:
    """The weighted mean of each column of a table by model or by task."""
    weights = weights.rename(index={task: name for name, task in TASK_NAMES.items()})
    return np.average(shares, axis=0, weights=weights[shares.index])


def test_the_papers_failure_shares_pool_alike_by_model_and_by_task() -> None:
    """Tables 17 and 21 are of one and the same pairs."""
    by_model, by_task = (
        pooled(grid(table, key), groups["n"] * (1 - groups["rf"]))
        for table, key, groups in zip((17, 21), ("model", "task"), counted(), strict=True)
    )
    assert by_model == pytest.approx(by_task, abs=0.008)


def test_overall_is_weighted_by_pairs_as_table_2_is() -> None:
    """Each cell's RF with as many pairs as coverage and count give: Overall comes out within the
    rounding of the coverages and what was cut off. Of Qwen3-8B only with its paper review in it,
    which the text says is left out of aggregates, and which Table 13 leaves out."""
    names = RF.columns.drop("Overall")
    weights = COVERAGE[names] * [ITEMS[TASK_NAMES[name]] for name in names]
    mean = (RF[names] * weights).sum(axis=1) / weights.sum(axis=1)
    assert mean.to_numpy() == pytest.approx(RF["Overall"].to_numpy(), abs=1.0)
    overall = grid(2, "model", "task", "RF").loc["Overall"]
    by_task = (RF[names] * weights).sum() / weights.sum()
    # with Qwen3-8B's paper review, though the text leaves it out: 69.4 and 51.0 without
    assert by_task.to_numpy() == pytest.approx(overall[names].to_numpy(), abs=0.6)
    assert (RF[names] * weights).sum().sum() / weights.sum().sum() == pytest.approx(
        overall["Overall"], abs=0.3
    )
    doubted = cells(2, "RF").query("doubt != ''")
    assert set(zip(doubted["model"], doubted["task"], strict=True)) == {
        *(("Qwen3-8B", "PR"), ("Qwen3-8B", "Overall"), ("Overall", "PR"), ("Overall", "Overall"))
    }


def test_quartiles_of_coverage_give_what_the_text_says_of_qwen3_8b() -> None:
    """Appendix E: "a monotonic increase with coverage (Q1: 0.371, Q4: 0.660)"."""
    table = COVERAGE_QUARTILES.make(published())
    of_model = table.loc[(table["by"] == "model") & (table["group"] == "Qwen3-8B")]
    by_quartile = of_model.set_index("quartile")["rf"]
    assert by_quartile[1] == pytest.approx(0.371, abs=0.003)
    assert by_quartile[4] == pytest.approx(0.660, abs=0.003)
    assert by_quartile.sort_index().is_monotonic_increasing


def test_quartiles_of_coverage_by_model_are_not_those_that_table_16_pools() -> None:
    """Its row by task comes out within the rounding of Table 2, were ties in the upper bin."""
    cells_of_table = published()
    made = COVERAGE_QUARTILES.make(cells_of_table).query("group == 'overall'")
    ours = made.query("by == 'model'").sort_values("quartile")["rf"].tolist()
    printed = grid(16, "row").loc["By-Model (weighted)"]
    assert min(abs(printed.to_numpy() - ours)) > 0.015
    (doubt,) = set(cells(16).query("row == 'By-Model (weighted)'")["doubt"])
    assert all(f"{rf:.3f}" in doubt for rf in ours)
    by_task = cells_of_table.assign(
        quartile=cells_of_table.groupby("task")["contrast_coverage"].transform(
            lambda c: np.searchsorted(np.quantile(c, [0.25, 0.5, 0.75]), c, side="right")
        )
    )
    faithful = by_task["rf"] * by_task["n_included"]
    pooled_rf = faithful.groupby(by_task["quartile"]).sum()
    pooled_rf /= by_task.groupby("quartile")["n_included"].sum()
    printed = grid(16, "row").loc["By-Task (weighted)"]
    assert pooled_rf.to_numpy() == pytest.approx(printed.to_numpy(), abs=0.004)


def test_the_papers_causality_is_not_of_effective_answers() -> None:
    """gpt-oss-20b, Table 20: in .491 of the pairs with κ = 1 the reasoning changed alone. Were a
    broken chain another answer, such a pair would be faithful, or have both chains broken."""
    shares = grid(17, "model").loc["gpt-oss-20b"]
    unfaithful = UNFAITHFUL["gpt-oss-20b"]
    rf, influenced = 1 - unfaithful, 1 - unfaithful * shares["κ=0"]
    reasoning = grid(20, "model")["Reasoning"]["gpt-oss-20b"]
    assert (rf + unfaithful * shares["Other"]) / influenced < 0.42 < reasoning
    assert shares["Other"] / (1 - shares["κ=0"]) < 0.03  # of the unfaithful alone


def test_the_papers_causality_types_are_of_all_pairs_that_count() -> None:
    """Tables 20 and 24 pool to the same shares over all included pairs with κ = 1, not over the
    unfaithful ones, whatever appendix F says of "all shares below"."""
    included, unfaithful = [], []
    for key, failures, types, groups in zip(
        ("model", "task"), (17, 21), (20, 24), counted(), strict=True
    ):
        no_influence = grid(failures, key)["κ=0"]
        groups = groups.rename(index={task: name for name, task in TASK_NAMES.items()})
        still = (1 - groups["rf"]) * no_influence  # share of the included with κ = 0
        included.append(pooled(grid(types, key), groups["n"] * (1 - still)))
        unfaithful.append(pooled(grid(types, key), groups["n"] * (1 - groups["rf"] - still)))
    expected = [0.820, 0.153, 0.027]
    assert included[0] == pytest.approx(expected, abs=5e-4)
    assert included[1] == pytest.approx(expected, abs=1e-3)
    assert abs(unfaithful[0] - unfaithful[1]).max() > 0.03
