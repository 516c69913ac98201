"""All tables together: their form, the paper's layout, and runs in which little was said."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from c2_frames import MUTE, NAMES, made_up

from faithscope.experiments.analysis.tables import in_layout
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.layouts import PAPER, TABLE_1
from faithscope.experiments.studies.c2faith.metrics.frames import Frames
from faithscope.experiments.studies.c2faith.tables import tables

ASKED = {
    *("c2_detection", "c2_localisation", "c2_coverage", "c2_mcnemar", "c2_edit_types"),
    *("c2_predictors", "c2_positions", "c2_failure_overlap", "c2_agreement"),
    *("c2_prompts", "c2_reliability", "c2_judge_against_internals"),
    *(f"paper_c2_table{i}" for i in range(1, 7)),
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


def test_the_paper_tables_print_as_the_paper_does(three):
    printed = {t.name: t.printed for t in in_layout(PAPER, three)}
    first = printed["paper_c2_table1"]
    assert first["Judge"].tolist() == [*NAMES[:3], MUTE]
    assert first["Detect"].iloc[0].rstrip(" †").endswith("%")
    assert first["Detect"].iloc[-1] == "—"
    assert printed["paper_c2_table2"].columns.tolist()[3:10] == [
        *("Exact", "Det.", "FPR", "MAE all", "MAE det", "W@1", "W@2")
    ]
    third = printed["paper_c2_table3"]
    assert third["Level"].tolist()[:4] == ["10%", "30%", "50%", "70%"]
    assert third["Bias"].str.match(r"^([+-]\d\.\d\d|—)$").all()
    fourth = printed["paper_c2_table4"]
    assert fourth["Task"].tolist() == [
        *("exp 1 detect", "exp 1 fpr", "exp 2 exact match", "exp 2 fpr"),
        *("cov. ρ @70%", "cov. bias @10%", "overall rank"),
    ]
    assert fourth.iloc[-1][MUTE] == "—"
    assert fourth.iloc[0][list(NAMES[:3])].str.contains("best").sum() >= 1
    assert printed["paper_c2_table5"]["Feature"].iloc[0] == "Math symbol density"
    assert printed["paper_c2_table6"]["Edit type"].iloc[0] == "Numeric swap"


@pytest.mark.slow
def test_nobody_is_best_alone():
    for frames in (made_up(1, 12), made_up(1, 12, mute=True)):
        fourth = in_layout(PAPER, tables(frames, resamples=20))[3]
        assert not fourth.data["best"].any()
        assert not fourth.printed.apply(lambda c: c.astype(str).str.contains("best")).any(axis=None)


def test_the_dagger_is_mcnemar_after_bonferroni():
    detection = pd.DataFrame(
        {"judge": ["good", "bad", "fair"], "reading": "generated", "prompt": "p"}
        | {c: 0.5 for c in ("detection", "detection_low", "detection_high", "std", "net", "fpr")}
        | {c: 9 for c in ("n", "n_without_verdict", "n_control", "n_control_without_verdict")}
    )
    mcnemar = pd.DataFrame(
        {"reading": "generated", "prompt": "p", "condition": "perturbed"}
        | {"judge": ["good", "bad", "good"], "other": ["bad", "fair", "fair"]}
        | {"p": [1e-5, 1e-5, 4e-4], "p_bonferroni": [3e-5, 3e-5, 12e-4]}
        | {"difference": [0.2, -0.2, 0.1]}
    )
    assert TABLE_1.make(detection, mcnemar)["better_than"].tolist() == ["bad", "", "bad"]


@pytest.mark.slow
def test_without_a_reference_table_4_ranks_by_the_share_kept():
    made = tables(made_up(3, 20, reference=False), resamples=20)
    tasks = set(made["paper_c2_table4"]["task"])
    assert "cov. ρ with share kept @70%" in tasks
    assert not any("bias" in task for task in tasks)
    assert sorted(set(made["paper_c2_table4"]["overall_rank"])) == [1, 2, 3]
