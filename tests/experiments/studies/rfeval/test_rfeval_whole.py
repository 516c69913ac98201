"""From items through an open model as judge to every table: that the parts fit each other."""

from __future__ import annotations

import pandas as pd
import pytest
from test_rfeval_prompts import FORMS, LOGIC, NUMBER, TABLE, WORDS
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.inside.scored_stances import (
    scored_readings,
    scored_stances,
)
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL
from faithscope.experiments.studies.rfeval.pairs import (
    CONDITIONS,
    answer_readings,
    output_ask,
    pair_row,
)
from faithscope.experiments.studies.rfeval.subjects.injection import forced, output_of
from faithscope.experiments.studies.rfeval.tables import RfFrames, tables
from faithscope.probes.judge.forced import ForcedJudge
from faithscope.probes.judge.form import Ask, Reply
from faithscope.probes.judge.open_model import GeneratingSettings

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
            asks.append(output_ask(item, condition, output, form, WORDS))
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
            {condition: replies[f"{item.id}.{condition}"] for condition in CONDITIONS},
        )
        for item in ITEMS
    ]
    frames = RfFrames(pd.DataFrame(rows), readings=pd.DataFrame(readings))
    made = tables(frames, resamples=10)
    waterfall = made["rf_waterfall"].set_index(["model", "task"]).loc[("m", OVERALL)]
    assert waterfall["n_total"] == 3
    assert waterfall["n_included"] + waterfall["n_non_contrast"] == 3
    readers = made["rf_readers"]
    assert set(readers["reader"]) | set(readers["other"]) == {"tiny", "matching", "log_probs"}
    answers = readers.loc[(readers["reader"] == "matching") & (readers["part"] == "baseline_a")]
    assert answers["n"].tolist() == [3]
    for row in rows:
        assert row["baseline_e"] == ""  # a model without marks has no explanation of its own
        assert row["intervened_r_prime"]
        assert row["baseline_right"] in (0, 1)


@pytest.mark.parametrize("name", ["rf_stance", "rf_flaw"])
def test_single_parts_are_scored_by_log_probs(name: str) -> None:
    from faithscope.experiments.studies.rfeval.pairs import flaw_ask, stance_ask
    from faithscope.probes.judge.scoring import ScoringJudge

    model = tiny("llama", max_position_embeddings=8192)
    if name == "rf_stance":
        ask = stance_ask(TABLE, "r", "It refutes it.", FORMS[name], WORDS, "paper")
    else:
        ask = flaw_ask(TABLE, "re", "It supports.", "No: wrong row.", FORMS[name], WORDS)
    found: list[Reply] = []
    ScoringJudge(model).ask_all([ask], lambda _, reply: found.append(reply))
    assert found[0].values[ask.form.verdict] in ask.choices()
    assert sum(found[0].probabilities) == pytest.approx(1)
