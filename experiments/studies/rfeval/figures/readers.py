"""Agreement of readers of stances, with each other and with people (RFEval, appendix D.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import handle, legend_above, name_rows, share_axis
from faithscope.experiments.analysis.charts import dot_rows, dots_by, dots_of, draw_dots, panels
from faithscope.experiments.analysis.colours import BLUE, ORANGE, PALE, PURPLE, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.statistics.stats import wilson_of_items
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import (
    columns,
    distinct,
    groups,
    numbers,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.analysis.wording import short_names
from faithscope.experiments.studies.rfeval.tables.frames import STANCES

PARTS = {
    "baseline_r": "own output: reasoning",
    "baseline_e": "own output: explanation",
    "baseline_a": "own output: answer",
    "intervened_r_prime": "under r′: r′ itself",
    "intervened_r": "under r′: reasoning",
    "intervened_e": "under r′: explanation",
    "intervened_a": "under r′: answer",
    "all": "all parts",
}
POOLED = ["reader", "other", "part", "n_models", "n", "n_unread", *with_interval("agreement")]
POOLED += ["cohen_kappa_mean"]
AGREEMENT = {
    "agreement": Style(BLUE, "o", "agreement"),
    "cohen_kappa_mean": Style(ORANGE, "D", "Cohen’s κ"),
}
VALIDATION = {
    "person": Style(PALE, "o", "micro-F1 against one person"),
    "micro_f1": Style(BLUE, "o", "micro-F1 of the judge"),
    "kappa_human_human": Style(PURPLE, "^", "κ, people among themselves"),
    "kappa_human_evaluator": Style(ORANGE, "D", "κ, judge and people"),
}


def pooled_readers(readers: pd.DataFrame) -> pd.DataFrame:
    """Agreement of every two readers over all models, weighted by parts, and the mean of their κ.

    The interval is Wilson's, of parts; the same item under two models counts twice.
    """
    pooled = []
    for key, of in groups(readers, ("reader", "other", "part")):
        n = numbers(of["n"])
        share = float(numbers(of["agreement"]) @ n / n.sum()) if n.sum() else math.nan
        row = {**key, "n_models": len(of), "n": int(n.sum())}
        row |= {"n_unread": int(numbers(of["n_unread"]).sum())}
        row |= columns("agreement", wilson_of_items(share, int(n.sum())))
        pooled.append(row | {"cohen_kappa_mean": of["cohen_kappa"].astype(float).mean()})
    return pd.DataFrame(pooled, columns=list(POOLED))


def readers_picture(readers: pd.DataFrame) -> Picture:
    """Figure with a panel for every two readers of the same parts."""
    data = pooled_readers(readers)
    return Picture(
        "rf_readers",
        "Do readers of stances agree?",
        "Of the parts that both readers have read, the share on which they say the same stance, "
        "over all models with its 95 % Wilson interval, and Cohen’s κ, which takes chance off "
        "(mean over models; no mark where it is undefined); pale, each model by itself. Readers "
        "that read nothing in common have no panel.",
        data,
        _readers(readers, data) if len(data) else None,
        "There were no two readers of the same parts.",
    )


def _readers(readers: pd.DataFrame, pooled: pd.DataFrame) -> Figure | None:
    pairs = distinct(pooled, "reader", "other")
    parts = [p for p in (*STANCES, "all") if p in set(pooled["part"])]
    names = short_names([reader for pair in pairs for reader in pair.values()])
    least = float(np.nanmin([0.0, *numbers(readers["cohen_kappa"])]))

    def draw(ax: Axes, pair: Mapping[str, str]) -> None:
        draw_dots(ax, list(dots_of(where(pooled, **pair), AGREEMENT, "part")), parts)
        for row in rows(where(readers, **pair)):
            # the heights at which `draw_dots` puts the two
            y, look = parts.index(row["part"]), {"color": PALE, "ms": 2.8, "zorder": 1}
            ax.plot(row["agreement"], y - 0.18, "o", **look)
            ax.plot(row["cohen_kappa"], y + 0.18, "D", **look)
        share_axis(ax, least)
        name_rows(ax, [PARTS[p] for p in parts])

    figure = panels(
        pairs,
        draw,
        [f"{names[p['reader']]}\nand {names[p['other']]}" for p in pairs],
        height=0.6 + 0.27 * len(parts),
        widths={1: 6.5, 2: 8.5},
        labels=("agreement, and Cohen’s κ", ""),
        legend=False,
    )
    if figure:
        legend_above(figure, list(map(handle, AGREEMENT.values())))
    return figure


def evaluator_picture(validation: pd.DataFrame) -> Picture:
    """Figure of the judge's agreement with people (appendix D.4)."""
    of_whom = validation["statistic"].where(validation["annotator"] == "all", "person")
    dots = dots_by(validation.assign(series=of_whom), "value", "series", VALIDATION, "decision")
    decisions = dict.fromkeys(validation["decision"])
    return Picture(
        "rf_evaluator",
        "Does the judge agree with people?",
        "The judge’s labels against those of people: micro-F1 over all labels, and pale against "
        "each person alone, with 95 % Wilson intervals; Cohen’s κ of the judge with people, and of "
        "people among themselves, which is as much as can be asked of a judge; no mark where it is "
        "undefined, for which the table has the reason.",
        validation,
        dot_rows(
            {"": dots},
            {d: visible(d).replace("_", " ") for d in decisions},
            label="micro-F1, and Cohen’s κ",
        ),
        "No labels by people were given.",
    )
