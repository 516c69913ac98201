"""Whether the probabilities of the scored reading mean what they say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE
from faithscope.experiments.analysis.dots import quarter
from faithscope.experiments.analysis.panels import behind, curve, legend_of_most
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.short_names import middle_cut
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import count, rows, where
from faithscope.experiments.studies.c2faith.figures.coverage import first_scale
from faithscope.experiments.studies.c2faith.figures.plots import Voice, grid, say_silent, voices
from faithscope.experiments.studies.c2faith.metrics.frames import BOTH, CONTROL, PERTURBED

CONDITIONS = {
    BOTH: (BLUE, "o", "all chains"),
    PERTURBED: (ORANGE, "s", "a step is replaced"),
    CONTROL: (GREEN, "^", "intact"),
}
CUT_STYLES = ((BLUE, "o"), (GREEN, "^"), (ORANGE, "s"), (PURPLE, "D"))


def reliability(
    ax: Axes,
    line: pd.DataFrame,
    probability: str,
    event: str,
    colour: str = BLUE,
    marker: str = "o",
    label: str = "",
    *,
    intervals: bool = True,
) -> Axes:
    """A curve of `analysis.calibration.curve`; thinner where its intervals are left out."""
    x, y = f"mean_{probability}", f"share_{event}"
    if intervals:
        low, high = line[y] - line[f"{y}_low"], line[f"{y}_high"] - line[y]
        reach = [np.maximum(0, low), np.maximum(0, high)]
        ax.errorbar(line[x], line[y], yerr=reach, fmt="none", ecolor=colour, elinewidth=0.8)
    width, size = (1.4, 4.5) if intervals else (0.9, 3.5)
    label = label or "_"
    ax.plot(line[x], line[y], color=colour, marker=marker, ms=size, lw=width, label=label)
    return ax


def unit_square(ax: Axes, label: str = "") -> Axes:
    """Shares on both axes, and dotted where the two are equal."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", zorder=0, label=label or None)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
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
            reliability(ax, known, "p_flag", "perturbed")
        else:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        unit_square(ax)

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


def localisation_calibration_picture(
    calibration: pd.DataFrame, probabilities: pd.DataFrame
) -> Picture:
    """Reliability of the step that is named, a panel per judge, broken and intact chains apart."""
    found = voices(calibration)
    of_both = where(probabilities, condition=BOTH)
    titles = {}
    for voice in found:
        row = rows(voice.of(of_both))[0]
        if row["n"]:
            titles[voice.name] = f"says {row['confidence']:.2f} · right {row['right']:.2f}"

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(calibration)
        for condition, (colour, marker, label) in CONDITIONS.items():
            known = where(mine, condition=condition).dropna(subset=["mean_confidence"])
            if len(known):
                every = condition == BOTH
                columns = ("confidence", "right", colour, marker, label)
                reliability(ax, known, *columns, intervals=every)
        if not ax.lines:
            say_silent(ax, int(where(mine, condition=BOTH)["n_without_verdict"].iloc[0]))
        unit_square(ax)

    figure = None
    if found:
        labels = ("probability of the verdict given", "share right")
        figure = grid(found, draw, height=2.5, titles=titles, labels=labels)
        legend_of_most(figure)
    return Picture(
        "c2_localisation_calibration",
        "Is a judge that is sure of the step right?",
        "Chains by the probability that the scored reading gives to its own verdict, a step or "
        "none, in ten bins of equal width: the share of them in which that verdict is right, with "
        "95 % Wilson intervals of all chains together. Below the dotted line a judge is surer than "
        "it may be. " + furthest_from_its_word(of_both),
        calibration,
        figure,
        "No judge gave probabilities of steps.",
    )


def furthest_from_its_word(probabilities: pd.DataFrame) -> str:
    """The judge whose mean probability is furthest from its share right, in a sentence."""
    known = probabilities.dropna(subset=["overconfidence"])
    if not len(known):
        return ""
    furthest = max(rows(known), key=lambda row: abs(row["overconfidence"]))
    judge = middle_cut(visible(furthest["judge"]))
    if furthest["overconfidence_low"] <= 0 <= furthest["overconfidence_high"]:
        return (
            f"No mean probability here can be told from the share right; furthest is {judge}, "
            f"with {furthest['confidence']:.2f} said and {furthest['right']:.2f} right."
        )
    return (
        f"Furthest from its word is {judge}: {furthest['confidence']:.2f} said on average, "
        f"{furthest['right']:.2f} right."
    )


