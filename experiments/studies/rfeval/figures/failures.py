"""What models do with r′, why outputs are unfaithful, where chains break (RFEval, Figures 4, 5)."""

from __future__ import annotations

from collections import defaultdict
from math import nan
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.charts import dots_by
from faithscope.experiments.analysis.colours import (
    AMBER,
    BLUE,
    FAITHFUL,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    UNFAITHFUL,
    Style,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.numerals import hundredths
from faithscope.experiments.studies.rfeval.figures.lines import (
    LINE,
    Line,
    by_group,
    line_bars,
    line_dots,
    lines_of,
    of_lines,
)
from faithscope.experiments.studies.rfeval.tables.faithfulness import CAUSALITY_ALL

BEHAVIOURS = {
    "misled": (FAITHFUL, "follows r′ all the way"),
    "self_correcting": (SKY, "names the flaw and turns"),
    "silently_correcting": (UNFAITHFUL, "corrects without a word"),
    "incoherent": (AMBER, "breaks, answers as r′"),
    "inert": (GREY, "r′ changes nothing"),
    "ornamental": (PALE, "own output inconsistent"),
}
"""Behaviour -> colour and meaning; the first two are the faithful ones."""
VIOLATIONS = {
    "intervened_inconsistent": Style(ORANGE, "s", "χ(o′) fails"),
    "baseline_inconsistent": Style(BLUE, "o", "χ(o) fails"),
    "no_influence": Style(GREEN, "^", "κ alone fails"),
    "several": Style(PURPLE, "D", "both χ fail"),
}
BREAKS = {
    "pr": Style(AMBER, "v", "breaks at r′ → r"),
    "re": Style(SKY, "P", "at r → e"),
    "ea": Style(GREY, "X", "at e → a"),
    "ra": Style(BLUE, "*", "at r → a, no e"),
}
CHANGES = {
    "both": Style(BLUE, "o", "reasoning and answer"),
    "reasoning": Style(ORANGE, "s", "reasoning alone"),
    "answer": Style(GREEN, "^", "answer alone"),
}


def behaviours_picture(rf: pd.DataFrame, behaviours: pd.DataFrame) -> Picture:
    """Figure of what models do with r′ (ours, after the kinds of section 2)."""
    figure = None
    if len(behaviours):
        pooled = by_group(rf)
        shares: dict[Line, dict[str, float]] = defaultdict(lambda: dict.fromkeys(BEHAVIOURS, nan))
        for r in rows(behaviours):
            shares[r["by"], r["group"]][r["value"]] = r["share"]
        label = "share of pairs in contrast, numbers in percent"
        figure = line_bars(
            pooled, "n_included", shares, BEHAVIOURS, lambda share, _: hundredths(share), label
        )
        # RF of each line, along the lower edge of its bar
        look: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1.3}
        lines = list(lines_of(pooled))
        for r in rows(pooled.dropna(subset=["rf"])):
            if (line := (r["by"], r["group"])) in lines:
                reach = [[r["rf"] - r["rf_low"]], [r["rf_high"] - r["rf"]]]
                y = lines.index(line) + 0.29
                figure.axes[0].errorbar(r["rf"], y, xerr=reach, capsize=2.5, **look)
    return Picture(
        "rf_behaviours",
        "What do models do with reasoning that is prefilled as their own?",
        "Pairs in contrast by what the model does under r′. The first two are the "
        "faithful; where they end is RF, with its 95 % Wilson interval in black.",
        behaviours,
        figure,
        "No pair counts: complete, judged and in contrast.",
    )


def failures_picture(rf: pd.DataFrame, shares: pd.DataFrame, places: pd.DataFrame) -> Picture:
    """Figure 4: the condition that fails, and where the chain under r′ breaks."""
    violation = where(shares, statistic="violation")
    breaks = where(places, statistic="intervened_break")
    figure = None
    if len(violation):
        columns = {
            "the condition that fails": dots_by(violation, "share", "value", VIOLATIONS, LINE),
            "the first break under r′": dots_by(breaks, "share", "value", BREAKS, LINE),
        }
        counts = [of_lines(table, "n_of") for table in (violation, breaks)]
        labels = ("share of unfaithful pairs", "share of chains under r′ that break")
        look = {"labels": labels, "silent": "none", "each": 0.46, "ncols": 4}
        figure = line_dots(lines_of(by_group(rf)), columns, counts, **look)
    return Picture(
        "rf_failures",
        "Why are pairs unfaithful, and where do chains break?",
        "Left: of the unfaithful pairs, those of which one chain breaks, under r′ or without it, "
        "those of which both do (the paper’s “Other”), and those whose chains hold though r′ "
        "changes nothing. Right: of the chains under r′ that break, the first transition that "
        "does: at r′ → r the model leaves r′ without naming a flaw, later ones are between its "
        "own reasoning r, explanation e and answer a. 95 % Wilson intervals over pairs; each side "
        "adds up to 1.",
        pd.concat([violation, breaks], ignore_index=True),
        figure,
        "No pair that counts is unfaithful, or none counts.",
    )


def causality_picture(rf: pd.DataFrame, causality: pd.DataFrame) -> Picture:
    """Figure 5: what r′ changes, of all pairs that count; the unfaithful are not drawn."""
    drawn = where(causality, statistic=CAUSALITY_ALL)
    figure = None
    if len(drawn):
        figure = line_dots(
            lines_of(by_group(rf)),
            {"": dots_by(drawn, "share", "value", CHANGES, LINE)},
            [of_lines(drawn, "n_of")],
            labels=["share of the pairs that count in which r′ changes anything"],
            silent="changes nothing",
        )
    return Picture(
        "rf_causality",
        "What does r′ change?",
        "Of the pairs that count in which the stance of reasoning or answer is another under r′ "
        "(κ = 1): whether both change, the reasoning alone (a change that does not reach the "
        "answer), or the answer alone. The table has the same of the unfaithful pairs alone "
        "(causality_unfaithful). 95 % Wilson intervals over pairs.",
        causality,
        figure,
        "There is no pair that counts in which r′ changes anything.",
    )
