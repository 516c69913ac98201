"""Figures that compare judges: as one panel, and under other prompts (ours)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.charts import dot_rows, dots_by
from faithscope.experiments.analysis.colours import BLUE, GREEN, MARKERS, ORANGE, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, keep, numbers, rows, where
from faithscope.experiments.analysis.wording import middle_cut, short_names
from faithscope.experiments.numerals import decimal

VARIED = {
    "detection": ("net", "broken minus intact flagged"),
    "localisation": ("exact", "right step named"),
    "coverage": ("mean_share", "mean score, of the highest"),
}
"""Task -> the measure that is drawn, and its name; the table has others."""
OVER = {"prompt": BLUE, "reading": ORANGE, "scale": GREEN}


def sensitivity_picture(variants: pd.DataFrame) -> Picture:
    """Figure with a column per task, and a row per judge and varied setting (C2-Faith, §7)."""
    data = varied(variants)
    places = [
        (judge, over)
        for judge in dict.fromkeys(data["judge"])
        for over in OVER
        if over in set(where(data, judge=judge)["over"])
    ]
    judges = short_names([judge for judge, _ in places])
    first = {judge: over for judge, over in reversed(places)}
    series = [(r["over"], variant_name(r)) for r in rows(data)]
    styles = dict(_variant_styles(series))
    columns = {
        f"{task}\n{label}": dots_by(of, "value", "series", styles, ("judge", "over"))
        for task, (_, label) in VARIED.items()
        if len(of := where(data.assign(series=series), task=task))
    }
    return Picture(
        "c2_prompts",
        "How much hangs on how a judge is asked?",
        "One figure of each task under every prompt, reading or scale that a judge was asked "
        "with, all else held as it first was, with 95 % bootstrap intervals over chains. As far "
        "as verdicts were given the items are the same, so that variants differ by less chance "
        "than their intervals show. " + widest(data),
        data,
        dot_rows(
            columns,
            {(j, o): f"{judges[j]}\n{o}" if first[j] == o else o for j, o in places},
            groups=[sum(j == judge for j, _ in places) for judge in judges],
            each=0.36,
            ncols=4,
        ),
        "No judge was asked in two ways.",
    )


def varied(variants: pd.DataFrame) -> pd.DataFrame:
    """Rows that are drawn: for every judge and varied setting, the first held setting with two
    values."""
    held = ["reading", "prompt", "scale"]
    parts = []
    for task, (measure, _) in VARIED.items():
        known = where(variants, task=task, measure=measure).dropna(subset=["value"])
        of_setting = known.groupby(["judge", "over", *held], sort=False)["value"]
        several = keep(known, numbers(of_setting.transform("size")) > 1)
        first = several.groupby(["judge", "over"], sort=False)[held].transform("first")
        parts.append(keep(several, (several[held] == first).all(axis=1)))
    return pd.concat(parts, ignore_index=True)


def widest(data: pd.DataFrame) -> str:
    """A sentence on the setting that moves a measure most."""
    value = itemgetter("value")
    ranges = [
        (min(figures, key=value), max(figures, key=value))
        for of in distinct(data, "task", "judge", "over")
        for figures in [rows(where(data, **of))]
    ]
    if not ranges:
        return ""
    low, high = max(ranges, key=lambda ends: ends[1]["value"] - ends[0]["value"])
    if low["value"] == high["value"]:
        return "Here no figure differs between variants."
    judge = middle_cut(visible(low["judge"]))
    return (
        f"Widest here: {low['task']} by {judge} over its {low['over']}s, from "
        f"{decimal(low['value'])} ({visible(low['variant'])}) to {decimal(high['value'])} "
        f"({visible(high['variant'])})."
    )


def _variant_styles(series: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Style]]:
    """Marker of each variant of a varied setting; variants beyond the last marker share it."""
    for over, colour in OVER.items():
        names = dict.fromkeys(name for varies, name in series if varies == over)
        for i, name in enumerate(names):
            marker = MARKERS[min(i, len(MARKERS) - 1)]
            yield (over, name), Style(colour, marker, f"{over}: {middle_cut(name)}")


def variant_name(row: Mapping[str, Any]) -> str:
    """Name of a variant; a prompt's is without its task, as prompts of one manner bear one name
    (`terse`, `plain`)."""
    stem = f"c2_{row['task']}"
    if row["over"] != "prompt" or not row["variant"].startswith(stem):
        return visible(row["variant"])
    return visible(row["variant"].removeprefix(stem).strip("_")) or "plain"
