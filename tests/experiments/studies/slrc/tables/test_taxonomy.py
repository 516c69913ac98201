"""Direct answers against reasoned ones (SLRC, 2.3): the four modes, by hand and by the paper's
counts."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from printed_cells import printed, value
from probe_records import direct_answer, slrc_outcome, table_of

from faithscope.experiments.analysis.statistics.stats import paired_difference
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    MODES,
    mode,
    threshold_sensitivity_table,
)


def test_steps_that_matter_without_a_gain_are_empty_and_the_unmeasured_is_nothing():
    assert mode(0.5, 0.0, 0.3, 0.1) == "empty"
    assert mode(0.3, 0.1, 0.3, 0.1) == "genuine"
    assert mode(math.nan, 0.5, 0.3, 0.1) == mode(0.5, math.nan, 0.3, 0.1) == ""


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((20, 12, 2, 16), 0.0562, 0.3292),
        ((18, 14, 0, 18), 0.1441, 0.3963),
    ],
)
def test_newcombes_own_examples(table, low, high):
    """Method 10 of Newcombe 1998 on tables of his paper."""
    both, first, second, neither = table
    one = [True] * (both + first) + [False] * (second + neither)
    other = [True] * both + [False] * first + [True] * second + [False] * neither
    found = paired_difference(one, other)
    assert found.value == pytest.approx((first - second) / sum(table))
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_a_paired_difference_that_never_varies_keeps_an_interval():
    found = paired_difference([True] * 20, [True] * 20)
    assert found.value == 0
    assert found.low < 0 < found.high
    assert math.isnan(paired_difference([], []).value)


RECORDS = [
    # of 6 items: reasoned right on 0-3, wrong on 4, unparsed on 5; direct right on 0 alone
    *(
        slrc_outcome("m", "t", str(i), [True, False], [False, True], i < 4 if i < 5 else None)
        for i in range(6)
    ),
    *(direct_answer("m", "t", str(i), i == 0, unparsed=i == 3) for i in range(6)),
    # asked directly only, and reasoned only: in no pair
    direct_answer("m", "t", "6", True),
    slrc_outcome("m", "t", "7", [True, True], [False, False], True),
    # other prompts and readings are not mixed in
    direct_answer("m", "t", "1", True, prompt="formatted"),
    direct_answer("m", "t", "1", True, reading="scored"),
]


def test_direct_accuracy_counts_an_unparsed_reply_as_wrong():
    table = table_of("direct", RECORDS)
    assert table[["prompt", "reading", "n"]].values.tolist() == [
        ["unformatted", "generated", 7],
        ["unformatted", "scored", 1],
        ["formatted", "generated", 1],
    ]
    first = table.iloc[0]
    assert (first["accuracy"], first["n_unparsed"], first["n_cut"]) == (2 / 7, 1, 0)
    assert first["accuracy_low"] < 2 / 7 < first["accuracy_high"]


def test_the_gap_is_paired_on_the_items_asked_both_ways():
    table = table_of("taxonomy", RECORDS)
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["n"], row["prompt"]) == (6, "unformatted")
    assert row["cot_accuracy"] == 4 / 6
    assert row["direct_accuracy"] == 1 / 6
    assert row["gap"] == pytest.approx(3 / 6)
    # of 5 parsed pairs one step of two, and of the unpaired item both
    assert row["necessity"] == 7 / 12
    assert row["mode"] == "genuine"
    # what could not be read is not right on either side, and is counted
    assert (row["n_direct_unparsed"], row["n_cot_unparsed"]) == (1, 1)
    expected = paired_difference([True] * 4 + [False] * 2, [True] + [False] * 5)
    assert (row["gap_low"], row["gap_high"]) == (expected.low, expected.high)
    assert not row["settled"]


def test_the_prompt_and_thresholds_are_settings():
    table = table_of("taxonomy", RECORDS, taxonomy=TaxonomyConfig(prompt="formatted"))
    assert table.iloc[0]["n"] == 1
    strict = table_of("taxonomy", RECORDS, taxonomy=TaxonomyConfig(necessity=0.9))
    assert strict.iloc[0]["mode"] == "scaffolding"


def test_a_large_sample_settles_its_mode():
    records = [
        r
        for i in range(200)
        for r in (
            slrc_outcome("m", "t", str(i), [False] * 5, [True] * 5, True),
            direct_answer("m", "t", str(i), False),
        )
    ]
    row = table_of("taxonomy", records).iloc[0]
    assert (row["mode"], bool(row["settled"])) == ("scaffolding", True)


def test_threshold_sensitivity_counts_pairs_that_keep_their_mode():
    rows = [
        {"necessity": necessity, "gap": gap, "mode": mode(necessity, gap, 0.3, 0.1)}
        for necessity, gap in ((0.22, 0.5), (0.28, 0.5), (0.33, 0.5), (0.9, 0.0))
    ]
    rows.append(rows[0] | {"task": "t:why"})
    pairs = pd.DataFrame(rows).assign(framing="prefix", reading="generated")
    table = threshold_sensitivity_table(pairs.fillna({"task": "t"}), SlrcAnalysis())
    assert table["necessity_threshold"].tolist() == [0.2, 0.25, 0.3, 0.35]
    assert table["n"].tolist() == [4] * 4
    assert table["n_same"].tolist() == [2, 3, 4, 3]
    assert table["agreement"].tolist() == [0.5, 0.75, 1.0, 0.75]
    assert table["n_genuine"].tolist() == [3, 2, 1, 0]
    # reasoning helps the first three, and not the last, whose steps matter
    assert table["n_consistent"].tolist() == [3, 2, 1, 0]
    assert set(table["tasks"]) == {"all"}
    assert (table[[f"n_{name}" for name in MODES]].sum(axis=1) == 4).all()


def test_a_pair_without_a_mode_keeps_none_and_the_share_is_of_the_n_beside_it():
    measured = ((0.22, 0.5), (0.9, 0.5), (0.5, math.nan), (math.nan, 0.0))
    rows = [
        {"necessity": n, "gap": gap, "mode": mode(n, gap, 0.3, 0.1), "task": "t"}
        for n, gap in measured
    ]
    pairs = pd.DataFrame(rows).assign(framing="prefix", reading="generated")
    table = threshold_sensitivity_table(pairs, SlrcAnalysis())
    assert table["n"].tolist() == [2] * 4
    assert table["n_same"].tolist() == [1, 2, 2, 2]
    assert table["agreement"].tolist() == [0.5, 1.0, 1.0, 1.0]
    assert table["consistent"].tolist() == [1.0, 0.5, 0.5, 0.5]
    assert (table[[f"n_{name}" for name in MODES]].sum(axis=1) == table["n"]).all()
    assert table["n_consistent"].tolist() == [2, 1, 1, 1]
    unmeasured = threshold_sensitivity_table(pairs[pairs["mode"] == ""], SlrcAnalysis())
    assert unmeasured[["n", "n_same", "n_consistent"]].values.tolist() == [[0, 0, 0]] * 4
    assert unmeasured["consistent"].isna().all()


def test_the_papers_reference_is_the_gain_in_accuracy():
    """Necessity and gain agree for 16 of Table 2's 22 pairs (73 %); Extended Data Table 3 has 13 of
    18 (72 %) at the same threshold. Its first column covers the classification tasks."""
    counts = {c["row"].lower(): int(c["value"]) for c in printed("slrc", "table2", column="Pairs")}
    of_kind = {"genuine": (0.5, 0.5), "scaffolding": (0.0, 0.5), "decorative": (0.1, 0.0)}
    kinds = {kind: (*pair, counts[kind]) for kind, pair in of_kind.items()}
    rows = [
        {"necessity": necessity, "gap": gap, "mode": kind, "task": "sst2" if i % 3 else "gsm8k"}
        for kind, (necessity, gap, n) in kinds.items()
        for i in range(n)
    ]
    pairs = pd.DataFrame(rows).assign(framing="reprompt", reading="generated")
    table = threshold_sensitivity_table(pairs, SlrcAnalysis())
    usual = table[table["necessity_threshold"] == 0.3].set_index("tasks")
    assert (usual.loc["all", "n_consistent"], usual.loc["all", "n"]) == (16, 22)
    (share,) = printed("slrc", "ed3", task="All tasks", row="0.30", column="Share")
    assert usual.loc["all", "consistent"] == pytest.approx(value(share), abs=0.01)
    assert usual.loc["classification", "n"] == sum(r["task"] == "sst2" for r in rows)
