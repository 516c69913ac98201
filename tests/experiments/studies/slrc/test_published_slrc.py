"""The transcription of the SLRC paper's tables, held to what the paper itself determines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from layer_tables import layer_tables
from printed_cells import Cell, half_unit, printed, value
from sample_records import REAL, sample_run

from faithscope.experiments.analysis.published import (
    NumbersOfRun,
    beside,
    problems,
    read_cells,
)
from faithscope.experiments.analysis.published.comparison import numbers_for
from faithscope.experiments.analysis.tidy import keep, where
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.measures.attention import signal
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.experiments.studies.slrc.paper_names import (
    DEEPSEEK,
    MODELS,
    OPUS,
    R1_32B,
)
from faithscope.experiments.studies.slrc.paper_rows import of_layers
from faithscope.experiments.studies.slrc.tables.outcomes import slrc_of
from faithscope.experiments.studies.slrc.tables.taxonomy import mode
from faithscope.interventions.trace import Question

TEXT = Path(__file__).resolve().parents[4].parent / "shared" / "papers" / "slrc.txt"
CELLS = printed("slrc")
TABLES = {
    "table1": 133,
    "table2": 31,
    "table3": 16,
    "table4": 60,
    "table5": 24,
    "table6": 11,
    "section2": 8,
    "section2_3": 9,
    "section2_6": 12,
    "section2_7": 8,
    "section2_7_steps": 1,
    "section3_2": 10,
    "ed1": 4,
    "ed2": 4,
    "ed3": 16,
    "ed4": 39,
    "ed5": 51,
    "ed6": 21,
}


def by_pair(table: str) -> dict[tuple[str, str], dict[str, Cell]]:
    """Model and task -> column -> cell."""
    pairs: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in printed("slrc", table):
        pairs.setdefault((cell["model"], cell["task"]), {})[cell["column"]] = cell
    return pairs


def test_every_table_has_its_cells_once():
    assert Counter(c["table"] for c in CELLS) == TABLES
    places = Counter((c["table"], c["model"], c["task"], c["row"], c["column"]) for c in CELLS)
    assert set(places.values()) == {1}


def test_cells_are_numbers_of_the_decimals_that_they_claim():
    for cell in CELLS:
        assert cell["unit"] in ("%", "pp", "", "n", "word", "hours"), cell
        assert cell["n"] == "" or int(cell["n"]) > 0
        assert not cell["doubt"] or cell["doubt"].endswith("."), cell
        if not cell["value"]:
            assert cell["doubt"], cell
        elif cell["unit"] != "word":
            assert float(cell["value"]) is not None
            assert len(cell["value"].partition(".")[2]) == int(cell["decimals"]), cell


def _slrc_rows() -> list[tuple[str, dict[str, Cell]]]:
    return [
        (f"{model}, {task}", cells)
        for (model, task), cells in by_pair("table1").items()
        if "SLRC" in cells
    ]


@pytest.mark.parametrize(("pair", "cells"), _slrc_rows(), ids=lambda x: x if type(x) is str else "")
def test_slrc_is_necessity_times_one_less_sufficiency(pair, cells):
    """All three were rounded before they were printed."""
    necessity, sufficiency, slrc = (cells[name] for name in ("Nec%", "Suf%", "SLRC"))
    low = slrc_of(
        value(necessity) - half_unit(necessity), value(sufficiency) + half_unit(sufficiency)
    )
    high = slrc_of(
        value(necessity) + half_unit(necessity), value(sufficiency) - half_unit(sufficiency)
    )
    assert low - half_unit(slrc) - 1e-12 <= value(slrc) <= high + half_unit(slrc) + 1e-12


def test_slrc_is_the_rounded_product_almost_everywhere():
    rows = [cells for pair, cells in _slrc_rows() if not pair.startswith("Small")]
    exact = [
        round(slrc_of(value(c["Nec%"]), value(c["Suf%"])), 3) == value(c["SLRC"]) for c in rows
    ]
    assert len(exact) == 28
    assert sum(exact) >= len(exact) - 1


def test_the_gap_of_table_4_is_real_less_shuffled_and_gives_the_signal():
    pairs = by_pair("table4")
    assert len(pairs) == 15
    for pair, cells in pairs.items():
        left = value(cells["Real"]) - value(cells["Shuf"])
        fits = abs(left - value(cells["Gap"])) <= 3 * half_unit(cells["Gap"]) - 1e-9
        assert fits != bool(cells["Gap"]["doubt"]), pair
        assert signal(value(cells["Gap"])) == cells["Signal"]["value"].lower(), pair


def test_the_pairs_of_table_2_stand_in_the_field_of_their_mode():
    defaults = TaxonomyConfig()
    for (model, task), cells in by_pair("table2").items():
        if model:
            found = mode(
                value(cells["Nec%"]), value(cells["Gap"]), defaults.necessity, defaults.gap
            )
            assert found == cells["Mode"]["value"].lower(), (model, task)
    counts = {c["row"]: c for c in printed("slrc", "table2", column="Pairs")}
    assert list(counts) == ["Genuine", "Empty", "Scaffolding", "Decorative"]
    assert {int(c["n"]) for c in counts.values()} == {sum(int(c["value"]) for c in counts.values())}


def test_the_ratios_of_extended_data_3():
    rows = printed("slrc", "ed3", column="Share")
    for share in rows:
        (pairs,) = printed("slrc", "ed3", column="Pairs", task=share["task"], row=share["row"])
        assert pairs["n"] == share["n"]
        assert round(100 * int(pairs["value"]) / int(pairs["n"])) == int(share["value"])
    assert {c["row"] for c in rows} == {f"{x:.2f}" for x in TaxonomyConfig().sensitivity}


def test_multi_step_responses_are_the_items_of_extended_data_5():
    """Items with fewer than two steps are left out of 500 (4.1), so the share of Extended Data 4 is
    the number of items in Extended Data 5."""
    measured = {pair: int(cells["Nec%"]["n"]) for pair, cells in by_pair("ed5").items()}
    short = {"Nemotron-Ultra": "Nemotron", "Kimi-K2.5": "Kimi-K2.5"}
    checked = 0
    for cell in printed("slrc", "ed4"):
        n = measured.get((short.get(cell["model"], cell["model"]), cell["task"]))
        if n is not None:
            checked += 1
            fits = abs(value(cell) - n / 500) <= half_unit(cell)
            assert fits != bool(cell["doubt"]), cell
    assert checked == 13


def test_what_two_places_print_differs_by_rounding_alone():
    """Necessity in Table 2 and section 3.2, and the corrected parser's row of Extended Data 2."""
    full = {
        (SHORT.get(m, m), t): c for (m, t), c in (by_pair("table1") | by_pair("ed5")).items() if m
    }
    checked = 0
    for cell in [
        *printed("slrc", "table2", column="Nec%"),
        *printed("slrc", "section3_2"),
        *printed("slrc", "ed2", row="corrected parser"),
    ]:
        of = full.get((SHORT.get(cell["model"], cell["model"]), cell["task"]))
        if of and not cell["doubt"]:
            checked += 1
            assert abs(value(of[cell["column"]]) - value(cell)) <= half_unit(cell) + 1e-9, cell
    assert checked == 19


