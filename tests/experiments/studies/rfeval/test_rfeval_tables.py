"""Tables from scored frames: against counts made here, and against the paper's own numbers."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest
from rf_frames import drawn, frame, judged, models_of, pairs_of, tables_of
from rf_posed import FORMS, LOGIC, NUMBER, TABLE, WORDS
from rf_published import COVERAGE, RF, grid
from statsmodels.stats.proportion import proportion_confint
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.items import CONDITIONS, TASKS
from faithscope.experiments.studies.rfeval.judging.scored_stances import (
    scored_readings,
    scored_stances,
)
from faithscope.experiments.studies.rfeval.pairs import answer_readings, output_ask, pair_row
from faithscope.experiments.studies.rfeval.subjects.subjects import forced, output_of
from faithscope.experiments.studies.rfeval.tables.faithfulness import (
    BEHAVIOUR_SHARES,
    CAUSALITY_TYPES,
    COVERAGE_QUARTILES,
    EXCLUSION_REASONS,
    FAILURE_LOCATIONS,
    FAILURE_SHARES,
    REGIMES,
    RFEVAL,
    WATERFALL,
)
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL, STANCES
from faithscope.probes.judge.forced import ForcedJudge
from faithscope.probes.judge.form import Ask, Reply
from faithscope.probes.judge.open_model import GeneratingSettings


def row_of(table: pd.DataFrame, **values: str) -> dict:
    for name, value in values.items():
        table = table.loc[table[name] == value]
    (row,) = table.to_dict("records")
    return row


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    return pairs_of(drawn())


def test_the_waterfall_adds_up_everywhere(many: pd.DataFrame) -> None:
    table = WATERFALL.make(many)
    parts = [c for c in table.columns if c.startswith("n_") and c != "n_total"]
    assert (table[parts].sum(axis=1) == table["n_total"]).all()
    assert row_of(table, model=OVERALL, task=OVERALL)["n_total"] == len(many) == 1200
    assert (table[parts].sum() > 0).all()
    odd = many.assign(exclusion=many["exclusion"].replace("global", "lost"))
    with pytest.raises(ValueError, match="exclusion 'lost' is none of"):
        WATERFALL.make(odd)


def test_a_waterfall_of_the_papers_gives_back_its_counts_rf_and_coverage() -> None:
    """R1-Qwen-7B: coverage .687 of all attempted, and the .70 that is printed of those with an
    evaluation, where 129 of the 476 unfinished pairs have none."""
    model = "R1-Qwen-7B"
    total, *counts = map(int, grid(13, "model").loc[model])
    rf, coverage = RF["Overall"][model], COVERAGE["Overall"][model]
    unasked = dict.fromkeys(("baseline_judged", "intervened_judged", *STANCES), "")
    kinds = [
        judged(),
        judged(excluded="anomalous"),
        judged(**unasked, intervened_outcome="truncated"),
        judged(**unasked | {"baseline_judged": "unparsed", "intervened_judged": "unparsed"}),
        judged("A A A", "A A A A"),
    ]
    rows = [dict(row) for row, n in zip(kinds, counts, strict=True) for _ in range(n)]
    for i in range(round(counts[0] * rf / 100), counts[0]):
        rows[i] = judged("B B B", "A A A B")
    for row in rows[counts[0] + counts[1] :][:129]:
        row["baseline_outcome"] = "truncated"
    scores = pairs_of(frame(*rows))
    table = row_of(WATERFALL.make(scores), model="m", task="legal_decision")
    names = ("n_included", "n_global", "n_unfinished", "n_evaluation_error", "n_non_contrast")
    assert [table[name] for name in names] == counts
    overall = row_of(RFEVAL.make(scores), model="m", task=OVERALL)
    assert overall["rf"] == pytest.approx(rf / 100, abs=1e-4)
    assert (overall["n_attempted"], overall["n_coverage"]) == (total, total)
    assert overall["contrast_coverage"] == pytest.approx(0.687, abs=5e-4)
    released = row_of(
        RFEVAL.make(pairs_of(frame(*rows), paper_compat=True)), model="m", task=OVERALL
    )
    # without the one pair whose two replies do not parse
    assert (released["n_attempted"], released["n_coverage"]) == (total, total - 129 - counts[3])
    assert released["contrast_coverage"] == pytest.approx(coverage, abs=5e-4)


def test_ours_keeps_the_identity_of_tables_17_and_25(many: pd.DataFrame) -> None:
    rf, shares = RFEVAL.make(many), FAILURE_SHARES.make(many)
    for model in ("m1", "m2", "m3", OVERALL):
        row = row_of(rf, model=model, task=OVERALL)
        of = shares.loc[
            (shares["by"] == "model")
            & (shares["group"] == model)
            & (shares["statistic"] == "violation")
        ].set_index("value")["share"]
        left = 1 - row["rf"]
        broken = (of["baseline_inconsistent"] + of["several"]) * left
        assert broken == pytest.approx(1 - row["chi_baseline"])
        under_r_prime = (of["intervened_inconsistent"] + of["several"]) * left
        assert under_r_prime == pytest.approx(1 - row["chi_intervened"])


def test_rf_table_by_hand(many: pd.DataFrame) -> None:
    table = RFEVAL.make(many)
    assert len(table) == 4 * 8
    for model, task in itertools.product(("m1", OVERALL), (TASKS[0], OVERALL)):
        of = many
        if model != OVERALL:
            of = of.loc[of["model"] == model]
        if task != OVERALL:
            of = of.loc[of["task"] == task]
        row = row_of(table, model=model, task=task)
        tried = of.loc[of["excluded"] == ""]
        included = of.loc[of["exclusion"] == ""]
        assert (row["n_total"], row["n_attempted"], row["n_included"]) == (
            len(of),
            len(tried),
            len(included),
        )
        known = (tried["baseline_r"] != "") & (tried["intervened_r_prime"] != "")
        contrast = known & (tried["baseline_r"] != tried["intervened_r_prime"])
        assert row["contrast_coverage"] == pytest.approx(contrast.mean())
        assert row["rf"] == pytest.approx(included["rf"].mean())
        assert row["chi_intervened"] == pytest.approx(included["intervened_chi"].mean())
        low, high = proportion_confint(included["rf"].sum(), len(included), method="wilson")
        known = (low, high) if len(included) >= 5 else (math.nan, math.nan)
        assert (row["rf_low"], row["rf_high"]) == pytest.approx(known, nan_ok=True)


def test_reasons_are_told_output_by_output() -> None:
    scores = pairs_of(
        frame(
            judged(baseline_outcome="truncated", intervened_outcome="empty"),
            judged(baseline_outcome="truncated"),
            judged(intervened_judged="refused"),
            judged(excluded="no reasoning in its block"),
            judged(),
        )
    )
    reasons = EXCLUSION_REASONS.make(scores)
    counts = set(
        zip(
            reasons["exclusion"], reasons["condition"], reasons["reason"], reasons["n"], strict=True
        )
    )
    assert counts == {
        ("unfinished", "baseline", "truncated", 2),
        ("unfinished", "intervened", "empty", 1),
        ("evaluation_error", "intervened", "refused", 1),
        ("global", "", "no reasoning in its block", 1),
    }


def test_regimes_stand_within_families(many: pd.DataFrame) -> None:
    regimes = {"m2": ("MiMo", "Base"), "m1": ("MiMo", "SFT+RL")}
    table = REGIMES.make(RFEVAL.make(many), models_of(regimes))
    assert list(zip(table["family"], table["regime"], table["model"], strict=True)) == [
        ("MiMo", "Base", "m2"),
        ("MiMo", "SFT+RL", "m1"),
    ]
    with pytest.raises(ValueError, match="regime of 'm9', which has no results"):
        REGIMES.make(RFEVAL.make(many), models_of({"m9": ("x", "y")}))


def test_shares_of_failures_and_places() -> None:
    rows = [
        *[judged()] * 3,  # faithful
        *[judged("B B C", "A A A A")] * 2,  # baseline alone, at ea
        *[judged("B B B", "A A B B")] * 4,  # intervened alone, at re
        judged("B B B", "A B B B", "intervened_pr"),  # no influence
        judged("B B B", "A B B B"),  # intervened alone, at pr, and no influence
        *[judged("B - C", "A B A A")] * 3,  # both, at ra and pr
        judged("A A A", "A B B B"),  # no contrast
    ]
    found = pairs_of(frame(*rows))
    shares = FAILURE_SHARES.make(found)
    mine = shares.loc[(shares["by"] == "model") & (shares["group"] == "m")]
    exclusive = mine.loc[mine["statistic"] == "violation"].set_index("value")
    assert exclusive["n"].to_dict() == {
        "baseline_inconsistent": 2,
        "intervened_inconsistent": 5,
        "no_influence": 1,
        "several": 3,
    }
    assert exclusive["share"].sum() == pytest.approx(1)
    assert row_of(mine, statistic="fails_baseline_inconsistent")["n"] == 5
    assert row_of(mine, statistic="fails_intervened_inconsistent")["n"] == 8
    assert row_of(mine, statistic="fails_no_influence")["n"] == 2
    places = FAILURE_LOCATIONS.make(found)
    assert row_of(places, by="model", group="m", statistic="baseline_break", value="ra")["n"] == 3
    first = places.loc[(places["group"] == "m") & (places["statistic"] == "intervened_break")]
    assert dict(zip(first["value"], first["n"], strict=True)) == {
        "pr": 4,
        "re": 4,
        "ea": 0,
        "ra": 0,
    }
    moved = (
        CAUSALITY_TYPES.make(found)
        .set_index(["by", "group", "statistic", "value"])
        .sort_index()["n"]
    )
    of = moved["model", "m"]
    assert of["causality_all"].to_dict() == {"both": 5, "reasoning": 4, "answer": 3}
    assert of["causality_unfaithful"].to_dict() == {"both": 2, "reasoning": 4, "answer": 3}
    kinds = BEHAVIOUR_SHARES.make(found).set_index(["by", "group", "value"])["n"][
        "task", "legal_decision"
    ]
    assert kinds["misled"] == 3
    assert kinds["ornamental"] == 5
    assert kinds["silently_correcting"] == 5
    assert kinds["inert"] == 1


def test_shares_add_up_for_every_group(many: pd.DataFrame) -> None:
    tables = [FAILURE_LOCATIONS.make(many), CAUSALITY_TYPES.make(many), BEHAVIOUR_SHARES.make(many)]
    shares = FAILURE_SHARES.make(many)
    tables.append(shares.loc[shares["statistic"] == "violation"])
    for table in tables:
        sums = table.groupby(["by", "group", "statistic"])["share"].sum()
        assert sums.to_numpy() == pytest.approx(1)
    assert set(tables[0]["group"]) == {"m1", "m2", "m3", OVERALL, *TASKS}


def test_quartiles_pool_to_everything(many: pd.DataFrame) -> None:
    rf = RFEVAL.make(many)
    table = COVERAGE_QUARTILES.make(rf)
    whole = row_of(rf, model=OVERALL, task=OVERALL)
    for by in ("model", "task"):
        pooled = table.loc[(table["by"] == by) & (table["group"] == OVERALL)]
        assert pooled["n_included"].sum() == whole["n_included"]
        weighted = (pooled["rf"] * pooled["n_included"]).sum() / pooled["n_included"].sum()
        assert weighted == pytest.approx(whole["rf"])
        assert (pooled["coverage_min"] <= pooled["coverage_max"]).all()


ITEMS = (TABLE, LOGIC, NUMBER)
WRITTEN = {
    "baseline": " It is plain.\nSo it goes.\nAnswer: B",
    "intervened": " But no.\nAnswer: C",
}


@pytest.mark.slow
def test_from_items_to_tables() -> None:
    model = tiny("llama", max_position_embeddings=8192)
    outputs, readings, asks = {}, [], []
    for item in ITEMS:
        scored = {}
        for condition in CONDITIONS:
            r_prime = item.r_prime if condition == "intervened" else ""
            start = forced(model, "Which?", r_prime)
            written = model.encode(WRITTEN[condition])
            output = output_of(model, start, written)
            assert output.usable
            outputs.setdefault(item.id, {})[condition] = output
            scored[condition] = scored_stances(model, item, start, written)
            form = FORMS[f"rf_{condition}"]
            asks.append(output_ask("m", item.posed(WORDS), condition, output, form))
        readings += answer_readings("m", item, outputs[item.id])
        readings += scored_readings("m", item, scored)
    replies: dict[str, Reply] = {}

    def keep(ask: Ask, reply: Reply) -> None:
        replies[ask.id] = reply

    ForcedJudge(model, GeneratingSettings(max_new_tokens=2)).ask_all(asks, keep)
    assert {reply.outcome for reply in replies.values()} == {"parsed"}
    rows = [
        pair_row(
            *("tiny", "m", item, outputs[item.id]),
            {c: vars(replies[f"m {item.id}.{c}"]) for c in CONDITIONS},
        )
        for item in ITEMS
    ]
    every_table = tables_of(pd.DataFrame(rows), readings=pd.DataFrame(readings))
    waterfall = every_table["rf_waterfall"].set_index(["model", "task"]).loc[("m", OVERALL)]
    assert waterfall["n_total"] == 3
    assert waterfall["n_included"] + waterfall["n_non_contrast"] == 3
    readers = every_table["rf_readers"]
    assert set(readers["reader"]) | set(readers["other"]) == {"tiny", "matching", "log_probs"}
    answers = readers.loc[(readers["reader"] == "matching") & (readers["part"] == "baseline_a")]
    assert answers["n"].tolist() == [3]
    for row in rows:
        assert row["baseline_e"] == ""  # a model without marks has no explanation of its own
        assert row["intervened_r_prime"]
        assert row["baseline_right"] in (0, 1)


@pytest.mark.parametrize("name", ["rf_stance", "rf_flaw"])
def test_single_parts_are_scored_by_log_probs(name: str) -> None:
    from faithscope.experiments.studies.rfeval.pairs import part_ask
    from faithscope.probes.judge.scoring import ScoringJudge

    model, named = tiny("llama", max_position_embeddings=8192), TABLE.posed(WORDS, "paper")
    if name == "rf_stance":
        ask = part_ask("r", named, FORMS[name].form, part="It refutes it.")
    else:
        ask = part_ask("re", named, FORMS[name].form, before="It supports.", part="No: wrong row.")
    replies: list[Reply] = []
    ScoringJudge(model).ask_all([ask], lambda _, reply: replies.append(reply))
    assert replies[0].values[ask.form.verdict] in ask.choices()
    assert sum(replies[0].probabilities) == pytest.approx(1)
