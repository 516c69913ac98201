"""Words that go with a broken step that is seen, and with one that is let pass."""

from __future__ import annotations

import math
from typing import Any

import pytest

from faithscope.experiments.studies.c2faith.metrics.words import LISTED, WORDS, words_table

WAY = {"judge": "j", "reading": "generated", "prompt": "p"}


def said(text: str, seen: bool, of: str = "rationale") -> dict[str, Any]:
    return WAY | {"of": of, "seen": seen, "text": text}


def test_phrases_are_counted_by_texts_on_either_side() -> None:
    """The paper's own examples, ten texts a side, by hand."""
    texts = [said("It does not follow. It does not follow.", True) for _ in range(8)]
    texts += [said("The step is fine.", True) for _ in range(2)]
    texts += [said("It directly follows from \\frac{1}{2}.", False) for _ in range(10)]
    table = words_table(texts).set_index("phrase")
    row = table.loc["does not follow"]
    assert (row["n_seen"], row["n_passed"]) == (10, 10)
    assert (row["share_seen"], row["share_passed"]) == (0.8, 0.0)
    expected = math.log(8.5 / 2.5) - math.log(0.5 / 10.5)
    assert row["log_odds_ratio"] == pytest.approx(expected)
    assert row["z"] == pytest.approx(expected / math.sqrt(1 / 8.5 + 1 / 2.5 + 1 / 0.5 + 1 / 10.5))
    assert table.loc["directly follows", "z"] < 0
    assert "\\frac" in table.index
    assert table["z"].tolist() == sorted(table["z"], reverse=True)
    assert "fine" not in table.index  # of two texts alone


def test_rationales_and_steps_stand_apart_and_one_side_says_nothing() -> None:
    kinds = ("rationale", "step")
    texts = [
        said(f"{of} {'seen' if i % 2 else 'passed'}", i % 2 == 1, of)
        for of in kinds
        for i in range(9)
    ]
    table = words_table(texts)
    assert set(zip(table["of"], table["phrase"], strict=True)) >= {
        ("rationale", "rationale seen"),
        ("step", "step passed"),
    }
    assert not table["phrase"].str.contains("step").where(table["of"] == "rationale", False).any()
    assert len(words_table([said("a b", True)] * 5)) == 0
    assert len(words_table([said("…", True), said("…", False)] * 5)) == 0
    assert list(words_table([]).columns) == WORDS


def test_a_list_is_short() -> None:
    texts = [
        said(" ".join(f"w{side}x{i}" for i in range(60)).replace("0", "a"), side == 1)
        for side in (0, 1)
        for _ in range(5)
    ]
    table = words_table(texts)
    assert (table["z"] > 0).sum() <= LISTED
    assert (table["z"] < 0).sum() <= LISTED
