"""Why outputs are unfaithful, where chains break, what r′ changes (RFEval, Figures 4 and 5)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import BLUE, GREEN, ORANGE, PURPLE, legend_above
from faithscope.experiments.analysis.dots import dots
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.figures.plots import (
    by_group,
    counts_beside,
    finish_lines,
    line_figure,
    lines_of,
    shares_of,
)
from faithscope.experiments.studies.rfeval.metrics.failures import CAUSALITY_UNFAITHFUL

VIOLATIONS = {
    "intervened_inconsistent": (ORANGE, "s", "χ(o′) fails"),
    "baseline_inconsistent": (BLUE, "o", "χ(o) fails"),
    "no_influence": (GREEN, "^", "κ alone fails"),
    "several": (PURPLE, "D", "both χ fail"),
}
BREAKS = {
    "pr": (BLUE, "o", "r′ → r"),
    "re": (ORANGE, "s", "r → e"),
    "ea": (GREEN, "^", "e → a"),
    "ra": (PURPLE, "D", "r → a, no e"),
}
CHANGES = {
    "both": (BLUE, "o", "reasoning and answer"),
    "reasoning": (ORANGE, "s", "reasoning alone"),
    "answer": (GREEN, "^", "answer alone"),
}
NONE_FAILS = "none"


def failures_picture(rf: pd.DataFrame, shares: pd.DataFrame, places: pd.DataFrame) -> Picture:
    """Figure 4: the condition that fails, and where the chain under r′ breaks."""
    violation = where(shares, statistic="violation")
    breaks = where(places, statistic="intervened_break")
    figure = None
    if len(violation):
        lines = lines_of(by_group(rf))
        figure, axes = line_figure(lines, 0.46, 2)
        for ax, table, styles, label in (
            (axes[0], violation, VIOLATIONS, "share of unfaithful pairs"),
            (axes[1], breaks, BREAKS, "share of chains under r′ that break"),
        ):
            wide = shares_of(table, lines, tuple(styles))
            dots(ax, wide, styles, silent=NONE_FAILS)
            counts_beside(ax, [r["n_of"] for r in wide])
            ax.set_xlabel(label)
            _legend_over(ax)
        finish_lines(axes, lines)
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
    """Figure 5: what r′ changes, of the unfaithful pairs; beside it, not drawn, of all."""
    drawn = where(causality, statistic=CAUSALITY_UNFAITHFUL)
    figure = None
    if len(drawn):
        lines = lines_of(by_group(rf))
        figure, axes = line_figure(lines, 0.4, 1)
        wide = shares_of(drawn, lines, tuple(CHANGES))
        dots(axes[0], wide, CHANGES, silent="changes nothing")
        finish_lines(axes, lines)
        counts_beside(axes[0], [r["n_of"] for r in wide], "pairs")
        axes[0].set_xlabel("share of unfaithful pairs in which r′ changes anything")
        legend_above(figure, axes[0])
    return Picture(
        "rf_causality",
        "What does r′ change?",
        "Of the unfaithful pairs in which the stance of reasoning or answer is another under r′: "
        "whether both change, the reasoning alone (a change that does not reach the answer), or "
        "the answer alone. The table has the same of all pairs in contrast (causality_all). 95 % "
        "Wilson intervals over pairs.",
        causality,
        figure,
        "There is no unfaithful pair in which r′ changes anything.",
    )


def _legend_over(ax: Axes) -> None:
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, fontsize=8)
