"""Sentences of the training page: what training did to a planted model, by its intervals."""

from __future__ import annotations

from typing import Any

import pytest

from faithscope.experiments.studies.training.page import reading

NOTHING = {
    "accuracy": 1.0,
    **{
        f"{name}_gain_{end}": at
        for name in ("regenerated", "right_despite_hint", "necessity")
        for end, at in (("low", -0.1), ("high", 0.1))
    },
}


def row(accuracy: float = 1.0, **moved: int) -> dict[str, Any]:
    """A row of `training_planted` in which measures rose (1) or fell (-1)."""
    at = NOTHING | {"accuracy": accuracy}
    for name, sign in moved.items():
        low, high = (0.2, 0.4) if sign > 0 else (-0.4, -0.2)
        at |= {f"{name}_gain_low": low, f"{name}_gain_high": high}
    return at


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (row(), "no measure of use moved"),
        (row(regenerated=1, right_despite_hint=1, necessity=1), "it came to use its steps"),
        (row(necessity=1), "(sham)"),
        (row(necessity=1, regenerated=-1, right_despite_hint=-1), "less than before, and trips"),
        (row(regenerated=-1, right_despite_hint=-1), "it uses its steps less than before"),
        (row(regenerated=1), "the measures disagree: change by regeneration rose"),
        (row(0.5, regenerated=1, right_despite_hint=1), "unlearned its task (right on 50%"),
    ],
)
def test_a_sentence_follows_the_intervals(of, said):
    assert said in reading(of)
