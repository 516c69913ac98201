"""The comparison that was fixed beforehand: its correlations, reliabilities and power."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from statsmodels.stats.power import NormalIndPower
from synthetic_comparison import joined_of, run_of

from faithscope.experiments.analysis.comparison.headline import (
    KINDS,
    RANKS,
    Primary,
    detectable,
    headline_table,
)
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.statistics.agreement import within
from faithscope.experiments.analysis.tidy import numbers, rows, where

PRIMARIES = {
    "behaviour": Primary(("flips_{framing}",), True),
    "logit": Primary(("tv_{framing}",), True),
    "internal": Primary(("cut",), True),
    "judged": Primary(("verdict scored", "verdict generated"), True),
}


def values(n: int, noise: float = 0.5, seed: int = 0) -> dict[str, tuple[str, Any]]:
    """A measure of every kind that is the truth with noise, and a judge asked twice."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    families = {
        "flips_prefix": "behavioural",
        "flips_reprompt": "behavioural",
        "tv_prefix": "logit",
        "cut": "internal",
        "verdict scored (a)": "judged",
        "verdict scored (b)": "judged",
    }
    return {name: (of, truth + noise * rng.normal(size=n)) for name, of in families.items()}


def table(given: dict[str, tuple[str, Any]], **changes: Primary) -> pd.DataFrame:
    run = run_of(given)
    judges = run.items["measure"].str.extract(r"\((\w)\)")[0].fillna("")
    run = replace(run, items=run.items.assign(judge=judges))
    return headline_table(join({"a": run}, None, "text"), PRIMARIES | changes, 0)


def test_every_pair_of_kinds_has_a_row_in_each_framing_with_its_correlation() -> None:
    given = values(60)
    of = table(given)
    assert len(of) == 2 * 5 + 1
    assert set(of["one"]) | set(of["two"]) == set(KINDS)
    (row,) = rows(where(of, one="internal", two="judged"))
    assert (row["framing"], row["n"], row["n_questions"]) == ("", 60, 60)
    expected = spearmanr(given["cut"][1], given["verdict scored (a)"][1]).statistic  # type: ignore[attr-defined]
    assert row["rho"] == pytest.approx(expected)
    assert row["rho_low"] < row["rho"] < row["rho_high"]
    assert row["p"] < row["p_corrected"] <= 0.05
    missing = where(of, one="logit", two="judged", framing="reprompt")
    assert missing["reason"].tolist() == ["no run has the measure tv_reprompt"]
    assert np.isnan(numbers(missing["rho"])).all()


def test_reliability_is_that_of_the_second_judge_and_is_named_where_there_is_none() -> None:
    given = values(80)
    of = table(given)
    (row,) = rows(where(of, one="behaviour", two="judged", framing="prefix"))
    both = (given["verdict scored (a)"][1], given["verdict scored (b)"][1])
    assert row["other_reliability"] == pytest.approx(spearmanr(*both).statistic)  # type: ignore[attr-defined]
    assert row["other_reliability_by"] == "second judge: verdict scored (b)"
    assert math.isnan(row["reliability"])
    assert row["reliability_by"] == ""
    assert math.isnan(row["disattenuated"])
    assert row["reason"] == ""


@pytest.mark.slow
def test_a_second_run_gives_the_reliability_that_was_planted() -> None:
    rng, noise, n = np.random.default_rng(5), 0.8, 300
    truth = rng.normal(size=n)
    names = {"flips_prefix": "behavioural", "tv_prefix": "logit", "cut": "internal"}
    names |= {"verdict scored (a)": "judged"}
    runs = [
        run_of({m: (of, truth + noise * rng.normal(size=n)) for m, of in names.items()})
        for _ in range(2)
    ]
    joined = join(dict(zip("ab", runs, strict=True)), None, "text")
    (row,) = rows(where(headline_table(joined, PRIMARIES, 0), one="internal", two="judged"))
    planted = 1 / (1 + noise**2)
    assert row["reliability_by"] == "second run: cut [b]"
    assert row["reliability"] == pytest.approx(planted, abs=0.08)
    assert row["rho"] == pytest.approx(planted, abs=0.08)
    # both measure the same truth, and their noise is independent
    assert row["disattenuated"] == pytest.approx(1, abs=0.15)
    assert row["disattenuated_low"] < 1 < row["disattenuated_high"]


def test_a_repetition_that_is_exact_or_unrelated_gives_no_correlation_without_noise() -> None:
    given = values(60)
    both = {"cut": given["cut"], "cut [b]": ("internal", given["cut"][1])}
    of = table(given | both)
    (row,) = rows(where(of, one="internal", two="judged"))
    assert (row["reliability"], row["reason"]) == (pytest.approx(1), "cut repeats itself exactly")
    assert np.isnan([row["reliability_low"], row["disattenuated"]]).all()
    both["cut [b]"] = ("internal", np.random.default_rng(9).normal(size=60))
    (row,) = rows(where(table(given | both), one="internal", two="judged"))
    assert row["reason"] == "cut is not shown to agree with itself"


