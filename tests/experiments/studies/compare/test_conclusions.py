"""Some of the simulated worlds of `benchmarks/conclusions.py`, through the page's own sentences."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))

from conclusions import (  # pyright: ignore[reportMissingImports]
    CLAIMS,
    WORLDS,
    Sentence,
    held,
    played,
)


@pytest.mark.slow
def test_pages_of_thirty_questions_and_three_models_say_little_that_is_false() -> None:
    rows = [row for kind in WORLDS for row in played(kind, 4, 100)]
    assert len(rows) == len(WORLDS) * len(CLAIMS)
    false = [(row["world"], row["claim"]) for row in rows if row["false"]]
    # of 42 claims, each false in at most one world of twenty, more than 5 are false in 2 % of cases
    assert len(false) <= 5, false
    right = {row["claim"] for row in rows if row["world"] == "one true measure" and row["right"]}
    assert right == {"best"}


def test_a_false_claim_is_counted_and_a_silent_page_is_not_right() -> None:
    world = WORLDS["one true measure"](np.random.default_rng(0), (1, 30))
    wrong = held(world, [Sentence("", "best", ("noise 3",))], "best")
    assert (wrong.said, wrong.false, wrong.right) == (True, True, False)
    right = held(world, [Sentence("", "best", ("true",))], "best")
    assert (right.said, right.false, right.right) == (True, False, True)
    silent = held(world, [], "best")
    assert (silent.said, silent.false, silent.right) == (False, False, False)
