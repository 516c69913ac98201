"""RF, coverage, what RF is made of, and where pairs went (RFEval, Figures 3, 11, 12; Tables 2, 3,
13, 27)."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.charts import dot_rows, dots_by, dots_of
from faithscope.experiments.analysis.colours import (
    AMBER,
    BLUE,
    FAITHFUL,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    SKY,
    UNFAITHFUL,
    Style,
    styles_for,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import count, groups, rows, where
from faithscope.experiments.analysis.wording import middle_cut
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.rfeval.figures.lines import (
    LINE,
    NONE_COUNTS,
    by_group,
    crossed_shares,
    line_bars,
    line_dots,
    lines_of,
    of_lines,
)
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL

NOT_JUDGED = "No pair of outputs was judged."
WILSON = "95 % Wilson intervals over pairs"
MARGINS = {"rf": ("RF", "n_included"), "contrast_coverage": ("contrast coverage", "n_coverage")}
"""Measure -> its name, and the column with the number of its pairs."""
MARGIN_LABELS = ("share of pairs in contrast", "share of pairs attempted")
WENT = {
    "faithful": (FAITHFUL, "counts, faithful"),
    "unfaithful": (UNFAITHFUL, "counts, unfaithful"),
    "non_contrast": (PALE, "r′ not in contrast"),
    "evaluation_error": (SKY, "not judged"),
    "unfinished": (AMBER, "unfinished output"),
    "global": (GREY, "left out beforehand"),
}


def rf_picture(rf: pd.DataFrame) -> Picture:
    """Figure of Table 2's margins, all readers beside each other."""
    data = by_group(rf)
    readers = {r: middle_cut(visible(r)) for r in dict.fromkeys(data["reader"])}
    styles = styles_for(readers, readers)
    columns = {
        name: dots_by(data, measure, "reader", styles, LINE)
        for measure, (name, _) in MARGINS.items()
    }
    counts = [of_lines(data, n) for _, n in MARGINS.values()] if len(readers) == 1 else []
    each = 0.2 + 0.08 * len(readers)
    figure = line_dots(lines_of(data), columns, counts, labels=MARGIN_LABELS, each=each)
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
    """Figure of Table 2: every model on every task."""
    styles = {
        "rf": Style(BLUE, "o", "RF"),
        "contrast_coverage": Style(ORANGE, "|", "contrast coverage"),
    }
    own = rf.loc[(rf["model"] != OVERALL) & (rf["task"] != OVERALL)]
    several = len(set(own["model"])) > 1 and len(set(own["task"])) > 1
    return Picture(
        "rf_cells",
        "On which tasks?",
        "RF and contrast coverage of every model on every task and over all, weighted by pairs, "
        f"with {WILSON}. RF of a task with little coverage is of few pairs.",
        rf,
        crossed_shares(rf, styles, each=0.22, label="share of pairs") if several else None,
        "With one model or one task the figure of RF has it all; this one would say it again.",
    )


def components_picture(rf: pd.DataFrame) -> Picture:
    """Figure 11: the three conditions that RF is the product of."""
    data = by_group(rf)
    styles = {
        "chi_baseline": Style(BLUE, "o", "χ(o): own output consistent"),
        "chi_intervened": Style(ORANGE, "s", "χ(o′): output under r′ consistent"),
        "kappa": Style(GREEN, "^", "κ: r′ changes reasoning or answer"),
    }
    figure = line_dots(
        lines_of(data),
        {"": list(dots_of(data, styles, LINE))},
        [of_lines(data, "n_included")],
        labels=["share of pairs in contrast for which it holds"],
        each=0.42,
    )
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
    by_family = [of for _, of in groups(regimes, ["family"])]
    ordered = pd.concat(by_family) if by_family else regimes
    names = {r["model"]: f"{visible(r['family'])} · {visible(r['regime'])}" for r in rows(ordered)}
    style = Style(BLUE, "o", "one model, one training run")
    figure = dot_rows(
        {
            name: list(dots_of(ordered, {measure: style}, "model"))
            for measure, (name, _) in MARGINS.items()
        },
        {model: middle_cut(name) for model, name in names.items()},
        labels=MARGIN_LABELS,
        groups=[len(of) for of in by_family],
        silent=NONE_COUNTS,
    )
    return Picture(
        "rf_regimes",
        "Does post-training make reasoning less faithful?",
        "RF and contrast coverage of models of one family that differ in their post-training "
        f"alone, with {WILSON}. The models of a family share architecture and pre-training as "
        "far as the config says so; one model is one training run, and the intervals know "
        "nothing of another.",
        regimes,
        figure,
        "No model has a family and a regime in the config.",
    )


