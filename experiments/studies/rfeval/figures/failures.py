"""What models do with r′, why outputs are unfaithful, where chains break (RFEval, Figures 4, 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.axes import (
    AMBER,
    BLUE,
    DARK_BLUE,
    DARK_GREY,
    DARK_ORANGE,
    GREEN,
    GREY,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    SKY,
    Style,
)
from faithscope.experiments.analysis.charts import Dot, dots_of
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.rfeval.figures.lines import (
    Line,
    by_group,
    line_bars,
    line_dots,
    line_of,
    lines_of,
)
from faithscope.experiments.studies.rfeval.metrics.faithfulness import CAUSALITY_ALL

BEHAVIOURS = {
    "misled": (DARK_BLUE, "follows r′ all the way"),
    "self_correcting": (SKY, "names the flaw and turns"),
    "silently_correcting": (DARK_ORANGE, "corrects without a word"),
    "incoherent": (AMBER, "breaks, answers as r′"),
    "inert": (DARK_GREY, "r′ changes nothing"),
    "ornamental": (LIGHT_GREY, "own output inconsistent"),
}
"""Kind -> colour and meaning; the first two are the faithful."""
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
    "ra": Style(DARK_BLUE, "*", "at r → a, no e"),
}
CHANGES = {
    "both": Style(BLUE, "o", "reasoning and answer"),
    "reasoning": Style(ORANGE, "s", "reasoning alone"),
    "answer": Style(GREEN, "^", "answer alone"),
}


def behaviours_picture(rf: pd.DataFrame, behaviours: pd.DataFrame) -> Picture:
    """What models do with r′ (ours, after section 2's kinds)."""
    figure = None
    if len(behaviours):
        pooled = by_group(rf)
        lines = lines_of(pooled)
        shares: dict[Line, dict[str, float]] = {
            line: dict.fromkeys(BEHAVIOURS, math.nan) for line in lines
        }
        for r in rows(behaviours):
            shares.setdefault(line_of(r), {})[r["value"]] = r["share"]
        counts = {line_of(r): r["n_included"] for r in rows(pooled)}
        label = "share of pairs in contrast, numbers in percent"
        figure = line_bars(
            *(lines, shares, BEHAVIOURS, counts),
            *(lambda share, _: f"{100 * share:.0f}", label),
        )
        # RF of each line, along the lower edge of its bar
        for r in rows(pooled):
            if line_of(r) in lines and not math.isnan(r["rf"]):
                reach = [[r["rf"] - r["rf_low"]], [r["rf_high"] - r["rf"]]]
                look: dict[str, Any] = {
                    "fmt": "none",
                    "ecolor": "#111111",
                    "elinewidth": 1.3,
                    "capsize": 2.5,
                }
                y = list(lines).index(line_of(r)) + 0.29
                figure.axes[0].errorbar(r["rf"], y, xerr=reach, **look)
    return Picture(
        "rf_behaviours",
        "What do models do with reasoning that was put into their mouth?",
        "Pairs in contrast by what the model does under r′. The two kinds of blue are the "
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
            "the condition that fails": _dots(violation, VIOLATIONS),
            "the first break under r′": _dots(breaks, BREAKS),
        }
        counts = [{line_of(r): r["n_of"] for r in rows(table)} for table in (violation, breaks)]
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
            {"": _dots(drawn, CHANGES)},
            [{line_of(r): r["n_of"] for r in rows(drawn)}],
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


def _dots(table: pd.DataFrame, styles: Mapping[str, Style]) -> list[Dot]:
    """The share of each value, of a table of `metrics.faithfulness` with one statistic."""
    return [
        dot
        for value, style in styles.items()
        for dot in dots_of(rows(where(table, value=value)), {"share": style}, line_of)
    ]
