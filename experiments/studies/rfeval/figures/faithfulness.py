"""RF, coverage and what RF is made of (RFEval, Figures 3 and 11, Tables 2 and 3)."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, ORANGE, legend_above
from faithscope.experiments.analysis.dots import bare_rows, dots, name_lines, rules_between
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import middle_cut
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where, with_interval
from faithscope.experiments.studies.rfeval.figures.plots import (
    NONE_COUNTS,
    NOT_JUDGED,
    STYLES,
    by_group,
    counts_beside,
    crossed,
    finish_lines,
    line_figure,
    lines_of,
    share_lines,
)
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

RF_LABEL = "RF, share of pairs in contrast"
COVERAGE_LABEL = "contrast coverage, share of pairs attempted"
WILSON = "95 % Wilson intervals over pairs"


def rf_picture(rf: pd.DataFrame) -> Picture:
    """Table 2's margins, all readers beside each other."""
    data = by_group(rf)
    lines = lines_of(data)
    readers = list(dict.fromkeys(data["reader"]))
    figure = None
    if lines:
        figure, axes = line_figure(lines, 0.2 + 0.08 * len(readers), 2)
        found = {(r["reader"], r["by"], r["group"]): r for r in rows(data)}
        for ax, measure, label, silent in zip(
            axes,
            ("rf", "contrast_coverage"),
            (RF_LABEL, COVERAGE_LABEL),
            (NONE_COUNTS, "not attempted"),
            strict=True,
        ):
            styles, wide = {}, [{} for _ in lines]
            for i, reader in enumerate(readers):
                styles[f"r{i}"] = (*STYLES[i % len(STYLES)], middle_cut(visible(reader)))
                for line, at in zip(lines, wide, strict=True):
                    row = found.get((reader, line.by, line.group))
                    values = [row[c] if row else math.nan for c in with_interval(measure)]
                    at |= dict(zip(with_interval(f"r{i}"), values, strict=True))
            dots(ax, wide, styles, silent=silent)
            ax.set_xlabel(label)
        finish_lines(axes, lines)
        if len(readers) == 1:
            for ax, n in zip(axes, ("n_included", "n_coverage"), strict=True):
                counts_beside(ax, [found[readers[0], x.by, x.group][n] for x in lines], "pairs")
        else:
            legend_above(figure, axes[1])
    return Picture(
        "rf_faithfulness",
        "Are models faithful to the reasoning they write?",
        "Left: reasoning faithfulness (RF), the share of pairs in contrast whose two outputs are "
        "consistent in stance and differ. Right: contrast coverage, the share of pairs in which "
        "r′ and the model’s own reasoning take different stances; where it is low, RF is of few "
        f"and special pairs. {WILSON}.",
        data,
        figure,
        NOT_JUDGED,
    )


def cells_picture(rf: pd.DataFrame) -> Picture:
    """Table 2 as a picture: every model on every task."""
    styles = {"rf": (BLUE, "o", "RF"), "contrast_coverage": (ORANGE, "|", "contrast coverage")}
    figure = None
    own = rf.loc[(rf["model"] != OVERALL) & (rf["task"] != OVERALL)]
    if len(set(own["model"])) > 1 and len(set(own["task"])) > 1:

        def draw(ax: Axes, lines: list[dict | None]) -> None:
            share_lines(ax, lines, styles, NONE_COUNTS)

        figure = crossed(rf, draw, each=0.22, label="share of pairs")
        legend_above(figure, figure.axes[0])
    return Picture(
        "rf_cells",
        "On which tasks?",
        "RF and contrast coverage of every model on every task and over all, weighted by pairs, "
        f"with {WILSON}. RF of a task with little coverage is of few pairs.",
        rf,
        figure,
        "With one model or one task the figure of RF has it all; this one would say it again.",
    )


def components_picture(rf: pd.DataFrame) -> Picture:
    """Figure 11: the three conditions that RF is the product of."""
    data = by_group(rf)
    lines = lines_of(data)
    styles = {
        "chi_baseline": (BLUE, "o", "χ(o): own output consistent"),
        "chi_intervened": (ORANGE, "s", "χ(o′): output under r′ consistent"),
        "kappa": (GREEN, "^", "κ: r′ changes reasoning or answer"),
    }
    figure = None
    if lines:
        figure, axes = line_figure(lines, 0.42, 1)
        found = {(r["by"], r["group"]): r for r in rows(data)}
        of_lines = [found[x.by, x.group] for x in lines]
        dots(axes[0], of_lines, styles, silent=NONE_COUNTS)
        finish_lines(axes, lines)
        counts_beside(axes[0], [r["n_included"] for r in of_lines], "pairs")
        axes[0].set_xlabel("share of pairs in contrast for which it holds")
        legend_above(figure, axes[0])
    return Picture(
        "rf_components",
        "Which condition of faithfulness holds?",
        "RF asks for three things at once: stance consistency χ of the model’s own output and of "
        "the one that r′ was put into, and causal influence κ. The share of pairs in contrast "
        f"for which each holds, with {WILSON}.",
        data,
        figure,
        NOT_JUDGED,
    )


def regimes_picture(regimes: pd.DataFrame) -> Picture:
    """Table 3: RF by post-training regime within families."""
    return Picture(
        "rf_regimes",
        "Does post-training make reasoning less faithful?",
        "RF and contrast coverage of models of one family that differ in their post-training "
        f"alone, with {WILSON}. The models of a family share architecture and pre-training as "
        "far as the config says so; one model is one training run, and the intervals know "
        "nothing of another.",
        regimes,
        _regimes_drawn(regimes) if len(regimes) else None,
        "No model has a family and a regime in the config.",
    )


def _regimes_drawn(regimes: pd.DataFrame) -> Figure:
    families = [f["family"] for f in distinct(regimes, "family")]
    ordered = [r for family in families for r in rows(where(regimes, family=family))]
    figure = Figure(figsize=(9, 1.0 + 0.34 * len(ordered)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    of_rf = {"rf": (BLUE, "o", "RF")}
    of_coverage = {"contrast_coverage": (ORANGE, "s", "coverage")}
    dots(left, ordered, of_rf, silent=NONE_COUNTS).set_xlabel(RF_LABEL)
    dots(right, ordered, of_coverage, silent="not attempted").set_xlabel(COVERAGE_LABEL)
    sizes = [sum(r["family"] == family for r in ordered) for family in families]
    rules_between(left, sizes)
    rules_between(right, sizes)
    names = [f"{visible(r['family'])} · {visible(r['regime'])}" for r in ordered]
    name_lines(left, [middle_cut(n) for n in names])
    bare_rows([right])
    counts_beside(left, [r["n_included"] for r in ordered], "pairs")
    return figure
