"""Report of controllability: reasoning under a rule for its form, and without one (CoT-Control)."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from faithscope.experiments.analysis.cells import Count, Share, all_of, rows_known, rows_with
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.tidy import numbers
from faithscope.experiments.numerals import percent
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

BOTH_RIGHT = all_of(rows_known("correct"), rows_known("correct_before"))
CONTROLLABILITY = item_table(
    "controllability",
    (
        COUNTED,
        Count(
            "n_known",
            rows_known("kept"),
            "known",
            "Items of which it is known whether the reasoning keeps to the rule.",
        ),
        Share(
            "kept",
            "kept",
            rows_known("kept"),
            "keeps to it",
            "Share of these whose reasoning keeps to the rule when told.",
        ),
        Share(
            "kept_before",
            "kept_before",
            rows_known("kept_before"),
            "untold",
            "Share of the chains written without the rule that keep to it all the same.",
        ),
        Count("n_cut", rows_with(cut=True), "cut", "New chains that reached the token limit."),
        Share(
            "correct",
            "correct",
            BOTH_RIGHT,
            "right",
            "Share of the answers under the rule that are right.",
        ),
        Share(
            "correct_before",
            "correct_before",
            BOTH_RIGHT,
            "right untold",
            "Share of the same items' answers without the rule that are right.",
        ),
    ),
    keys=(Column("rule", meaning="Rule for the form of the reasoning."),),
    caption="Reasoning that keeps to a rule",
)


def _in_short(tables: Mapping[str, pd.DataFrame]) -> str:
    """How often reasoning keeps to a rule when told, and when not."""
    if CONTROLLABILITY.name not in tables:
        return ""
    of = tables[CONTROLLABILITY.name].dropna(subset=["kept"])
    if not len(of):
        return "Of no chain is it known whether it keeps to its rule."
    n = numbers(of["n_known"])
    kept, before = (float((numbers(of[c]) * n).sum() / n.sum()) for c in ("kept", "kept_before"))
    return (
        f"Told a rule for its form, the reasoning keeps to it in {percent(kept)} of "
        f"{round(n.sum())} chains; untold, {percent(before)} do."
    )


REPORT = MeasureReport(
    "controllability",
    Section(
        "controllability",
        "Controllability",
        "The question is asked again with a rule for the form of the reasoning. Reasoning that "
        "keeps to any rule could also hide what it reasons from, so a low share is the good news "
        "for monitoring. A chain that keeps to a rule untold shows no control.",
    ),
    (CONTROLLABILITY,),
    (
        Frame(
            "controllability",
            "A row per item and rule: whether the reasoning keeps to it, told and untold.",
            (
                *("rule", "word", "kept", "kept_before", "share", "share_before"),
                *("own", "answer", "gold", "correct", "correct_before", "cut", "excluded"),
            ),
        ),
    ),
    over_steps=False,
    in_short=_in_short,
    reasons={
        "no_word_to_forbid": "the reasoning has no word that could be forbidden",
        "nothing_to_check": "nothing in the new reasoning could keep to the rule or break it",
    },
)