SHORT = {
    "MiniMax-M2.5": "MiniMax",
    "Nemotron-Ultra": "Nemotron",
    "Kimi-K2.5": "Kimi",
    "GPT-OSS-120B": "GPT-OSS",
    "DeepSeek-V3.2": "DeepSeek",
    "V3.2": "DeepSeek",
    "Claude Opus 4.6-R": "Claude",
    "Claude Opus": "Claude",
    "DeepSeek-R1-32B": "R1-32B",
}


def test_prompts_of_section_2_6_differ_by_what_it_says():
    for row in ("Self-justification", "Alternative CoT"):
        cells = {c["column"]: c for c in printed("slrc", "section2_6", row=row)}
        left = value(cells["Nec%"]) - value(cells["Nec%, standard"])
        assert left == pytest.approx(value(cells["Difference"]))


def test_layers_of_section_2_7_have_the_depth_that_it_says():
    cells = {c["column"]: c for c in printed("slrc", "section2_7")}
    for name in ("Stable", "Peak"):
        depth = value(cells[f"{name} layer"]) / value(cells["Layers"])
        assert abs(depth - value(cells[f"{name} depth"])) <= half_unit(cells[f"{name} depth"])
    assert value(cells["CoT"]) + value(cells["Question"]) == pytest.approx(1)


def test_the_prompts_of_extended_data_1_are_those_that_a_run_asks():
    asked = {(c["task"], c["column"]): c["value"] for c in printed("slrc", "ed1")}
    q = Question("q", "d", "{text}", "number")
    sentiment, math = get_task("sst2"), get_task("gsm8k")
    assert asked == {
        ("SST-2", "CoT"): sentiment.cot_prompt(q),
        ("GSM8K", "CoT"): math.cot_prompt(q),
        ("SST-2", "Necessity"): sentiment.necessity_prompt(q, "{remaining steps}"),
        ("SST-2", "Sufficiency"): sentiment.sufficiency_prompt(q, "{step}"),
    }


