"""Whether the probabilities of the scored reading mean what they say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.c2faith.figures.plots import Voice, grid, say_silent, voices
from experiments.report.picture import Picture
from experiments.report.plots import BLUE, GREY, share_ticks
from experiments.tables.tidy import rows


def reliability(ax: Axes, line: pd.DataFrame) -> Axes:
    """Share broken against the probability said, a calibrated judge dotted."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
    below = np.maximum(0, line["share_perturbed"] - line["share_perturbed_low"])
    above = np.maximum(0, line["share_perturbed_high"] - line["share_perturbed"])
    ax.errorbar(
        line["mean_p_flag"],
        line["share_perturbed"],
        yerr=[below, above],
        color=BLUE,
        marker="o",
        ms=4,
        lw=1.3,
        elinewidth=0.8,
    )
    return ax


def calibration_picture(calibration: pd.DataFrame, detection: pd.DataFrame) -> Picture:
    """Reliability of the scored reading, a panel per judge."""
    found = voices(calibration)
    titles = {}
    for voice in found:
        row = rows(voice.of(detection))[0]
        if not math.isnan(row["ece"]):
            titles[voice.name] = f"AUROC {row['auroc']:.2f} · ECE {row['ece']:.2f}"

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(calibration)
        known = mine.dropna(subset=["mean_p_flag"])
        if len(known):
            reliability(ax, known)
        else:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        share_ticks(ax.xaxis)
        share_ticks(ax.yaxis)

    labels = ("probability said that the step does not follow", "share replaced")
    return Picture(
        "c2_calibration",
        "Do probabilities mean what they say?",
        "Steps by the probability that the scored reading gives to “does not follow”, in ten bins "
        "of equal width: the share of them that was replaced, with 95 % Wilson intervals. On the "
        "dotted line a judge is calibrated for these items, half of which are replaced.",
        calibration,
        grid(found, draw, height=2.5, titles=titles, labels=labels) if found else None,
        "No judge gave probabilities.",
    )
