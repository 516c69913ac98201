"""A row per model, and correlations over models: by hand, against scipy and the paper's numbers."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from printed_cells import printed, value
from probe_records import agreement, direct_answer, noticing, slrc_outcome, table_of
from scipy import stats

from faithscope.experiments.analysis.textual import to_csv, to_markdown
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.engine.traces.sections import DirectPromptName
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.models import (
    CORRELATED,
    LEAST,
    MODEL_CORRELATIONS,
    SCORES,
    correlation,
)


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
    assert row["n_direct_unparsed"] == 0
    records[2] |= {"answer": None, "correct": False, "unparsed": True}
    assert records[2]["probe"] == "direct"
    assert of_models(records).iloc[0]["n_direct_unparsed"] == 1
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
    made = tables_of(records, analysis=SlrcAnalysis(resamples=5))
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


def of_table_1(column: str) -> dict[str, list[float]]:
    """Model -> numbers on SST-2 and GSM8K, of the models that have both in the paper's Table 1."""
    both: dict[str, list[float]] = {}
    for cell in printed("slrc", "table1", column=column):
        if not cell["model"].startswith("Small"):
            both.setdefault(cell["model"], []).append(value(cell))
    return {model: numbers for model, numbers in both.items() if len(numbers) == 2}


def test_paper_numbers_of_table_1_average_over_tasks():
    """Each pair as one item of 1,000 steps, so many of which are necessary, sufficient."""
    necessity, sufficiency, slrc = map(of_table_1, ("Nec%", "Suf%", "SLRC"))
    records = [
        slrc_outcome(
            model,
            task,
            "0",
            [i < round(1000 * necessity[model][k]) for i in range(1000)],
            [i < round(1000 * sufficiency[model][k]) for i in range(1000)],
            True,
            "reprompt",
        )
        for model in slrc
        for k, task in enumerate(("sst2", "gsm8k"))
    ]
    table = of_models(records)
    assert len(table) == 12
    assert set(table["n_tasks"]) == {2}
    for row in table.to_dict("records"):
        # both printed with three decimals of numbers that had more
        assert row["slrc"] == pytest.approx(np.mean(slrc[row["model"]]), abs=0.0011)


X = [0.1, 0.4, 0.5, 0.9, 0.3, 0.35]
Y = [0.2, 0.1, 0.6, 0.7, 0.25, 0.5]


