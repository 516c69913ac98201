"""The first screen of the page: what the numbers come to, judge by judge."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from faithscope.experiments.analysis.html import Cell
from faithscope.experiments.analysis.page import Fold, Grid
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.studies.c2faith.words import WORDS, section, verdicts


def detection(flagged: int, alarms: int, n: int, silent: int = 0) -> dict[str, Any]:
    row: dict[str, Any] = {"judge": "j", "reading": "generated", "prompt": "c2_detection"}
    row |= {"n": n, "n_control": n, "n_without_verdict": silent, "n_control_without_verdict": 0}
    for name, hits in (("detection", flagged), ("fpr", alarms)):
        share = wilson(hits, n)
        row |= {name: share.value, f"{name}_wilson_low": share.low}
        row[f"{name}_wilson_high"] = share.high
    return row


def tables(*of_detection: dict[str, Any]) -> dict[str, pd.DataFrame]:
    place = {"judge": "j", "reading": "generated", "exact": 0.4, "exact_low": 0.2}
    place |= {"exact_high": 0.6, "exact_chance": 0.1, "n": 20}
    coverage = [
        {"judge": "j", "reading": "generated", "level": level, "inflation": inflation, "n": 20}
        for level, inflation in ((0.1, 0.9), (0.7, 0.25))
    ]
    signals = [
        {"kind": "internals", "name": "m", "signal": "surprisal", "auroc": 0.7}
        | {"auroc_low": math.nan, "auroc_high": math.nan},
        {"kind": "judge", "name": "j", "signal": "generated", "auroc": 0.99}
        | {"auroc_low": 0.9, "auroc_high": 1.0},
    ]
    return {
        "c2_detection": pd.DataFrame(list(of_detection)),
        "c2_localisation": pd.DataFrame([place]),
        "c2_coverage": pd.DataFrame(coverage),
        "c2_judge_against_internals": pd.DataFrame(signals),
    }


@pytest.mark.parametrize(
    ("flagged", "alarms", "n", "word"),
    [
        (90, 10, 100, "tells"),
        (12, 10, 100, "blind"),
        (25, 10, 100, "little"),
        (45, 10, 100, "unclear"),
        (3, 0, 5, "few"),
        (1, 0, 1, "few"),  # one chain is no certainty
    ],
)
def test_a_word_follows_from_the_interval(flagged: int, alarms: int, n: int, word: str) -> None:
    (verdict,) = verdicts(tables(detection(flagged, alarms, n)))
    assert verdict["word"] == word
    assert verdict["caution"] == ""
    assert [verdict[name] for name in ("named", "blindly", "inflated")] == [0.4, 0.1, 0.25]


def test_a_judge_that_says_one_thing_or_nothing_is_called_so() -> None:
    (always,) = verdicts(tables(detection(100, 100, 100)))
    assert (always["word"], always["caution"][:20]) == ("blind", "It flags every step:")
    (silent,) = verdicts(tables(detection(9, 1, 10, silent=30)))
    assert silent["caution"].startswith("30 of 50 judgements gave no verdict")


def test_it_is_under_the_first_prompt_and_every_word_is_told() -> None:
    other = detection(0, 90, 100) | {"prompt": "c2_detection_terse"}
    shown = section(tables(detection(90, 10, 100), other))
    (grid,) = (b for b in shown.blocks if isinstance(b, Grid))
    (row,) = grid.table.rows  # pyright: ignore
    assert isinstance(row[1], Cell)
    assert WORDS["tells"].text in row[1].text
    (folded,) = (b for b in shown.blocks if isinstance(b, Fold))
    (rules,) = folded.blocks
    assert isinstance(rules, Grid)
    said = [cells[0].text for cells in rules.table.rows]  # pyright: ignore
    assert all(word.text in text for word, text in zip(WORDS.values(), said, strict=True))
    inside = shown.blocks[-1]
    assert isinstance(inside, str)
    assert "Of 1 signal inside models" in inside
    assert "surprisal in m: 0.70 (no interval; 0.5 is chance)." in inside
    assert "by chance:" not in inside
