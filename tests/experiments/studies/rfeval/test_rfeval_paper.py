"""All tables at once, of everything, of one row and of nothing; the paper's in its layout."""

from __future__ import annotations

import pandas as pd
import pytest
from rf_frames import drawn, frame, judged

from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics.frames import KEY, OVERALL
from faithscope.experiments.studies.rfeval.metrics.texts import (
    LENGTHS,
    hours_table,
    length_table,
)
from faithscope.experiments.studies.rfeval.report.paper import paper_tables, table_12
from faithscope.experiments.studies.rfeval.tables import RfFrames, tables

NUMBERS = (2, 3, *range(10, 15), *range(16, 26), 27)


def lengths(rows: pd.DataFrame) -> pd.DataFrame:
    made = [
        {"model": r["model"], "task": r["task"], "item": r["item"], "condition": condition}
        | {"tokens": tokens, "seconds": 1.5, "elapsed": 0.5, "devices": 2.0}
        for r in rows.to_dict("records")
        for condition, tokens in (("baseline", 100), ("intervened", 40 + int(r["item"]) % 2))
    ]
    return pd.DataFrame(made, columns=list(LENGTHS))


def items(rows: pd.DataFrame) -> pd.DataFrame:
    found = rows[["task", "item"]].drop_duplicates()
    return found.assign(question="How many cats?", options="", context="", r_prime="Two cats meow.")


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
    frames = RfFrames(rows, lengths(rows), items(rows), steps)
    return tables(frames, {"m1": ("F", "Base"), "m2": ("F", "SFT")}, resamples=20)


def test_every_table_is_there_with_rows(made: dict[str, pd.DataFrame]) -> None:
    assert {f"paper_rf_table{n}" for n in NUMBERS} <= set(made)
    empty = [name for name, table in made.items() if table.empty]
    # one reader, no people, no model looked into or only quoted r′
    others = [name for name in empty if not name.startswith("rf_inside")]
    not_run = ["rf_judge_against_log_probs", "rf_judge_against_log_probs_pairs"]
    not_run += ["rf_without_judge", "rf_without_judge_waterfall", "rf_filtering"]
    assert set(others) == {"paper_rf_table26", "rf_evaluator", "rf_readers", *not_run}
    assert len(empty) - len(others) == sum(name.startswith("rf_inside") for name in made)
    for name, table in made.items():
        assert all(c == c.lower() and " " not in c for c in table.columns), name


def test_the_papers_layout() -> None:
    rows = drawn(150)
    tidy = tables(RfFrames(rows, lengths(rows), items(rows)), resamples=10)
    by_name = {table.name: table.printed for table in paper_tables(tidy)}
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
    found = tables(RfFrames(frame(*rows) if rows else pd.DataFrame()), resamples=5)
    assert len(found["rf_pairs"]) == len(rows)
    assert found["rfeval"]["n_total"].sum() == 4 * len(rows)


def test_lengths_by_hand() -> None:
    rows = pd.DataFrame(
        [("m", "legal_decision", str(i), "baseline", 10 * i, 2.0, 1.0, 2.0) for i in range(4)],
        columns=list(LENGTHS),
    )
    table = length_table(rows).set_index("task")
    assert table.loc["legal_decision", "mean_tokens"] == table.loc[OVERALL, "mean_tokens"] == 15
    assert table.loc[OVERALL, "mean_seconds"] == 2
    with pytest.raises(ValueError, match="two rows of"):
        length_table(pd.concat([rows, rows]))


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
    table = hours_table(rows).set_index("model")
    assert table.loc["a"].tolist() == [3, 2, 1.5, 2, 3]
    assert table.loc["cpu", ["n_timed", "hours"]].tolist() == [1, 0.1]
    assert table.loc[["cpu", "old"], "device_hours"].isna().all()
    assert table.loc["old", "n_timed"] == 0
    printed = table_12(hours_table(rows)).printed.set_index("Model")
    assert printed.loc["a"].tolist() == ["3.00", "2", "1.50", "2 of 3"]
    assert printed.loc["cpu"].tolist() == ["–", "–", "0.10", "1"]
