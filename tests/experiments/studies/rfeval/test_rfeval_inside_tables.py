"""Signs inside by behaviour: areas, means and curves against scikit-learn, numpy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from figure_fit import texts_of
from rf_frames import frame, judged
from rf_made_up import CELLS, CUTS, NAMES, R_PRIME, made_tables, made_up, records
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score
from statsmodels.stats.multitest import multipletests

from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.rfeval.figures.inside import (
    sign_name,
    signs_picture,
    traces_picture,
)
from faithscope.experiments.studies.rfeval.metrics.chains import scored
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL
from faithscope.experiments.studies.rfeval.metrics.inside import JOINED, inside_frame
from faithscope.experiments.studies.rfeval.metrics.inside_signs import (
    CONTRASTS,
    SIGNALS,
    auroc_within,
    rank_sum_p,
)
from faithscope.experiments.studies.rfeval.words import sign_sentences

SOME = 30


@pytest.fixture(scope="module")
def judgements() -> pd.DataFrame:
    return made_up(NAMES[:2], ("legal_decision", "table_reasoning"), n=SOME)["judged"]


@pytest.fixture(scope="module")
def made(judgements) -> dict[str, pd.DataFrame]:
    return made_tables({"judged": judgements}, 50)


def drawn_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Clusters, strata, kinds and scores with ties; both rarer and greater in one stratum."""
    rng = np.random.default_rng(seed)
    strata = rng.integers(3, size=n)
    positive = rng.random(n) < 0.2 + 0.2 * strata
    score = np.round(rng.normal(0.8 * positive + strata, 1), 1)
    return np.arange(n).astype(str), strata, positive, score


def test_areas_are_scikit_learns_by_stratum_and_their_variance_delongs() -> None:
    items, strata, positive, score = drawn_scores(150)
    won = pairs = 0.0
    for here in (strata == s for s in range(3)):
        n = positive[here].sum() * (~positive[here]).sum()
        won, pairs = won + n * roc_auc_score(positive[here], score[here]), pairs + n
    assert auroc_within(items, strata, positive, score).value == pytest.approx(won / pairs)
    found = auroc_within(items, np.zeros(150), positive, score)
    assert found.value == pytest.approx(roc_auc_score(positive, score))
    high, low = score[positive], score[~positive]
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    by_high, by_low = wins.mean(1), wins.mean(0)
    delong = math.sqrt(by_high.var(ddof=1) / len(high) + by_low.var(ddof=1) / len(low))
    logit = [math.log(x / (1 - x)) for x in (found.low, found.value, found.high)]
    assert logit[1] - logit[0] == pytest.approx(logit[2] - logit[1])
    told = (logit[2] - logit[0]) / 2 / 1.959964 * found.value * (1 - found.value)
    assert told == pytest.approx(delong, rel=0.02)


def test_intervals_hold_what_a_bootstrap_over_clusters_says() -> None:
    _, strata, positive, score = drawn_scores(80, seed=1)
    items = np.repeat(np.arange(80), 2).astype(str)
    twice = [np.repeat(x, 2) for x in (strata, positive, score)]
    found = auroc_within(items, *twice)
    once = auroc_within(np.arange(80).astype(str), strata, positive, score)
    # the same rows twice are no more than once, but as if they were independent
    assert (found.low, found.high) == pytest.approx((once.low, once.high), abs=1e-9)
    naive = auroc_within(np.arange(160).astype(str), *twice)
    assert naive.high - naive.low < 0.75 * (found.high - found.low)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        at = rng.integers(80, size=80)
        draws.append(auroc_within(at.astype(str), strata[at], positive[at], score[at]).value)
    low, high = np.nanquantile(draws, [0.025, 0.975])
    assert (once.low, once.high) == pytest.approx((low, high), abs=0.04)


def test_areas_without_a_variance() -> None:
    ids = np.array(list("abcdef"))
    kind = np.array([True, True, False, False, False, False])
    one = np.zeros(6)
    apart = auroc_within(ids, one, kind, np.array([2, 3, 1, 1, 0, 0.0]))
    # as two of two: with two positives no interval is narrower
    assert (apart.value, apart.high) == (1, 1)
    assert apart.low == pytest.approx(0.342, abs=1e-3)
    same = auroc_within(ids, one, kind, one)
    assert same.value == 0.5
    assert math.isnan(same.low)
    assert math.isnan(auroc_within(ids, np.arange(6), kind, one).value)
    assert math.isnan(rank_sum_p(one, one))
    assert math.isnan(rank_sum_p(one[:0], one))


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
    for by, group, mask in (
        ("behaviour", "misled", joined["behaviour"] == "misled"),
        ("violation", "none", joined["violation"] == ""),
        ("kappa", "0", joined["kappa"] == 0),
        ("all", "all", joined["item"] != ""),
    ):
        mine = joined.loc[mask & (joined["model"] == NAMES[0])]
        for row in rows(where(table, model=NAMES[0], by=by, group=group)):
            values = mine[row["signal"]].dropna()
            assert row["n_pairs"] == len(mine)
            assert row["n"] == len(values)
            if len(values):
                assert row["mean"] == pytest.approx(values.mean())
                assert row["mean_low"] <= row["mean"] + 1e-9 <= row["mean_high"] + 2e-9
    assert set(table["signal"]) == set(SIGNALS)


