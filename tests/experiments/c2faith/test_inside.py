"""Items of the benchmark read from inside, as far as the frames that the tables are made of."""

from __future__ import annotations

import pandas as pd
import pytest
from tiny_models import tiny

from experiments.c2faith.inside import broken_chain, stated_answer
from experiments.c2faith.items import CausalItem
from experiments.c2faith.metrics.frames import Frames
from probes.broken_step import SIGNALS, broken_step, rows

ITEM = CausalItem(
    id="c.causal",
    chain="c",
    problem="What is 2 + 3 - 1?",
    steps=("Add 2 and 3.", "That is 5.", "Take 2 off.", "So 4.", "Right.\n\n# Answer\n\n4"),
    target=2,
    original="Take 1 off.",
    replacement="Take 2 off.",
    method="rule:numeric",
)


def test_both_chains_are_those_of_the_item() -> None:
    chain = broken_chain(ITEM)
    assert chain.told("perturbed") == ITEM.steps
    assert chain.told("control") == ITEM.original_steps
    assert (chain.item, chain.chain, chain.target, chain.answer) == ("c.causal", "c", 2, "4")
    assert chain.prompt == ITEM.problem


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("# Answer\n\n\\frac{1}{9}", "\\frac{1}{9}"),
        ("So x=2.\n\n# Answer\n\n(2, 3)\n", "(2, 3)"),
        ("So the answer is 4.", None),
        ("# Answer\n\n", None),
    ],
)
def test_the_answer_is_what_the_last_step_states(step: str, answer: str | None) -> None:
    assert stated_answer(step) == answer


def test_rows_are_what_the_tables_take() -> None:
    found = pd.DataFrame(
        [r for x in broken_step(tiny("llama"), broken_chain(ITEM)) for r in rows(x)]
    )
    frames = Frames(internals=found, internals_localisation=found)
    assert len(frames.internals) == len(frames.internals_localisation) == 2 * len(SIGNALS)
    assert set(frames.internals["condition"]) == {"perturbed", "control"}
    assert frames.internals_localisation["target"].eq(2).all()
