"""Figure of verdicts with a text in the chain beside those without (ours)."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.charts import dot_rows, dots_by
from faithscope.experiments.analysis.colours import BLUE, GREY, ORANGE, PAPER, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.c2faith.figures.judge_readings import SILENT, judge_readings


def _faces(hollow: str, filled: str) -> list[Line2D]:
    """Legend entries of hollow and of filled dots."""
    return [
        Line2D([], [], ls="", marker="o", mec=GREY, mfc=face, label=label)
        for face, label in ((PAPER, hollow), (GREY, filled))
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
