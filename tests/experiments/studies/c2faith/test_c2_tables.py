"""All tables together: their form, the paper's layout, and runs in which little was said."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from c2_frames import MUTE, NAMES, made_up

from faithscope.experiments.analysis.published.comparison import numbers_for
from faithscope.experiments.analysis.published.layout import PaperTable, printed_tables
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.paper import PAPER
from faithscope.experiments.studies.c2faith.paper_rows import either_way
from faithscope.experiments.studies.c2faith.tables.every_table import tables
from faithscope.experiments.studies.c2faith.tables.frames import Frames

ASKED = {
    *("c2_detection", "c2_localisation", "c2_coverage", "c2_mcnemar", "c2_edit_types"),
    *("c2_predictors", "c2_positions", "c2_failure_overlap", "c2_agreement"),
    *("c2_prompts", "c2_reliability", "c2_judge_against_internals"),
}


@pytest.fixture(scope="module")
def three() -> dict[str, pd.DataFrame]:
    return tables(made_up(3, 40, mute=True), resamples=40)


@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    ("frames", "judges"),
    [
        (Frames(), 0),
        (made_up(1, 20), 1),
        (made_up(0, 6, mute=True), 1),
        (made_up(1, 6, mute=True, reference=False), 2),
    ],
    ids=["nothing", "one judge", "nothing but silence", "one judge, one silent, no reference"],
)
def test_little_said_gives_tables_that_say_so(frames, judges):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tables(frames, resamples=20)
        written = {name: (to_csv(t), to_markdown(t), to_latex(t)) for name, t in made.items()}
    assert set(made) >= ASKED
    assert set(written) == set(made)
    assert made["c2_detection"]["judge"].nunique() == judges
    if judges == 1:
        for name in ("c2_mcnemar", "c2_agreement"):
            assert set(made[name]["reason"]) == {"no second judge"}, name


def test_every_table_counts_what_has_no_verdict(three):
    for name, table in three.items():
        if name.startswith("c2_") and name not in {"c2_prompts", "c2_missed_by_all"}:
            assert any(c.startswith("n_without_verdict") for c in table.columns), name


@pytest.mark.slow
def test_same_frames_and_seed_same_bytes(three):
    again = tables(made_up(3, 40, mute=True), resamples=40)
    assert {n: to_csv(t) for n, t in again.items()} == {n: to_csv(t) for n, t in three.items()}


def test_a_silent_judge_is_in_the_tables_and_takes_nothing_from_others(three):
    silent = where(three["c2_detection"], judge=MUTE).iloc[0]
    assert (silent["n"], silent["n_without_verdict"]) == (0, 40)
    assert three["c2_failure_overlap"]["n"].iloc[0] > 30


def printed(made: dict[str, pd.DataFrame]) -> dict[str, PaperTable]:
    tables_of_paper = printed_tables(PAPER, made)
    return {table.name.removeprefix("paper_c2faith_"): table for table in tables_of_paper}


def test_the_paper_tables_print_as_the_paper_does(three):
    as_printed = {name: table.printed for name, table in printed(three).items()}
    first = as_printed["table1"]
    assert first["judge"].tolist() == [*NAMES[:3], MUTE]
    assert first["Detect"].iloc[0].endswith("%")
    assert first["Detect"].iloc[-1] == "–"
    assert as_printed["table2"].columns.tolist()[1:8] == [
        *("Exact", "Det.", "FPR", "MAE_all", "MAE_det", "W@1", "W@2")
    ]
    third = as_printed["table3"]
    assert third["level"].tolist()[:4] == ["10%", "30%", "50%", "70%"]
    assert third["Bias"].str.match(r"^(-?\d\.\d\d|–)$").all()
    fourth = as_printed["table4"].set_index("task")
    assert fourth.index.tolist() == [
        *("Exp 1 detect", "Exp 1 FPR", "Exp 2 exact match", "Exp 2 FPR"),
        *("Cov. ρ @70%", "Cov. bias @10%", "Overall rank"),
    ]
    assert fourth.loc["Overall rank", f"{MUTE} rank"] == "–"
    ranks = fourth.loc["Overall rank", [f"{name} rank" for name in NAMES[:3]]]
    assert "1st" in set(ranks)
    assert as_printed["table5"]["feature"].iloc[0] == "Math symbol density"
    assert as_printed["table6"]["edit type"].iloc[0] == "Numeric swap"


@pytest.mark.slow
def test_nobody_has_a_rank_alone():
    for frames in (made_up(1, 12), made_up(1, 12, mute=True)):
        fourth = printed(tables(frames, resamples=20))["table4"]
        assert "rank" not in set(fourth.data["heading"])


def test_a_second_reading_has_rows_of_its_own_and_does_not_stand_beside_the_paper(three):
    table = three["c2_detection"]
    both = three | {"c2_detection": pd.concat([table, table.assign(reading="scored", n=1)])}
    first = printed(both)["table1"].printed
    assert first["reading"].tolist() == ["generated", "scored"] * 4
    assert first.loc[first["reading"] == "scored", "n"].tolist() == ["1"] * 4
    compared = numbers_for(PAPER.table("table1"), both)
    assert compared is not None
    assert set(compared["reading"]) == {"generated"}


def test_better_is_mcnemar_after_bonferroni():
    mcnemar = pd.DataFrame(
        {"reading": "generated", "prompt": "p", "condition": "perturbed"}
        | {"judge": ["good", "bad", "good"], "other": ["bad", "fair", "fair"]}
        | {"p": [1e-5, 1e-5, 4e-4], "p_bonferroni": [3e-5, 3e-5, 12e-4]}
        | {f"difference{end}": [0.2, -0.2, 0.1] for end in ("", "_low", "_high")}
    )
    both = either_way(mcnemar)
    better = both.loc[both["better"], ["judge", "other"]]
    assert better.values.tolist() == [["good", "bad"], ["fair", "bad"]]


@pytest.mark.slow
def test_without_a_reference_table_4_ranks_by_the_share_kept():
    fourth = printed(tables(made_up(3, 20, reference=False), resamples=20))["table4"].data
    tasks = set(fourth["task"])
    assert "Cov. ρ with share kept @70%" in tasks
    assert not any("bias" in task for task in tasks)
    assert sorted(fourth.loc[fourth["heading"] == "rank", "value"]) == ["1", "2", "3"]
