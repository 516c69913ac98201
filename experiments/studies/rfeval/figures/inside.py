"""Inside models under r′ (ours): the trace by behaviour, and which sign tells which behaviour."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, legend_above
from faithscope.experiments.analysis.dots import bare_rows, name_lines, rules_between
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.rfeval.figures.plots import AMBER, SKY
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

NOT_LOOKED = "No model was looked into."
PARTS = {"r_prime": "r′", "r": "own reasoning", "e": "explanation"}
BEHAVIOURS = {
    "misled": (BLUE, "o", "misled"),
    "self_correcting": (SKY, "^", "self-correcting"),
    "silently_correcting": (ORANGE, "s", "silently correcting"),
    "incoherent": (AMBER, "v", "incoherent"),
    "inert": (GREY, "D", "inert"),
    "ornamental": (PURPLE, "P", "ornamental"),
}
TURNS = {
    "never_led": ("#BDBDBD", "", "never led"),
    "r_prime": (SKY, "//", "in r′"),
    "r": (BLUE, "", "in own reasoning"),
    "e": (GREEN, "\\\\", "in the explanation"),
    "a": (ORANGE, "", "at the answer"),
    "never_turned": ("#4D4D4D", "", "never turned"),
}
"""Where the lead passes from the option of r′ for good -> colour, hatching, meaning."""
CONTRASTS = {
    "silent_vs_open": "silent against open correction",
    "misled_vs_corrected": "misled against corrected",
}
SIGNS = {
    "p_before": "p(r′ option) before r′",
    "p_after_r_prime": "p after r′",
    "r_prime_effect": "what r′ adds to p",
    "p_peak": "p at its peak",
    "peak_at": "place of the peak",
    "p_final": "p before the answer",
    "final_lead": "lead before the answer",
    "followed": "leads at the end of r′",
    "ever_led": "ever leads",
    "led_share": "share of own text it leads",
    "last_led": "last place it leads",
    "turn_at": "place of the turn",
    "turn_own": "place of the turn in own text",
    "flips": "changes of the leading option",
    "steepest_fall": "steepest fall of p",
    "baseline_p_final": "p(r′ option) without r′",
    "baseline_confidence": "confidence without r′",
    "gold_lost": "gold answer: nats lost in r′",
    "gold_regained": "gold answer: nats regained",
    "own_gained": "own answer: nats gained",
    "r_prime": "on r′",
    "own": "on own text",
    "question": "on the question",
    "density_r_prime": "on r′, per token",
    "density_own": "on own text, per token",
    "density_question": "on the question, per token",
    "own_against_r_prime": "own text against r′, per token",
    "lens_peak": "p(r′ option), peak over layers",
    "lens_peak_depth": "depth of that peak",
    "lens_led": "share of layers it leads",
    "lens_suppressed": "leads in a layer, not in the last",
    "settled_depth": "depth of the first token",
    "option_settled_depth": "depth of the leading option",
}
PLACES = {"asked": "at the cue", "written": "at the answer"}
FEW = 10
"""Pairs of either kind below which no sign is named."""
REASONS = {
    "no_positive": "no pair of the first kind",
    "no_negative": "no pair of the second kind",
    "no_values": "one kind has no values",
}
FAMILIES = {"trace": BLUE, "attention": GREEN, "lens": PURPLE}


def traces_picture(traces: pd.DataFrame, turns: pd.DataFrame) -> Picture:
    """The mean trace of the option of r′ by behaviour, and where it turns.

    Args:
        traces, turns: `rf_inside_traces` and `rf_inside_turns` of one reader; all models together
            are drawn, or the only one.
    """
    mine = where(traces, model=OVERALL, option="r_prime")
    figure = None
    if len(mine):
        figure = Figure(figsize=(9, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[2.1, 1])
        traced(left, mine)
        turned(right, where(turns, model=OVERALL))
    return Picture(
        "rf_inside_traces",
        "When does the answer follow r′, and where does it turn back?",
        "Left: probability, among the options, of the option that r′ leads to, if the text is cut "
        "off and the answer asked for: through r′, the model's own reasoning and its explanation, "
        "each stretched to one width; means by behaviour with 95 % bands over items. A silent "
        "correction is a line that falls where no word says why. Right: the part in which the lead "
        "passes from that option for good, as a share of the pairs of each behaviour.",
        traces,
        figure,
        NOT_LOOKED if traces.empty else "No item with options was traced.",
    )


def traced(ax: Axes, table: pd.DataFrame) -> Axes:
    """Mean probabilities along the parts, side by side, a line per behaviour."""
    shown = [part for part in PARTS if part in set(table["part"])]
    for behaviour, (colour, marker, label) in BEHAVIOURS.items():
        line = where(table, behaviour=behaviour)
        n = max(line["n"], default=0)
        for i, part in enumerate(shown):
            piece = where(line, part=part).sort_values("position")
            if not len(piece):
                continue
            at = i + piece["position"].to_numpy(float)
            low, high = (piece[f"p_{side}"].to_numpy(float) for side in ("low", "high"))
            ax.fill_between(at, low, high, color=colour, alpha=0.13, lw=0)
            ax.plot(
                at,
                piece["p"].to_numpy(float),
                color=colour,
                marker=marker,
                markevery=5,
                ms=4,
                lw=1.5,
                label=f"{label} (n = {n:,})" if part == shown[0] else None,
            )
    for i in range(1, len(shown)):
        ax.axvline(i, color=GREY, lw=0.8, ls=":")
    ax.set_xticks([i + 0.5 for i in range(len(shown))], [PARTS[part] for part in shown])
    ax.tick_params(axis="x", length=0)
    ax.set(xlim=(0, len(shown)), ylim=(-0.03, 1.03), ylabel="probability of the option of r′")
    share_ticks(ax.yaxis)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7.5)
    return ax


def turned(ax: Axes, table: pd.DataFrame) -> Axes:
    """Where the turn falls, a stacked bar per behaviour."""
    found = {(r["behaviour"], r["turn_part"]): r for r in rows(table) if r["n_of"]}
    present = [b for b in BEHAVIOURS if any(key[0] == b for key in found)]
    start = np.zeros(len(present))
    for part, (colour, hatch, label) in TURNS.items():
        share = np.array([found[b, part]["share"] for b in present])
        ax.barh(
            *(range(len(present)), share, 0.7, start),
            color=colour,
            hatch=hatch,
            edgecolor="white",
            lw=0.4,
            label=label,
        )
        start += share
    counts = [found[b, "r"]["n_of"] for b in present]
    named = [f"{BEHAVIOURS[b][2]}\nn = {n:,}" for b, n in zip(present, counts, strict=True)]
    name_lines(ax, named)
    ax.set_ylim(len(present) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    share_ticks(ax.xaxis)
    ax.set_xlabel("share of pairs")
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, fontsize=7.5, handlelength=1.3
    )
    return ax


def signs_picture(signs: pd.DataFrame) -> Picture:
    """Which sign tells which behaviours apart, `rf_inside_signs` of one reader."""
    mine = where(signs, model=OVERALL, contrast=list(CONTRASTS))
    known = mine.dropna(subset=["auroc"])
    figure = None
    if len(known):
        drawn = {(r["family"], r["signal"]) for r in rows(known)}
        lines = [key for r in rows(mine) if (key := (r["family"], r["signal"])) in drawn]
        lines = list(dict.fromkeys(lines))
        figure = Figure(figsize=(9, 1.3 + 0.2 * len(lines)), layout="constrained")
        axes = list(figure.subplots(1, len(CONTRASTS), sharey=True))
        for ax, (contrast, title) in zip(axes, CONTRASTS.items(), strict=True):
            found = {(r["family"], r["signal"]): r for r in rows(where(mine, contrast=contrast))}
            aurocs(ax, [found[key] for key in lines])
            ax.set_title(title, fontsize=9)
            rules_between(ax, _sizes(lines))
        name_lines(axes[0], [sign_name(signal) for _, signal in lines])
        bare_rows(axes[1:])
        figure.supxlabel("area under the ROC curve", fontsize=9)
        legend_above(figure, axes[0])
    return Picture(
        "rf_inside_signs",
        "Which internal sign tells a silent correction from an open one?",
        "How well each sign alone tells two behaviours apart, with 95 % intervals by item: at .5 "
        "it says nothing, right of it the first kind has the greater values, left of it the "
        "smaller. Filled: pairs of one model and task compared; hollow: all pairs, in which "
        "differences between tasks count too. Open corrections name the flaw in r′ "
        "(self-correcting and inert pairs). Signs of the end of the trace tell misled from "
        "corrected nearly by construction. Over forty signs are tried: the table has p-values "
        "corrected for that.",
        signs,
        figure,
        NOT_LOOKED if signs.empty else "No two behaviours that could be told apart were seen.",
    )


def aurocs(ax: Axes, lines: list[dict[str, Any]]) -> Axes:
    """Areas with their intervals, a line of the figure per sign."""
    told: set[str] = set()
    for y, row in enumerate(lines):
        colour = FAMILIES[row["family"]]
        if math.isnan(row["auroc"]):
            ax.text(0.02, y, REASONS[row["reason"]], va="center", fontsize=7, color=GREY)
            continue
        ax.plot(row["auroc"], y, "o", mec=colour, mfc="white", ms=4.5, clip_on=False, zorder=3)
        if math.isnan(row["auroc_within"]):
            continue
        low, high = row["auroc_within_low"], row["auroc_within_high"]
        if not math.isnan(low):
            ax.plot([low, high], [y, y], color=colour, lw=1, zorder=2)
        name = row["family"] if row["family"] not in told else None
        told.add(row["family"])
        ax.plot(
            row["auroc_within"], y, "o", color=colour, ms=4.5, clip_on=False, label=name, zorder=4
        )
    ax.axvline(0.5, color="black", lw=0.7)
    ax.set_xlim(-0.02, 1.02)
    share_ticks(ax.xaxis)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return ax


def signs_told(signs: pd.DataFrame) -> list[str]:
    """What `rf_inside_signs` of one reader comes to, of silent against open corrections."""
    mine = rows(where(signs, model=OVERALL, contrast="silent_vs_open"))
    if not mine:
        return []
    silent, other = (max(r[f"n_{kind}"] for r in mine) for kind in ("positive", "negative"))
    said = f"Silent corrections looked into: {silent:,}; open ones: {other:,}."
    known = [r for r in mine if not math.isnan(r["auroc_within_low"])]
    if min(silent, other) < FEW or not known:
        return [f"{said} Too few to say which sign tells them apart."]
    apart = [r for r in known if not r["auroc_within_low"] <= 0.5 <= r["auroc_within_high"]]
    best = max(known, key=lambda r: abs(r["auroc_within"] - 0.5))
    greater = "greater" if best["auroc_within"] > 0.5 else "smaller"
    return [
        f"{said} Of {len(known)} signs {len(apart)} have a 95 % interval that leaves out .5, where "
        "about one in twenty would by chance. Furthest from it: "
        f"{sign_name(best['signal'])}, {greater} in silent corrections (AUROC within model and "
        f"task {best['auroc_within']:.2f}, {best['auroc_within_low']:.2f} to "
        f"{best['auroc_within_high']:.2f})."
    ]


def sign_name(signal: str) -> str:
    """A signal in words."""
    place, _, rest = signal.partition("_")
    return f"{SIGNS[rest]}, {PLACES[place]}" if place in PLACES else SIGNS[signal]


def _sizes(lines: list[tuple[str, str]]) -> list[int]:
    return [n for family in FAMILIES if (n := sum(f == family for f, _ in lines))]
