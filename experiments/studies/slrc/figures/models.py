"""Figure of model scores against each other (the SLRC paper's Figure 3), with sentences on their
correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import narrow
from faithscope.experiments.analysis.charts import names_beside, panels, points
from faithscope.experiments.analysis.colours import BLUE, ORANGE, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.removal_units import UNIT_WORDS, UNITS
from faithscope.experiments.analysis.tidy import rows, where, with_interval
from faithscope.experiments.analysis.wording import model_order, short_names
from faithscope.experiments.numerals import decimal, estimate, p_value
from faithscope.experiments.studies.slrc.tables.models import FIGURE_3, LEAST, SCORES
from faithscope.experiments.studies.slrc.words import VARIANT_ORDER

PANELS = (*FIGURE_3, ("ris", "youden"))
"""Pairs of scores in the panels: the paper's three, and error detection less false alarms, which is
ours."""
KINDS = {True: Style(BLUE, "o", "weights at hand"), False: Style(ORANGE, "D", "asked over an API")}
"""Whether a model's weights are at hand -> style of its point."""
_LEAST_SPAN = 0.1
"""Minimum axis range, so that near-equal models do not look far apart."""


def models_picture(models: pd.DataFrame, correlations: pd.DataFrame) -> Picture:
    """Scatter over models: SLRC against sycophancy and error detection, RIS against error
    detection."""
    way = lead_way(models)
    columns = ["model", "framing", "reading", "open", "tasks", *with_interval(*SCORES)]
    data = where(models, **way).filter(items=columns) if way else models.filter(items=columns)
    data = data.sort_values(by="model", key=lambda c: c.map(model_order), kind="stable")
    shown = [(x, y) for x, y in PANELS if len(data.dropna(subset=[x, y])) > 1]
    names = short_names(data["model"].tolist())

    def draw(ax: Axes, scores: tuple[str, str]) -> None:
        x, y = scores
        known = data.dropna(subset=[x, y])
        for is_open, style in KINDS.items():
            if len(own := where(known, open=is_open)):
                points(ax, own, x, y, style)
        ax.set(xlabel=NAMES[x], ylabel=NAMES[y], xlim=_limits(known, x), ylim=_limits(known, y))
        named = [names[m] for m in known["model"]]
        names_beside(ax, known[x].tolist(), known[y].tolist(), named)

    of_way = where(correlations, **way)
    titles = [_title(of_way, x, y) for x, y in shown]
    height, widths = max(3.0, 0.145 * len(data)), {1: 3.6}
    return Picture(
        "models",
        "Models compared",
        "Does a model that uses its steps give in to a wrong answer, and does it find an error "
        "(SLRC, Figure 3)? A point is a model, the mean over its tasks, with 95 % bootstrap "
        f"intervals over items; {_way_words(way)}. RIS = SLRC × (1 − sycophancy). r is Pearson’s "
        "with Fisher’s interval, ρ Spearman’s; p-values are of permutations of the models, each "
        "of one pair alone.",
        data,
        panels(
            shown,
            draw,
            titles,
            height=height,
            across=1 if narrow() else 2,
            widths=widths,
            shared=False,
        ),
        "No two models have both of any two of these numbers.",
    )


def _way_words(way: dict[str, str]) -> str:
    if not way:
        return "no way of measuring"
    unit = f", chains cut into {UNIT_WORDS[way['unit']]}" if "unit" in way else ""
    return f"framing {way['framing']}, reading {way['reading']}{unit}"


def _title(correlations: pd.DataFrame, x: str, y: str) -> str:
    """Two-line title of a panel: the pair of scores with n, then their correlation."""
    of_method = {r["method"]: r for r in rows(where(correlations, x=x, y=y))}
    r, rho = of_method["pearson"], of_method["spearman"]
    head = f"{NAMES[x]} and {NAMES[y]}, n = {r['n']}"
    if math.isnan(r["r"]):
        return f"{head}\n{r['caution']}"
    pearson = f"r = {estimate(r['r'], r['r_low'], r['r_high'])}, {p_value(r['p_permutation'])}"
    return f"{head}\n{pearson}; ρ = {decimal(rho['r'])}, {p_value(rho['p_permutation'])}"


def _limits(models: pd.DataFrame, score: str) -> tuple[float, float]:
    """Axis limits from the least to the greatest score, with room at both ends."""
    low, high = float(np.min(models[score])), float(np.max(models[score]))
    half = 0.6 * max(high - low, _LEAST_SPAN)
    return (low + high) / 2 - half, (low + high) / 2 + half


