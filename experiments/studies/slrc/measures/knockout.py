"""Report of knocked-out steps, beside removal of their text; over items and by place of the
step."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import unit_square
from faithscope.experiments.analysis.cells import boots
from faithscope.experiments.analysis.colours import BLUE, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import calls
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS, step_mean
from faithscope.experiments.analysis.tidy import in_order, keep, where
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels, picture
from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.experiments.studies.slrc.step_reports import (
    REMOVED,
    effects_of,
    flips_within_floor,
    forced_log_odds,
    step_frame,
    step_means,
    step_measures,
    step_tables,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS

MEASURES = effects_of("", "later tokens cannot look at a step") | REMOVED
_WINDOW = (
    Column("queries", meaning="Which tokens cannot look at the step: all later, or the answer's."),
    Column("window", meaning="The layers in which they cannot."),
    Column("first_layer", meaning="The first layer of the window."),
    Column("last_layer", meaning="The last layer of the window."),
)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Records of windows: for either kind of queries all layers first, then by their first."""
    own = keep(frame, frame["window"].notna()).assign(part=lambda f: f["window"] != "all")
    own = in_order(own, queries=("later", "answer"))
    order = ["model", "task", "queries", "part", "first_layer", "window"]
    return own.sort_values(order, kind="stable")


def _beyond(rows: pd.DataFrame) -> list[list[float | None]]:
    """Per step, whether its removal changed the answer minus whether its knockout did."""
    return [
        [None if None in (a, b) else float(b) - float(a) for a, b in zip(*pair, strict=True)]
        for pair in zip(rows["flips"], rows["removed_flips"], strict=True)
    ]


def _alike(rows: pd.DataFrame) -> list[list[bool | None]]:
    return [[None if x is None else x == 0 for x in of] for of in _beyond(rows)]


SCORES = step_means(MEASURES) | {
    Column(
        "beyond_knockout", "removed minus knocked out", "What removal claims and knockout does not."
    ): step_mean(_beyond),
    Column(
        "agreement", meaning="Steps on which both edits change the answer, or neither does."
    ): step_mean(_alike),
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
        _WINDOW,
        (
            *ITEMS_AND_STEPS,
            *boots(SCORES),
            *flips_within_floor("", "removed_"),
            *forced_log_odds(MEASURES),
            *FORCED_DIFFERS,
            *LABEL_MASS,
        ),
        MEASURES,
        (
            "Knockout of a step against its removal",
            "Knockout and removal by relative place of the step",
        ),
        knockout_picture,
        before=_in_order,
        alike=("n_layers",),
    ),
    (
        step_frame(
            "knockout",
            "A row per item, query, window and step: the step cut off, beside its text removed.",
            *("knocked", "flips", "tv", "log_odds"),
            *("removed", "removed_flips", "removed_tv", "removed_log_odds"),
            **{column.name: column.name for column in _WINDOW},
        ),
    ),
    OF_KNOCKOUT,
    reasons={"no_attention_knockout": "model's attention cannot be cut"},
)
