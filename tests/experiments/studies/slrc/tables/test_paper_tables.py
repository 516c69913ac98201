"""The paper's layouts hold the tidy tables' numbers, and print as the paper prints."""

import math

import pandas as pd
import pytest
from printed_cells import printed, value
from sample_records import sample_run

from faithscope.experiments.analysis.paper_table import PaperTable, fraction, percent
from faithscope.experiments.analysis.textual import to_latex, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.paper import paper_tables, size

MODELS = {
    "org/big": {"parameters": 117_000_000_000, "active_parameters": 5_100_000_000},
    "org/small": {"parameters": 135_000_000, "active_parameters": 135_000_000},
}


def slrc_row(model: str, task: str, necessity: float, sufficiency: float, **rest) -> dict:
    row = {"model": model, "task": task, "framing": "reprompt", "reading": "generated", "n": 100}
    row |= {"accuracy": 0.9, "necessity": necessity, "sufficiency": sufficiency}
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
).assign(unit="sentence")
STEPS = pd.DataFrame(
    {
        "model": ["org/big", "org/big", "org/small"],
        "task": ["sst2", "medqa", "sst2"],
        "multi_step": [0.99, 0.38, 1.0],
        "mean_steps": [8.2, 1.44, math.nan],
        "n": [100, 100, 100],
        "unit": "sentence",
    }
)


@pytest.fixture(scope="module")
def made() -> dict[str, PaperTable]:
    return {t.name: t for t in paper_tables({"slrc": SLRC, "steps": STEPS}, MODELS)}


def test_table_1_prints_what_the_paper_prints(made):
    lines = made["paper_table1"].printed.to_dict("records")
    big = next(r for r in lines if r["Model"] == "org/big")
    for task in ("SST-2", "GSM8K"):
        for column in ("Nec%", "Suf%", "SLRC"):
            as_printed = of_minimax(task)[column]["value"].removeprefix("0")
            assert big[f"{task} {column}"] == as_printed
    small = [r for r in lines if r["Model"] == "org/small"]
    assert [r["Measured"] for r in small] == ["prefix, generated", "reprompt, generated"]
    assert small[0]["GSM8K Nec%"] == "—"


def test_the_data_are_fractions(made):
    table = where(made["paper_table1"].data, model="org/big")
    assert table["sst2_necessity"].tolist() == [0.371]
    assert "sst2:alternative_necessity" not in table.columns


def test_table_3_has_a_column_per_model_and_only_cue_tasks(made):
    table = made["paper_table3"]
    assert table.data["task"].tolist() == ["single_cue", "conflicting_cue"]
    assert table.data["org/big"].tolist()[0] == 0.18
    assert table.printed["org/small"].tolist() == ["—", "30.0"]


def test_table_5_names_the_tasks_on_which_steps_matter(made):
    lines = {
        (r["Model"], r["Measured"]): r for r in made["paper_table5"].printed.to_dict("records")
    }
    big = lines["org/big", "reprompt, generated"]
    assert (big["Total"], big["Active"], big["MoE?"]) == ("117B", "5.1B", "Yes")
    assert big["Faithful?"] == "SST-2"
    small = lines["org/small", "reprompt, generated"]
    assert (small["MoE?"], small["Faithful?"]) == ("Dense", "Conflicting-cue")


def test_extended_data(made):
    rigid = made["paper_ed4"].printed.to_dict("records")
    assert rigid[0] == {"Model": "org/big", "SST-2": "99.0", "MedQA": "38.0"}
    steps = made["paper_ed6"].printed.to_dict("records")
    assert steps[1] == {"Model": "org/small", "SST-2": "—", "MedQA": "—"}
    rest = made["paper_ed5"].printed
    assert rest["Task"].tolist() == ["MedQA"]
    assert rest[["Nec%", "Suf%", "Acc%"]].values.tolist() == [["3.2", "78.9", "90.0"]]


def test_table_2_puts_every_pair_in_the_field_of_its_mode():
    taxonomy = pd.DataFrame(
        [
            {"model": "a", "task": "sst2", "gap": 0.69, "necessity": 0.37, "mode": "genuine"},
            {"model": "b", "task": "gsm8k", "gap": 0.94, "necessity": 0.01, "mode": "scaffolding"},
            {"model": "b", "task": "sst2", "gap": -0.01, "necessity": 0.11, "mode": "decorative"},
        ]
    ).assign(framing="reprompt", reading="generated", unit="sentence")
    found = paper_tables({"slrc": SLRC, "steps": STEPS, "taxonomy": taxonomy}, MODELS)
    fields = next(t.printed for t in found if t.name == "paper_table2")
    assert fields["CoT helps"][0] == "Genuine (1 pair); a SST-2 (reprompt, generated) (+69/37%)"
    assert fields["CoT helps"][1].startswith("Scaffolding (1 pair); b GSM8K")
    assert fields["CoT doesn't help"].tolist()[0] == "Empty (0 pairs)"
    assert "(-1/11%)" in fields["CoT doesn't help"][1]


def test_extended_data_3_prints_shares_of_pairs():
    sensitivity = pd.DataFrame(
        [{"framing": "reprompt", "reading": "generated", "necessity_threshold": 0.2}]
    ).assign(n=12, n_consistent=9, as_gap=0.75, unit="sentence", tasks="classification")
    every = sensitivity.assign(n=18, n_consistent=12, as_gap=12 / 18, tasks="all")
    sensitivity = pd.concat([every, sensitivity])
    tables = {"slrc": SLRC, "steps": STEPS, "threshold_sensitivity": sensitivity}
    as_printed = {t.name: t for t in paper_tables(tables)}["paper_ed3"].printed
    for tasks in ("Classification", "All tasks"):
        pairs, share = printed("slrc", "ed3", task=tasks, row="0.20")
        line = f"{pairs['value']}/{pairs['n']} ({share['value']}%)"
        assert as_printed[tasks].tolist() == [line]


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
    found = paper_tables({"slrc": SLRC, "steps": STEPS, "attention": attention}, MODELS)
    table = next(t for t in found if t.name == "paper_table4")
    big, small = table.printed.to_dict("records")
    for line, cells in ((small, r1), (big, qwen)):
        real, shuffled, gap, signal = (c["value"] for c in cells)
        assert (line["Real"], line["Shuf"]) == (f"{real}%", f"{shuffled}%")
        assert (line["Gap"], line["Signal"]) == (f"+{gap}pp", signal)
    assert (small["Gap, drop"], small["Signal, drop"]) == ("—", "—")
    assert big["Gap, drop"] == "-2pp"
    assert table.data["real"].tolist() == [value(qwen[0]), value(r1[0])]


def test_a_run_without_the_papers_tasks_leaves_only_what_it_has():
    found = {
        t.name for t in paper_tables(tables_of(sample_run(), analysis=SlrcAnalysis(resamples=10)))
    }
    assert found == {"paper_table1", "paper_ed4", "paper_ed5", "paper_ed6"}


def test_they_render(made):
    for table in made.values():
        assert to_markdown(table.printed).count("\n") == len(table.printed) + 2
        assert r"\toprule" in to_latex(table.printed)


def test_formats():
    assert (percent(0.148), fraction(0.8687), fraction(1.0)) == ("14.8", ".869", "1.000")
    assert [size(n) for n in (135_000_000, 8_190_000_000, 10**12, 363)] == [
        "135M",
        "8.19B",
        "1T",
        "363",
    ]
