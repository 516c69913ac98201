"""A run's tables in the SLRC paper's layout: the tidy tables' numbers, printed as there."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from printed_cells import printed, value
from sample_records import sample_run

from faithscope.experiments.analysis.published.comparison import numbers_for
from faithscope.experiments.analysis.published.layout import PaperTable, printed_tables
from faithscope.experiments.analysis.textual import to_latex, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.experiments.studies.slrc.paper_rows import size

WAY = {"framing": "reprompt", "reading": "generated", "unit": "sentence"}


def slrc_row(model: str, task: str, necessity: float, sufficiency: float, **rest) -> dict:
    row = {"model": model, "task": task, **WAY, "n": 100, "accuracy": 0.9}
    row |= {f"accuracy{end}": 0.9 for end in ("_low", "_high")}
    row |= {f"accuracy_written{end}": 0.8 for end in ("", "_low", "_high")}
    row |= {"necessity": necessity, "sufficiency": sufficiency}
    row |= {"slrc": necessity * (1 - sufficiency), "order_sensitivity": 0.25}
    return row | rest


def of_minimax(task: str) -> dict[str, dict[str, str]]:
    """Column -> cell of MiniMax-M2.5 in the paper's Table 1."""
    return {c["column"]: c for c in printed("slrc", "table1", model="MiniMax-M2.5", task=task)}


def shares(task: str) -> list[float]:
    return [value(of_minimax(task)[column]) for column in ("Nec%", "Suf%")]


SLRC = pd.DataFrame(
    [
        slrc_row("org/big", "sst2", *shares("SST-2")),
        slrc_row("org/big", "gsm8k", *shares("GSM8K")),
        slrc_row("org/big", "medqa", 0.032, 0.789),
        slrc_row("org/big", "single_cue", 0.18, 0.9),
        slrc_row("org/big", "sst2:alternative", 0.5, 0.5),
        slrc_row("org/small", "sst2", 0.001, 0.982),
        slrc_row("org/small", "conflicting_cue", 0.30, 0.5),
        slrc_row("org/small", "sst2", 0.4, 0.5, framing="prefix"),
    ]
)
STEPS = pd.DataFrame(
    {
        "model": ["org/big", "org/big", "org/small"],
        "task": ["sst2", "medqa", "sst2"],
        "multi_step": [0.99, 0.38, 1.0],
        "mean_steps": [8.2, 1.44, math.nan],
        "sd_steps": 1.0,
        "n": [100, 100, 100],
        "unit": "sentence",
    }
)
MODELS = pd.DataFrame(
    [
        {"model": "org/big", "parameters": 117_000_000_000, "active_parameters": 5_100_000_000},
        {"model": "org/small", "parameters": 135_000_000, "active_parameters": 135_000_000},
    ]
)
TABLES = {"slrc": SLRC, "steps": STEPS, "models": MODELS}


def laid_out(tables: dict[str, pd.DataFrame]) -> dict[str, PaperTable]:
    return {t.name.removeprefix("paper_slrc_"): t for t in printed_tables(PAPER, tables)}


@pytest.fixture(scope="module")
def made() -> dict[str, PaperTable]:
    return laid_out(TABLES)


def test_table_1_prints_what_the_paper_prints(made):
    lines = made["table1"].printed.to_dict("records")
    big = next(r for r in lines if r["model"] == "org/big")
    for task in ("SST-2", "GSM8K"):
        for column, unit in (("Nec%", "%"), ("Suf%", "%"), ("SLRC", "")):
            assert big[f"{task} {column}"] == of_minimax(task)[column]["value"] + unit
    small = [r for r in lines if r["model"] == "org/small"]
    assert [r["framing"] for r in small] == ["reprompt", "prefix"]
    assert small[0]["GSM8K Nec%"] == "–"


def test_the_data_are_fractions_one_a_row(made):
    data = where(made["table1"].data, model="org/big", task="sst2", heading="Nec%")
    assert data[["value", "n"]].values.tolist() == [[0.371, 100]]
    assert set(made["table1"].data["task"]) == {"sst2", "gsm8k"}


def test_what_edits_are_compared_with_tells_rows_apart():
    """The paper has the response's own answer; a run has both, and only one stands beside it."""
    both = TABLES | {"slrc_original": SLRC.drop(columns=ACCURACY).assign(necessity=0.5)}
    of_both = laid_out(both)
    big = where(of_both["table1"].printed, model="org/big")
    assert big[["reference", "SST-2 Nec%"]].values.tolist() == [
        ["stated", "50.0%"],
        ["asked_again", "37.1%"],
    ]
    assert big["SST-2 Acc%"].tolist() == ["80.0%", "90.0%"]
    stated = numbers_for(PAPER.table("table1"), both)
    assert stated is not None
    assert set(stated["reference"]) == {"stated"}
    assert numbers_for(PAPER.table("table1"), TABLES) is None


ACCURACY = [name for name in SLRC if name.startswith("accuracy")]


def test_table_3_has_a_column_per_model_and_only_cue_tasks(made):
    table = made["table3"]
    assert table.printed["task"].tolist() == ["Single-cue", "Conflicting-cue"]
    assert table.printed["org/small"].tolist() == ["–", "30.0%"]
    assert where(table.data, model="org/big")["value"].tolist() == [0.18]


