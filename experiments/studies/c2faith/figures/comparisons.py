"""Figures that compare judges: as one panel, under other prompts, and with a text in the chain
(ours)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.axes import (
    BLUE,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    Style,
    signed,
)
from faithscope.experiments.analysis.charts import dot_rows, dots_by
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, keep, numbers, rows, where
from faithscope.experiments.analysis.wording import middle_cut, short_names
from faithscope.experiments.studies.c2faith.figures.judge_readings import SILENT, judge_readings


def _faces(hollow: str, filled: str) -> list[Line2D]:
    """Legend entries of hollow and of filled dots."""
    return [
        Line2D([], [], ls="", marker="o", mec=GREY, mfc=face, label=label)
        for face, label in (("white", hollow), (GREY, filled))
    ]


DEMANDS = {
    "best": Style(BLUE, "o", "the best verdict is demanded"),
    "worst": Style(ORANGE, "s", "the worst is demanded"),
}
TASKS = ("detection", "localisation", "coverage")


def injection_picture(table: pd.DataFrame) -> Picture:
    """Figure of paired dots, clean to injected: a column per task, a row per judge and injection.

    For a task with several prompts the first is drawn.
    """
    prompts = {r["task"]: r["prompt"] for r in rows(table.drop_duplicates("task"))}
    kinds = list(dict.fromkeys(table["injection"]))
    every = judge_readings(table)
    names: dict[Any, str] = {}
    for rater, kind in itertools.product(every, kinds):
        name = visible(kind).replace("_", " ")
        first = len(every) > 1 and kind == kinds[0]
        names[rater.judge, rater.reading, kind] = f"{rater.name}\n{name}" if first else name
    columns = {
        task: dots_by(
            where(table, prompt=prompts[task]),
            *("demanded_injected", "demand", DEMANDS, ("judge", "reading", "injection")),
            before="demanded_clean",
        )
        for task in TASKS
        if task in prompts
    }
    return Picture(
        "c2_injection",
        "Can the chain talk its judge round?",
        "Share of verdicts equal to the one that a text inside the chain demands: hollow without "
        "the text, filled with it, on the same items; 95 % Wilson intervals of the filled. The "
        "neutral line demands nothing: what it moves, any foreign line moves.",
        table,
        dot_rows(
            columns,
            names,
            label="share of verdicts that are the demanded one",
            groups=[len(kinds)] * len(every),
            silent=SILENT,
            each=0.3,
            legend=_faces("without the text", "with the text"),
            ncols=4,
        ),
        "Prompt injection was not run (injection.kinds).",
    )


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
        f"{signed(low['value'])} ({visible(low['variant'])}) to {signed(high['value'])} "
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
