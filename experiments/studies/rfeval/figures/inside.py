"""Figures of models' internals under r′ (ours): the trace by behaviour, and the signs that tell
behaviours apart."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import (
    AMBER,
    BLUE,
    DARK_BLUE,
    DARK_GREY,
    DARK_ORANGE,
    GREEN,
    GREY,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    SKY,
    Style,
    name_rows,
    part_handles,
    share_rise,
)
from faithscope.experiments.analysis.charts import curve, dot_rows, dots_by, share_bars
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import count, rows, where
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

NOT_LOOKED = "No model was looked into."
PARTS = {"r_prime": "r′", "r": "own reasoning", "e": "explanation"}
BEHAVIOURS = {
    "misled": Style(BLUE, "o", "misled"),
    "self_correcting": Style(SKY, "^", "self-correcting"),
    "silently_correcting": Style(ORANGE, "s", "silently correcting"),
    "incoherent": Style(AMBER, "v", "incoherent"),
    "inert": Style(GREY, "D", "inert"),
    "ornamental": Style(PURPLE, "P", "ornamental"),
}
TURNS = {
    "never_led": (LIGHT_GREY, "never led"),
    "r_prime": (SKY, "in r′"),
    "r": (DARK_BLUE, "in own reasoning"),
    "e": (GREEN, "in the explanation"),
    "a": (DARK_ORANGE, "at the answer"),
    "never_turned": (DARK_GREY, "never turned"),
}
"""Part in which the lead passes from the option of r′ for good -> colour and meaning."""
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
FAMILIES = {
    "trace": Style(BLUE, "o", "trace"),
    "attention": Style(GREEN, "s", "attention"),
    "lens": Style(PURPLE, "D", "lens"),
}


def traces_picture(traces: pd.DataFrame, turns: pd.DataFrame) -> Picture:
    """Figure of the mean trace of the option of r′ by behaviour, and of where it turns.

    Args:
        traces, turns: `rf_inside_traces` and `rf_inside_turns` of one reader; all models together
            are drawn, or the only one.
    """
    pooled = where(traces, model=OVERALL, option="r_prime")
    figure = None
    if len(pooled):
        figure = Figure(figsize=(9, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[2.1, 1])
        _traces(left, pooled)
        _turns(right, where(turns, model=OVERALL))
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


def _traces(ax: Axes, table: pd.DataFrame) -> None:
    """Draws mean probabilities along the parts, side by side, a line per behaviour."""
    shown = [part for part in PARTS if part in set(table["part"])]
    for behaviour, style in BEHAVIOURS.items():
        of = where(table, behaviour=behaviour)
        for i, part in enumerate(shown):
            line = where(of, part=part).sort_values("position")
            label = f"{style.label} (n = {max(of['n']):,})" if len(line) and not i else ""
            at = line.assign(at=i + line["position"])
            curve(ax, at, "at", "p", style._replace(label=label), markevery=5)
    for i in range(1, len(shown)):
        ax.axvline(i, color=GREY, lw=0.8, ls=":")
    ax.set_xticks([i + 0.5 for i in range(len(shown))], [PARTS[part] for part in shown])
    ax.tick_params(axis="x", length=0)
    ax.set(xlim=(0, len(shown)), ylabel="probability of the option of r′")
    share_rise(ax).legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7.5)


def _turns(ax: Axes, table: pd.DataFrame) -> None:
    """Draws the part in which the lead turns: a split bar per behaviour, numbers in percent."""
    shares = {(r["behaviour"], r["turn_part"]): r for r in rows(table) if r["n_of"]}
    present = [b for b in BEHAVIOURS if (b, "r") in shares]
    bars = [{part: shares[b, part]["share"] for part in TURNS} for b in present]
    share_bars(ax, bars, TURNS, lambda share, _: f"{100 * share:.0f}", least=0.12)
    name_rows(ax, [f"{BEHAVIOURS[b].label}\nn = {shares[b, 'r']['n_of']:,}" for b in present])
    ax.set_xlabel("share of pairs, numbers in percent")
    look = {"ncols": 2, "fontsize": 7.5, "handlelength": 1.3}
    ax.legend(handles=part_handles(TURNS), loc="lower center", bbox_to_anchor=(0.4, 1.0), **look)


def signs_picture(signs: pd.DataFrame) -> Picture:
    """Figure of the signs that tell behaviours apart, from `rf_inside_signs` of one reader."""
    of = where(signs, model=OVERALL, contrast=list(CONTRASTS))
    known = set(of.dropna(subset=["auroc"])["signal"])
    lines = where(of, signal=known).drop_duplicates("signal")
    columns = {
        title: dots_by(
            where(of, contrast=contrast),
            *("auroc_within", "family", FAMILIES, "signal"),
            before="auroc",
        )
        for contrast, title in CONTRASTS.items()
    }
    figure = dot_rows(
        columns,
        {signal: sign_name(signal) for signal in lines["signal"]},
        label="area under the ROC curve",
        groups=[n for family in FAMILIES if (n := count(lines["family"] == family))],
        silent="one kind has no values",
        each=0.2,
    )
    for ax in figure.axes if figure else ():
        ax.axvline(0.5, color="black", lw=0.7)
    return Picture(
        "rf_inside_signs",
        "Which internal sign tells a silent correction from an open one?",
        "How well each sign alone tells two behaviours apart, with 95 % intervals by item: at .5 "
        "it says nothing, right of it the first kind has the greater values, left of it the "
        "smaller. Filled: pairs of one model and task compared; hollow: all pairs, in which "
        "differences between tasks count too. Open corrections name the flaw in r′ "
        "(self-correcting and inert pairs). Signs of the end of the trace tell misled from "
        "corrected nearly by construction and are not asked; those that are were chosen before any "
        "was computed. The table has p-values corrected for their number.",
        signs,
        figure,
        NOT_LOOKED if signs.empty else "No two behaviours that could be told apart were seen.",
    )


def sign_name(signal: str) -> str:
    """The name of a signal in words."""
    place, _, rest = signal.partition("_")
    return f"{SIGNS[rest]}, {PLACES[place]}" if place in PLACES else SIGNS[signal]