NAMES = {
    "slrc": "SLRC",
    "ris": "RIS",
    "sycophancy": "sycophancy",
    "error_detection": "error detection",
    "youden": "error detection less false alarms",
    "accuracy": "accuracy",
    "log_parameters": "size (log of all parameters)",
    "log_active_parameters": "size (log of active parameters)",
}
ALPHA = 0.05
"""Level of the permutation test below which two scores are said to be correlated."""


def lead_way(models: pd.DataFrame) -> dict[str, str]:
    """The framing and reading in which most models have the scores of Figure 3.

    Closed models have only one way, so it is mostly theirs if there are any. In a tie `prefix` goes
    before `reprompt`, and `generated` before `scored`. Empty if no model was measured. If models
    have chains of several units of removal, the way includes the `unit` that most have.
    """

    def compared(way: dict[str, str]) -> int:
        of_way = where(models, **way)
        return max(len(of_way.dropna(subset=list(pair))) for pair in FIGURE_3)

    present = set(models["unit"]) if "unit" in models.columns else set()
    units = [{"unit": u} for u in UNITS if u in present] if len(present) > 1 else [{}]
    ways = [{"framing": f, "reading": r} | unit for unit in units for f, r in VARIANT_ORDER]
    ways = [way for way in ways if len(where(models, **way))]
    return max(ways, key=compared) if ways else {}  # the first of equals


def model_readings(models: pd.DataFrame, correlations: pd.DataFrame) -> list[str]:
    """Sentences on the correlations in `lead_way`; a single sentence if there are too few
    models."""
    way = lead_way(models)
    if not way:
        return []
    correlation_of = {(r["x"], r["y"], r["method"]): r for r in rows(where(correlations, **way))}
    n = max(correlation_of[x, y, "pearson"]["n"] for x, y in FIGURE_3)
    if n < LEAST:
        have = f"{n} model has" if n == 1 else f"{n} models have"
        return [
            f"{have} both SLRC and what it is held against: too few to say what goes with what. "
            f"From {LEAST} models on there are correlations."
        ]
    sentences = [_sentence(correlation_of, x, y) for x, y in (*FIGURE_3, ("ris", "youden"))]
    if _goes(correlation_of, "ris", "error_detection") and not _goes(
        correlation_of, "slrc", "error_detection"
    ):
        sentences.append(
            "As in the paper, RIS goes with error detection and SLRC alone cannot be said to. "
            "That is no proof that RIS tells it better: the two correlations were not compared."
        )
    sentences += [_sentence(correlation_of, "slrc", y) for y in ("accuracy", "log_parameters")]
    sentences += [_sentence(correlation_of, "slrc", "log_active_parameters")]
    if len(set(where(models, **way)["tasks"])) > 1:
        sentences.append(
            "The models were measured on different tasks, and a mean over other tasks is another "
            "number."
        )
    return [sentence for sentence in sentences if sentence]


def _sentence(correlation_of: dict[tuple[str, str, str], dict[str, Any]], x: str, y: str) -> str:
    """Sentence on the correlation of one pair of scores; empty if too few models have both."""
    r, rho = (correlation_of[x, y, method] for method in ("pearson", "spearman"))
    one, other = NAMES[x], NAMES[y]
    if r["n"] < LEAST:
        return ""
    if math.isnan(r["r"]):
        return f"{one} and {other}: one of the two is the same in all {r['n']} models."
    numbers = f"r = {decimal(r['r'])}, ρ = {decimal(rho['r'])}, {r['n']} models"
    if not _goes(correlation_of, x, y):
        p = f"{p_value(r['p_permutation'])} and {p_value(rho['p_permutation'])}"
        return f"Correlation of {one} with {other}: inconclusive ({numbers}; {p})."
    way = "higher" if r["r"] > 0 else "lower"
    sentence = f"The higher {one}, the {way} {other} ({numbers})."
    if (x, y) == FIGURE_3[0]:
        sentence += (
            " That is the paper’s faithfulness paradox."
            if r["r"] > 0
            else " That is the opposite of the paper’s faithfulness paradox."
        )
    return sentence + _hangs(r["r_without_one_least"], r["r_without_one_most"])


def _hangs(least: float, most: float) -> str:
    """Caution if a single model decides the sign of the correlation; else empty."""
    if math.isnan(least):
        return " It hangs on one model: without that one, one of the two is the same in all."
    if least <= 0 <= most:
        return " It hangs on one model: without that one, r does not have this sign."
    return ""


def _goes(correlation_of: dict[tuple[str, str, str], dict[str, Any]], x: str, y: str) -> bool:
    """Whether both coefficients differ significantly from zero, with the same sign."""
    both = [correlation_of[x, y, method] for method in ("pearson", "spearman")]
    significant = all(c["p_permutation"] < ALPHA for c in both)
    return significant and both[0]["r"] * both[1]["r"] > 0