def models(n: int, seed: int = 0, **columns) -> pd.DataFrame:
    """A table of `n` models with random scores."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.random(n) for name in SCORES})
    fixed = {"framing": "reprompt", "reading": "generated", "open": True, "tasks": "t"}
    sizes = {x: 10.0 ** rng.integers(7, 12, n) for x in ("parameters", "active_parameters")}
    return table.assign(model=[f"m{i:02}" for i in range(n)], **(fixed | sizes | columns))


def test_coefficients_and_p_values_are_those_of_scipy():
    pearson, spearman = correlation(X, Y, "pearson"), correlation(X, Y, "spearman")
    assert (pearson["r"], pearson["p_value"]) == pytest.approx(tuple(stats.pearsonr(X, Y)))
    assert (spearman["r"], spearman["p_value"]) == pytest.approx(tuple(stats.spearmanr(X, Y)))
    interval = stats.pearsonr(X, Y).confidence_interval(0.95)
    assert (pearson["r_low"], pearson["r_high"]) == pytest.approx(tuple(interval))


def test_the_interval_of_spearman_is_wider_by_bonett_and_wright():
    rho = correlation(X, Y, "spearman")
    half = 1.959964 * math.sqrt((1 + rho["r"] ** 2 / 2) / (len(X) - 3))
    assert rho["r_low"] == pytest.approx(math.tanh(math.atanh(rho["r"]) - half), abs=1e-6)
    assert rho["r_high"] == pytest.approx(math.tanh(math.atanh(rho["r"]) + half), abs=1e-6)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_few_models_are_permuted_in_every_way(method):
    """Twice the smaller tail of all 720 orders of six models."""
    rank = stats.rankdata if method == "spearman" else np.asarray
    x, y = rank(X), rank(Y)
    dealt = np.array([np.corrcoef(x, order)[0, 1] for order in permutations(y)])
    found = correlation(X, Y, method)
    tails = (dealt >= found["r"] - 1e-12).mean(), (dealt <= found["r"] + 1e-12).mean()
    assert found["p_permutation"] == pytest.approx(min(1, 2 * min(tails)))


def test_a_model_that_turns_it_is_seen():
    x, y = [0.1, 0.2, 0.3, 0.4, 5.0], [0.4, 0.3, 0.2, 0.1, 5.0]
    found = correlation(x, y, "pearson")
    assert found["r"] > 0.95
    assert found["r_without_one_least"] == pytest.approx(-1)
    assert found["r_without_one_most"] > 0.95


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_no_correlation_of_few_points_or_of_constants(method):
    for x, y in (([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), ([1.0] * 5, list(range(5))), ([], [])):
        found = correlation(x, y, method)
        assert all(map(math.isnan, found.values()))


def test_every_pair_of_every_way_has_both_methods():
    table = pd.concat([models(6), models(6, framing="prefix")])
    found = MODEL_CORRELATIONS.make(table)
    assert len(found) == 2 * len(CORRELATED) * 2
    assert set(found["n"]) == {6}
    one = found.query("framing == 'prefix' and x == 'slrc' and y == 'log_parameters'")
    mine = models(6)
    expected = stats.pearsonr(mine["slrc"], np.log10(mine["parameters"])).statistic
    assert one["r"].iloc[0] == pytest.approx(expected)
    assert found["caution"].str.contains("only 6 models").all()


def test_too_few_models_have_no_numbers_and_say_so():
    found = MODEL_CORRELATIONS.make(models(LEAST - 1))
    numbers = found.select_dtypes("number").drop(columns="n")
    assert numbers.isna().all(axis=None)
    assert set(found["caution"]) == {"3 models: too few to correlate, 4 are the least"}
    assert set(MODEL_CORRELATIONS.make(models(1))["caution"].str[:8]) == {"1 model:"}


def test_models_without_a_score_are_left_out_of_its_pairs_alone():
    table = models(6)
    table.loc[:2, "error_detection"] = math.nan
    found = MODEL_CORRELATIONS.make(table)
    n = {(r["x"], r["y"]): r["n"] for r in found.to_dict("records")}
    assert n["slrc", "sycophancy"] == 6
    assert n["ris", "error_detection"] == 3


def test_cautions():
    said = set(MODEL_CORRELATIONS.make(models(12))["caution"])
    assert said == {""}
    table = models(12, tasks=["t"] * 11 + ["t u"])
    said = set(MODEL_CORRELATIONS.make(table)["caution"])
    assert said == {"the models were measured on different tasks"}
    said = MODEL_CORRELATIONS.make(models(12, slrc=0.5)).query("x == 'slrc'")["caution"]
    assert set(said) == {"one of the two does not vary"}


SHORT = {"Nemotron": "Nemotron-Ultra"}
"""Name of a model in Extended Data 5 -> its name in Table 5, where they differ."""


def parameters(text: str) -> float:
    """Number of parameters of a cell of Table 5, such as `117B` or `1T`."""
    return float(text[:-1]) * {"B": 1e9, "T": 1e12}[text[-1]]


def test_paper_numbers_of_scale():
    """ "Neither total parameters, active parameters … predicts faithfulness" (3.2).

    True of all parameters. Active ones would by the normal test (r = .82, p = .045): it takes
    the permutations, or a look at what Nemotron alone does, to see that they do not.
    """
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for cell in (c for table in ("table1", "ed5") for c in printed("slrc", table)):
        if cell["unit"] == "%":
            pair = SHORT.get(cell["model"], cell["model"]), cell["task"]
            shares.setdefault(pair, {})[cell["column"]] = value(cell)
    sizes: dict[str, dict[str, str]] = {}
    for cell in printed("slrc", "table5"):
        sizes.setdefault(cell["model"], {})[cell["column"]] = cell["value"]
    mean = [
        np.mean([s["Nec%"] * (1 - s["Suf%"]) for (m, _), s in shares.items() if m == model])
        for model in sizes
    ]
    table = models(len(sizes), slrc=mean).assign(
        parameters=[parameters(size["Total"]) for size in sizes.values()],
        active_parameters=[parameters(size["Active"]) for size in sizes.values()],
    )
    found = MODEL_CORRELATIONS.make(table).query("method == 'pearson'").set_index("y")
    total, active = found.loc["log_parameters"], found.loc["log_active_parameters"]
    assert total["r"] == pytest.approx(-0.01, abs=0.005)
    assert active["r"] == pytest.approx(0.82, abs=0.005)
    assert active["p_value"] < 0.05 < active["p_permutation"]
    assert active["r_without_one_least"] == pytest.approx(0.06, abs=0.005)
