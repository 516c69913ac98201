"""Printed cells beside runs: the file of cells, every verdict, and deviations of a config."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published import (
    Cell,
    Deviation,
    NumbersOfRun,
    Ours,
    Paper,
    Published,
    Stated,
    beside,
    deviations,
    problems,
    read_cells,
)
from faithscope.experiments.analysis.published.comparison import (
    DEVIATES,
    DOUBTFUL,
    NO_MEASURE,
    NOT_COMPARABLE,
    NOT_MEASURED,
    OTHER_QUANTITY,
    OUTSIDE,
    POOLED,
    TOO_FEW,
    UNCLEAR,
    WITHIN,
    numbers_for,
    verdict,
)
from faithscope.experiments.analysis.published.deviations import paper_config
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.interp.errors import UserError

HEADER = "table,model,task,row,column,value,unit,decimals,n,section,doubt\n"
CELLS = (
    HEADER
    + """\
table1,GPT,SST-2,,Nec%,8.4,%,1,500,Table 1,
table1,GPT,SST-2,,Mode,Semantic,word,0,,Table 1,
table1,GPT,GSM8K,,Nec%,,%,1,,Table 1,The text has lost this number.
table1,Kimi,SST-2,,Nec%,39.0,%,1,183,Table 1,Table 2 prints 63 % of the same.
table1,Kimi,SST-2,,Steps,10.5,,1,,Table 1,
table1,Kimi,SST-2,,Hours,4,hours,0,,Table 1,
table2,,,0.30,Agree,83,%,0,12,Table 2,
"""
)
TABLE = Published(
    "table1",
    "Necessity of two models.",
    config="quickstart",
    of="slrc",
    columns={
        "Nec%": "necessity",
        "Steps": "mean_steps",
        "Mode": Ours("mode", words={"reads": "Semantic"}),
    },
    no_counterpart={"Hours": "Their hours are of their machine."},
    keys={"model": "model", "task": "task"},
    among=rows_with(framing="reprompt"),
)
THRESHOLDS = Published(
    "table2",
    "Agreement by threshold.",
    config="quickstart",
    of="thresholds",
    columns={"Agree": "agree"},
    keys={"row": "threshold"},
    pooled_over=("tasks",),
)


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    path = tmp_path / "paper.csv"
    path.write_text(CELLS, encoding="utf-8")
    names = {
        "model": {"GPT": ("api:openai/gpt", "api:azure/gpt"), "Kimi": "kimi"},
        "task": {"SST-2": "sst2", "GSM8K": "gsm8k"},
    }
    states = (
        Stated("generation.temperature", "4.6"),
        Stated("model.quantize", "4.5", also=("8bit",)),
    )
    return Paper("toy", "A toy paper", path, (TABLE, THRESHOLDS), names, states=states)


def row(model: str, task: str = "sst2", **more) -> dict:
    numbers = {"necessity": 0.10, "necessity_low": 0.08, "necessity_high": 0.12, "n": 400}
    of = {"model": model, "task": task, "framing": "reprompt", "mean_steps": 10.41, "mode": "reads"}
    return of | numbers | more


def of_run(*rows: dict, run: str = "runs/a", **more) -> NumbersOfRun:
    table = numbers_for(TABLE, {"slrc": pd.DataFrame(list(rows))})
    assert table is not None
    return NumbersOfRun(run, table, **more)


def lines(paper: Paper, *runs: NumbersOfRun, published: Published = TABLE) -> dict:
    table = beside(paper, published, read_cells(paper.cells), runs)
    keys = [k for k in ("model", "task", "row") if k in table]
    return {(*(r[k] for k in keys), r["column"]): r for r in table.to_dict("records")}


def test_a_cell_is_within_outside_or_not_comparable_and_says_why(paper: Paper) -> None:
    of = lines(paper, of_run(row("api:azure/gpt"), row("kimi", mean_steps=11.7)))
    gpt, kimi = of["GPT", "SST-2", "Nec%"], of["Kimi", "SST-2", "Nec%"]
    assert (gpt["verdict"], gpt["rule"], gpt["n"], gpt["published_n"]) == (
        *(WITHIN, "both samples", 400, 500),
    )
    assert (gpt["ours"], gpt["low"], gpt["high"]) == pytest.approx((10.0, 8.0, 12.0))
    assert gpt["difference"] == pytest.approx(1.6)
    assert (kimi["verdict"], kimi["reason"]) == (NOT_COMPARABLE, DOUBTFUL)
    assert kimi["why"] == "Table 2 prints 63 % of the same."
    steps = of["Kimi", "SST-2", "Steps"]
    assert (steps["verdict"], steps["reason"]) == (NOT_COMPARABLE, TOO_FEW)
    assert steps["why"] == (
        "the number has no interval: too few cases vary (n = 400), or none is computed for it"
    )
    assert of["GPT", "SST-2", "Mode"]["verdict"] == WITHIN
    lost = of["GPT", "GSM8K", "Nec%"]
    assert (lost["verdict"], lost["reason"]) == (NOT_COMPARABLE, NOT_MEASURED)
    hours = of["Kimi", "SST-2", "Hours"]
    assert (hours["reason"], hours["why"]) == (NO_MEASURE, "Their hours are of their machine.")
    assert pd.isna(hours["ours"])


def test_without_runs_every_cell_is_there_and_none_is_ours(paper: Paper) -> None:
    table = beside(paper, TABLE, read_cells(paper.cells))
    assert len(table) == 6
    assert set(table["reason"]) == {NOT_MEASURED, NO_MEASURE}
    assert table["ours"].isna().all()


def test_what_decides_makes_every_cell_incomparable(paper: Paper) -> None:
    quantised = Deviation("model.quantize", None, "4bit", True, "decides what the number is")
    fewer = Deviation("data.limit", 500, 20, False, "another number of cases")
    of = lines(paper, of_run(row("api:openai/gpt"), deviations=(quantised, fewer)))
    cell = of["GPT", "SST-2", "Nec%"]
    assert (cell["verdict"], cell["reason"]) == (NOT_COMPARABLE, DEVIATES)
    assert "model.quantize: this run: 4bit, the shipped config: null" in cell["why"]
    assert cell["ours"] == pytest.approx(10.0)
    assert lines(paper, of_run(row("api:openai/gpt"), deviations=(fewer,)))["GPT", "SST-2", "Nec%"][
        "verdict"
    ] == (WITHIN)


def test_of_several_runs_the_one_without_deviations_is_shown(paper: Paper) -> None:
    decides = Deviation("api.temperature", 0, 1, True, "decides what the number is")
    deviating = of_run(row("api:openai/gpt", n=500), run="runs/b", deviations=(decides,))
    few = of_run(row("api:openai/gpt", n=20), run="runs/few")
    many = of_run(row("api:openai/gpt", n=30), run="runs/many")
    assert lines(paper, deviating, few, many)["GPT", "SST-2", "Nec%"]["run"] == "runs/many"


def test_two_rows_of_ours_for_one_cell_are_not_chosen_between(paper: Paper) -> None:
    two = of_run(row("kimi", unit="sentence"), row("kimi", unit="paragraph"))
    cell = lines(paper, two)["Kimi", "SST-2", "Steps"]
    assert (cell["reason"], cell["why"]) == (
        UNCLEAR,
        "2 rows of the run match, which differ in unit",
    )


def test_another_quantity_stands_beside_and_is_never_called_within(paper: Paper) -> None:
    other = replace(TABLE, incomparable="The paper pools other pairs.")
    cell = lines(paper, of_run(row("api:openai/gpt")), published=other)["GPT", "SST-2", "Nec%"]
    assert (cell["reason"], cell["why"]) == (OTHER_QUANTITY, "The paper pools other pairs.")


def test_our_own_models_follow_at_the_places_of_the_table(paper: Paper) -> None:
    run = of_run(row("mine"), row("mine", task="other"), row("overall"), planned={})
    table = beside(paper, TABLE, read_cells(paper.cells), [run])
    own = table[table["model"] == "mine"]
    assert own["column"].tolist() == ["Nec%", "Mode", "Steps"]
    assert set(own["task"]) == {"SST-2"}
    assert own["published"].isna().all()
    assert own["verdict"].isna().all()
    assert "overall" not in set(table["model"])


def test_rows_of_another_way_of_measuring_are_not_ours(paper: Paper) -> None:
    table = pd.DataFrame([row("kimi", framing="prefix")])
    assert numbers_for(TABLE, {"slrc": table}) is None
    assert numbers_for(TABLE, {}) is None


def test_numbers_as_keys_are_matched_by_their_value(paper: Paper) -> None:
    ends = {"agree_low": [0.5], "agree_high": [0.82]}
    frame = pd.DataFrame({"threshold": [0.3], "agree": [0.8], **ends, "n": [1000]})
    run = NumbersOfRun("runs/a", frame)
    cell = lines(paper, run, published=THRESHOLDS)["0.30", "Agree"]
    assert (cell["ours"], cell["rule"], cell["verdict"]) == (80.0, "both samples", WITHIN)
    fewer = Deviation("tasks", ["a", "b"], ["a"], True, "every cell pools over it", pools=True)
    cell = lines(paper, replace(run, deviations=(fewer,)), published=THRESHOLDS)["0.30", "Agree"]
    assert (cell["ours"], cell["reason"]) == (80.0, POOLED)


@pytest.mark.parametrize(
    ("value", "low", "high", "n", "expected", "rule"),
    [
        (10.0, 8.45, 12.0, math.nan, WITHIN, "our interval"),  # 8.4 stands for up to 8.45
        (10.0, 8.46, 12.0, math.nan, OUTSIDE, "our interval"),
        (10.01, 9.0, 11.0, 500, OUTSIDE, "both samples"),  # √2 of 1 is 1.41
        (10.01, 8.8, 11.0, 500, WITHIN, "both samples"),  # √2 of 1.2 is 1.70
        (10.0, 9.9, 10.1, 500, WITHIN, "both samples"),  # 50 of 500 have [7.5, 13.0] at least
        (8.4, math.nan, math.nan, 4, NOT_COMPARABLE, ""),
        (8.4, 8.4, 8.4, 50, NOT_COMPARABLE, ""),
    ],
)
def test_the_rule_of_verdicts(
    paper: Paper, value: float, low: float, high: float, n: float, expected: str, rule: str
) -> None:
    cell = read_cells(paper.cells)[0]
    outcome = verdict(cell, value, low, high, n)
    assert (outcome.verdict, outcome.rule) == (expected, rule)


@pytest.mark.parametrize(("n_given", "least", "most"), [(500, 0.93, 0.97), (None, 0.81, 0.87)])
def test_an_exact_repetition_is_within_as_often_as_the_rule_says(
    n_given: int | None, least: float, most: float
) -> None:
    """Both sides draw 500 cases with the same probability: 95 of 100 cells are within where the
    paper gives its n, and five of six where it does not."""
    rng = np.random.default_rng(0)
    within = 0
    for theirs, ours in rng.binomial(500, 0.3, size=(1000, 2)).tolist():
        of = wilson(ours, 500)
        cell = Cell("t", {}, "Nec%", round(theirs / 5, 1), "%", 1, n_given, "", "")
        numbers = (100 * of.value, 100 * of.low, 100 * of.high)
        within += verdict(cell, *numbers, 500).verdict == WITHIN
    assert least < within / 1000 < most


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("table,column\n", "its columns are"),
        (HEADER + "t,GPT,,,Nec%,1,percent,1,,T,\n", ":2: unknown unit 'percent'; known: %, pp"),
        (HEADER + "t,GPT,,,Nec%,a,%,1,,T,\n", ":2: value 'a' is no number with a point"),
        (HEADER + "t,GPT,,,Nec%,1,%,one,,T,\n", ":2: decimals 'one' is no whole number"),
        (HEADER + "t,GPT,,,Nec%,,%,1,,T,\n", ":2: a cell without a value needs a doubt"),
        (HEADER + "t,GPT,,,,1,%,1,,T,\n", ":2: column 'column' is empty"),
        (HEADER + "t,GPT,,,N,1,%,1,,T\n", ":2: has 10 values for 11 columns"),
        (HEADER + 2 * "t,GPT,,,N,1,%,1,,T,\n", ":3: is the second row of cell t, model=GPT, N"),
    ],
)
def test_a_file_of_cells_with_an_error_is_refused_with_its_line(
    tmp_path: Path, wrong: str, message: str
) -> None:
    path = tmp_path / "paper.csv"
    path.write_text(wrong, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_cells(path)
    assert message in str(error.value)


def test_a_missing_file_of_cells_and_an_unknown_table_are_named(paper: Paper) -> None:
    with pytest.raises(UserError, match="published cells cannot be read"):
        read_cells(Path("nowhere.csv"))
    with pytest.raises(UserError, match="toy: no table 'tabel1'; did you mean 'table1'"):
        paper.table("tabel1")


def test_deviations_are_made_from_the_two_configs(paper: Paper) -> None:
    theirs = paper_config(TABLE)
    ours = {
        **theirs,
        "name": "mine",
        "seed": 7,
        "model": theirs["model"] | {"name": ["planted:hint", "planted:select"], "quantize": "4bit"},
        "data": theirs["data"] | {"limit": 3, "path": {"gsm8k": "here.jsonl"}},
        "generation": theirs["generation"] | {"temperature": 0.7, "max_new_tokens": 9},
        "report": theirs["report"] | {"own": 1},
    }
    of = {d.key: d for d in deviations(paper, TABLE, ours, theirs)}
    assert [key for key, d in of.items() if d.decides] == [
        "model.quantize",
        "generation.temperature",
        "report.own",
    ]
    assert of["report.own"].effect == "not known to be open in the paper, so it counts"
    assert of["generation.max_new_tokens"].line == (
        "generation.max_new_tokens: the paper does not say; this run: 9, the shipped config: 256"
    )
    assert {"seed", "model.name", "data.limit", "data.path.gsm8k"} < of.keys()
    assert "name" not in of
    assert of["model.name"].line == (
        "model.name: 1 of the paper's 3 and planted:select (each entry has rows of its own)"
    )
    assert of["generation.temperature"].line == (
        "generation.temperature: the paper (4.6): 0.0; this run: 0.7 (decides what the number is)"
    )
    assert deviations(paper, TABLE, theirs, theirs) == []
    nearer = {**theirs, "model": theirs["model"] | {"quantize": "8bit"}}
    assert deviations(paper, TABLE, nearer, theirs) == []


def test_a_list_that_cells_pool_over_decides(paper: Paper) -> None:
    theirs = paper_config(TABLE)
    ours = {**theirs, "tasks": ["planted"]}
    apart = replace(paper, row_keys=("tasks",))
    assert [d.decides for d in deviations(apart, TABLE, ours, theirs)] == [False]
    (pooled,) = deviations(apart, THRESHOLDS, ours, theirs)
    assert (pooled.decides, pooled.pools) == (True, True)
    unread = replace(paper, independent_of=("tasks",))
    assert deviations(unread, TABLE, ours, theirs) == []


def test_a_specification_that_does_not_fit_its_cells_is_named(paper: Paper) -> None:
    assert problems(paper) == []
    wrong = replace(
        TABLE,
        config="quickstrat",
        columns={**TABLE.columns, "Suf%": "sufficiency"},
        no_counterpart={"Dollars": "Theirs."},
        keys={"model": "model"},
    )
    more = replace(THRESHOLDS, name="table3")
    named = replace(paper, names={"model": {"GTP": "gpt", "Kimi": "kimi"}})
    assert problems(named) == ["table1: model 'GPT' has no entry in names"]
    assert problems(replace(paper, tables=(wrong, more))) == [
        "table1: quickstrat: no such file, nor a shipped config; did you mean 'quickstart'?",
        "table1: key 'task' is not in Published.keys",
        "table1: no column of ours for heading 'Hours'",
        "table1: without: no cell has 'Dollars'",
        "table1: no cell has heading 'Suf%'",
        "table3: no cell is of this table",
        "table2: has cells, and no specification",
    ]


def test_a_table_names_its_config_or_says_why_it_has_none() -> None:
    with pytest.raises(ValueError, match="table6: give the config that carries it out, or why_not"):
        Published("table6", "Hours of training.")
