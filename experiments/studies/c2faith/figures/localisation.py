"""Localisation (C2-Faith, Figures 2b, 5 and 7)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.analysis.charts import BLUE, GREEN, ORANGE, PURPLE
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import numbers, rows
from faithscope.experiments.studies.c2faith.figures.plots import (
    Voice,
    curves,
    forest,
    grid,
    say_silent,
    voices,
)

FARTHEST = 8
"""Steps early or late beyond which Figure 5 puts all into its outermost bars."""
NOT_RUN = "Localisation was not run."


def localisation_picture(localisation: pd.DataFrame) -> Picture:
    """Figure 2b."""
    measures = {
        "exact": (BLUE, "o", "right step named"),
        "within_1": (GREEN, "^", "at most one step off, of those that name one"),
        "detection": (PURPLE, "D", "some step named"),
        "fpr": (ORANGE, "s", "some step named in an intact chain"),
    }
    return Picture(
        "c2_localisation",
        "Do judges find the broken step?",
        "Share of chains in which a judge names the replaced step, one at most a step away, or any "
        "step at all, beside intact chains in which it names one; 95 % bootstrap intervals over "
        f"chains.{against_themselves(localisation)}",
        localisation,
        forest(localisation, measures, "share of chains"),
        NOT_RUN,
    )


def against_themselves(localisation: pd.DataFrame) -> str:
    """How many replies say two things at once, of the ways of judging of which that is known."""
    known = [r for r in rows(localisation) if r["n_final_score"]]
    if not known:
        return ""
    n = sum(r["n_final_score"] for r in known)
    twice = sum(r["n_final_score"] * r["contradicts"] for r in known) / n
    return (
        " The step named is what counts: the replies also say in a final score whether all steps "
        f"are valid, and contradict themselves in {100 * twice:.1f} % of {n} "
        "(column contradicts of the table)."
    )


def signed_errors(ax: Axes, line: pd.DataFrame) -> Axes:
    """Bars of how many steps early or late, what lies beyond `FARTHEST` in the last ones."""
    error, share = numbers(line["signed_error"]), numbers(line["share"])
    at = np.arange(-FARTHEST, FARTHEST + 1)
    capped = np.clip(error, -FARTHEST, FARTHEST)
    heights = [share[capped == e].sum() for e in at]
    colours = [GREEN if e == 0 else ORANGE if e < 0 else BLUE for e in at]
    ax.bar(at, heights, color=colours, width=0.85)
    mean = float((error * share).sum())
    ax.axvline(mean, color="black", lw=1, ls="--")
    ax.text(
        0.97 if mean < 0 else 0.03,  # the side without the line
        0.93,
        f"mean {mean:+.2f}".replace("-", "−"),
        transform=ax.transAxes,
        fontsize=8,
        ha="right" if mean < 0 else "left",
        va="top",
    )
    return ax


def signed_error_picture(table: pd.DataFrame) -> Picture:
    """Figure 5: a panel per judge."""
    found = voices(table)
    labels = ("steps early (below 0) or late", "share of chains")

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(table)
        known = mine.dropna(subset=["signed_error"])
        if len(known):
            signed_errors(ax, known)
        else:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        ends = [-FARTHEST, -4, 0, 4, FARTHEST]
        ax.set_xticks(ends, [f"≤−{FARTHEST}", "−4", "0", "4", f"≥{FARTHEST}"])
        ax.set_xlim(-FARTHEST - 0.8, FARTHEST + 0.8)

    return Picture(
        "c2_signed_error",
        "Too early or too late?",
        "Step named minus step replaced, of chains in which a step was named; the mean dashed. A "
        "lean to the left means that judges stop at the first step that looks odd.",
        table,
        grid(found, draw, labels=labels) if found else None,
        NOT_RUN,
    )


def within_picture(table: pd.DataFrame) -> Picture:
    """Figure 7: a panel per judge, the others behind it."""
    # the same chains without a verdict stand beside every distance
    labels = ("at most so many steps off", "share of chains")
    figure = curves(table, "k", "within", labels, lambda n: int(n[0]))
    if figure is not None:
        figure.axes[0].set_ylim(-0.03, 1.03)
        figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return Picture(
        "c2_within",
        "How near do judges come?",
        "Share of chains in which the step named is at most so many steps from the replaced one, "
        "of chains in which a step was named, with 95 % Wilson bands; other judges pale.",
        table,
        figure,
        NOT_RUN,
    )
