"""Report of knocked-out steps, beside removal of their text; over items and by place of the
step."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.axes import BLUE, ORANGE, Style, unit_square
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import calls, inclusion_of
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.measure_helpers import (
    REMOVED,
    effects_of,
    flips_within_floor,
    forced_log_odds,
    mean_steps,
    pair_panels,
    picture,
    step_frame,
    step_measures,
    step_tables,
)
from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS
from faithscope.probes.record import mean_of_steps

MEASURES = effects_of("", "later tokens cannot look at a step") | REMOVED
_WINDOW: dict[str | Column, str] = {
    Column(
        "queries", meaning="Which tokens cannot look at the step: all later, or the answer's."
    ): "queries",
    Column("window", meaning="The layers in which they cannot."): "window",
    Column("first_layer", meaning="The first layer of the window."): "first_layer",
    Column("last_layer", meaning="The last layer of the window."): "last_layer",
}
_ORDER = ("later", "answer")


def _rank(record: Record) -> tuple[int, bool, int, str]:
    window = record["window"]
    return _ORDER.index(record["queries"]), window != "all", record["first_layer"], window


def _agreement(r: Record) -> float | None:
    return _mean(r, lambda knocked, removed: knocked == removed)


def _beyond(r: Record) -> float | None:
    return _mean(r, lambda knocked, removed: float(removed) - float(knocked))


def _mean(r: Record, of: Callable[[bool, bool], float]) -> float | None:
    """Mean over steps of a function of the flips of each by knockout and by removal."""
    pairs = zip(r["flips"], r["removed_flips"], strict=True)
    values = [None if None in (a, b) else of(a, b) for a, b in pairs]
    return mean_of_steps(values, inclusion_of(r))


WINDOWS = aggregates.grouped(
    "knockout",
    _WINDOW,
    rank=_rank,
    counts=lambda r: "window" in r and not r.get("excluded"),
    alike=("n_layers",),
)
SCORES = mean_steps(MEASURES) | {
    Column(
        "beyond_knockout", "removed minus knocked out", "What removal claims and knockout does not."
    ): _beyond,
    Column(
        "agreement", meaning="Steps on which both edits change the answer, or neither does."
    ): _agreement,
}

STYLES = {
    "later": Style(BLUE, "o", "no later token sees the step"),
    "answer": Style(ORANGE, "D", "only the answer does not see it"),
}
_SMALL, _LARGE = 18, 90


def against_removal(ax: Axes, table: pd.DataFrame) -> Axes:
    """Scatter of total variation by knockout and by removal, a point per place of the step; later
    places have larger points."""
    for queries, (colour, marker, label) in STYLES.items():
        of = where(table, queries=queries)
        size = _SMALL + (_LARGE - _SMALL) * of["position"]
        look = {"color": colour, "marker": marker, "alpha": 0.65, "linewidths": 0}
        if len(of):
            ax.scatter(of["removed_tv"], of["tv"], size, label=label, **look)
    return unit_square(ax)


def _drawn(by_step: pd.DataFrame) -> Figure | None:
    labels = ("total variation, step removed", "total variation, step knocked out")
    return pair_panels(by_step, against_removal, across=4, height=2.0, labels=labels)


_picture = picture(
    "knockout",
    "Removed, or only not looked at?",
    "How far the answer distribution moves when a step's text is removed, and when it stays "
    "but is not attended to in any layer: mean over items, a point for each fifth of the "
    "reasoning, the last the largest. Points far right and at the bottom are steps whose "
    "absence disturbs the model although it does not read them.",
    _drawn,
)


def knockout_picture(by_step: pd.DataFrame) -> Picture:
    """Scatter per model and task for knockouts in all layers at once."""
    return _picture(where(by_step, window="all"))


OF_KNOCKOUT = tuple(
    measure
    for queries, in_short in (("later", "knockout of a step's edges"), ("answer", ""))
    for measure in step_measures(
        "knockout",
        "internal",
        {"flips": "", "tv": in_short, "log_odds": ""},
        calls(1, 1),
        prefix=f"knockout_{queries}",
        shares=("flips", "tv"),
        where={"variant": f"{queries}.all"},
    )
)

REPORT = MeasureReport(
    "knockout",
    Section(
        "knockout",
        "Knockout",
        "Later tokens are kept from looking at one step, whose text stays where it is: in all "
        "layers, or in a window of them. “later” are all tokens after the step, the later steps "
        "among them; “answer” only those after the reasoning. Beside it, in the same pack, the "
        "step's text removed. A step that flips the answer when it is removed but not when no one "
        "can look at it was missed as text, not read.",
    ),
    step_tables(
        "knockout",
        WINDOWS,
        (
            *aggregates.ITEMS_AND_STEPS,
            aggregates.means(SCORES),
            *flips_within_floor("", "removed_"),
            forced_log_odds(MEASURES),
            *FORCED_DIFFERS,
            LABEL_MASS,
        ),
        MEASURES,
        (
            "Knockout of a step against its removal",
            "Knockout and removal by relative place of the step",
        ),
        knockout_picture,
    ),
    (
        step_frame(
            "knockout",
            "A row per item, query, window and step: the step cut off, beside its text removed.",
            *("knocked", "flips", "tv", "log_odds"),
            *("removed", "removed_flips", "removed_tv", "removed_log_odds"),
            **{field: field for field in _WINDOW.values()},
        ),
    ),
    OF_KNOCKOUT,
    reasons={"no_attention_knockout": "model's attention cannot be cut"},
)
