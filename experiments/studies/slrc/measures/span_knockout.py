"""Report of knockout between spans: which path the answer takes."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import name_rows
from faithscope.experiments.analysis.cells import Share, boots, rows_with
from faithscope.experiments.analysis.charts import dots_of, draw_dots
from faithscope.experiments.analysis.colours import BLUE, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.tidy import keep, with_columns
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import effects_of, forced_log_odds
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS

MEASURES = effects_of("", "the queries cannot look at the keys")
KL = Column("kl", "KL", "KL of the distributions over the answers, whole from cut.", "nats")
CUT = (
    Column("cut", meaning="Name of the cut."),
    Column("queries", meaning="Spans whose tokens cannot look at the keys."),
    Column("keys", meaning="Spans that cannot be looked at."),
    Column("window", meaning="The layers in which they cannot."),
    Column("first_layer", meaning="The first layer of the window."),
    Column("last_layer", meaning="The last layer of the window."),
)
WRITTEN = (
    Column(
        "control_share",
        "answer kept, no cut",
        "Share of the texts without the cut that give the chain's own answer.",
    ),
    Column("share", "answer kept, cut", "Share of the texts under the cut that give it."),
    Column("lost", meaning="Share without the cut minus share under it."),
    Column(
        "tv",
        "total variation",
        "Between the answers under the cut and without it, item by item; of few texts it is above "
        "0 by chance alone.",
    ),
    Column("same_text", meaning="Share of the texts that are the same token by token."),
    Column("control_unanswered", "no answer, no cut", "Share without an answer, without the cut."),
    Column("unanswered", "no answer, cut", "Share without an answer, under the cut."),
)
STYLES = {
    "flip_rate": Style(ORANGE, "D", "answer changed"),
    "tv": Style(BLUE, "o", "total variation"),
}


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Records of cuts as declared, for each all layers first, then windows by their first layer;
    without those of writing."""
    own = with_columns(frame, "window")
    own = keep(own, own["window"].notna())
    names = list(dict.fromkeys(own["cut"])) if len(own) else []
    own = own.assign(at=own["cut"].map(names.index) if len(own) else 0, part=own["window"] != "all")
    return own.sort_values(["model", "task", "at", "part", "first_layer"], kind="stable")


def _of_writing(frame: pd.DataFrame) -> pd.DataFrame:
    own = with_columns(frame, "texts")
    return keep(own, own["texts"].notna())


def _panel(ax: Axes, table: pd.DataFrame) -> None:
    order = [(cut, window) for cut, window in table[["cut", "window"]].itertuples(index=False)]
    draw_dots(ax, list(dots_of(table, STYLES, ("cut", "window"))), order)
    name_rows(ax, [cut if window == "all" else f"layers {window}" for cut, window in order])


def _drawn(table: pd.DataFrame) -> Figure | None:
    rows = max(len(of) for _, of in table.groupby(["model", "task"]))
    labels = ("share of items, or of probability", "")
    return pair_panels(table, _panel, across=2, height=0.5 + 0.27 * rows, labels=labels)


span_knockout_picture = picture(
    "span_knockout",
    "Which path does the answer take?",
    "How often the likeliest answer changes, and how far the distribution over the answers moves, "
    "when the queries of a cut cannot look at its keys, in all layers and in windows of them; mean "
    "over items with 95 % intervals. A cut that moves nothing is a path that the answer does not "
    "need.",
    _drawn,
)


REPORT = MeasureReport(
    "span_knockout",
    Section(
        "span_knockout",
        "Knockout between spans",
        "Some tokens (queries) are kept from looking at others (keys), whose text stays where it "
        "is: in all layers, or in a window of them. Where the answer cannot look at the prompt and "
        "stays as it was, it came through the reasoning; what it loses is the direct effect of the "
        "prompt. No model was trained on such attention: a change may be of the cut itself. Where "
        "cuts also hold while the model writes, its answers stand beside those that it writes from "
        "the same place without the cut.",
    ),
    (
        item_table(
            "span_knockout",
            (
                COUNTED,
                *boots({**MEASURES, KL: "kl"}),
                Share(
                    "flips_within_floor",
                    lambda rows: rows["margin"] <= rows["noise_floor"],
                    rows_with(flips=True),
                    "within the floor",
                    "Share of the changed answers that are decided by no more than the noise "
                    "floor.",
                ),
                *forced_log_odds(MEASURES),
                *FORCED_DIFFERS,
                *LABEL_MASS,
            ),
            keys=CUT,
            prepare=_in_order,
            alike=("n_layers",),
            caption="The answer when some tokens cannot look at others",
            draw=span_knockout_picture,
        ),
        item_table(
            "span_writing",
            (COUNTED, *boots(WRITTEN)),
            CUT[:3],
            "span_knockout",
            prepare=_of_writing,
            caption="What is written, and answered, under a cut and without it",
            folded="Writing under a cut",
            rare=True,
        ),
    ),
    (
        Frame(
            "span_knockout",
            "A row per item, cut and window of layers: the answer under the cut.",
            (
                *(column.name for column in CUT),
                *("n_queries", "n_keys", "gold", "answer", "knocked", "flips", "tv", "kl"),
                *("log_odds", "margin", "excluded"),
            ),
            lambda r: [] if r.get("reading") == "generated" else [r],
        ),
        Frame(
            "span_writing",
            "A row per item and cut: what is written under it, and without it.",
            (
                *(column.name for column in CUT[:3]),
                *("written_from", "gold", "followed", "answers", "control_answers", "texts"),
                *("control_texts", *(column.name for column in WRITTEN), "excluded"),
            ),
            lambda r: [r] if r.get("reading") == "generated" else [],
        ),
    ),
    tuple(
        # an answer that is read off the prompt does not come through the text
        Measure(
            f"span_knockout_direct_{name}",
            "span_knockout",
            "internal",
            value(name),
            calls(2),
            where={"variant": "direct.all"},
            higher_is_faithful=False,
            in_short=words,
        )
        for name, words in (
            ("flips", ""),
            ("tv", "direct effect: the answer cannot see the prompt"),
            ("log_odds", ""),
        )
    ),
    over_steps=False,
    reasons={
        "no_attention_knockout": "model's attention cannot be cut",
        "nothing_to_cut": "no query of the cut stands after its keys",
        "cut_ends_before_the_text": "the cut's queries end at a place of the given text",
    },
)
