"""Outcomes on the training page: what training made of a planted model, and its sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from faithscope.experiments.analysis.cells import Groups, StudentMean
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.training.words import (
    ALONE,
    LESS,
    LOST,
    MIXED,
    READ,
    SAME,
    SHAM,
    UNCLEAR,
    USER,
    how_to_read,
    outcome,
    sentences,
)


def row(accuracy: float = 1.0, **gains: float) -> dict[str, Any]:
    """A row of `training_planted`, with the given gains and intervals of ±0.1 around them."""
    of: dict[str, Any] = {"accuracy": accuracy}
    for name in READ:
        gain = gains.get(name, 0.0)
        ends = {f"{name}_gain_low": gain - 0.1, f"{name}_gain_high": gain + 0.1}
        of |= {f"{name}_gain": gain} | ends
    return of


UP, DOWN = 0.3, -0.3


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (row(), SAME),
        (row(necessity=0.09, regenerated=-0.09), SAME),
        (row(necessity=0.1), UNCLEAR),
        (row(regenerated=UP, right_despite_hint=UP, necessity=UP), USER),
        (row(regenerated=UP, right_despite_hint=UP, necessity=DOWN), USER),
        (row(necessity=UP), SHAM),
        (row(necessity=UP, regenerated=DOWN, right_despite_hint=DOWN), SHAM),
        (row(regenerated=DOWN, right_despite_hint=DOWN), LESS),
        (row(regenerated=UP), MIXED),
        (row(regenerated=UP, necessity=UP), MIXED),
        (row(0.5, regenerated=UP, right_despite_hint=UP), LOST),
        (row(necessity=float("nan")), ALONE),
    ],
)
def test_an_outcome_follows_the_intervals(of, expected):
    assert outcome(of) == expected


def tables(*after: tuple[str, tuple[float, ...], tuple[float, ...]]) -> list[pd.DataFrame]:
    """`training_planted` and `training_seeds` of one model.

    Args:
        after: per method its name, and its accuracy and its use in each seed.
    """
    each = [("start", 0, 1.0, 0.2)]
    each += [(m, i, *of) for m, *by in after for i, of in enumerate(zip(*by, strict=True))]
    seeds = pd.DataFrame(
        {"model": "planted:hint", "method": method, "seed": seed, "accuracy": accuracy}
        | dict.fromkeys((*READ, "frozen_last", "hint_changed"), use)
        for method, seed, accuracy, use in each
    )
    by_method = seeds.drop(columns="seed").groupby(["model", "method"], sort=False)
    planted = by_method.mean().assign(n_seeds=by_method.size()).reset_index()
    for name in READ:
        gain = planted[name] - 0.2
        # a known interval where there are seeds enough for one
        known = gain.where(planted["n_seeds"] >= 5)
        ends = {f"{name}_gain_low": known - 0.01, f"{name}_gain_high": known + 0.01}
        planted = planted.assign(**{f"{name}_gain": gain} | ends)
    return [planted, seeds]


def test_few_seeds_must_agree_and_the_text_says_so():
    kept = (1.0, 1.0, 1.0)
    of = tables(
        ("csr", kept, (0.5, 0.6, 0.7)),
        ("follow", kept, (0.7, 0.6, 0.1)),
        ("shuffled_reward", kept, (0.25, 0.2, 0.15)),
        ("farl", (1.0, 0.2, 1.0), (0.9, 0.0, 0.8)),
    )
    lines = [said.replace("\N{NO-BREAK SPACE}", " ") for said in sentences(*of)]
    told = {said.partition(".</strong>")[0][8:]: said for said in lines}
    assert list(told) == [of.name for of in (USER, UNCLEAR, SAME, LOST)]
    before = "planted:hint (0.20 · 0.20 · 0.20) by "
    assert told[USER.name].endswith(f"{before}csr (0.60 · 0.60 · 0.60).")
    assert f"{before}follow (" in told[UNCLEAR.name]
    assert told[SAME.name].endswith(f"{before}shuffled_reward.")
    others = "the others: use of the steps rose"
    assert f"farl (right on 73 %, lost in 1 of 3 seeds; {others})" in told[LOST.name]
    text = how_to_read(of[0])
    assert "4 of 4 combinations of a model and a method: fewer than 5 seeds" in text
    assert "no finding about a method" in text
    assert "moved a mean by up to 0.00" in text


def test_with_seeds_enough_the_interval_decides_and_chance_is_counted():
    planted, seeds = tables(("csr", (1.0,) * 5, (0.9, 0.9, 0.9, 0.9, 0.1)))
    (said,) = sentences(planted, seeds)
    assert USER.name in said
    text = how_to_read(planted)
    assert "all seeds changed alike, which 0 of 3 changes did" in text
    assert "of 3 such intervals, about 0.05 leave out zero by chance" in text
    assert "too few" not in text


def test_equal_seeds_have_no_interval_and_are_read_by_their_common_change():
    planted, seeds = tables(("csr", (1.0,) * 5, (0.9,) * 5))
    ends = {f"{name}_gain_{end}": float("nan") for name in READ for end in ("low", "high")}
    (said,) = sentences(planted.assign(**ends), seeds)
    assert USER.name in said
    assert "which 3 of 3 changes did; of 0 such intervals" in how_to_read(planted.assign(**ends))


def test_five_seeds_leave_out_the_truth_as_often_as_the_interval_says():
    """Of 400 methods that change nothing, with normal seeds; a plain bootstrap has .17."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "method": np.repeat(np.arange(400).astype(str), 5),
            "seed": np.tile(np.arange(5), 400),
            "gain": rng.normal(size=2000),
        }
    )
    cell = StudentMean("gain", "gain", "seed")
    made = cell.over(Groups(frame, np.repeat(np.arange(400), 5), 400, Bootstrap()))
    assert 0.02 < np.mean((made["gain_low"] > 0) | (made["gain_high"] < 0)) < 0.08


def test_without_the_model_before_training_nothing_is_compared():
    planted, seeds = (
        of[of["method"] != "start"] for of in tables(("shuffled_reward", (1.0,), (0.9,)))
    )
    gains = {name: float("nan") for name in planted.columns if "_gain" in name}
    (said,) = sentences(planted.assign(**gains), seeds)
    assert ALONE.name in said
    assert "control" not in how_to_read(planted.assign(**gains))
