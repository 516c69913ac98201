"""Coverage scores, and whether probabilities mean what they say (C2-Faith, Figure 3; ours)."""

from __future__ import annotations

import itertools
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from faithscope.experiments.analysis.axes import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PLAIN,
    PURPLE,
    Style,
    legend_above,
    quarter,
    unit_square,
)
from faithscope.experiments.analysis.charts import share_bars
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import middle_cut
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import count, numbers, rows, where
from faithscope.experiments.studies.c2faith.figures.voices import (
    Line,
    Voice,
    voice_curves,
    voice_panels,
    voices,
)
from faithscope.experiments.studies.c2faith.metrics.frames import BOTH, CONTROL, PERTURBED, maximum

PARTS = 5
"""Scores are drawn in so many parts of equal width: each score of 0-4 by itself."""
NOT_RUN = "Coverage was not run."
REFERENCE = Style("black", "s", "reference")


def first_scale(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first scale and, of its references, the first."""
    if not len(table):
        return table
    of_scale = where(table, scale=table["scale"].iloc[0])
    return where(of_scale, reference_judge=of_scale["reference_judge"].iloc[0])


def _all(table: pd.DataFrame) -> int:
    return int(sum(table["n_without_verdict"]))


def score_bars(ax: Axes, table: pd.DataFrame, top: int) -> Axes:
    """A bar per level, parted by score; wide parts carry their share in percent."""
    levels = sorted(table["level"].unique())
    inks = [to_hex(c) for c in mpl.colormaps["cividis"](np.linspace(0.08, 0.98, PARTS))]
    parts = {str(i): (ink, "") for i, ink in enumerate(inks)}
    shares = []
    for level in levels:
        line = where(table, level=level).dropna(subset=["score"])
        part = (numbers(line["score"]) * PARTS // (top + 1)).astype(int)
        of_level = np.bincount(part, weights=line["share"], minlength=PARTS)
        shares.append({str(i): float(share) for i, share in enumerate(of_level)})
    percent = lambda share, _: f"{100 * share:.0f}"  # noqa: E731
    share_bars(ax, shares, parts, percent, least=0.12, dark=inks[: PARTS - 2])
    ax.set_yticks(range(len(levels)), [f"{100 * x:.0f} %" for x in levels])
    ax.tick_params(axis="y", length=0)
    return ax


def coverage_scores_picture(table: pd.DataFrame) -> Picture:
    """Figure 3a: a panel per judge."""
    data = first_scale(table)
    top = maximum(data["scale"].iloc[0]) if len(data) else 0

    def draw(ax: Axes, voice: Voice, of_voice: pd.DataFrame) -> bool:
        score_bars(ax, of_voice, top)
        return count(of_voice["score"].notna()) > 0

    labels = ("share of chains", "middle steps removed")
    figure = voice_panels(data, draw, height=1.6, labels=labels, count=_all)
    if figure is not None:
        inks = mpl.colormaps["cividis"](np.linspace(0.08, 0.98, PARTS))
        edges = [math.ceil(i * (top + 1) / PARTS) for i in range(PARTS + 1)]
        spans = [(a, b - 1) for a, b in itertools.pairwise(edges)]
        names = [f"score {a}" if a == b else f"{a}–{b}" for a, b in spans]
        handles = [Patch(color=i, label=name) for i, name in zip(inks, names, strict=True)]
        legend_above(figure, handles, ncols=PARTS)
    return Picture(
        "c2_coverage_scores",
        "Which scores do judges give?",
        "Coverage scores by the share of middle steps removed, in percent of the chains. A judge "
        "that sees what is missing leaves the highest score as more is removed.",
        data,
        figure,
        NOT_RUN,
    )


_DASHED = {"interval": "", "ls": "--", "lw": 1.1, "ms": 3}
_DOTTED = {"interval": "", "ls": ":", "lw": 0.9}


def coverage_picture(table: pd.DataFrame) -> Picture:
    """Figure 3b: a panel per judge, the others behind it, the reference dashed."""
    data = first_scale(table)
    top = maximum(data["scale"].iloc[0]) if len(data) else 0
    levels = np.unique(numbers(data["level"]))

    def ground(ax: Axes) -> None:
        ax.set(ylim=(-0.03 * top, 1.05 * top), xlim=(0, max(0.75, levels.max() + 0.05)))
        ax.set_xticks(levels, [f"{100 * x:.0f} %" for x in levels])
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    lines = [
        Line("kept", Style(GREY, "", "share kept"), _DOTTED, aside=True),
        Line("reference_mean", REFERENCE, _DASHED),
        Line("mean", Style(BLUE, "o", "this judge")),
    ]
    return Picture(
        "c2_coverage",
        "Do judges see what is missing?",
        "Mean coverage score by the share of middle steps removed, with 95 % bootstrap bands over "
        "chains. Dashed: the reference judge, which is shown what was removed. Dotted: the share "
        "of middle steps kept, times the highest score; steps differ in weight, so a fair judge "
        "need not lie on it, but should fall as it does.",
        data,
        voice_curves(
            data.assign(kept=top * (1 - data["level"])),
            *("level", lines, ground),
            pale="mean",
            others="other judges",
            labels=("middle steps removed", f"mean score, of {top}"),
            count=_all,
        ),
        NOT_RUN,
    )


def coverage_expected_picture(expected: pd.DataFrame) -> Picture:
    """The mean of all scores under their probabilities against what is left of the chain."""
    data = first_scale(expected)
    y = "expected_share"
    lines = [
        Line("reference_share", REFERENCE, _DASHED),
        Line("score_share", Style(ORANGE, "^", "likeliest score"), {"interval": "", "lw": 1}),
        Line(y, Style(BLUE, "o", "mean of all scores")),
    ]
    return Picture(
        "c2_coverage_expected",
        "Does the whole distribution see what is missing?",
        "Mean of all scores under their probabilities, with 95 % bootstrap bands over chains, and "
        "of the likeliest score alone, at each level of deletion. A flat line sees nothing of what "
        "is removed, whatever its height.",
        data,
        voice_curves(
            *(data, "share_kept", lines, lambda ax: unit_square(ax, "share kept")),
            pale=y,
            others="other judges",
            height=2.5,
            labels=("share of the middle steps kept", "score, as a share of the highest"),
            count=_all,
        ),
        "No judge gave probabilities of scores.",
    )


BARS = {"interval": "bars", "lw": 1.4, "ms": 4.5}
"""A curve of `analysis.statistics.calibration` with its intervals."""


def calibration_picture(calibration: pd.DataFrame, detection: pd.DataFrame) -> Picture:
    """Reliability of the scored reading, a panel per judge."""
    titles = {
        voice.name: f"AUROC {row['auroc']:.2f} · ECE {row['ece']:.2f}"
        for voice in voices(calibration)
        for row in rows(voice.of(detection))[:1]
        if not math.isnan(row["ece"])
    }
    return Picture(
        "c2_calibration",
        "Do probabilities mean what they say?",
        "Steps by the probability that the scored reading gives to “does not follow”, in ten bins "
        "of equal width: the share of them that was replaced, with 95 % Wilson intervals. On the "
        "dotted line a judge is calibrated for these items, half of which are replaced.",
        calibration,
        voice_curves(
            *(calibration, "mean_p_flag", [Line("share_perturbed", PLAIN, BARS)], unit_square),
            height=2.5,
            titles=titles,
            labels=("probability said that the step does not follow", "share replaced"),
        ),
        "No judge gave probabilities.",
    )


def localisation_calibration_picture(
    calibration: pd.DataFrame, probabilities: pd.DataFrame
) -> Picture:
    """Reliability of the step that is named, a panel per judge, broken and intact chains apart."""
    of_both = where(probabilities, condition=BOTH)
    titles = {
        voice.name: f"says {row['confidence']:.2f} · right {row['right']:.2f}"
        for voice in voices(calibration)
        for row in rows(voice.of(of_both))[:1]
        if row["n"]
    }
    thin = {"interval": "", "lw": 0.9, "ms": 3.5}
    lines = [
        Line("share_right", style, look, {"condition": condition})
        for condition, style, look in (
            (BOTH, Style(BLUE, "o", "all chains"), BARS),
            (PERTURBED, Style(ORANGE, "s", "a step is replaced"), thin),
            (CONTROL, Style(GREEN, "^", "intact"), thin),
        )
    ]
    return Picture(
        "c2_localisation_calibration",
        "Is a judge that is sure of the step right?",
        "Chains by the probability that the scored reading gives to its own verdict, a step or "
        "none, in ten bins of equal width: the share of them in which that verdict is right, with "
        "95 % Wilson intervals of all chains together. Below the dotted line a judge is surer than "
        "it may be. " + furthest_from_its_word(of_both),
        calibration,
        voice_curves(
            *(calibration, "mean_confidence", lines, unit_square),
            height=2.5,
            titles=titles,
            labels=("probability of the verdict given", "share right"),
        ),
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


CUT_LOOKS = ((BLUE, "o"), (GREEN, "^"), (ORANGE, "s"), (PURPLE, "D"))


def coverage_calibration_picture(calibration: pd.DataFrame, probabilities: pd.DataFrame) -> Picture:
    """Reliability of P(score < cut), a panel per judge, a curve per cut.

    Against the reference judge where there is one that gives more than one score, else against
    the share of steps kept.
    """
    scores = first_scale(probabilities)
    truth = truth_drawn(scores)
    data, scores = (where(table, truth=truth) for table in (first_scale(calibration), scores))
    titles = {
        voice.name: f"RPS {row['rps']:.2f} · base rate {row['rps_base']:.2f}"
        for voice in voices(data)
        for row in rows(voice.of(scores))[:1]
        if row["n"]
    }
    lines = []
    for cut, (colour, marker) in zip(sorted(set(data["below"])), CUT_LOOKS, strict=False):
        name = f"below {quarter(cut)} of the scale" if cut < 1 else "below the highest"
        lines.append(Line("share_below", Style(colour, marker, name), BARS, {"below": cut}))
    true = "the reference score" if truth == "reference" else "the share kept"
    return Picture(
        "c2_coverage_calibration",
        "Do probabilities of coverage scores mean what they say?",
        "Chains by the probability given to all scores below a cut, in ten bins of equal width: "
        "the share of them in which the truth lies below it, with 95 % Wilson intervals. Above "
        "the dotted line a judge holds chains for more complete than they are. "
        + beside_the_base_rate(scores),
        data,
        voice_curves(
            *(data, "mean_p_below", lines, unit_square),
            height=2.5,
            titles=titles,
            labels=("probability said that the score is below", f"share with {true} below"),
        ),
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
