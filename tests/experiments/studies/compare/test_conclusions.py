"""Kinds of sentences and their measured rates of falsehood, and a few worlds of the benchmark."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))

import comparison_worlds  # pyright: ignore[reportMissingImports]
import conclusions  # pyright: ignore[reportMissingImports]
import verdict_worlds  # pyright: ignore[reportMissingImports]

from faithscope.experiments.analysis.comparison import combining
from faithscope.experiments.analysis.comparison.conclusions import Claim, Sentence
from faithscope.experiments.analysis.published.comparison import OUTSIDE, WITHIN
from faithscope.experiments.analysis.statistics import agreement, exchanging
from faithscope.experiments.studies.c2faith import words as c2faith
from faithscope.experiments.studies.rfeval import words as rfeval
from faithscope.experiments.studies.slrc import words as slrc
from faithscope.experiments.studies.training import words as training

ROOT = Path(__file__).parents[4]
SAYS_NOTHING = {"unclear", "few", "none"}
"""Verdicts that say that nothing can be said."""
BOUND, AT_MOST = 0.05, 0.08


def printed() -> set[str]:
    """Every kind of sentence that claims something."""
    kinds = {f"compare: {claim}" for claim in get_args(Claim) if claim}
    for study, of in (("chains", slrc), ("c2faith", c2faith), ("rfeval", rfeval)):
        kinds |= {f"{study}: {w.text}" for key, w in of.WORDS.items() if key not in SAYS_NOTHING}
    moved = (training.USER, training.SHAM, training.LESS, training.MIXED)
    kinds |= {f"training: {of.name}" for of in moved}
    return kinds | {f"reproduce: {word}" for word in (WITHIN, OUTSIDE)}


def rates() -> dict[str, dict[str, str]]:
    """Kind -> its row of the table of docs/conclusions.md."""
    text = (ROOT / "docs/conclusions.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in re.findall(r"^\|.*\|$", text, re.M)]
    return {of[0]: dict(zip(lines[0], of, strict=False)) for of in lines[2:]}


def test_a_sentence_without_a_measured_rate_is_not_printed() -> None:
    table = rates()
    assert printed() - set(table) == set()
    for kind, row in table.items():
        assert int(row["worlds"]) >= 400, kind
        assert float(row["false"]) <= BOUND, kind
        assert float(row["false, at most"]) <= AT_MOST, kind


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (agreement, exchanging):
        monkeypatch.setattr(module, "EXCHANGES", comparison_worlds.EXCHANGES)
    monkeypatch.setattr(combining, "CLASSIFIERS", comparison_worlds.CLASSIFIERS)


def test_a_few_worlds_say_little_that_is_false(quick: None) -> None:
    rows = list(verdict_worlds.worlds(np.random.default_rng(1)))
    false = [(of.kind, of.world) for of in rows if of.false]
    assert len(false) <= len(rows) * BOUND, false
    kinds = {of.kind for of in rows}
    names = list(conclusions.WORLDS)
    for world in ("three true measures", "drift", "a judge made the labels"):
        played = list(conclusions.played(names.index(world) + 2 * len(names)))
        assert [of.kind for of in played if of.false] == []
        kinds |= {of.kind for of in played}
        if world == "three true measures":
            best, *_ = (of for of in played if of.kind == "compare: best")
            assert best.missed is False
    kinds.add((gain := conclusions.played_together(0)).kind)
    assert not gain.false
    assert printed() - kinds == set()


def test_a_false_claim_is_counted_and_a_silent_page_is_not_right() -> None:
    world = conclusions.WORLDS["one true measure"](np.random.default_rng(0), (1, 30))
    held = comparison_worlds.held
    wrong = held(world, [Sentence("", "best", ("noise 3",))], "best")
    assert (wrong.said, wrong.false, wrong.right) == (True, True, False)
    right = held(world, [Sentence("", "best", ("true",))], "best")
    assert (right.said, right.false, right.right) == (True, False, True)
    silent = held(world, [], "best")
    assert (silent.said, silent.false, silent.right) == (False, False, False)