@pytest.mark.skipif(not TEXT.is_file(), reason="the paper's text is not here")
def test_every_number_stands_in_the_papers_text():
    text = TEXT.read_text(encoding="utf-8")
    for cell in CELLS:
        if cell["unit"] != "word" and cell["value"]:
            assert cell["value"].removeprefix("-").removeprefix("0") in text, cell


def test_the_specification_fits_the_cells():
    assert problems(PAPER) == []


def beside_cells(name: str, tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The cells of a printed table beside the numbers of one run."""
    published = PAPER.table(name)
    numbers = numbers_for(published, tables)
    assert numbers is not None
    return beside(PAPER, published, read_cells(PAPER.cells), [NumbersOfRun("run", numbers)])


def test_a_training_stands_beside_table_6_and_is_called_another_quantity():
    row = {"model": MODELS["R1-Qwen-1.5B"], "method": "lc_cosr"}
    row |= {"reward": -0.2, "hours": 5.24, "projections": 0}
    table = beside_cells("table6", {"training_methods": pd.DataFrame([row])})
    own = keep(table, table["row"] == "LC-CoSR").set_index("column")
    assert own["ours"].to_dict() == {"Reward": -0.2, "Time (hrs)": 5.24, "Projections": 0}
    assert set(own["verdict"]) == {"not comparable"}
    assert own["reason"].to_dict() == {
        "Reward": "doubtful in the paper",
        "Time (hrs)": "another quantity",
        "Projections": "another quantity",
    }
    assert set(keep(table, table["row"] != "LC-CoSR")["reason"]) == {"not measured"}


def run_of(model: str, task: str) -> list[dict]:
    """SLRC records of a small run under another name of model and task."""
    return [r | {"model": model, "task": task} for r in sample_run() if r["model"] == REAL]


def test_section_2_6_stands_beside_numbers_held_against_the_response():
    records = run_of(DEEPSEEK[0], "sst2")
    for variant, n in (("alternative", 6), ("self_justification", 9)):
        some = [r for r in records if int(r["item"].removeprefix("mr-")) < n]
        records = [
            *records,
            *(r | {"task": f"sst2:{variant}"} for r in some if ":" not in r["task"]),
        ]
    tables = tables_of(records, analysis=SlrcAnalysis(resamples=20))
    lines = beside_cells("section2_6", tables)
    assert len(lines) == TABLES["section2_6"]
    of = {(r["row"], r["column"]): r for r in lines.to_dict("records")}
    way = {"framing": "reprompt", "reading": "generated"}
    for row, task in (
        ("Alternative CoT", "sst2:alternative"),
        ("Self-justification", "sst2:self_justification"),
    ):
        for heading, of_task in (("Nec%", task), ("Nec%, standard", "sst2")):
            (held,) = where(tables["slrc_original"], task=of_task, **way).to_dict("records")
            assert of[row, heading]["ours"] == pytest.approx(100 * held["necessity"])
            assert of[row, heading]["high"] == pytest.approx(100 * held["necessity_high"])
        difference = of[row, "Difference"]
        assert difference["low"] <= difference["ours"] <= difference["high"]
    (steps,) = where(tables["steps"], task="sst2:self_justification").to_dict("records")
    ours = of["Self-justification", "Steps"]
    assert ours["ours"] == pytest.approx(steps["mean_steps"])
    assert ours["low"] < ours["ours"] < ours["high"]
    again = {name: table for name, table in tables.items() if name != "slrc_original"}
    assert numbers_for(PAPER.table("section2_6"), again) is None


def test_section_3_2_and_the_corrected_parser_stand_beside_their_models_rows():
    pairs = {"V3.2": DEEPSEEK[0], "R1-32B": R1_32B[1], "Claude": OPUS}
    tasks = {"SST-2": "sst2", "GSM8K": "gsm8k", "AG News": "ag_news"}
    records = [r for m in pairs.values() for t in tasks.values() for r in run_of(m, t)]
    tables = tables_of(records, analysis=SlrcAnalysis(resamples=5))
    labs = beside_cells("section3_2", tables)
    measured = keep(labs, labs["ours"].notna() & labs["published"].notna())
    assert set(measured["model"]) == {"V3.2", "R1-32B"}
    assert len(measured) == 4
    parsers = beside_cells("ed2", tables)
    assert parsers["ours"].notna().tolist() == [
        False,
        False,
        True,
        True,
        *[True] * (len(parsers) - 4),
    ]
    assert parsers["why"].iloc[0].startswith("The first parser took")


def test_layers_stand_beside_section_2_7_and_are_missing_without_their_probes():
    assert of_layers({}) is None
    tables = layer_tables("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B")
    lines = beside_cells("section2_7", tables)
    assert dict(Counter(lines["verdict"])) == {"within": 7, "not comparable": 1}
    assert lines["low"].notna().sum() == 7
