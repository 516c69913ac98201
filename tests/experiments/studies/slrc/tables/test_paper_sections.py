"""Layouts of what the SLRC paper prints in its text: other prompts, layers, pairs, and groups of
models in Table 1."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from layer_tables import layer_tables
from printed_cells import printed
from probe_records import bare_trace, slrc_outcome
from sample_records import sample_run, write_run

from faithscope.experiments.analysis.published.layout import PaperTable, printed_tables
from faithscope.experiments.studies.slrc import STUDY
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.experiments.studies.slrc.paper_rows import MEMBERS, members

GROUPS = {"Trained": ("r",), "Small": ("s", "a")}
PAIRS = {"lab": ("g", "r")}


def of_model(model: str, task: str, necessary: int, steps: int = 10) -> list[dict]:
    needed, alone = [i < necessary for i in range(steps)], [False] * steps
    made = [slrc_outcome(model, task, str(i), needed, alone, i < 8, "reprompt") for i in range(10)]
    traces = [bare_trace(model, task, str(i)) for i in range(10)]
    return [*made, *traces]


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    necessity = {"g": 1, "r": 9, "s": 4, "a": 2}
    records = [r for model, n in necessity.items() for r in of_model(model, "sst2", n)]
    records += of_model("g", "sst2:alternative", 3, steps=5)
    how = SlrcAnalysis(resamples=20, groups=GROUPS, pairs=PAIRS)
    return tables_of(records, analysis=how)


def laid_out(tables: dict[str, pd.DataFrame]) -> dict[str, PaperTable]:
    return {t.name.removeprefix("paper_slrc_"): t for t in printed_tables(PAPER, tables)}


@pytest.fixture(scope="module")
def made(tables: dict[str, pd.DataFrame]) -> dict[str, PaperTable]:
    return laid_out(tables | {MEMBERS: members(GROUPS)})


def test_table_1_lists_models_by_group_with_the_mean_of_each(made):
    printed_rows = made["table1"].printed
    assert printed_rows[["group", "model", "SST-2 Nec%"]].values.tolist() == [
        ["", "g", "10.0%"],
        ["Trained", "r", "90.0%"],
        ["Trained", "Trained", "90.0%"],
        ["Small", "a", "20.0%"],
        ["Small", "s", "40.0%"],
        ["Small", "Small", "30.0%"],
    ]
    assert printed_rows["SST-2 Shuf%"].tolist()[-1] == "–"


def test_section_2_6_has_both_prompts_and_what_necessity_gains(made):
    table = made["section2_6"]
    (line,) = table.printed.to_dict("records")
    assert (line["model"], line["task"], line["variant"]) == ("g", "SST-2", "Alternative CoT")
    necessity = [line[heading] for heading in ("Nec%, standard", "Nec%", "Difference")]
    assert necessity == ["10.0%", "60.0%", "50.0pp"]
    assert {c["column"] for c in printed("slrc", "section2_6")} <= set(line)
    data = table.data.set_index("heading")
    for heading in ("Nec%, standard", "Nec%", "Acc%", "Difference"):
        low, middle, high = data.loc[heading, ["low", "value", "high"]]
        assert low <= middle <= high


def test_section_3_2_has_necessity_of_both_models(made):
    lines = made["section3_2"].printed[["pair", "model", "SST-2 Nec%", "SST-2 Difference"]]
    assert lines.values.tolist() == [["lab", "g", "10.0%", "–"], ["lab", "r", "90.0%", "80.0pp"]]


def test_section_2_7_prints_what_the_paper_prints():
    tables = layer_tables()
    table = laid_out(tables)["section2_7"]
    (line,) = table.printed.to_dict("records")
    for cell in printed("slrc", "section2_7"):
        ours = float(line[cell["column"]].rstrip("%"))
        assert ours == pytest.approx(float(cell["value"])), cell
    data = table.data.set_index("heading")
    low, high = data["low"], data["high"]
    for heading in ("CoT", "Question"):
        assert low[heading] < data["value"][heading] < high[heading]
    assert low["CoT"] + high["Question"] == pytest.approx(1)


def test_section_2_7_leaves_out_attention_that_is_of_several_units():
    tables = layer_tables()
    both = [tables["attention"], layer_tables(unit="paragraph")["attention"]]
    tables["attention"] = pd.concat(both, ignore_index=True)
    (line,) = laid_out(tables)["section2_7"].printed.to_dict("records")
    assert (line["CoT"], line["Question"], line["Stable layer"]) == ("–", "–", "7.0")


@pytest.mark.slow
def test_groups_and_pairs_of_the_config_are_on_the_page_of_a_run(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", sample_run())
    config = json.loads((run_dir / "config.yaml").read_text("utf-8"))
    models = config["model"]["name"]
    config["report"] = {"groups": {"Twins": models[:2]}, "pairs": {"twins": models[-2:]}}
    config["report"] |= {"bootstrap": 10}
    (run_dir / "config.yaml").write_text(json.dumps(config), "utf-8")
    STUDY.report().write(run_dir)
    for name in ("model_groups", "model_pairs", "paper_slrc_section3_2"):
        assert (run_dir / "tables" / f"{name}.csv").read_text("utf-8").count("\n") > 1, name
    assert "Groups and pairs of models" in (run_dir / "report.html").read_text("utf-8")
