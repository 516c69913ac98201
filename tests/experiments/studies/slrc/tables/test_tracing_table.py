"""Tracing tables on hand-made records."""

from __future__ import annotations

import pytest
from probe_records import table_of

from faithscope.probes.tracing import POSITIONS


def made(item: str, before: float, early: int, horizon: int) -> dict:
    return {
        "probe": "tracing",
        "model": "m",
        "task": "t",
        "item": item,
        "p_before": before,
        "p_after": 1.0,
        "rise": 1.0 - before,
        "early": early,
        "early_depth": early / 4,
        "horizon": horizon,
        "horizon_depth": horizon / 4,
        "largest": None if before == 1.0 else 1.0,
        "spearman": None if before == 1.0 else 0.9,
        "n_steps": 4,
        "curve": [before] * (POSITIONS - 1) + [1.0],
    }


def test_means_leave_out_what_there_is_not() -> None:
    records = [made("a", 0.2, 4, 4), made("b", 0.4, 2, 4), made("c", 1.0, 0, 0)]
    records.append(made("d", 0.0, 4, 4) | {"excluded": "fewer_than_2_labels"})
    (row,) = table_of("tracing", records, 100).to_dict("records")
    assert row["n"] == 3
    assert row["p_before"] == pytest.approx(1.6 / 3)
    assert row["early_depth"] == pytest.approx(0.5)
    assert row["spearman"] == pytest.approx(0.9)
    assert row["settled_before"] == pytest.approx(1 / 3)
    assert row["no_horizon"] == pytest.approx(1 / 3)
    assert row["n_steps"] == 12


def test_the_curve_runs_from_before_to_after() -> None:
    table = table_of("tracing_by_position", [made("a", 0.2, 4, 4)], 10)
    assert table["position"].tolist() == pytest.approx([i / 10 for i in range(11)])
    assert table["p"].tolist() == pytest.approx([0.2] * 10 + [1.0])
