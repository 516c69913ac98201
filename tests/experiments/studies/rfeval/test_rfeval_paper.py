"""All tables at once, of everything, of one row and of nothing, and the paper's in its layout."""

from __future__ import annotations

import pandas as pd
import pytest
from rf_frames import drawn, frame, judged, models_of, tables_of

from faithscope.experiments.analysis.published.comparison import numbers_for
from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.paper import PAPER
from faithscope.experiments.studies.rfeval.tables.frames import KEY, OVERALL
from faithscope.experiments.studies.rfeval.tables.texts import (
    HOURS,
    LENGTH_TABLE,
    LENGTHS,
    REWARDS,
    STEP_REWARD,
    step_reward,
)


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
    texts = {
        "question": "How many cats?",
        "options": "",
        "context": "",
        "r_prime": "Two cats meow.",
    }
    return distinct.assign(**texts, source="s", stances="correct | incorrect | I don't know")


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
    empty = [name for name, table in made.items() if table.empty]
    # one reader, no people, no model looked into or only quoted r′
    others = [name for name in empty if not name.startswith("rf_inside")]
    not_run = ["rf_judge_against_log_probs", "rf_judge_against_log_probs_pairs"]
    not_run += ["rf_without_judge", "rf_without_judge_waterfall", "rf_filtering", "rf_tests"]
    not_run += ["rf_evaluator", "rf_reviews"]
    assert set(others) == {"rf_readers", *not_run}
    assert len(empty) - len(others) == sum(name.startswith("rf_inside") for name in made)
    for name, table in made.items():
        assert all(c == c.lower() and " " not in c for c in table.columns), name


def test_causality_tables_are_of_all_pairs_that_count(made: dict[str, pd.DataFrame]) -> None:
    all_types = made["rf_causality"]
    of = all_types.loc[all_types["statistic"] == "causality_all"]
    of = of.loc[of["group"] != OVERALL]
    printed = {table.name: table.data for table in printed_tables(PAPER, made)}
    for number, by in ((20, "model"), (24, "task")):
        n_of = of.loc[of["by"] == by].groupby("group")["n_of"].first()
        table = printed[f"paper_rfeval_table{number}"].groupby(by)["n"].first()
        assert len(table) > 0
        assert table.drop(OVERALL, errors="ignore").to_dict() == n_of.to_dict()


@pytest.mark.takes("every table of the paper")
def test_the_papers_layout() -> None:
    rows = drawn(150)
    tidy = tables_of(rows, **outputs_of(rows))
    by_name = {t.name: t.printed for t in printed_tables(PAPER, tidy)}
    second = by_name["paper_rfeval_table2"]
    assert list(second.columns[:4]) == ["model", "reader", "CG RF", "CG c"]
    assert list(second.columns[-2:]) == ["Overall RF", "Overall c"]
    assert second["model"].tolist() == ["m1", "m2", "m3", "Overall"]
    overall = tidy["rfeval"].set_index(["model", "task"])["rf"]["m1", OVERALL]
    assert second["Overall RF"][0] == f"{100 * overall:.2f}%"
    waterfall = by_name["paper_rfeval_table13"]
    counts = waterfall.drop(columns=["model", "reader"]).astype(int)
    assert list(counts.columns[-4:]) == [
        *("Global Exclusion", "Unfinished/Truncated", "Evaluation Error", "Non-Contrast")
    ]
    assert (counts.drop(columns="Total").sum(axis=1) == counts["Total"]).all()
    assert list(by_name["paper_rfeval_table19"].columns) == [
        *("model", "reader", "r′→r", "r→e", "e→a", "r→a", "n")
    ]
    tasks = [task.replace("_", " ").title() for task in TASKS]
    assert by_name["paper_rfeval_table21"]["task"].tolist() == tasks
    assert by_name["paper_rfeval_table14"]["CG B"].tolist() == ["100.0"] * 3


@pytest.mark.slow
def test_a_second_reader_and_a_run_of_other_models_have_rows_of_their_own() -> None:
    """The paper has one reader and its own models; only its rows stand beside the paper."""
    rows = pd.concat([drawn(60).assign(reader=reader) for reader in ("one", "two")])
    tidy = tables_of(rows)
    second = next(t for t in printed_tables(PAPER, tidy) if t.name == "paper_rfeval_table2")
    rows_of = second.printed.groupby("model", sort=False)["reader"].agg(list)
    assert rows_of.to_dict() == {name: ["one", "two"] for name in ("m1", "m2", "m3", "Overall")}
    compared = numbers_for(PAPER.table("table2"), tidy)
    assert compared is not None
    assert (set(compared["reader"]), OVERALL in set(compared["model"])) == ({"one"}, False)


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
    assert table.loc["a"].tolist() == [3, 1.5, 2, 3, 2]
    assert table.loc["cpu", ["n_timed", "hours"]].tolist() == [1, 0.1]
    assert table.loc[["cpu", "old"], "device_hours"].isna().all()
    assert table.loc["old", "n_timed"] == 0
    (printed,) = printed_tables(PAPER, {HOURS.name: HOURS.make(rows)})
    as_printed = printed.printed.set_index("model")
    assert as_printed.loc["a"].tolist() == ["3.00", "2", "1.50", "2", "3"]
    assert as_printed.loc["cpu"].tolist() == ["–", "–", "0.10", "1", "1"]


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
    (printed,) = printed_tables(PAPER, {STEP_REWARD.name: table})
    lines = printed.printed.to_dict("records")
    assert [line["chi"] for line in lines] == ["χ = 1", "χ = 0"]
    assert lines[0]["m"] == lines[0]["Overall"] == "0.7500"
