"""Where all pairs went (RFEval, Table 13 and Figure 12)."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.figures.bars import (
    BAR_BLUE,
    BAR_GREY,
    BAR_ORANGE,
    BAR_PALE,
    BAR_PURPLE,
    bars,
    finish_bars,
)
from faithscope.experiments.studies.rfeval.figures.plots import (
    AMBER,
    by_group,
    counts_beside,
    line_figure,
    lines_of,
)

WENT = {
    "faithful": (BAR_BLUE, "counts, faithful"),
    "unfaithful": (BAR_ORANGE, "counts, unfaithful"),
    "non_contrast": (BAR_PALE, "r′ not in contrast"),
    "evaluation_error": (BAR_PURPLE, "not judged"),
    "unfinished": (AMBER, "unfinished output"),
    "global": (BAR_GREY, "left out beforehand"),
}


def waterfall_picture(waterfall: pd.DataFrame, rf: pd.DataFrame) -> Picture:
    """Table 13 and Figure 12: where all pairs went."""
    data = went(by_group(waterfall), by_group(rf))
    figure = None
    if len(data):
        lines = lines_of(data)
        figure, axes = line_figure(lines, 0.3, 1)
        found = {(r["by"], r["group"]): r for r in rows(data)}
        of_lines = [found[x.by, x.group] for x in lines]
        shares = [{k: r[f"n_{k}"] / r["n_total"] for k in WENT} for r in of_lines]
        totals = [r["n_total"] for r in of_lines]
        bars(axes[0], shares, WENT, lambda share, y: f"{round(share * totals[y]):,}")
        finish_bars(axes[0], lines, WENT)
        counts_beside(axes[0], totals, "pairs")
        axes[0].set_xlabel("share of all pairs, numbers are pairs")
    return Picture(
        "rf_waterfall",
        "Where did the pairs go?",
        "Every pair of outputs is in one part: left out beforehand, cut off or without what is "
        "judged, without a readable judgement, with r′ and the model’s own reasoning of one "
        "stance, or counted, and then faithful or not. The parts add up to all pairs.",
        data,
        figure,
        "No pair was made.",
    )


def went(waterfall: pd.DataFrame, rf: pd.DataFrame) -> pd.DataFrame:
    """The waterfall with the included parted into faithful and unfaithful."""
    kept = ["reader", "by", "group", "n_total", "n_included"]
    kept += [c for c in waterfall.columns if c.startswith("n_") and c not in kept]
    both = waterfall[kept].merge(
        rf[["reader", "by", "group", "rf"]], on=["reader", "by", "group"], how="left"
    )
    faithful = (both["rf"].fillna(0).astype(float) * both["n_included"].astype(float)).round()
    both["n_faithful"] = faithful.astype(int)
    both["n_unfaithful"] = both["n_included"].astype(int) - both["n_faithful"]
    return both.drop(columns="rf")
