"""Graded effects of single steps over items: graded necessity, NLDD, TTS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Count, Total, boot_medians, boots, rows_known
from faithscope.experiments.analysis.colours import BLUE, GREEN, ORANGE, PURPLE, Style
from faithscope.experiments.analysis.columns import Column, by_name
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, N_STEPS, item_table
from faithscope.experiments.analysis.tidy import present
from faithscope.experiments.studies.slrc.figures.per_pair import (
    PLACE,
    per_pair,
    picture,
    shares_along,
)
from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.experiments.studies.slrc.step_reports import (
    by_part,
    flips_within_floor,
    forced_means,
    of_forced_choice,
    step_frame,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS
from faithscope.probes.causal_effects import FORCED_MEASURES, STEP_MEASURES

causal_effects_picture = picture(
    "causal_effects",
    "How far does a step move the answer?",
    "Probability that an edit of one step moves, by the relative place of the step, mean "
    "over items with 95 % bootstrap intervals. Total variation is read after the whole "
    "reasoning, the true-thinking score right after the step; a step that is read there "
    "may be overruled by what follows. The first step has no context to perturb, hence no "
    "true-thinking score but the half in its own context.",
    # Log-odds and NLDD are on another scale.
    per_pair(
        "position",
        {
            "removed_tv": Style(BLUE, "o", "removed: total variation"),
            "corrupted_tv": Style(ORANGE, "s", "corrupted, later text frozen: total variation"),
            "tts": Style(GREEN, "^", "true-thinking score"),
            "tts_intact": Style(PURPLE, "D", "true-thinking score, own context alone"),
        },
        (PLACE, "probability moved"),
        shares_along,
        apart=0.015,
    ),
)


def _asked(field: str, each: int, fixed: int = 1) -> Callable[[OfItem], int]:
    """Cost function: `each` texts per step with a value in list `field`, plus `fixed` texts."""
    return lambda records: fixed + each * len(present(records[0][field]))


_IN_SHORT = {
    "graded_necessity": "graded necessity: log-odds lost by removal",
    "nldd": "NLDD",
    "tts": "TTS",
}


def _of_effects(name: str, forwards: Any, **more: Any) -> Measure:
    score, steps = value(f"mean_{name}"), listed(name)
    words = _IN_SHORT.get(name, "")
    return Measure(
        name, "causal_effects", "logit", score, forwards, steps=steps, in_short=words, **more
    )


OF_CAUSAL_EFFECTS = (
    # Graded necessity and total variation of removal equal SLRC's scored removals, for runs without
    # SLRC.
    _of_effects("graded_necessity", calls(1, 1)),
    _of_effects("removed_tv", calls(1, 1), share=True),
    *(
        _of_effects(name, _asked(name, 1))
        for name in ("nldd", "nldd_own", "nldd_truncated", "nldd_own_truncated")
    ),
    _of_effects("tts", _asked("tts", 4, fixed=0), share=True),
    _of_effects("tts_intact", _asked("tts_intact", 2, fixed=0), share=True),
    _of_effects("tts_perturbed", _asked("tts_perturbed", 2, fixed=0), share=True),
)

_OF_ANSWER = {
    Column(
        "graded_necessity",
        unit="nats",
        meaning="Log-odds of the answer that removing a step costs.",
    ): "",
    Column(
        "corrupted_log_odds",
        "log-odds drop, corrupted",
        "Log-odds that corrupting a step costs the answer, later text unchanged.",
        "nats",
    ): "",
    Column(
        "nldd_own",
        "NLDD, own answer",
        "Share of the answer's lead over its best rival that is lost by corruption; unbounded.",
    ): "NLDD",
    Column(
        "nldd_own_truncated",
        "NLDD, own answer, truncated",
        "Share of the answer's lead lost where the reasoning ends with the corrupted step.",
    ): "NLDD, truncated",
    Column(
        "tts",
        "TTS",
        "True-thinking score of the answer: mean of that in its own and in a perturbed context.",
    ): "",
    Column(
        "tts_intact",
        "TTS, own context",
        "How far the answer's probability right after a step moves where the step is corrupted, "
        "the steps before it as written.",
    ): "",
    Column(
        "tts_perturbed",
        "TTS, perturbed context",
        "How far the answer's probability right after a step moves where the step is corrupted, "
        "the steps before it corrupted too.",
    ): "",
}
"""Columns for the stated answer -> heading of the same column for the forced choice, if it
differs."""
_COLUMNS = by_name(
    [
        Column(
            "removed_tv",
            "total variation, removed",
            "How far the distribution over the answers moves where a step is removed.",
        ),
        Column(
            "removed_flips",
            "answer changed, removed",
            "Share of an item's removed steps after which the likeliest answer changes, mean "
            "over items.",
        ),
        Column(
            "corrupted_tv",
            "total variation, corrupted",
            "How far the distribution over the answers moves where a step is corrupted, later "
            "text unchanged.",
        ),
        Column(
            "corrupted_flips",
            "answer changed, corrupted",
            "Share of an item's corrupted steps after which the likeliest answer changes, mean "
            "over items.",
        ),
        Column("nldd", "NLDD, right answer", "Share of its lead lost by corruption; unbounded."),
        Column(
            "nldd_truncated",
            "NLDD, right answer, truncated",
            "Share of its lead lost where the reasoning ends with the corrupted step.",
        ),
        *_OF_ANSWER,
        *(of_forced_choice(column, label) for column, label in _OF_ANSWER.items()),
    ]
)
_OF_STEPS = [_COLUMNS[name] for name in STEP_MEASURES]
_FORCED = [_COLUMNS[name] for name in FORCED_MEASURES]
_MEDIANS = {
    Column("nldd_median", "NLDD, right answer, median", "Means follow a few items that tie."): (
        "mean_nldd"
    ),
    Column("nldd_own_median", "NLDD, own answer, median", "Means follow a few items that tie."): (
        "mean_nldd_own"
    ),
}
"""Median columns -> record fields. NLDD divides by the answer's lead, so that a few near-ties
dominate its mean."""


def _n_included(reasons: str) -> Callable[[pd.DataFrame], list[int]]:
    return lambda rows: [list(of).count(None) for of in rows[reasons]]


REPORT = MeasureReport(
    "causal_effects",
    Section(
        "effects",
        "Step by step, by degrees",
        "What an edit of one step takes from the answer, where SLRC only asks whether the answer "
        "changed. Log-odds, leads and probabilities are of the answer that the chain states; in "
        "columns that begin with forced_, of the one that the model chooses when it is made to "
        "answer after the whole reasoning. Whether the answer changed is of that choice before and "
        "after the edit. Graded necessity is the log-odds (nats) that removing the step costs. "
        "NLDD is the share of an answer’s lead over its best rival that is lost when the step is "
        "corrupted and later text stays: of the right answer, and of the chain’s; 1 is a tie, "
        "more is a lead for the rival, and “truncated” lets the reasoning end with the corrupted "
        "step. The true-thinking score (TTS) asks right after the step, in its own and in a "
        "corrupted context.",
    ),
    (
        item_table(
            "causal_effects",
            (
                COUNTED,
                *boots({column: f"mean_{column.name}" for column in _OF_STEPS}),
                *boot_medians(_MEDIANS),
                N_STEPS,
                Total(
                    "n_corruptible",
                    _n_included("corrupt_excluded"),
                    label="steps that can be corrupted",
                    meaning="Steps, over all items, in which there is something to corrupt.",
                ),
                Total(
                    "n_tts",
                    _n_included("tts_excluded"),
                    label="steps with TTS",
                    meaning="Steps with an earlier step that can be corrupted.",
                ),
                Count(
                    "n_gold",
                    rows_known("lead"),
                    "items with a right answer",
                    "Items whose right answer is among their options.",
                ),
                *flips_within_floor("removed_", "corrupted_"),
                *forced_means({column: f"mean_{column.name}" for column in _FORCED}),
                *FORCED_DIFFERS,
                *LABEL_MASS,
            ),
            caption="Graded effects of the steps, mean over items",
        ),
        by_part(
            "causal_effects_by_step",
            "causal_effects",
            (),
            _OF_STEPS,
            caption="Graded effects by place of the step",
            folded="By place in the reasoning",
            draw=causal_effects_picture,
        ),
    ),
    (
        step_frame(
            "causal_effects",
            "A row per item and step: graded necessity, NLDD, TTS, and why one of them is not.",
            "corruption_rule",
            *STEP_MEASURES,
            *FORCED_MEASURES,
            *("corrupt_excluded", "tts_excluded"),
        ),
    ),
    OF_CAUSAL_EFFECTS,
)
