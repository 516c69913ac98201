"""How often the forced choice is another answer than the chains state: columns, and a caution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from planted_traces import ASKING, planted

from faithscope.experiments.analysis.traces.forced_choice import cautions, differing
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.probes import PROBES

FOLLOWING = [name for name, probe in PROBES.items() if probe.follows_answer]
NAMES = [name for name in FOLLOWING if name != "slrc"]
"""Probes whose own table counts chains by their answer; SLRC counts them in each reading."""
SETTINGS: dict[str, dict[str, Any]] = {
    "patching": {"places": ("step",), "sites": ("residual",), "directions": ("denoise",)},
    "slrc": {"edits": ("remove",)},
}
ANALYSIS = SlrcAnalysis(resamples=20)
OTHER = "0"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """Four chains of one model: two state what it is likeliest to give, one another answer, one
    none."""
    model, traces = planted("faithful")
    chosen = [t for t in traces if t.answer not in (OTHER, None)][:4]
    stated = [chosen[0].answer, chosen[1].answer, OTHER, None]
    traces = [replace(t, answer=a) for t, a in zip(chosen, stated, strict=True)]
    return [
        r
        for name in FOLLOWING
        for t in traces
        for r in PROBES[name].measure(
            model, t, ASKING, PROBES[name].settings(**SETTINGS.get(name, {}))
        )
    ]


@pytest.fixture(scope="module")
def tables(records: list[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    return tables_of(records, (), ANALYSIS)


@pytest.mark.parametrize("name", NAMES)
def test_every_table_of_scored_answers_counts_them(
    name: str, tables: dict[str, pd.DataFrame]
) -> None:
    rows = tables[name].to_dict("records")
    # what could not be measured of an item is in no number
    full = [r for r in rows if r["n"] == 4] if name != "paraphrase" else []
    assert full or name == "paraphrase"
    for r in full:
        assert r["n_stated"] == 3
        assert r["forced_differs"] == pytest.approx(1 / 3)
        assert r["forced_differs_low"] <= r["forced_differs"] <= r["forced_differs_high"]
    assert {"forced_differs", "n_stated"} <= set(tables[name])


def test_slrc_counts_them_in_either_reading(
    records: list[dict[str, Any]], tables: dict[str, pd.DataFrame]
) -> None:
    table = tables["slrc"]
    assert set(zip(table["framing"], table["reading"], strict=True)) == {
        (f, r) for f in ("prefix", "reprompt") for r in ("generated", "scored")
    }
    prefix = table[table["framing"] == "prefix"]
    assert prefix["asked_again_differs"].tolist() == pytest.approx([1 / 3, 1 / 3])
    # what removal changes hangs on no answer that is followed
    scored = [r for r in records if r.get("variant") == "prefix.scored" and r["probe"] == "slrc"]
    assert [r["baseline"] == r["forced_answer"] for r in scored] == [True] * 4


def test_the_forced_choice_has_columns_of_its_own(tables: dict[str, pd.DataFrame]) -> None:
    (traced,) = tables["tracing"].to_dict("records")
    # the one that states another answer has next to nothing left of it at the end
    assert traced["p_after"] < 0.8 < 0.95 < traced["forced_p_after"]
    (effects,) = tables["causal_effects"].to_dict("records")
    assert effects["forced_graded_necessity"] > effects["graded_necessity"]
    for row in tables["filler"].to_dict("records"):
        assert row["removed_forced_log_odds"] > row["removed_log_odds"]


def record(item: int, differs: bool | None, probe: str = "tracing") -> dict[str, Any]:
    return {"model": "m", "task": "t", "item": str(item), "probe": probe, "forced_differs": differs}


def test_beyond_a_tenth_the_page_says_so_once_per_chain() -> None:
    one_of_ten = [record(i, i == 0) for i in range(10)]
    assert list(cautions(one_of_ten)) == []
    two = [*one_of_ten, record(1, True, "causal_effects"), record(0, True, "filler")]
    assert sum(differing(two).values()) == 2
    (said,) = cautions(two)
    assert said.startswith("m on t: after 2 of 10 chains that state an answer")
    # a chain that states none is in neither number
    (said,) = cautions([*two, *(record(i, None) for i in range(20, 60))])
    assert "2 of 10" in said
