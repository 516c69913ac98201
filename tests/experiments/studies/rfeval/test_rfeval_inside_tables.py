"""Signals inside by behaviour: rows, means, turns and curves, recomputed by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from figure_fit import texts_of
from rf_frames import frame, judged
from rf_made_up import CELLS, CUTS, NAMES, R_PRIME, made_tables, made_up, records

from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.numerals import estimate
from faithscope.experiments.studies.rfeval.figures.inside import traces_picture
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL
from faithscope.experiments.studies.rfeval.tables.inside import JOINED, SIGNALS, inside_frame
from faithscope.experiments.studies.rfeval.words import inside_sentences

SOME = 30


@pytest.fixture(scope="module")
def judgements() -> pd.DataFrame:
    return made_up(NAMES[:2], ("legal_decision", "table_reasoning"), n=SOME)["judged"]


@pytest.fixture(scope="module")
def made(judgements) -> dict[str, pd.DataFrame]:
    return made_tables({"judged": judgements}, 50)


def test_a_row_is_of_the_option_that_the_reader_says_r_prime_leads_to() -> None:
    rows_of = [judged(*CELLS[kind]) for kind in CELLS]
    pairs = frame(*rows_of, judged("B B B", "C C B B"), judged("B B B", "I I B B"))
    told = inside_frame(records(pairs), scored(pairs))
    assert list(told) == JOINED
    assert told["behaviour"].tolist() == [*CELLS, *["silently_correcting"] * 2]
    assert told["led_to"].tolist() == [*"A" * 6, "C", ""]
    # of C there is no probability in these traces: it is what would be said of another option
    assert told["turn_part"].tolist()[-2:] == ["never_led", ""]
    assert told["led_to_reason"].tolist()[-1] == "r_prime_stance_is_no_option"
    assert told[["p_final", "lens_led"]].iloc[-1].isna().all()
    assert told["asked_own"].notna().all()
    # two readers that differ about r′ each have a row of their own
    other = pairs.assign(reader="other").replace({"intervened_r_prime": {"A": "C", "C": "A"}})
    both = inside_frame(records(pairs), scored(pd.concat([pairs, other])))
    assert both.groupby("reader")["led_to"].first().to_dict() == {"judge": "A", "other": "C"}


def test_pairs_that_do_not_count_or_were_not_looked_into_have_no_row() -> None:
    pairs = frame(judged(), judged("A A A", "A A A A"), judged(excluded="anomalous"), judged())
    told = inside_frame(records(pairs), scored(pairs))
    assert told["item"].tolist() == ["0", "3"]
    assert inside_frame(records(pairs)[:1], scored(pairs)).empty  # a baseline alone


def test_means_are_those_of_the_pairs(made) -> None:
    joined, table = made["rf_inside_pairs"], made["rf_inside"]
    for behaviour in ("misled", OVERALL):
        mine = where(joined, model=NAMES[0])
        mine = mine if behaviour == OVERALL else where(mine, behaviour=behaviour)
        for row in rows(where(table, model=NAMES[0], behaviour=behaviour)):
            values = mine[row["signal"]].dropna()
            assert row["n_pairs"] == len(mine)
            assert row["n"] == len(values)
            if len(values):
                assert row["mean"] == pytest.approx(values.mean())
                # values that are all alike have no interval
                assert math.isnan(row["mean_low"]) == (np.ptp(values) < 1e-9 or len(values) < 5)
                assert not row["mean_low"] > row["mean"] + 1e-9
                assert not row["mean_high"] < row["mean"] - 1e-9
    assert {*SIGNALS, "baseline_p_final", "baseline_confidence"} == set(table["signal"])


def test_the_means_in_words() -> None:
    cells = [CELLS["silently_correcting"], CELLS["misled"]] * 12
    pairs = frame(*(judged(*cell) for cell in cells))
    means = made_tables({"judged": pairs})["rf_inside"]
    effect, led = inside_sentences(means)
    assert effect.startswith("What r′ adds to the probability of the option that it leads to")
    for behaviour, words in (("misled", "misled"), ("silently_correcting", "silently correcting")):
        (row,) = rows(where(means, model=OVERALL, behaviour=behaviour, signal="led_share"))
        assert f"{words} {estimate(row['mean'], row['mean_low'], row['mean_high'])}" in led
    assert "inert" not in led
    assert inside_sentences(means.assign(n=9)) == []
    assert inside_sentences(means.head(0)) == []


def test_turns_add_up_and_are_where_they_were_put(made) -> None:
    turns = made["rf_inside_turns"]
    for _, of in turns.groupby(["reader", "model", "behaviour"]):
        assert of["n"].sum() == of["n_of"].iloc[0]
    told = {(r["behaviour"], r["value"]): r["share"] for r in rows(where(turns, model=OVERALL))}
    assert told["misled", "never_turned"] == 1
    assert told["self_correcting", "e"] > 0.5
    assert told["silently_correcting", "r"] > 0.5


def test_curves_are_means_along_the_parts(made, judgements) -> None:
    traces = made["rf_inside_traces"]
    table = where(traces, model=NAMES[0], behaviour="misled", part="r_prime", option="r_prime")
    pairs = made["rf_inside_pairs"]
    mine = where(pairs, model=NAMES[0], behaviour="misled")
    by_item = {
        (r["model"], r["item"]): r for r in records(judgements) if r["variant"] == "intervened"
    }
    values = []
    for item in mine["item"]:
        p = np.reshape(by_item[NAMES[0], item]["p"], (-1, 3))[:, 0]
        ends = CUTS.index(R_PRIME) + 1
        values.append(np.interp(np.linspace(0, R_PRIME, 11), CUTS[:ends], p[:ends]))
    assert table["position"].tolist() == pytest.approx([i / 10 for i in range(11)])
    assert table["p"].tolist() == pytest.approx(np.mean(values, axis=0).tolist())
    assert table["n"].eq(len(mine)).all()
    # what a misled output answers is the option of r′: both curves are one
    answer = where(traces, model=NAMES[0], behaviour="misled", part="r_prime", option="answer")
    assert answer["p"].tolist() == table["p"].tolist()


def test_the_figure_says_what_the_table_says(made) -> None:
    texts = texts_of(traces_picture(made["rf_inside_traces"]).figure)
    for part in ("r′", "own reasoning", "explanation", "silently correcting"):
        assert part in texts
    n = len(where(made["rf_inside_pairs"], behaviour="misled"))
    assert f"misled (n = {n})" in texts
    nothing = traces_picture(made["rf_inside_traces"].head(0))
    assert nothing.figure is None
