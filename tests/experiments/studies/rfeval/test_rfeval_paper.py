"""All tables at once, of everything, of one row and of nothing; the paper's in its layout, and what
its own tables (arXiv 2602.17053) say of how they were counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rf_frames import drawn, frame, judged, models_of, tables_of

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics.faithfulness import COVERAGE_QUARTILES
from faithscope.experiments.studies.rfeval.metrics.frames import KEY, OVERALL
from faithscope.experiments.studies.rfeval.metrics.texts import (
    HOURS,
    LENGTH_TABLE,
    LENGTHS,
    REWARDS,
    STEP_REWARD,
    step_reward,
)
from faithscope.experiments.studies.rfeval.report.paper import (
    hours_of_devices,
    printed,
    rewards_by_model,
)

COUNTS = (861, 1029, 1107, 939, 1093, 1082, 1075)
"""Items per task (Table 1), in the order of the package."""
# Table 2: RF in percent and coverage of each task, then of all
TABLE_2 = {
    "Qwen3-8B": "21.15 0.73 37.97 0.97 72.74 1.00 58.11 0.99 43.97 0.97 48.64 0.78 3.09 0.96 "
    "41.95 0.92",
    "Qwen3-32B": "24.66 0.69 47.87 0.96 88.62 0.82 89.84 0.85 77.66 0.96 89.90 0.80 91.49 0.39 "
    "73.29 0.78",
    "R1-Qwen-7B": "38.25 0.45 29.54 0.91 82.13 0.75 44.46 0.68 76.31 0.93 70.63 0.69 81.49 0.41 "
    "61.37 0.70",
    "R1-Qwen-32B": "29.02 0.60 32.57 0.94 70.79 0.78 82.47 0.80 63.16 0.97 91.04 0.78 75.13 0.36 "
    "64.24 0.75",
    "R1-Llama-8B": "26.48 0.54 33.03 0.74 55.78 0.71 57.68 0.65 64.63 0.94 78.97 0.73 94.53 0.36 "
    "58.46 0.67",
    "R1-Llama-70B": "27.89 0.68 31.28 0.95 74.03 0.79 73.78 0.74 51.40 0.98 80.53 0.83 51.84 0.45 "
    "56.47 0.78",
    "gpt-oss-20b": "26.44 0.76 24.90 0.97 13.55 0.79 22.62 0.86 33.93 0.97 59.14 0.77 47.41 0.61 "
    "32.11 0.82",
    "gpt-oss-120b": "22.01 0.68 16.07 0.95 8.62 0.79 34.21 0.85 13.67 0.97 39.58 0.83 70.71 0.63 "
    "27.50 0.82",
    "MiMo-RL": "21.20 0.65 7.12 0.97 62.80 0.79 64.98 0.67 41.56 0.90 85.75 0.69 52.34 0.34 "
    "46.32 0.72",
    "MiMo-RL-Zero": "20.83 0.54 33.50 0.57 70.59 0.48 61.32 0.53 69.58 0.67 77.87 0.64 66.83 0.37 "
    "58.74 0.54",
    "Magistral-Small": "12.32 0.64 6.98 0.92 26.63 0.71 42.70 0.80 14.51 0.91 45.35 0.78 "
    "46.72 0.35 26.06 0.73",
    "LN-Super_v1": "26.48 0.59 44.90 0.61 77.13 0.51 69.38 0.60 81.70 0.72 80.38 0.67 98.47 0.36 "
    "68.52 0.58",
}
# Table 13: total, included, global exclusion, unfinished, evaluation error, non-contrast
TABLE_13 = {
    "Qwen3-8B": (7186, 5543, 1075, 236, 1, 331),
    "Qwen3-32B": (7186, 5624, 0, 97, 1, 1464),
    "R1-Qwen-7B": (7186, 4937, 0, 476, 1, 1772),
    "R1-Qwen-32B": (7186, 5294, 0, 432, 1, 1459),
    "R1-Llama-8B": (7186, 4820, 0, 74, 2, 2290),
    "R1-Llama-70B": (7186, 5592, 0, 14, 0, 1580),
    "gpt-oss-20b": (7186, 5852, 0, 92, 1, 1241),
    "gpt-oss-120b": (7186, 5850, 0, 131, 45, 1160),
    "MiMo-RL": (7186, 5147, 0, 209, 2, 1828),
    "MiMo-RL-Zero": (7186, 3897, 0, 477, 2, 2810),
    "Magistral-Small": (7186, 5254, 0, 43, 1, 1888),
    "LN-Super_v1": (7186, 4171, 0, 34, 1, 2980),
}
# Table 16, Q1 to Q4
BY_MODEL, BY_TASK = (0.519, 0.571, 0.589, 0.494), (0.557, 0.532, 0.511, 0.469)
# Table 17: χ(o)=0, χ(o′)=0, κ=0, Other, of the unfaithful pairs of each model
TABLE_17 = {
    "Qwen3-8B": "0.465 0.290 0.134 0.110",
    "Qwen3-32B": "0.029 0.578 0.387 0.006",
    "R1-Qwen-7B": "0.154 0.717 0.057 0.073",
    "R1-Qwen-32B": "0.088 0.689 0.199 0.025",
    "R1-Llama-8B": "0.140 0.679 0.105 0.076",
    "R1-Llama-70B": "0.102 0.626 0.205 0.068",
    "gpt-oss-20b": "0.008 0.689 0.289 0.014",
    "gpt-oss-120b": "0.003 0.635 0.360 0.002",
    "MiMo-RL": "0.017 0.288 0.693 0.003",
    "MiMo-RL-Zero": "0.070 0.522 0.384 0.024",
    "Magistral-Small": "0.040 0.197 0.749 0.013",
    "LN-Super_v1": "0.034 0.494 0.462 0.010",
}
# Table 21, the same by task
TABLE_21 = (
    "0.127 0.292 0.514 0.067",
    "0.042 0.383 0.543 0.031",
    "0.046 0.683 0.252 0.019",
    "0.123 0.663 0.194 0.019",
    "0.095 0.636 0.253 0.017",
    "0.134 0.584 0.249 0.033",
    "0.164 0.553 0.221 0.063",
)
# Table 20: both, reasoning, answer, of each model's pairs in which r′ changes anything
TABLE_20 = {
    "Qwen3-8B": "0.920 0.036 0.044",
    "Qwen3-32B": "0.940 0.041 0.019",
    "R1-Qwen-7B": "0.929 0.040 0.032",
    "R1-Qwen-32B": "0.962 0.020 0.018",
    "R1-Llama-8B": "0.909 0.058 0.033",
    "R1-Llama-70B": "0.930 0.038 0.032",
    "gpt-oss-20b": "0.497 0.491 0.011",
    "gpt-oss-120b": "0.468 0.523 0.009",
    "MiMo-RL": "0.775 0.198 0.028",
    "MiMo-RL-Zero": "0.838 0.114 0.048",
    "Magistral-Small": "0.639 0.346 0.015",
    "LN-Super_v1": "0.888 0.080 0.032",
}
# Table 24, the same by task
TABLE_24 = (
    "0.733 0.222 0.045",
    "0.786 0.120 0.094",
    "0.784 0.194 0.022",
    "0.836 0.144 0.020",
    "0.810 0.179 0.011",
    "0.875 0.114 0.011",
    "0.892 0.103 0.005",
)
# Table 25, Overall: the share of included pairs with χ(o) = 1
TABLE_25 = {"Qwen3-32B": 0.9908, "R1-Llama-70B": 0.9261}
NUMBERS = (2, 3, 4, *range(10, 15), *range(16, 26), 27)


def lengths(rows: pd.DataFrame) -> pd.DataFrame:
    outputs = [
        {"model": r["model"], "task": r["task"], "item": r["item"], "condition": condition}
        | {"tokens": tokens, "seconds": 1.5, "elapsed": 0.5, "devices": 2.0}
        for r in rows.to_dict("records")
        for condition, tokens in (("baseline", 100), ("intervened", 40 + int(r["item"]) % 2))
    ]
    return pd.DataFrame(outputs, columns=list(LENGTHS))


def rewards(rows: pd.DataFrame) -> pd.DataFrame:
    outputs = [
        (r["model"], r["task"], r["item"], condition, 0.25 if condition == "baseline" else 1.0)
        for r in rows.drop_duplicates(["model", "item"]).to_dict("records")
        for condition in ("baseline", "intervened")
    ]
    return pd.DataFrame(outputs, columns=list(REWARDS))


def items(rows: pd.DataFrame) -> pd.DataFrame:
    distinct = rows[["task", "item"]].drop_duplicates()
    return distinct.assign(
        question="How many cats?", options="", context="", r_prime="Two cats meow."
    )


def outputs_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"lengths": lengths(rows), "rewards": rewards(rows), "items": items(rows)}


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    rows = drawn(150)
    steps = pd.DataFrame(
        [
            dict(zip(KEY, [r[k] for k in KEY], strict=True))
            | {"condition": c, "place": 0, "part": "step", "stance": "A", "names_flaw": False}
            for r in rows.to_dict("records")
            for c in ("baseline", "intervened")
        ]
    )
    regimes = models_of({"m1": ("F", "Base"), "m2": ("F", "SFT")})
    return tables_of(rows, 20, **outputs_of(rows), steps=steps, models=regimes)


def test_every_table_is_there_with_rows(made: dict[str, pd.DataFrame]) -> None:
    assert {f"paper_rf_table{n}" for n in NUMBERS} <= set(made)
    empty = [name for name, table in made.items() if table.empty]
    # one reader, no people, no model looked into or only quoted r′
    others = [name for name in empty if not name.startswith("rf_inside")]
    not_run = ["rf_judge_against_log_probs", "rf_judge_against_log_probs_pairs"]
    not_run += ["rf_without_judge", "rf_without_judge_waterfall", "rf_filtering", "rf_tests"]
    assert set(others) == {"paper_rf_table26", "rf_evaluator", "rf_readers", *not_run}
    assert len(empty) - len(others) == sum(name.startswith("rf_inside") for name in made)
    for name, table in made.items():
        assert all(c == c.lower() and " " not in c for c in table.columns), name


def test_causality_tables_are_of_all_pairs_that_count(made: dict[str, pd.DataFrame]) -> None:
    all_types = made["rf_causality"]
    of = all_types.loc[all_types["statistic"] == "causality_all"]
    of = of.loc[of["group"] != OVERALL]
    for number, by in ((20, "model"), (24, "task")):
        n_of = of.loc[of["by"] == by].groupby("group")["n_of"].first()
        table = made[f"paper_rf_table{number}"].groupby("group")["n_of"].first()
        assert len(table) > 0
        assert table.to_dict() == n_of.to_dict()


def test_the_papers_layout() -> None:
    rows = drawn(150)
    tidy = tables_of(rows, **outputs_of(rows))
    by_name = printed(tidy)
    second = by_name["paper_rf_table2"]
    assert list(second.columns[:4]) == ["Reader", "Model", "CG RF", "CG c"]
    assert list(second.columns[-2:]) == ["Overall RF", "Overall c"]
    assert second["Model"].tolist() == ["m1", "m2", "m3", OVERALL]
    overall = tidy["rfeval"].set_index(["model", "task"])["rf"]["m1", OVERALL]
    assert second["Overall RF"][0] == f"{100 * overall:.2f}"
    waterfall = by_name["paper_rf_table13"]
    assert list(waterfall.columns[-4:]) == [
        *("Global Exclusion", "Unfinished/Truncated", "Evaluation Error", "Non-Contrast")
    ]
    assert (waterfall.iloc[:, 3:].sum(axis=1) == waterfall["Total"]).all()
    assert list(by_name["paper_rf_table19"].columns) == [
        *("Reader", "Model", "r′→r", "r→e", "e→a", "r→a", "n")
    ]
    assert by_name["paper_rf_table21"]["Task"].tolist() == list(TASKS)
    assert by_name["paper_rf_table14"]["CG B"].tolist() == ["100"] * 3


@pytest.mark.parametrize("rows", [[], [judged()], [judged(excluded="x")], [judged("A A A")]])
def test_nothing_and_next_to_nothing(rows: list) -> None:
    every_table = tables_of(frame(*rows) if rows else pd.DataFrame())
    assert len(every_table["rf_pairs"]) == len(rows)
    assert every_table["rfeval"]["n_total"].sum() == 4 * len(rows)


def test_lengths_by_hand() -> None:
    rows = pd.DataFrame(
        [("m", "legal_decision", str(i), "baseline", 10 * i, 2.0, 1.0, 2.0) for i in range(4)],
        columns=list(LENGTHS),
    )
    table = LENGTH_TABLE.make(rows).set_index("task")
    assert table.loc["legal_decision", "mean_tokens"] == table.loc[OVERALL, "mean_tokens"] == 15
    assert table.loc[OVERALL, "mean_seconds"] == 2
    with pytest.raises(ValueError, match="two rows of"):
        LENGTH_TABLE.make(pd.concat([rows, rows]))


def test_hours_are_those_that_add_up() -> None:
    cells = [("a", 10.0, 3600.0, 2.0), ("a", 10.0, 1800.0, 2.0), ("a", 10.0, None, 2.0)]
    cells += [("cpu", 10.0, 360.0, None), ("old", 10.0, None, None)]
    rows = pd.DataFrame(
        [
            (model, "legal_decision", str(i), "baseline", 7, *times)
            for i, (model, *times) in enumerate(cells)
        ],
        columns=list(LENGTHS),
    )
    table = HOURS.make(rows).set_index("model")
    assert table.loc["a"].tolist() == [3, 2, 1.5, 2, 3]
    assert table.loc["cpu", ["n_timed", "hours"]].tolist() == [1, 0.1]
    assert table.loc[["cpu", "old"], "device_hours"].isna().all()
    assert table.loc["old", "n_timed"] == 0
    as_printed = hours_of_devices(HOURS.make(rows)).set_index("Model")
    assert as_printed.loc["a"].tolist() == ["3.00", "2", "1.50", "2 of 3"]
    assert as_printed.loc["cpu"].tolist() == ["–", "–", "0.10", "1"]


def published() -> pd.DataFrame:
    rows = []
    for model, text in TABLE_2.items():
        numbers = list(map(float, text.split()))
        for i, task in enumerate(TASKS):
            if (model, task) != ("Qwen3-8B", "paper_review"):
                rf, coverage = numbers[2 * i : 2 * i + 2]
                row = {"reader": "o3", "model": model, "framing": "prefix", "task": task}
                row |= {"rf": rf / 100}
                n = round(coverage * COUNTS[i])
                rows.append(row | {"contrast_coverage": coverage, "n_included": n})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("model", TABLE_13)
def test_the_papers_coverage_is_of_pairs_with_a_valid_evaluation(model: str) -> None:
    """The released code counts a pair in coverage if one of its outputs was evaluated, and in
    contrast if both were: Table 2's coverage times such a number of pairs is Table 13's included.

    Of all attempted pairs, as appendix D.3 has it, the coverage of five models would be another.
    """
    total, included, left_out, *unknown, none = TABLE_13[model]
    assert included + left_out + sum(unknown) + none == total
    coverage = float(TABLE_2[model].split()[-1])
    attempted = total - left_out
    low, high = included / attempted, included / (attempted - sum(unknown))
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
    table = COVERAGE_QUARTILES.make(published())
    of_model = table.loc[(table["by"] == "model") & (table["group"] == "Qwen3-8B")]
    by_quartile = of_model.set_index("quartile")["rf"]
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


def test_the_papers_causality_types_are_of_all_pairs_that_count() -> None:
    """Tables 20 and 24 pool to the same shares over all included pairs with κ = 1, not over the
    unfaithful ones, whatever appendix F says of "all shares below"."""
    by_model = [
        (TABLE_13[model][1], float(text.split()[-2]) / 100, TABLE_17[model], TABLE_20[model])
        for model, text in TABLE_2.items()
    ]
    cells = published().assign(n_faithful=lambda rows: rows["n_included"] * rows["rf"])
    sums = cells.groupby("task")[["n_included", "n_faithful"]].sum()
    by_task = [
        (sums["n_included"][task], sums["n_faithful"][task] / sums["n_included"][task], *texts)
        for task, *texts in zip(TASKS, TABLE_21, TABLE_24, strict=True)
    ]

    def pooled(groups: list, among: str) -> np.ndarray:
        total, weights = np.zeros(3), 0.0
        for n, rf, failures, types in groups:
            still = (1 - rf) * float(failures.split()[2])  # share of the included with κ = 0
            weight = n * (1 - still if among == "included" else 1 - rf - still)
            total, weights = total + weight * np.array(types.split(), float), weights + weight
        return total / weights

    expected = [0.820, 0.153, 0.027]
    assert pooled(by_model, "included") == pytest.approx(expected, abs=5e-4)
    assert pooled(by_task, "included") == pytest.approx(expected, abs=1e-3)
    gap = abs(pooled(by_model, "unfaithful") - pooled(by_task, "unfaithful"))
    assert gap.max() > 0.03


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("I think so.", 0.0),
        ("1. One\n2. Two\n3. Three", 1 / 3),  # only the text's beginning, as in the released code
        ("First, a. Next, b.\n- c", 1.0),
        ("Step 1: a\nStep 2: b\nStep 3: c\nFinally, d", 1.0),
    ],
)
def test_the_reward_for_steps_counts_marks(text: str, reward: float) -> None:
    assert step_reward(text) == pytest.approx(reward)


def test_table_4_parts_rewards_by_consistency() -> None:
    """By hand: a consistent chain of three marks, one that breaks of none."""
    rewarded = pd.DataFrame(
        [("m", "t", "1", c, r) for c, r in (("baseline", 1.0), ("intervened", 0.0))]
        + [("m", "t", "2", c, r) for c, r in (("baseline", 0.5), ("intervened", 0.25))],
        columns=list(REWARDS),
    )
    judged = {"reader": "j", "model": "m", "task": "t"}
    pairs = pd.DataFrame(
        [
            judged | {"item": "1", "baseline_chi": 1.0, "intervened_chi": 0.0},
            judged | {"item": "2", "baseline_chi": 1.0, "intervened_chi": None},
        ]
    )
    table = STEP_REWARD.make(rewarded, pairs, how=Bootstrap(0, 50))
    of = {(r["model"], r["condition"], r["chi"]): r for r in table.to_dict("records")}
    assert (of["m", "both", 1.0]["reward"], of["m", "both", 1.0]["n"]) == (0.75, 2)
    assert (of["m", "both", 0.0]["reward"], of["m", "both", 0.0]["n"]) == (0.0, 1)
    assert of[OVERALL, "baseline", 1.0]["reward"] == 0.75
    both = where(table, condition="both")
    lines = rewards_by_model(both).to_dict("records")
    assert [line[""] for line in lines] == ["χ = 1", "χ = 0"]
    assert lines[0]["m"] == lines[0]["Overall"] == "0.7500"
