"""Cells computed for all groups of a table at once, against the same computed group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from faithscope.experiments.analysis.cells import (
    Boot,
    Cell,
    Count,
    Kept,
    Mean,
    Number,
    Share,
    one_row,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.label_cells import AUROC, KAPPA, AgainstLabel
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.analysis.tidy import numbers

HOW = Bootstrap(3, 200)


def frame(rows: int = 400, groups: int = 23) -> pd.DataFrame:
    """Rows in groups of unequal size, some of which have no known value."""
    rng = np.random.default_rng(0)
    values = rng.choice([0.0, 1.0, np.nan], size=rows)
    group = (groups * rng.random(rows) ** 2).astype(int)
    return pd.DataFrame(
        {
            "group": [f"g{i}" for i in group],
            "item": [f"i{i}" for i in rng.integers(30, size=rows)],
            "value": np.where(group % 7 == 3, np.nan, values),
            "score": rng.random(rows),
            "weight": np.where(group % 2, 1.0, rng.choice([1.0, 2.5, 4.0], size=rows)),
        }
    )


def made(cell: Cell, of: pd.DataFrame) -> pd.DataFrame:
    return Table("x", "f", (Column("group"),), (cell,)).make(of, how=HOW).set_index("group")


CELLS: dict[str, Any] = {
    "count": Count("x", rows_known("value")),
    "share": Share("x", "value", rows_known("value")),
    "weighted share": Share("x", "value", rows_known("value"), weights="weight"),
    "mean": Mean("x", "value"),
    "median": Mean("x", "score", rows_known("value"), statistic="median"),
    "deviation": Mean("x", "score", statistic="std"),
    "sum": Mean("x", "value", statistic="sum"),
    "weighted mean": Mean("x", "value", weights="weight"),
    "bootstrap": Boot("x", "score", "item", rows_known("value")),
    "kept": Kept((Column("item"),)),
    "number": Number("x", lambda rows: len(set(rows["item"]))),
    "against a label": AgainstLabel(
        (AUROC, KAPPA), "value", "item", lambda f: f["score"], lambda f: f["score"] > 0.5
    ),
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_groups_together_have_the_numbers_of_each_group_alone(cell: Cell) -> None:
    table = made(cell, frame())
    assert len(table) > 20
    for name, rows in frame().groupby("group"):
        alone = one_row((cell,), rows, HOW)
        for column, value in table.loc[str(name)].items():
            assert value == pytest.approx(alone[str(column)], abs=1e-12, nan_ok=True)


def test_share_has_the_wilson_interval_of_scipy() -> None:
    table = made(CELLS["share"], frame().drop(columns="item"))
    for name, rows in frame().groupby("group"):
        values, row = numbers(rows["value"].dropna()), table.loc[str(name)]
        if not len(values):
            assert np.isnan([row["x"], row["x_low"], row["x_high"]]).all()
            continue
        peer = binomtest(int(values.sum()), len(values))
        interval = peer.proportion_ci(0.95, "wilson")
        assert row["x"] == peer.statistic
        assert (row["x_low"], row["x_high"]) == pytest.approx((interval.low, interval.high))


def test_weighted_share_has_the_interval_of_its_effective_sample_size() -> None:
    table = made(CELLS["weighted share"], frame().drop(columns="item"))
    for name, rows in frame().dropna(subset=["value"]).groupby("group"):
        ones = (rows["value"].to_numpy() == 1).astype(float)
        one = stats.clustered_share(ones, np.arange(len(rows)), rows["weight"].to_numpy())
        row = table.loc[str(name)]
        assert tuple(row) == pytest.approx((one.value, one.low, one.high))


def test_bootstrap_draws_as_for_each_group_alone() -> None:
    table = made(Boot("x", "value", "item"), frame())
    for name, rows in frame().groupby("group"):
        one = means(rows["item"].to_numpy(), {"x": rows["value"].to_numpy()}, how=HOW)["x"]
        row = table.loc[str(name)]
        assert row["x"] == pytest.approx(one.value, nan_ok=True)
        bounds = pytest.approx((one.low, one.high), abs=1e-12, nan_ok=True)
        assert (row["x_low"], row["x_high"]) == bounds


def test_mask_that_leaves_a_group_empty_leaves_its_row() -> None:
    of = pd.DataFrame({"group": ["a"] * 6 + ["b"], "x": [1.0, 0, 1, 1, 0, 1, 1]})
    one_group = rows_with(group="a")
    cells = (
        Count("n", one_group),
        Share("share", "x", one_group),
        Mean("mean", "x", one_group),
        Mean("sum", "x", one_group, statistic="sum"),
        Boot("boot", "x", "group", one_group),
    )
    table = Table("x", "f", (Column("group"),), cells).make(of, how=HOW).set_index("group")
    assert table.loc["b", ["n", "sum"]].tolist() == [0, 0]
    assert table.loc["b"].drop(["n", "sum"]).isna().all()
    assert table.loc["a", ["n", "sum"]].tolist() == [6, 4]


def test_pooled_rows_count_in_their_own_group_and_in_each_pool() -> None:
    of = pd.DataFrame({"one": ["a", "a", "b"], "other": ["x", "y", "x"], "v": [1.0, 0.0, 1.0]})
    keys = (Column("one"), Column("other"))
    table = Table("x", "f", keys, (Count("n"), Mean("v", "v")), pool=("one", "other"))
    rows = table.make(of).set_index(["one", "other"])
    assert rows.loc[(OVERALL, OVERALL), "n"] == 3
    assert rows.loc[(OVERALL, "x"), "v"] == 1
    assert rows.loc[("a", OVERALL), "v"] == 0.5
    assert len(rows) == 3 + 2 + 2 + 1


def test_table_without_keys_is_one_group() -> None:
    assert Table("x", "f", (), (Count("n"),)).make(frame())["n"].tolist() == [400]
    assert list(Table("x", "f", (), (Count("n"),)).make(frame().iloc[:0])) == ["n"]
