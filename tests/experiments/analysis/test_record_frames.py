"""Tables of records: who is in a row, what stands in it, and where steps are put."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Among,
    Boot,
    Bootstrapped,
    Share,
    Total,
    boot_medians,
    boots,
    means,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    ITEMS_AND_STEPS,
    LAYER_AND_DEPTH,
    POSITION,
    per_layer,
    per_part,
    record_frame,
    step_mean,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import bootstrapped
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import in_order

X = Column("x")
PAIR = ("model", "task")


def item(name: str, **fields: Any) -> dict[str, Any]:
    return {"probe": "p", "model": "m", "task": "t", "item": name, "n_layers": 2} | fields


def made(table: Table, *records: dict[str, Any]) -> pd.DataFrame:
    return table.make(record_frame(records), how=Bootstrap(resamples=200))


def test_rows_are_of_what_was_measured_in_an_order_of_names() -> None:
    records = [item("2", way="a"), item("1", way="b"), item("1", way="a", model="l")]
    table = Table(
        "x",
        "p",
        (*PAIR, Column("way")),
        (COUNTED,),
        among=INCLUDED,
        prepare=lambda frame: in_order(frame, way="ba"),
    )
    assert made(table, *records, item("3", way="a", excluded="why")).to_dict("records") == [
        {"model": "l", "task": "t", "way": "a", "n": 1},
        {"model": "m", "task": "t", "way": "b", "n": 1},
        {"model": "m", "task": "t", "way": "a", "n": 1},
    ]


def test_two_models_under_one_name_are_refused() -> None:
    table = Table("x", "p", PAIR, (COUNTED,), alike=("n_layers",))
    with pytest.raises(ValueError, match=r"p of m on t: records of \[2, 3\] layers"):
        made(table, item("1"), item("2", n_layers=3))


def test_items_without_a_value_are_left_out_of_its_mean() -> None:
    logs = boots({Column("logs"): lambda rows: np.log(rows["x"])}, then=np.exp)
    table = Table("x", "p", PAIR, (*boots([X]), *boot_medians({Column("middle"): "x"})))
    some = [1.0, None, 2.0, 2.0, 4.0, 6.0, math.nan]
    values = [item(str(i), x=x) for i, x in enumerate(some)]
    (row,) = made(table, *values).to_dict("records")
    assert (row["x"], row["middle"]) == (3, 2)
    assert 1 <= row["x_low"] < 3 < row["x_high"] <= 6
    (row,) = made(Table("x", "p", PAIR, logs), *values[:3]).to_dict("records")
    assert row["logs"] == pytest.approx(math.sqrt(2))
    (row,) = made(table, values[1]).to_dict("records")
    assert np.isnan([row["x"], row["x_low"], row["x_high"]]).all()


def test_bootstrap_over_items_is_that_of_a_loop_over_draws() -> None:
    rng = np.random.default_rng(0)
    records = [item(str(i), x=x, task=f"t{i % 3}") for i, x in enumerate(rng.random(40))]
    table = made(Table("x", "p", PAIR, (Boot("x", "x"),)), *records).set_index("task")
    of_list = Bootstrapped((X,), lambda r: r[["x"]].to_numpy(), lambda x: x.mean(axis=0))
    others = made(Table("x", "p", PAIR, (of_list,)), *records).set_index("task")
    for task, rows in record_frame(records).groupby("task"):
        (one,) = bootstrapped(rows[["x"]].to_numpy(), lambda x: x.mean(axis=0), resamples=200)
        for of in (table, others):
            row = of.loc[str(task), ["x", "x_low", "x_high"]].tolist()
            assert row == pytest.approx([one.value, one.low, one.high], abs=1e-12)


def test_table_of_layers_has_a_row_per_layer_and_what_all_of_them_share() -> None:
    table = Table(
        "x",
        "p",
        PAIR,
        (COUNTED, *boots([X]), *means([Column("plain")])),
        along=LAYER_AND_DEPTH,
        prepare=per_layer(x="by_layer", plain="by_layer"),
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
    table = Table(
        "x", "p", PAIR, (*ITEMS_AND_STEPS, *boots([X])), along=(POSITION,), prepare=per_part(x="x")
    )
    # steps 1 and 2 of two stand at .25 and .75; 1 to 4 of four at .125, .375, .625, .875
    rows = made(table, item("1", n_steps=2, x=[0, 1]), item("2", n_steps=4, x=[0, None, 0, 1]))
    assert rows["position"].tolist() == pytest.approx([0.1, 0.3, 0.7, 0.9])
    assert rows["n"].tolist() == rows["n_steps"].tolist() == [1, 2, 2, 1]
    assert rows["x"].tolist() == [0, 0, 0.5, 1]
    long = [item("3", n_steps=10, x=[0.0] * 9 + [1.0]), item("4", n_steps=1, x=[1.0])]
    last = made(table, *long).set_index("position").loc[0.9]
    assert (last["n"], last["n_steps"], last["x"]) == (1, 2, 0.5)
    drawn = item("5", n_steps=10, x=[None] * 8 + [0.0, 1.0], inclusion=[None] * 8 + [1.0, 0.25])
    assert made(table, drawn).set_index("position").loc[0.9, "x"] == 4 / 5


def test_mean_over_steps_counts_each_by_the_inverse_of_its_inclusion_probability() -> None:
    frame = record_frame(
        [
            item("1", x=[1.0, None, 0.0]),
            item("2", x=[1.0, None, 0.0], inclusion=[0.25, None, 1.0]),
            item("3", x=None),
        ]
    )
    assert step_mean("x")(frame) == [0.5, 0.8, None]


def test_lists_of_one_record_that_differ_in_length_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        per_part(x="x")(record_frame([item("1", n_steps=2, x=[1.0])]))


def test_frame_without_rows_has_a_table_of_all_columns() -> None:
    parts = Among(INCLUDED, (Share("share", "x"), Total("x", "x")))
    assert list(made(Table("x", "p", PAIR, (parts,))).columns) == [
        *("model", "task", "share", "share_low", "share_high", "x")
    ]
