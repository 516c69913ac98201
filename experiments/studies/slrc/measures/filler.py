"""Filler tokens in a step's place against removal of its text, over items and by place."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.axes import BLUE, GREEN, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import (
    Measure,
    OfItem,
    listed_over_variants,
    mean_over_variants,
)
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import mean, mean_present
from faithscope.experiments.studies.slrc.slice import (
    PLACE,
    Frame,
    Slice,
    Table,
    effects_of,
    per_pair,
    per_step,
    picture,
    shares_along,
)
from faithscope.experiments.studies.slrc.tables.outcomes import LABEL_MASS, flips_within_floor

OF_STEPS = effects_of("", "prefix_", "removed_")
OF_WHOLE = effects_of("whole_")


def _score(field: str) -> Callable[[Record], float | None]:
    """Of the whole reasoning as it is, else the mean over the steps."""
    if field.startswith("whole_"):
        return lambda r: None if r[field] is None else float(r[field])
    return lambda r: mean_present(r[field])


FILLERS = kit.grouped("filler", {"filler": "variant"})
SCORES = {name: _score(field) for name, field in (OF_STEPS | OF_WHOLE).items()}
SCORES["beyond_filler"] = lambda r: mean(r["removed_flips"]) - mean(r["flips"])


_LINES = {
    "tv": Style(BLUE, "o", "this step filled"),
    "removed_tv": Style(ORANGE, "s", "this step removed"),
    "prefix_tv": Style(GREEN, "^", "all steps up to it filled"),
}


def _over_all_fillers(by_step: pd.DataFrame) -> Figure | None:
    keys = ["model", "task", "position"]
    of_places = by_step.groupby(keys, as_index=False, sort=False)[list(_LINES)].mean()
    return per_pair("position", _LINES, (PLACE, "probability moved"), shares_along)(
        pd.DataFrame(of_places)
    )


filler_picture = picture(
    "filler",
    "Missed for what it says, or for its place?",
    "How far the answer distribution moves when a step's tokens are replaced by as many that "
    "say nothing, when its text is removed, and when all steps up to it are replaced: total "
    "variation, mean over items and fillers. Where removal lies above filler, the hole in the "
    "text moved the answer; where filler lies above removal, the filler may have.",
    _over_all_fillers,
)


def _calls(records: OfItem) -> int:
    return 1 + len(records) * records[0]["n_steps"]


_FILLED = ("filled", "flips", "tv", "log_odds", "prefix", "prefix_flips", "prefix_tv")
_FILLED += ("prefix_log_odds", "removed", "removed_flips", "removed_tv", "removed_log_odds")
_ROWS = per_step(*_FILLED)
SLICE = Slice(
    "filler",
    Section(
        "filler",
        "Filler tokens",
        "A step's tokens are replaced by as many that say nothing, and so are all steps up to it "
        "and the whole reasoning: no hole in the text, and every other token where it was. Beside "
        "it, in the same pack, the step's text removed. A step that flips the answer when it is "
        "removed but not when it is filled was missed as text, not for what it says.",
    ),
    (
        Table(
            "filler",
            kit.item_table(
                FILLERS,
                kit.ITEMS_AND_STEPS,
                kit.means(SCORES),
                flips_within_floor("", "removed_"),
                LABEL_MASS,
            ),
            "Filler tokens in a step's place against its removal",
        ),
        Table(
            "filler_by_step",
            kit.by_place(FILLERS, OF_STEPS),
            "Filler and removal by relative place of the step",
            folded="By place of the step",
            draw=filler_picture,
        ),
    ),
    (
        Frame(
            "filler",
            "A row per item, filler and step: the step filled, all up to it filled, it removed.",
            ("filler", "position", "step", "answer", *_FILLED),
            lambda r: [{"filler": r["variant"]} | row for row in _ROWS(r)],
        ),
    ),
    (
        *(
            Measure(
                f"filler_{name}",
                "filler",
                "logit",
                mean_over_variants(_score(name)),
                _calls,
                share=name != "log_odds",
                steps=listed_over_variants(name),
                in_short="filler tokens in a step's place" if name == "tv" else "",
            )
            for name in ("flips", "tv", "log_odds")
        ),
        Measure(
            "filler_whole_tv",
            "filler",
            "logit",
            mean_over_variants(_score("whole_tv")),
            lambda records: 1 + len(records),
            share=True,
        ),
    ),
    (
        Column("prefix_flip_rate", "answer changed, filled up to it"),
        Column("prefix_tv", "total variation, filled up to it"),
        Column("prefix_log_odds", "log-odds drop, filled up to it", unit="nats"),
        Column("whole_flip_rate", "answer changed, all filled"),
        Column("whole_tv", "total variation, all filled"),
        Column("whole_log_odds", "log-odds drop, all filled", unit="nats"),
        Column("beyond_filler", "removed minus filled", "What removal claims and filler does not."),
    ),
    reasons={"filler_not_writable": "the tokenizer cannot write the filler"},
)