def waterfall_picture(waterfall: pd.DataFrame, rf: pd.DataFrame) -> Picture:
    """Table 13 and Figure 12: the share of pairs that count, and of those lost at each stage."""
    data = went(by_group(waterfall), by_group(rf))
    figure = None
    if len(data):
        shares = {
            (r["by"], r["group"]): {k: r[f"n_{k}"] / r["n_total"] for k in WENT} for r in rows(data)
        }
        in_pairs = lambda share, total: f"{round(share * total):,}"  # noqa: E731
        label = "share of all pairs, numbers are pairs"
        figure = line_bars(data, "n_total", shares, WENT, in_pairs, label)
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
    """The waterfall with the included pairs split into faithful and unfaithful."""
    key = ["reader", "by", "group"]
    columns = [*key, "n_total", "n_included"]
    columns += [c for c in waterfall.columns if c.startswith("n_") and c not in columns]
    both = waterfall[columns].merge(rf[[*key, "rf"]], on=key, how="left")
    included = both["n_included"].astype(int)
    faithful = (both.pop("rf").fillna(0).astype(float) * included).round().astype(int)
    return both.assign(n_faithful=faithful, n_unfaithful=included - faithful)


def per_step_picture(table: pd.DataFrame, ranks: pd.DataFrame) -> Picture:
    """Table 27: RF taken step by step beside RF of whole blocks."""
    styles = {
        "rf": Style(BLUE, "o", "whole blocks"),
        "rf_per_step": Style(ORANGE, "s", "step by step"),
    }
    look = {"label": "RF, share of pairs in contrast", "silent": "no steps judged"}
    return Picture(
        "rf_per_step",
        "Is faithfulness the same when every step is judged?",
        "RF of the same pairs twice: with stances of whole blocks (r, e, a), and with one of "
        "every step of the reasoning, where all transitions have to hold; 95 % Wilson intervals "
        f"over pairs. {ranks_sentence(ranks)}",
        table,
        crossed_shares(table, styles, each=0.24, **look) if len(table) else None,
        "Steps were not judged by themselves.",
    )


def ranks_sentence(ranks: pd.DataFrame) -> str:
    """A sentence on whether RF by steps and by blocks order the tasks alike."""
    known = ranks["spearman"].dropna().tolist()
    if not known:
        return ""
    low, high = decimal(min(known)), decimal(max(known))
    value = low if min(known) == max(known) else f"{low} to {high}"
    models = "the model" if len(known) == 1 else f"{len(known)} models"
    return f"Rank correlation of the two over the tasks of {models}: {value}."


def against_picture(table: pd.DataFrame) -> Picture:
    """Figure of RF by a judge and by log-probs, and of how frequently the two agree on a pair."""
    data = where(table, measure="rf").reset_index(drop=True)
    styles = {
        "by_judge": Style(BLUE, "o", "RF by the judge"),
        "by_log_probs": Style(ORANGE, "s", "RF by log-probs"),
        "agreement": Style(GREY, "D", "same of both"),
    }
    look = {"label": "share of the pairs that count for both", "silent": "no pair of both"}
    return Picture(
        "rf_judge_against_log_probs",
        "Does the model’s own probability say what the judge says?",
        "RF of the same pairs twice: with the stances that a judge reads, and with the option "
        "that the model itself finds likeliest after each part (its written answer matched); and "
        "the share of pairs of which both say the same; 95 % Wilson intervals over pairs. "
        "Log-probs name no flaw, so that theirs is a bound from below.",
        data,
        crossed_shares(data, styles, each=0.3, **look) if count(data["n"] > 0) else None,
        "No pair counts both for a judge and by log-probs.",
    )
