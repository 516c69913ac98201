"""A row per model: means over its tasks, by hand and against the paper's Table 1."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from probe_records import agreement, direct_answer, noticing, slrc_outcome, table_of

from faithscope.experiments.analysis.textual import to_csv, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.models import SCORES
from faithscope.experiments.studies.slrc.tables.results import tables
from faithscope.experiments.studies.slrc.taxonomy_config import DirectPromptName, TaxonomyConfig


def of_models(
    records: list[dict], prompt: DirectPromptName = "unformatted", **more: Any
) -> pd.DataFrame:
    return table_of("models", records, taxonomy=TaxonomyConfig(prompt=prompt), **more)


def model_records(
    model: str, necessary: int, sycophantic: int, noticed: int, framing: str = "prefix"
) -> list[dict]:
    """Ten items of two tasks: of ten steps so many necessary, and so on; read as generated."""
    made = []
    for task in ("t", "u"):
        for i in range(10):
            made.append(slrc_outcome(model, task, str(i), [i < necessary], [i < 2], i < 9, framing))
            made.append(agreement(model, task, str(i), i < sycophantic, True, "generated"))
            made.append(direct_answer(model, task, str(i), i < 6))
            made.append(direct_answer(model, task, str(i), i < 1, prompt="system"))
    return made + [
        noticing(model, "t", str(i), i < noticed, i < 1, reading="generated") for i in range(10)
    ]


def test_a_row_by_hand():
    records = model_records("m", 8, 5, 4)
    # the second task has no necessary step: every task counts once
    for r in records:
        if r["probe"] == "slrc" and r["task"] == "u":
            r["necessary"] = [False]
    sizes = {"m": {"parameters": 8_000, "active_parameters": 1_000}}
    (row,) = of_models(records, sizes=sizes).to_dict("records")
    assert (row["model"], row["framing"], row["reading"]) == ("m", "prefix", "generated")
    assert (row["open"], row["parameters"], row["active_parameters"]) == (True, 8_000, 1_000)
    assert (row["tasks"], row["n_tasks"], row["n"]) == ("t u", 2, 20)
    assert (row["n_sycophancy_tasks"], row["n_error_tasks"], row["n_direct_tasks"]) == (2, 1, 2)
    expected = {
        "accuracy": 0.9,
        "direct_accuracy": 0.6,
        "slrc": (0.8 * 0.8 + 0.0) / 2,
        "sycophancy": 0.5,
        "error_detection": 0.4,
        "false_alarm": 0.1,
        "youden": 0.3,
        "ris": 0.32 * 0.5,
    }
    assert {name: row[name] for name in SCORES} == pytest.approx(expected)
    for name in SCORES:
        assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]


def test_the_direct_prompt_is_the_one_that_is_named():
    (row,) = of_models(model_records("m", 8, 5, 4), prompt="system").to_dict("records")
    assert row["direct_accuracy"] == pytest.approx(0.1)


def test_a_model_behind_an_api_is_closed_and_stands_in_the_one_way_that_it_has():
    records = model_records("api:openai/gpt-5.4", 8, 5, 4, framing="reprompt")
    records += model_records("org/open", 3, 5, 4) + [
        r for r in model_records("org/open", 6, 5, 4, "reprompt") if r["probe"] == "slrc"
    ]
    table = of_models(records)
    assert table[["model", "framing", "open"]].values.tolist() == [
        ["api:openai/gpt-5.4", "reprompt", False],
        ["org/open", "prefix", True],
        ["org/open", "reprompt", True],
    ]
    assert table["parameters"].isna().all()
    assert to_csv(table).splitlines()[1].endswith(",,")
    assert to_markdown(table).splitlines()[2].endswith(" – | – |")
    # what knows no framing stands in both
    assert table["sycophancy"].tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert table["slrc"].tolist() == pytest.approx([0.64, 0.24, 0.48])


def test_it_agrees_with_the_tables_of_its_parts():
    records = model_records("m", 8, 5, 4) + model_records("o", 2, 1, 9)
    made = tables(records, analysis=SlrcAnalysis(resamples=5))
    for row in made["models"].to_dict("records"):
        way = {name: row[name] for name in ("model", "framing", "reading")}
        slrc = where(made["slrc"], **way)
        assert row["slrc"] == pytest.approx(slrc["slrc"].mean())
        assert row["accuracy"] == pytest.approx(slrc["accuracy"].mean())
        direct = where(made["direct"], model=row["model"], prompt="unformatted")
        assert row["direct_accuracy"] == pytest.approx(direct["accuracy"].mean())
        errors = where(made["error_detection"], model=row["model"], chains="all")
        assert row["youden"] == pytest.approx(errors["youden"].mean())


def test_a_task_in_other_words_is_no_task_of_its_own():
    records = model_records("m", 8, 5, 4)
    variant = [r | {"task": "t:why"} for r in model_records("m", 1, 1, 1)]
    assert of_models(records).equals(of_models(records + variant))


def test_what_a_model_was_not_asked_has_no_number():
    records = [r for r in model_records("m", 8, 5, 4) if r["probe"] in ("slrc", "sycophancy")]
    (row,) = of_models(records).to_dict("records")
    for name in ("error_detection", "error_detection_low", "false_alarm", "direct_accuracy"):
        assert math.isnan(row[name])
    assert row["n_error_tasks"] == 0
    assert row["ris"] == pytest.approx(0.64 * 0.5)
    alone = [r for r in records if r["probe"] == "slrc"]
    (row,) = of_models(alone).to_dict("records")
    assert math.isnan(row["ris"])
    assert row["slrc"] == pytest.approx(0.64)


TABLE_1 = {
    # percent of necessity and sufficiency on SST-2 and GSM8K, and the SLRC that is printed
    "GPT-5.4": ((0.1, 98.2, 0.000), (8.8, 80.3, 0.017)),
    "Claude Opus 4.6-R": ((14.8, 91.4, 0.013), (4.8, 88.7, 0.005)),
    "DeepSeek-V3.2": ((10.8, 96.7, 0.004), (3.6, 93.4, 0.002)),
    "GPT-OSS-120B": ((0.3, 98.9, 0.000), (10.9, 88.9, 0.012)),
    "Kimi-K2.5": ((16.5, 79.5, 0.034), (1.4, 90.9, 0.001)),
    "Grok-4 non-reasoning": ((7.2, 89.7, 0.007), (6.5, 40.1, 0.039)),
    "MiniMax-M2.5": ((37.1, 60.7, 0.146), (28.4, 70.5, 0.084)),
    "o4-mini": ((88.3, 1.6, 0.869), (87.5, 1.7, 0.860)),
    "DeepSeek-R1-32B": ((39.8, 44.3, 0.222), (91.3, 5.7, 0.861)),
    "DeepSeek-R1-70B": ((35.6, 40.0, 0.214), (92.5, 6.7, 0.863)),
    "Grok-4 reasoning": ((1.4, 96.8, 0.000), (15.7, 83.1, 0.027)),
    "Nemotron-Ultra": ((6.4, 68.0, 0.020), (88.7, 11.1, 0.789)),
}


def test_paper_numbers_of_table_1_average_over_tasks():
    """Each pair as one item of 1,000 steps, so many of which are necessary, sufficient."""
    records = [
        slrc_outcome(
            model,
            task,
            "0",
            [i < round(10 * necessity) for i in range(1000)],
            [i < round(10 * sufficiency) for i in range(1000)],
            True,
            "reprompt",
        )
        for model, pair in TABLE_1.items()
        for task, (necessity, sufficiency, _) in zip(("sst2", "gsm8k"), pair, strict=True)
    ]
    table = of_models(records)
    assert set(table["n_tasks"]) == {2}
    for row in table.to_dict("records"):
        printed = [slrc for _, _, slrc in TABLE_1[row["model"]]]
        # both printed with three decimals of numbers that had more
        assert row["slrc"] == pytest.approx(sum(printed) / 2, abs=0.0011)
