"""Detection (C2-Faith, Figures 2a and 8)."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.charts import BLUE, GREEN, ORANGE
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.studies.c2faith.figures.plots import curves, forest

NOT_RUN = "Detection was not run."


def detection_picture(detection: pd.DataFrame) -> Picture:
    """Figure 2a, with the control beside it."""
    measures = {
        "detection": (BLUE, "o", "broken step flagged"),
        "fpr": (ORANGE, "s", "intact step flagged"),
        "net": (GREEN, "D", "difference"),
    }
    return Picture(
        "c2_detection",
        "Do judges see the broken step?",
        "Share of replaced steps that a judge says do not follow, the same share of the original "
        "steps, and the difference, with 95 % bootstrap intervals over chains. A judge that flags "
        "everything has a difference of 0.",
        detection,
        forest(detection, measures, "share of steps"),
        NOT_RUN,
    )


def positions_picture(table: pd.DataFrame) -> Picture:
    """Figure 8: a panel per judge, the others behind it."""
    labels = ("place of the replaced step in the chain", "share flagged")
    figure = curves(table, "position", "detection", labels, lambda n: int(n.sum()))
    if figure is not None:
        figure.axes[0].set(xlim=(0, 1), ylim=(-0.03, 1.03), xticks=[0.05, 0.95])
        figure.axes[0].set_xticklabels(["first", "last"])
    return Picture(
        "c2_positions",
        "Does the place of the broken step matter?",
        "Share of replaced steps that are flagged, by their relative place in five bins, with "
        "95 % Wilson bands; other judges pale. The benchmark breaks middle steps only.",
        table,
        figure,
        NOT_RUN,
    )