def test_table_5_names_the_tasks_on_which_steps_matter(made):
    lines = {(r["model"], r["framing"]): r for r in made["table5"].printed.to_dict("records")}
    big = lines["org/big", "reprompt"]
    assert (big["Total"], big["Active"], big["MoE?"]) == ("117B", "5.1B", "Yes")
    assert big["Faithful?"] == "SST-2"
    small = lines["org/small", "reprompt"]
    assert (small["MoE?"], small["Faithful?"]) == ("Dense", "Conflicting-cue")


def test_extended_data(made):
    rigid = made["ed4"].printed.to_dict("records")
    assert rigid[0] == {"model": "org/big", "SST-2": "99.0%", "MedQA": "38.0%"}
    steps = made["ed6"].printed.to_dict("records")
    assert steps[1] == {"model": "org/small", "SST-2": "–", "MedQA": "–"}
    rest = made["ed5"].printed
    assert rest["task"].tolist() == ["MedQA"]
    assert rest[["Nec%", "Suf%", "Acc%"]].values.tolist() == [["3.2%", "78.9%", "90.0%"]]


def test_responses_are_pooled_over_units_and_steps_are_not():
    both = pd.concat([STEPS, STEPS.assign(unit="paragraph", multi_step=0.0, n=300)])
    of_both = laid_out({"steps": both})
    assert where(of_both["ed4"].data, model="org/big")["value"].tolist() == [0.99 / 4, 0.38 / 4]
    assert where(of_both["ed6"].data, task="sst2")["unit"].tolist() == ["sentence", "paragraph"]


def test_table_2_has_the_mode_of_every_pair():
    taxonomy = pd.DataFrame(
        [
            {"model": "a", "task": "sst2", "gap": 0.69, "necessity": 0.37, "mode": "genuine"},
            {"model": "b", "task": "gsm8k", "gap": 0.94, "necessity": 0.01, "mode": "scaffolding"},
        ]
    ).assign(**WAY)
    lines = laid_out({"taxonomy": taxonomy})["table2"].printed.values.tolist()
    assert lines == [
        ["a", "SST-2", "69.0pp", "37.0%", "genuine"],
        ["b", "GSM8K", "94.0pp", "1.0%", "scaffolding"],
    ]


def test_extended_data_3_prints_shares_of_pairs():
    sensitivity = pd.DataFrame([{**WAY, "necessity_threshold": 0.2}])
    classes = sensitivity.assign(n=12, n_consistent=9, consistent=0.75, tasks="classification")
    every = sensitivity.assign(n=18, n_consistent=12, consistent=12 / 18, tasks="all")
    table = laid_out({"threshold_sensitivity": pd.concat([every, classes])})["ed3"].printed
    for tasks in ("Classification", "All tasks"):
        pairs, share = printed("slrc", "ed3", task=tasks, row="0.20")
        (line,) = table[[f"{tasks} {heading}" for heading in ("Pairs", "of", "Share")]].values
        assert line[:2].tolist() == [pairs["value"], pairs["n"]]
        assert round(float(line[2].rstrip("%"))) == int(share["value"])


def test_table_4_prints_points_and_classes():
    """Two rows of the paper: R1 on SST-2, Qwen3-8B on MedQA."""
    columns = ["model", "task", "real", "shuffled", "gap", "signal", "gap_drop", "signal_drop"]
    r1 = printed("slrc", "table4", model="DeepSeek-R1", task="SST-2")
    qwen = printed("slrc", "table4", model="Qwen3-8B", task="MedQA")
    attention = pd.DataFrame(
        [
            ["org/small", "sst2", *map(value, r1[:3]), "semantic", math.nan, ""],
            ["org/big", "medqa", *map(value, qwen[:3]), "positional", -0.02, "positional"],
        ],
        columns=columns,
    ).assign(unit="sentence")
    small, big = laid_out({"attention": attention})["table4"].printed.to_dict("records")
    for line, cells in ((small, r1), (big, qwen)):
        real, shuffled, gap, signal = (c["value"] for c in cells)
        assert (line["Real"], line["Shuf"]) == (f"{real}.0%", f"{shuffled}.0%")
        assert (line["Gap"], line["Signal"]) == (f"{gap}.0pp", signal.lower())
    assert (small["Gap, drop"], small["Signal, drop"]) == ("–", "–")
    assert big["Gap, drop"] == "−2.0pp"


def test_a_run_without_the_papers_tasks_leaves_only_what_it_has():
    found = laid_out(tables_of(sample_run(), analysis=SlrcAnalysis(resamples=10)))
    assert set(found) == {"table1", "table5", "ed4", "ed5", "ed6"}


def test_they_render(made):
    for table in made.values():
        assert to_markdown(table.printed).count("\n") == len(table.printed) + 2
        assert r"\toprule" in to_latex(table.printed)


def test_sizes_are_short():
    sizes = (135_000_000, 8_190_000_000, 10**12, 363, math.nan)
    assert [size(n) for n in sizes] == ["135M", "8.19B", "1T", "363", ""]