def test_signs_are_scikit_learns_areas_with_holms_correction(made) -> None:
    joined, signs = made["rf_inside_pairs"], made["rf_inside_signs"]
    assert len(signs) == 3 * sum(len(contrast.signals) for contrast in CONTRASTS.values())
    for contrast in ("silent_vs_open", "broken_vs_consistent"):
        column, positive, negative, signals = CONTRASTS[contrast]
        mine = joined.loc[
            (joined["model"] == NAMES[1]) & joined[column].isin([*positive, *negative])
        ]
        of = where(signs, model=NAMES[1], contrast=contrast)
        assert of["signal"].tolist() == list(signals)
        p = []
        for row in rows(of):
            known = mine.dropna(subset=[row["signal"]])
            kind, score = known[column].isin(positive), known[row["signal"]]
            assert (row["n_positive"], row["n_negative"]) == (kind.sum(), (~kind).sum())
            if kind.any() and not kind.all():
                assert row["auroc"] == pytest.approx(roc_auc_score(kind, score))
                if score.nunique() > 1:
                    p.append(mannwhitneyu(score[kind], score[~kind]).pvalue)
                    assert row["p"] == pytest.approx(p[-1])
                    assert row["reason"] == ""
                else:
                    assert row["reason"] == "no_variation"
                    assert math.isnan(row["auroc_low"])
            else:
                assert row["reason"] in ("no_values", "no_positive", "no_negative")
                assert math.isnan(row["auroc"])
        assert of["p_holm"].dropna().tolist() == pytest.approx(
            multipletests(p, method="holm")[1].tolist()
        )
    assert where(signs, model=OVERALL)["p"].isna().all()  # both models have the same items


def test_a_class_that_no_pair_is_of_is_named() -> None:
    pairs = frame(judged(*CELLS["misled"]), judged(*CELLS["self_correcting"]))
    signs = made_tables({"judged": pairs})["rf_inside_signs"]
    told = {
        r["contrast"]: r["reason"] for r in rows(where(signs, model="m", signal="lens_suppressed"))
    }
    assert told["silent_vs_open"] == told["broken_vs_consistent"] == "no_positive"
    assert told["misled_vs_corrected"] == ""
    assert told["unfaithful_vs_faithful"] == "no_positive"


def test_the_planted_difference_is_found(made) -> None:
    of = where(made["rf_inside_signs"], model=OVERALL, contrast="misled_vs_corrected")
    area = {r["signal"]: r["auroc_within"] for r in rows(of)}
    # nothing of the end of the trace is asked, and what lies before it is the same for both
    assert set(area) == set(CONTRASTS["misled_vs_corrected"].signals)
    assert abs(area["p_before"] - 0.5) < 0.2
    silent = where(made["rf_inside_signs"], model=OVERALL, contrast="silent_vs_open")
    assert {r["signal"]: r["auroc"] for r in rows(silent)}["asked_own_against_r_prime"] > 0.6
    broken = where(made["rf_inside_signs"], model=OVERALL, contrast="unfaithful_vs_faithful")
    assert {r["signal"]: r["auroc_within"] for r in rows(broken)}["led_share"] < 0.5


def test_what_the_signs_come_to_in_words() -> None:
    cells = [CELLS["silently_correcting"], CELLS["self_correcting"]] * 12
    pairs = frame(*(judged(*cell) for cell in cells))
    signs = made_tables({"judged": pairs})["rf_inside_signs"]
    [told] = sign_sentences(signs)
    assert told.startswith("Silent corrections looked into: 12; open ones: 12. How well")
    asked = where(signs, model=OVERALL, contrast="silent_vs_open").dropna(subset="auroc_within_low")
    assert len(asked) > 2
    for row in rows(asked):
        assert f"{sign_name(row['signal'])} {row['auroc_within']:.2f} (" in told
    few = signs.assign(n_positive=9)
    assert sign_sentences(few)[0].endswith("Too few to say which sign tells them apart.")
    assert sign_sentences(signs.head(0)) == []


def test_turns_add_up_and_are_where_they_were_put(made) -> None:
    turns = made["rf_inside_turns"]
    for _, of in turns.groupby(["reader", "model", "behaviour"]):
        n_of = int(of["n_of"].iloc[0])
        assert of["n"].sum() == n_of
    told = {(r["behaviour"], r["turn_part"]): r["share"] for r in rows(where(turns, model=OVERALL))}
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


def test_figures_say_what_the_tables_say(made) -> None:
    traces = traces_picture(made["rf_inside_traces"], made["rf_inside_turns"])
    texts = [texts_of(p.figure) for p in (traces, signs_picture(made["rf_inside_signs"]))]
    for part in ("r′", "own reasoning", "explanation", "silently correcting", "never turned"):
        assert part in texts[0]
    n = len(where(made["rf_inside_pairs"], behaviour="misled"))
    assert f"n = {n}" in texts[0]
    assert "share of own text it leads" in texts[1]
    assert len({sign_name(s) for s in SIGNALS}) == len(SIGNALS)
