"""What models do with r′, a bar for each model and task (ours, after the paper's section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.figures.bars import (
    BAR_BLUE,
    BAR_GREY,
    BAR_ORANGE,
    BAR_PALE,
    bars,
    finish_bars,
)
from faithscope.experiments.studies.rfeval.figures.plots import (
    AMBER,
    SKY,
    by_group,
    counts_beside,
    line_figure,
    lines_of,
    shares_of,
)

BEHAVIOURS = {
    "misled": (BAR_BLUE, "follows r′ all the way"),
    "self_correcting": (SKY, "names the flaw and turns"),
    "silently_correcting": (BAR_ORANGE, "corrects without a word"),
    "incoherent": (AMBER, "breaks, answers as r′"),
    "inert": (BAR_GREY, "r′ changes nothing"),
    "ornamental": (BAR_PALE, "own output inconsistent"),
}
"""Kind -> colour and meaning; the first two are the faithful."""


def behaviours_picture(rf: pd.DataFrame, behaviours: pd.DataFrame) -> Picture:
    """What models do with r′ (ours, after section 2's kinds)."""
    figure = None
    if len(behaviours):
        pooled = by_group(rf)
        lines = lines_of(pooled)
        figure, axes = line_figure(lines, 0.3, 1)
        wide = shares_of(behaviours, lines, tuple(BEHAVIOURS))
        bars(axes[0], wide, BEHAVIOURS, lambda share, _: f"{100 * share:.0f}")
        found = {(r["by"], r["group"]): r for r in rows(pooled)}
        _intervals(axes[0], [found[x.by, x.group] for x in lines])
        finish_bars(axes[0], lines, BEHAVIOURS)
        counts_beside(axes[0], [r["n_of"] for r in wide], "pairs")
        axes[0].set_xlabel("share of pairs in contrast, numbers in percent")
    return Picture(
        "rf_behaviours",
        "What do models do with reasoning that was put into their mouth?",
        "Pairs in contrast by what the model does under r′. The two kinds of blue are the "
        "faithful; where they end is RF, with its 95 % Wilson interval in black.",
        behaviours,
        figure,
        "No pair counts: complete, judged and in contrast.",
    )


def _intervals(ax: Axes, of_lines: Sequence[Mapping[str, Any]]) -> None:
    """RF of each line, along the lower edge of its bar."""
    at = [(y, r) for y, r in enumerate(of_lines) if not np.isnan(r["rf"])]
    ax.errorbar(
        [r["rf"] for _, r in at],
        [y + 0.27 for y, _ in at],
        xerr=[[r["rf"] - r["rf_low"] for _, r in at], [r["rf_high"] - r["rf"] for _, r in at]],
        fmt="none",
        ecolor="#111111",
        elinewidth=1.3,
        capsize=2.5,
    )
