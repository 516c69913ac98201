"""Tables over items: who is in a row, what stands in it, and where steps are put."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import Table

X = Column("x")
ANALYSIS = aggregates.Analysis(resamples=200)
ITEMS = aggregates.grouped("p", alike=("n_layers",))


def item(name: str, **fields: Any) -> dict[str, Any]:
    return {"probe": "p", "model": "m", "task": "t", "item": name, "n_layers": 2} | fields


def made(table: Table, *records: dict[str, Any]) -> pd.DataFrame:
    return table.make(records, how=ANALYSIS)


def test_rows_are_of_what_was_measured_in_an_order_of_names() -> None:
    ways = aggregates.grouped("p", {Column("way"): "how"}, rank=lambda r: "ba".index(r["how"]))
    records = [item("2", how="a"), item("1", how="b"), item("1", how="a", model="l")]
    left_out = [item("3", how="a", excluded="why"), item("4", how="a", probe="q")]
    table = made(aggregates.item_table("x", ways, aggregates.COUNTED), *records, *left_out)
    assert table.to_dict("records") == [
        {"model": "l", "task": "t", "way": "a", "n": 1},
        {"model": "m", "task": "t", "way": "b", "n": 1},
        {"model": "m", "task": "t", "way": "a", "n": 1},
    ]


def test_two_models_under_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"p of m on t: records of \[2, 3\] layers"):
        made(
            aggregates.item_table("x", ITEMS, aggregates.COUNTED), item("1"), item("2", n_layers=3)
        )


def test_what_an_item_does_not_have_is_left_out_of_the_mean() -> None:
    of = aggregates.means(
        {X: "x", Column("logs"): lambda r: r["x"] and math.log(r["x"])}, then=math.exp
    )
    table = aggregates.item_table(
        "x", ITEMS, aggregates.means([X]), aggregates.means({Column("middle"): "x"}, median=True)
    )
    some = [1.0, None, 2.0, 2.0, 4.0, 6.0, math.nan]
    values = [item(str(i), x=x) for i, x in enumerate(some)]
    (row,) = made(table, *values).to_dict("records")
    assert (row["x"], row["middle"]) == (3, 2)
    assert 1 <= row["x_low"] < 3 < row["x_high"] <= 6
    (row,) = made(aggregates.item_table("x", ITEMS, of), *values[:3]).to_dict("records")
    assert row["logs"] == pytest.approx(math.sqrt(2))
    (row,) = made(table, values[1]).to_dict("records")
    assert np.isnan([row["x"], row["x_low"], row["x_high"]]).all()


def test_a_curve_has_a_row_per_layer_and_what_is_the_same_for_all() -> None:
    table = aggregates.curve_table(
        "x",
        ITEMS,
        *aggregates.LAYERS_OF_ALL,
        aggregates.COUNTED,
        *aggregates.mean_curves({X: "by_layer"}),
        *aggregates.average_curves({Column("plain"): "by_layer"}),
    )
    layers = [[0.0, 1.0], [1.0, 3.0]] * 5
    rows = made(table, *(item(str(i), by_layer=x) for i, x in enumerate(layers)))
    assert rows[["layer", "depth", "n", "x", "plain"]].to_numpy().tolist() == [
        [1, 0.5, 10, 0.5, 0.5],
        [2, 1, 10, 2, 2],
    ]
    assert 0 <= rows["x_low"].iloc[0] < 0.5
    assert 1 <= rows["x_low"].iloc[1] < 2


def test_steps_are_pooled_by_their_relative_place_and_items_count_once() -> None:
    # steps 1 and 2 of two stand at .25 and .75; 1 to 4 of four at .125, .375, .625, .875
    records = [item("1", n_steps=2, x=[0, 1]), item("2", n_steps=4, x=[0, None, 0, 1])]
    rows = made(aggregates.by_place("x", ITEMS, [X]), *records)
    assert rows["position"].tolist() == pytest.approx([0.1, 0.3, 0.7, 0.9])
    assert rows["n"].tolist() == rows["n_steps"].tolist() == [1, 2, 2, 1]
    assert rows["x"].tolist() == [0, 0, 0.5, 1]
    long = [item("3", n_steps=10, x=[0.0] * 9 + [1.0]), item("4", n_steps=1, x=[1.0])]
    last = made(aggregates.by_place("x", ITEMS, [X]), *long).set_index("position").loc[0.9]
    assert (last["n"], last["n_steps"], last["x"]) == (1, 2, 0.5)


def test_no_records_no_rows_but_all_columns() -> None:
    parts = aggregates.among(lambda same: same[:1], Share("share", lambda same: [True]))
    assert list(made(aggregates.item_table("x", ITEMS, parts)).columns) == [
        *("model", "task", "share", "share_low", "share_high")
    ]
