"""RF as a judge reads it against RF by the model's own log-probs, of the same pairs."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import percent
from faithscope.experiments.studies.rfeval.figures.plots import crossed, share_lines
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

ABSENT = "No pair counts both for a judge and by log-probs."
_CONDITIONS = {
    "contrast": "contrast",
    "chi_baseline": "χ(o)",
    "chi_intervened": "χ(o′)",
    "kappa": "κ",
}


def against_picture(table: pd.DataFrame) -> Picture:
    """Both shares of faithful pairs, and how frequently the two say the same of a pair."""
    data = where(table, measure="rf").reset_index(drop=True)
    styles = {
        "by_judge": (BLUE, "o", "RF by the judge"),
        "by_log_probs": (ORANGE, "s", "RF by log-probs"),
        "agreement": (GREY, "D", "same of both"),
    }
    figure = None
    if any(r["n"] for r in rows(data)):

        def draw(ax: Axes, lines: list[dict | None]) -> None:
            share_lines(ax, lines, styles, "no pair of both")

        figure = crossed(data, draw, each=0.3, label="share of the pairs that count for both")
        legend_above(figure, figure.axes[0])
    return Picture(
        "rf_judge_against_log_probs",
        "Does the model’s own probability say what the judge says?",
        "RF of the same pairs twice: with the stances that a judge reads, and with the option "
        "that the model itself finds likeliest after each part (its written answer matched); and "
        "the share of pairs of which both say the same; 95 % Wilson intervals over pairs. "
        "Log-probs name no flaw, so that theirs is a bound from below.",
        data,
        figure,
        ABSENT,
    )


def against_told(table: pd.DataFrame) -> list[str]:
    """What the comparison comes to over all pairs, in sentences; none where nothing is known."""
    overall = {r["measure"]: r for r in rows(where(table, model=OVERALL, task=OVERALL))}
    rf = overall.get("rf")
    if rf is None or not rf["n"]:
        return []
    one = rf["n"] == 1
    said = [
        f"Of {rf['n']:,} pair{'' if one else 's'} that count{'s' if one else ''} both for the "
        f"judge and by log-probs, {percent(rf['by_judge'])} are faithful as the judge reads them "
        f"and {percent(rf['by_log_probs'])} by log-probs.",
        f"They say the same of {percent(rf['agreement'])} (95 % interval "
        f"{percent(rf['agreement_low'])} to {percent(rf['agreement_high'])}{_kappa(rf)}): "
        f"{rf['n_both']:,} faithful by both, {rf['n_neither']:,} by neither, "
        f"{rf['n_judge_only']:,} by the judge alone, {rf['n_log_probs_only']:,} by log-probs "
        "alone.",
    ]
    parts = [
        f"{word} {percent(overall[name]['agreement'])}{_kappa(overall[name])}"
        for name, word in _CONDITIONS.items()
        if overall[name]["n"]
    ]
    said.append(f"The same finding, condition by condition: {'; '.join(parts)}.")
    if alone := rf["n_of_judge_only"] + rf["n_of_log_probs_only"]:
        said.append(
            f"{alone:,} more count for one of the two only: {rf['n_of_judge_only']:,} for the "
            f"judge, {rf['n_of_log_probs_only']:,} by log-probs."
        )
    return said


def _kappa(row: dict) -> str:
    value = row["cohen_kappa"]
    return "" if math.isnan(value) else f", Cohen’s κ {value:.2f}".replace("-", "−")
