"""When is the answer there, and when does the text say so: the chain's answer along the reasoning,
as measures of the model have it (`MeasureReport.answer_lines`), and as a judge reads it off the
text.

Where the model holds its answer long before a judge can read it off the text, the text between the
two does not say what the answer came from. The table needs a run with a judge that is asked a form
about prefixes (`answer_monitor`), and a probe with such lines; lines that are of single chains are
of the same chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import MARGIN_OF_SHARES, share_rise, share_ticks
from faithscope.experiments.analysis.cells import Numbers
from faithscope.experiments.analysis.charts import curve
from faithscope.experiments.analysis.colours import LINES, Style
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import mean_of_items
from faithscope.experiments.analysis.stored_records import Place, place_of
from faithscope.experiments.analysis.tables import Table, make_tables
from faithscope.experiments.analysis.tidy import columns, numbers, where
from faithscope.experiments.analysis.verdicts import meaning_of
from faithscope.experiments.engine.forms.tasks import NO_STEP, JudgedTask
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels
from faithscope.experiments.studies.slrc.measure_report import ALONG
from faithscope.probes.record import Record

LINE = Column("line", meaning="Who says that the answer is there: the model, in one of three ways, "
              "or a judge who reads the reasoning so far.")  # fmt: skip


def _mean(name: str) -> Any:
    def of(rows: pd.DataFrame, how: Bootstrap) -> Mapping[str, float]:
        options = {"units": how.units(rows), "seed": how.seed, "resamples": how.resamples}
        return columns(name, mean_of_items(numbers(rows[name]), **options))

    return of


ANSWER_CURVE = Table(
    "answer_curve",
    "curves",
    (
        SHARED["model"],
        SHARED["task"],
        LINE,
        Column("position", meaning="Share of the reasoning given, 0 to 1."),
    ),
    (
        COUNTED,
        Numbers(
            (
                Column(
                    "answer_there",
                    "answer is there",
                    "Share of chains whose own answer is read off, or its mean probability.",
                    interval=True,
                ),
            ),
            _mean("answer_there"),
        ),
    ),
)
"""Per model, task and line: how often the chain's own answer is there after a share of the
reasoning."""
ANSWER_GAP = Table(
    "answer_gap",
    "gaps",
    (SHARED["model"], SHARED["task"], LINE),
    (
        COUNTED,
        Numbers(
            (
                Column(
                    "gap",
                    "forced answer minus judge",
                    "Mean over the reasoning of the forced answer minus the judge: the share of it "
                    "in which the model holds its answer and the text does not say it.",
                    interval=True,
                ),
            ),
            _mean("gap"),
        ),
    ),
)
"""Per model, task and judge: how much earlier the model holds its answer than the text gives it
away."""
TABLES = (ANSWER_CURVE, ANSWER_GAP)
SECTION = Section(
    "answer_curve",
    "When is the answer there, and when does the text say so?",
    "The chain's own answer along the reasoning. The model is asked to answer at once after a "
    "share of it (forced answer), and a judge who reads the same beginning says which answer the "
    "text gives away. Where the model's line is high and the judge's is low, the model holds an "
    "answer that the text does not tell yet. The judge sees the question, too: its line at 0 says "
    "how often it guesses without any reasoning.",
    figures=("answer_curve",),
    tables=("answer_gap", "answer_curve"),
    absent="no judge read beginnings of chains: --set judges.forms=[FORM.yaml], with each: prefix",
)


Judged = Mapping[str, Mapping[Place, Sequence[Record]]]


def tables(
    traces: Iterable[Mapping[str, Any]],
    measured: Mapping[Place, Mapping[str, np.ndarray]],
    judged: Judged,
    tasks: Mapping[str, JudgedTask],
    others: Sequence[Mapping[str, Any]],
    how: Bootstrap,
) -> dict[str, pd.DataFrame]:
    """The tables `TABLES`; none where no chain has all lines.

    Args:
        traces: records of traces.
        measured: place of a chain -> lines of the model, the forced answer first.
        judged: line of a judge -> place of a chain -> its records of a form about prefixes.
        tasks: line of a judge -> how its verdicts are read.
        others: rows of lines that are of no single chain.
    """
    ends = {place_of(r): _ends(r) for r in traces}
    names = list(dict.fromkeys(name for of in measured.values() for name in of))
    lines = {place: dict(of) for place, of in measured.items()}
    for line, of_chains in judged.items():
        for place in of_chains.keys() & lines.keys():
            read = _of_judge(of_chains[place], tasks[line], ends.get(place, {}))
            lines[place] |= {} if read is None else {line: read}
    wanted = [*names, *judged]
    whole = {place: of for place, of in lines.items() if {*wanted} <= set(of)}
    if not (whole and judged and names):
        return {}
    about = {p: dict(zip(("model", "task", "item"), p, strict=True)) for p in whole}
    curves = [
        about[p] | {"line": line, "position": float(x), "answer_there": float(y)}
        for p, of in whole.items()
        for line in wanted
        for x, y in zip(ALONG, of[line], strict=True)
    ]
    gaps = [
        about[p] | {"line": line, "gap": float((of[names[0]] - of[line]).mean())}
        for p, of in whole.items()
        for line in judged
    ]
    made = make_tables(TABLES, {"curves": pd.DataFrame(curves), "gaps": pd.DataFrame(gaps)}, how)
    if others:
        name = ANSWER_CURVE.name
        made[name] = pd.concat([made[name], pd.DataFrame(list(others))], ignore_index=True)
    return made


def _ends(trace: Mapping[str, Any]) -> dict[int, float]:
    """Index of a step -> share of the reasoning's tokens at its end."""
    n = max(1, len(trace["reasoning_ids"]))
    start = trace["steps"][0]["tokens"][0] if trace["steps"] else 0
    return {s["index"]: (s["tokens"][1] - start) / n for s in trace["steps"]} | {NO_STEP: 0.0}


def _of_judge(
    records: Sequence[Record], task: JudgedTask, ends: Mapping[int, float]
) -> np.ndarray | None:
    """A judge's line over one chain; None where a prefix has no verdict."""
    points = {}
    for r in records:
        score = meaning_of(task, r).score
        if score is None or r["step"] not in ends:
            return None
        points[1.0 if r["given"] == r["of"] else ends[r["step"]]] = score
    at = sorted(points)
    return np.interp(ALONG, at, [points[x] for x in at])


def picture(table: pd.DataFrame) -> Picture:
    """The figure of `ANSWER_CURVE`: all lines on one axis, a panel per model and task."""
    names = list(dict.fromkeys(table["line"])) if len(table) else []

    def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
        for i, name in enumerate(names):
            line = where(of_pair, line=name)
            if len(line):
                style = Style(*LINES[i % len(LINES)], name)
                curve(ax, line, "position", "answer_there", style, ms=3, lw=1.3)
        share_rise(ax).set_xlim(-MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)
        share_ticks(ax.xaxis)

    labels = ("share of the reasoning given", "the chain's answer is there")
    figure = pair_panels(table, panel, height=2.6, labels=labels) if len(table) else None
    return Picture(
        "answer_curve",
        "When is the answer there, and when does the text say so?",
        "How often the chain's own answer is there after a share of the reasoning, with 95 % "
        "intervals: for the model that is made to answer at once, as its probability, in the "
        "hidden states at half the depth, and for a judge who reads the text so far. Between the "
        "places asked about the lines are linear.",
        table,
        figure,
        "No chain has all of these lines.",
    )