def test_rows_that_are_the_same_test_are_one() -> None:
    given = values(40)
    del given["verdict scored (b)"]
    once = table(given)
    same = {"flips_reprompt": ("behavioural", 3 * np.exp(given["flips_prefix"][1]))}
    twice = table(given | same)
    for one, two in (("behaviour", "judged"), ("behaviour", "internal")):
        first, again = rows(where(twice, one=one, two=two))
        assert (first["tested_as"], again["tested_as"]) == ("", f"{one}, {two}, prefix")
        assert (again["p"], again["p_corrected"]) == (first["p"], first["p_corrected"])
    tests = [
        [r for r in rows(of) if r["p"] == r["p"] and not r["tested_as"]] for of in (once, twice)
    ]
    assert [len(of) for of in tests] == [8, 6]
    assert all(row["p_corrected"] <= 6 * row["p"] for row in tests[1])


@pytest.mark.parametrize("values_of", ["many", "few"])
def test_an_interval_leaves_out_nothing_just_where_the_test_does(values_of: str) -> None:
    said = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, noise = rng.normal(size=(2, 24))
        y = 0.45 * x + noise
        pair = np.stack([x, y] if values_of == "many" else [x > 0, np.round(y)], axis=1)
        of = within(pair.astype(float), np.zeros(24), np.arange(24), 0)
        low, high, p = of.low[0, 1], of.high[0, 1], of.p[0, 1]
        assert (low > 0 or high < 0) == (p <= 0.05)
        said.add(bool(p <= 0.05))
        assert low < of.value[0, 1] < high
    assert said == {True, False}


def test_ranks_are_taken_inside_models_and_a_question_of_two_models_counts_once() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(4, 2, 40))
    noise[:, 1] += 10  # all measures say that the second model is more faithful
    names = ("flips_prefix", "tv_prefix", "cut", "verdict scored (a)")
    given = {
        name: (family, of.ravel())
        for name, family, of in zip(names, KINDS.values(), noise, strict=True)
    }
    of = headline_table(joined_of(given, models=("m1", "m2")), PRIMARIES, 0)
    (row,) = rows(where(of, one="internal", two="judged"))
    assert (row["n"], row["n_questions"]) == (80, 40)
    assert abs(row["rho"]) < 0.4
    assert row["p_corrected"] > 0.05


@pytest.mark.slow
def test_independent_measures_are_seldom_called_alike() -> None:
    names = ("flips_prefix", "tv_prefix", "cut", "verdict scored (a)")
    called = 0
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=(4, 40))
        given = {n: (f, x) for n, f, x in zip(names, KINDS.values(), noise, strict=True)}
        called += bool((table(given)["p_corrected"] <= 0.05).any())
    assert called <= 2


@pytest.mark.parametrize(("n", "tests"), [(12, 1), (30, 11), (300, 11)])
def test_the_least_correlation_that_can_be_seen_is_that_of_the_peer(n: int, tests: int) -> None:
    of_pearson = NormalIndPower(ddof=3).solve_power(
        nobs1=n, alpha=0.05 / tests, power=0.8, ratio=0, alternative="two-sided"
    )
    of_ranks = np.tanh(of_pearson * math.sqrt(RANKS))
    assert detectable(n, 1, tests) == pytest.approx(of_ranks, abs=1e-4)
    assert detectable(n, 3, tests) > detectable(n, 1, tests)
    assert math.isnan(detectable(3, 1))


def test_a_correlation_of_the_stated_size_is_found_in_four_of_five_cases() -> None:
    n, rng = 50, np.random.default_rng(0)
    rho = detectable(n, 1)
    of_pearson = 2 * math.sin(math.pi * rho / 6)
    found = 0
    for _ in range(400):
        x, e = rng.normal(size=(2, n))
        found += spearmanr(x, of_pearson * x + math.sqrt(1 - of_pearson**2) * e).pvalue <= 0.05  # type: ignore[attr-defined]
    assert found / 400 == pytest.approx(0.8, abs=0.07)


def test_what_was_said_beforehand_and_the_measure_denies_is_not_used() -> None:
    of = table(values(20), internal=Primary(("cut",), False), logit=Primary(("cut",), True))
    reasons = set(of.loc[of["one"] == "internal", "reason"])
    assert reasons == {"more of cut says faithful, and the opposite was said beforehand"}
    assert "cut is a measure of the family internal, not of logit" in ";".join(of["reason"])
    flat = values(20) | {"cut": ("internal", np.zeros(20))}
    (row,) = rows(where(table(flat), one="internal", two="judged"))
    assert row["reason"] == "cut does not vary within a model and task"
    (row,) = rows(where(table(values(4)), one="internal", two="judged"))
    assert row["reason"] == "fewer than 5 traces have both"
