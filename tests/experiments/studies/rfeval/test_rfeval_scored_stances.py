"""The model's own stance after each part: against a forward pass for each, in every family."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from test_rfeval_prompts import NUMBER, TABLE, item
from tiny_models import tiny

from faithscope.experiments.studies.rfeval.config_sections import CUE
from faithscope.experiments.studies.rfeval.inside.layout import layout
from faithscope.experiments.studies.rfeval.inside.scored_stances import (
    scored_readings,
    scored_stances,
)
from faithscope.experiments.studies.rfeval.metrics.people import reader_agreement
from faithscope.experiments.studies.rfeval.subjects.injection import forced


def test_shares_are_those_of_plain_forwards() -> None:
    model = tiny("llama")
    of = item(options=("no", "yes", "perhaps"))
    start = forced(model, "Guilty?", "He was not there.")
    written = model.encode(" He was. Answer: B")
    found = scored_stances(model, of, start, written)
    assert [s.part for s in found] == ["none", "r_prime", "r", "a"]
    places = layout(model, start, written).after_parts
    for stance in found:
        p = []
        for letter in of.letters:
            prefix = (*places[stance.part], *model.encode(CUE))
            ids = [*prefix, *model.encode(f" {letter}")]
            with torch.inference_mode():
                logits = model.hf(torch.tensor([ids]), use_cache=False).logits[0].double()
            shares = torch.softmax(logits, -1)
            p.append(
                torch.stack([shares[k - 1, ids[k]] for k in range(len(prefix), len(ids))]).prod()
            )
        p = torch.stack(p)
        assert stance.probabilities == pytest.approx((p / p.sum()).tolist(), rel=1e-3)
        assert stance.mass == pytest.approx(p.sum().item(), rel=1e-3)
        assert stance.stance == of.letters[int(p.argmax())]
    alone = scored_stances(model, of, start, written, execution="loop")
    assert [s.stance for s in alone] == [s.stance for s in found]


def test_stances_have_the_names_that_are_asked_for_and_become_readings() -> None:
    model = tiny("llama")
    start = forced(model, "Claim?", "It supports it.")
    written = model.encode(" It does not. Answer: C")
    found = scored_stances(model, TABLE, start, written, "paper")
    assert {s.stance for s in found} <= set(TABLE.options)
    rows = scored_readings("m", TABLE, {"intervened": found})
    assert [r["part"] for r in rows] == ["intervened_r_prime", "intervened_r", "intervened_a"]
    other = [r | {"reader": "judge"} for r in rows]
    table = reader_agreement(pd.DataFrame(rows + other))
    assert table["agreement"].tolist() == [1] * 4
    assert scored_stances(model, NUMBER, start, written) == []
