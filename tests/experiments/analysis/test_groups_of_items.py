"""Items of one group are one unit of every interval, test and exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faithscope.experiments.analysis.cells import (
    Boot,
    Bootstrapped,
    Cell,
    Numbers,
    Share,
    ShareOfItems,
    boot_medians,
    one_row,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.comparison.scores import Scores, frames, item_row, trace_row
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics import ranks, stats
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, paired_difference
from faithscope.experiments.analysis.tidy import columns

BASE, COPIES = 60, 6
X = Column("x")
GROUPS = {"d": {f"i{q}.{k}": f"g{q}" for q in range(BASE) for k in range(COPIES)}}
APART, TOGETHER = Bootstrap(0, 400), Bootstrap(0, 400, of_items=GROUPS)


def items(copies: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    score = rng.normal(size=BASE)
    of = pd.DataFrame(
        {
            "dataset": "d",
            "score": score,
            "other": score + rng.normal(size=BASE),
            "flip": (rng.random(BASE) < 0.4).astype(float),
            "kept": (rng.random(BASE) < 0.6).astype(float),
        }
    )
    of = of.loc[of.index.repeat(copies)].reset_index(drop=True)
    return of.assign(item=[f"i{i // copies}.{i % copies}" for i in range(len(of))])


def statistic(of: stats.Estimate) -> Mapping[str, float]:
    return columns("x", of)


CELLS: dict[str, Cell] = {
    "share": Share("x", "flip"),
    "share of items": ShareOfItems("x", "flip", cluster="item"),
    "mean": Boot("x", "score"),
    "mean, clustered": Boot("x", "score", "item"),
    "median": boot_medians({X: "score"})[0],
    "statistic": Bootstrapped((X,), lambda r: r[["score"]].to_numpy(), lambda v: v.std(axis=0)),
    "difference": Numbers(
        (X,), lambda r, how: statistic(paired_difference(r, "flip", "kept", how))
    ),
    "mean of items": Numbers(
        (X,), lambda r, how: statistic(stats.mean_of_items(r["score"], units=how.units(r)))
    ),
    "share of outcomes": Numbers(
        (X,), lambda r, how: statistic(stats.share((r["flip"] == 1).tolist(), how.units(r)))
    ),
    "tau": Numbers(
        (X,),
        lambda r, how: statistic(
            ranks.kendall(
                r["score"].to_numpy(), r["other"].to_numpy(), units=how.units(r), resamples=400
            )
        ),
    ),
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_copies_of_items_make_no_interval_narrower(cell: Cell) -> None:
    """Six copies of an item, in one group, have the interval of the items; apart, a narrow one."""

    def width(copies: int, how: Bootstrap) -> float:
        row: dict[str, Any] = one_row((cell,), items(copies), how)
        return row["x_high"] - row["x_low"]

    assert width(COPIES, TOGETHER) == pytest.approx(width(1, APART), rel=0.12)
    assert width(COPIES, APART) < 0.55 * width(1, APART)


def test_rows_of_one_item_are_one_unit_unless_a_frame_has_none() -> None:
    twice = pd.concat([items(1), items(1)])
    one, two, rows = (
        one_row((Share("x", "flip"),), of, APART)
        for of in (items(1), twice, twice.drop(columns="item"))
    )
    assert two["x_high"] - two["x_low"] == pytest.approx(one["x_high"] - one["x_low"], rel=0.05)
    assert rows["x_high"] - rows["x_low"] < 0.8 * (one["x_high"] - one["x_low"])


def test_an_id_of_two_data_sets_has_the_group_of_its_own() -> None:
    how = Bootstrap(of_items={"a": {"1": "g", "2": "g"}, "b": {"1": "h", "9": "h"}})
    frame = pd.DataFrame({"dataset": ["a", "b", "c", "a"], "item": ["1", "1", "1", 2]})
    assert how.units(frame).tolist() == ["g", "h", "1", "g"]
    # without the data set nobody knows whose id it is
    assert how.units(frame.drop(columns="dataset")).tolist() == ["1", "1", "1", "g"]


def scores(**questions: str) -> Scores:
    """Scores of items by one model, each with its question."""
    places = [{"dataset": "d", "task": "t", "item": item, "model": "m"} for item in questions]
    rows = [item_row(p, "x", "logit", 0.5, higher_is_faithful=True) for p in places]
    traces = [trace_row(p, question=questions[p["item"]], reasoning="r") for p in places]
    return frames(rows, traces)


def test_a_group_that_one_run_knows_holds_for_the_questions_of_all() -> None:
    one, other = scores(i0="a", i1="b", i2="c", i3="d"), scores(i0="a", j1="c", j2="e")
    assert len(set(join({"one": one, "other": other}, None, "text").units)) == 5
    groups = {"one": {"d": {"i1": "g", "i2": "g"}}, "other": {"d": {"j1": "h", "j2": "h"}}}
    joined = join({"one": one, "other": other}, None, "text", groups=groups)
    units = dict(zip(joined.traces["item"], joined.units.tolist(), strict=True))
    assert units["i1"] == units["i2"] == units["j1"] == units["j2"]
    assert len(set(units.values())) == 3


@pytest.mark.slow
def test_variants_of_a_question_make_no_measure_best_and_no_two_agree() -> None:
    """30 questions with five variants each, scores and labels of the question alone: counted one by
    one they name a best measure and an agreement far too often, and by their groups they do not."""
    worlds, false = 60, {"apart": np.zeros(2), "grouped": np.zeros(2)}
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        n, strata = 150, np.zeros(150, dtype=int)
        label = np.repeat(rng.random(30) < 0.5, 5) ^ (rng.random(n) < 0.05)
        values = np.repeat(rng.normal(size=(30, 4)), 5, axis=0) + 0.2 * rng.normal(size=(n, 4))
        for name, units in (("apart", np.arange(n)), ("grouped", np.arange(n) // 5)):
            p = exchange_test(values, label, strata, units, seed)
            pairs = pairs_of.within(values, strata, units, seed).p[np.triu_indices(4, 1)]
            false[name] += [(p.highest <= 0.05).any(), pairs.min() <= 0.05 / 6]
    assert (false["apart"] > 0.25 * worlds).all()
    assert (false["grouped"] <= 0.05 * worlds + 3).all()
