"""Report of filler tokens in a step's place, beside removal of its text; over items and by
place."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.cells import boots
from faithscope.experiments.analysis.colours import BLUE, GREEN, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, mean_over_variants
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS
from faithscope.experiments.analysis.tidy import mean, present
from faithscope.experiments.studies.slrc.figures.per_pair import (
    PLACE,
    per_pair,
    picture,
    shares_along,
)
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

OF_STEPS = (
    effects_of("", "a step's tokens are filled")
    | effects_of("prefix_", "all steps up to one are filled", "filled up to it")
    | REMOVED
)
WHOLE = effects_of("whole_", "the whole reasoning is filled", "all filled")
FILLER = Column("filler", meaning="What is written in the place of a step's tokens.")
BEYOND = Column("beyond_filler", "removed minus filled", "What removal claims and filler does not.")


def _beyond(rows: pd.DataFrame) -> list[float]:
    pairs = zip(rows["removed_flips"], rows["flips"], strict=True)
    return [mean(present(removed)) - mean(present(filled)) for removed, filled in pairs]


SCORES = step_means(OF_STEPS) | WHOLE | {BEYOND: _beyond}

filler_picture = picture(
    "filler",
    "Missed for what it says, or for its place?",
    "How far the answer distribution moves when a step's tokens are replaced by as many that "
    "say nothing, when its text is removed, and when all steps up to it are replaced: total "
    "variation, mean over items and fillers. Where removal lies above filler, the hole in the "
    "text moved the answer; where filler lies above removal, the filler may have.",
    per_pair(
        "position",
        {
            "tv": Style(ORANGE, "s", "this step filled"),
            "removed_tv": Style(BLUE, "o", "this step removed"),
            "prefix_tv": Style(GREEN, "^", "all steps up to it filled"),
        },
        (PLACE, "probability moved"),
        shares_along,
        pooled=True,
    ),
)


def _calls(records: OfItem) -> int:
    return 1 + sum(len(present(r["flips"])) for r in records)


REPORT = MeasureReport(
    "filler",
    Section(
        "filler",
        "Filler tokens",
        "A step's tokens are replaced by as many that say nothing, and so are all steps up to it "
        "and the whole reasoning: no hole in the text, and every other token where it was. Beside "
        "it, in the same pack, the step's text removed. A step that flips the answer when it is "
        "removed but not when it is filled was missed as text, not for what it says.",
    ),
    step_tables(
        "filler",
        (FILLER,),
        (
            *ITEMS_AND_STEPS,
            *boots(SCORES),
            *flips_within_floor("", "removed_"),
            *forced_log_odds(OF_STEPS | WHOLE),
            *FORCED_DIFFERS,
            *LABEL_MASS,
        ),
        OF_STEPS,
        (
            "Filler tokens in a step's place against its removal",
            "Filler and removal by relative place of the step",
        ),
        filler_picture,
        before=lambda frame: frame.assign(filler=frame["variant"]),
    ),
    (
        step_frame(
            "filler",
            "A row per item, filler and step: the step filled, all up to it filled, it removed.",
            *("filled", "flips", "tv", "log_odds"),
            *("prefix", "prefix_flips", "prefix_tv", "prefix_log_odds"),
            *("removed", "removed_flips", "removed_tv", "removed_log_odds"),
            filler="variant",
        ),
    ),
    (
        *step_measures(
            "filler",
            "logit",
            {"flips": "", "tv": "filler tokens in a step's place", "log_odds": ""},
            _calls,
            shares=("flips", "tv"),
        ),
        Measure(
            "filler_whole_tv",
            "filler",
            "logit",
            mean_over_variants(lambda r: r["whole_tv"]),
            lambda records: 1 + len(records),
            share=True,
        ),
    ),
    reasons={"filler_not_writable": "the tokenizer cannot write the filler"},
)
