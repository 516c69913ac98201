"""Report of on-policy resampling: answers when steps are drawn anew; over items and by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faithscope.experiments.analysis.cells import Total, boots
from faithscope.experiments.analysis.colours import BLUE, GREEN, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.studies.slrc.figures.per_pair import (
    PLACE,
    per_pair,
    picture,
    shares_along,
)
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import (
    n_reasons,
    step_frame,
    step_means,
    step_measures,
    step_tables,
)
from faithscope.probes.framing import WRITTEN_BY_ANOTHER
from faithscope.probes.resample import NO_ANSWER, NO_OTHER, NOTHING

OF_STEPS = (
    Column("different", "draws with another step", "Or with none, of those before a step."),
    Column("importance", meaning="Total variation of answers, another step drawn or it kept."),
    Column("drop", "own answer rarer by", "Share of the own answer, step kept minus another."),
    Column("comes_back", "comes back", "Draws with another step that say it later after all."),
    Column("unanswered", meaning="Draws without an answer, or that the token limit broke off."),
    Column("resilience", meaning="Times that a draw is drawn anew until no step says it."),
    Column("persists", meaning="Draws in which a step says it even so, after all rounds."),
    Column("importance_gone", "importance, gone", "Importance by draws from which it is gone."),
)

resample_picture = picture(
    "resample",
    "What would it answer if it went on otherwise?",
    "Each step is drawn anew by the model, which goes on from there: how often the next step says "
    "something else, how far the answers of such draws are from those with the step kept (total "
    "variation), and how often a later step says it after all; means over items. Importance that "
    "rests on few other draws is above zero by chance alone.",
    per_pair(
        "position",
        {
            "importance": Style(BLUE, "o", "answers moved where another step is drawn"),
            "different": Style(ORANGE, "s", "draws with another step"),
            "comes_back": Style(GREEN, "^", "of these, the step comes back later"),
        },
        (PLACE, "share"),
        shares_along,
    ),
)


def _draws(record: Record) -> Iterator[dict[str, Any]]:
    """Rows of a frame, one per draw in the order of the cuts; none for a record without draws."""
    pairs = zip(record.get("answers", ()), record.get("next_steps", ()), strict=True)
    for i, (answer, said) in enumerate(pairs):
        cut, draw = divmod(i, record["samples"])
        yield {"cut": cut + 1, "draw": draw + 1, "answer": answer, "next_step": said}


REPORT = MeasureReport(
    "resample",
    Section(
        "resample",
        "On-policy resampling",
        "Before each step the reasoning is cut and continued several times by the model's own "
        "sampling. A step is important if the answers of the draws whose next step says something "
        "else are not those of the draws that keep it (counterfactual importance of Thought "
        "Anchors); draws that say the same again are left out. Nothing here is a text that the "
        "model would not write. Where it is sure of every step, no other is drawn, and there is "
        "nothing to measure.",
    ),
    step_tables(
        "resample",
        (),
        (
            *ITEMS_AND_STEPS,
            *n_reasons(
                {
                    NO_OTHER: ("no other step drawn", "Steps that every draw says again."),
                    NO_ANSWER: ("no answer", "Steps whose draws gave no answer to compare."),
                }
            ),
            *boots(step_means(OF_STEPS)),
            *boots(
                [Column("own_share", "own answer kept", "Share of the own answer after all steps.")]
            ),
            Total(
                "n_calls", label="continuations", meaning="Texts that were drawn for the measure."
            ),
            Total(
                "n_written",
                label="tokens written",
                meaning="Tokens that the model wrote for the measure.",
            ),
        ),
        OF_STEPS,
        ("Steps drawn anew", "Steps drawn anew by relative place"),
        resample_picture,
    ),
    (
        step_frame(
            "resample",
            "A row per item and step: what is answered where the model draws another step.",
            *(column.name for column in OF_STEPS),
            "reasons",
        ),
        Frame(
            "resample_draws",
            "A row per item, cut and draw: what the model goes on with, and what it answers.",
            ("cut", "draw", "answer", "next_step"),
            _draws,
        ),
    ),
    step_measures(
        "resample",
        "behavioural",
        {"importance": "on-policy resampling: importance", "drop": ""},
        lambda records: records[0]["n_calls"],
    ),
    reasons={
        NOTHING: "no draw told anything of any step",
        WRITTEN_BY_ANOTHER: "another model wrote the chain",
    },
)