def coverage_expected_picture(expected: pd.DataFrame) -> Picture:
    """The mean of all scores under their probabilities against what is left of the chain."""
    data = first_scale(expected)
    found = voices(data)
    lines = {v: v.of(data).dropna(subset=["expected_share"]) for v in found}

    def draw(ax: Axes, voice: Voice) -> None:
        mine = lines[voice]
        others = [line for v, line in lines.items() if v != voice]
        behind(ax, others, "share_kept", "expected_share", "other judges")
        if count(mine["reference_share"].notna()):
            at = (mine["share_kept"], mine["reference_share"])
            ax.plot(*at, color="black", lw=1.1, ls="--", marker="s", ms=3, label="reference")
        if len(mine):
            at = (mine["share_kept"], mine["score_share"])
            ax.plot(*at, color=ORANGE, lw=1, marker="^", ms=4, label="likeliest score")
            curve(ax, mine, "share_kept", "expected_share", label="mean of all scores")
        else:
            say_silent(ax, int(sum(voice.of(data)["n_without_verdict"])))
        unit_square(ax, "share kept")

    figure = None
    if found:
        labels = ("share of the middle steps kept", "score, as a share of the highest")
        figure = grid(found, draw, height=2.5, labels=labels)
        legend_of_most(figure)
    return Picture(
        "c2_coverage_expected",
        "Does the whole distribution see what is missing?",
        "Mean of all scores under their probabilities, with 95 % bootstrap bands over chains, and "
        "of the likeliest score alone, at each level of deletion. A flat line sees nothing of what "
        "is removed, whatever its height.",
        data,
        figure,
        "No judge gave probabilities of scores.",
    )


def coverage_calibration_picture(calibration: pd.DataFrame, probabilities: pd.DataFrame) -> Picture:
    """Reliability of P(score < cut), a panel per judge, a curve per cut.

    Against the reference judge where there is one that gives more than one score, else against
    the share of steps kept.
    """
    scores = first_scale(probabilities)
    truth = truth_drawn(scores)
    data, scores = (where(table, truth=truth) for table in (first_scale(calibration), scores))
    found = voices(data)
    titles = {}
    for voice in found:
        row = rows(voice.of(scores))[0]
        if row["n"]:
            titles[voice.name] = f"RPS {row['rps']:.2f} · base rate {row['rps_base']:.2f}"
    cuts = sorted(set(data["below"]))

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(data)
        for cut, (colour, marker) in zip(cuts, CUT_STYLES, strict=False):
            known = where(mine, below=cut).dropna(subset=["mean_p_below"])
            if len(known):
                said = f"below {quarter(cut)} of the scale" if cut < 1 else "below the highest"
                reliability(ax, known, "p_below", "below", colour, marker, said)
        if not ax.lines:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        unit_square(ax)

    figure = None
    if found:
        true = "the reference score" if truth == "reference" else "the share kept"
        labels = ("probability said that the score is below", f"share with {true} below")
        figure = grid(found, draw, height=2.5, titles=titles, labels=labels)
        legend_of_most(figure)
    return Picture(
        "c2_coverage_calibration",
        "Do probabilities of coverage scores mean what they say?",
        "Chains by the probability given to all scores below a cut, in ten bins of equal width: "
        "the share of them in which the truth lies below it, with 95 % Wilson intervals. Above "
        "the dotted line a judge holds chains for more complete than they are. "
        + beside_the_base_rate(scores),
        data,
        figure,
        "No judge gave probabilities of scores.",
    )


def truth_drawn(probabilities: pd.DataFrame) -> str:
    """`reference`, unless it gives every item the same score, or none; then `kept`.

    Against a truth that never changes no judge can know one chain from another.
    """
    varied = where(probabilities, truth="reference")["rps_base"] > 0
    return "reference" if count(varied) else "kept"


def beside_the_base_rate(probabilities: pd.DataFrame) -> str:
    """How many judges know one chain from another, by the ranked probability score."""
    known = probabilities.dropna(subset=["rps"])
    if not len(known):
        return ""
    knowing = count(known["rps_high"] < known["rps_base"])
    return (
        f"RPS: ranked probability score, 0 is best. {knowing} of {len(known)} ways of judging "
        f"{'is' if knowing == 1 else 'are'} better, beyond the interval, than the base rate, "
        "which gives the same spread of scores to every chain."
    )
