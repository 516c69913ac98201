"""Report of paraphrased steps, beside removal of their text; over items and by place of the
step."""

from __future__ import annotations

from collections.abc import Callable

from faithscope.experiments.analysis.cells import Total, Values, boots
from faithscope.experiments.analysis.colours import BLUE, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, mean_over_variants
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import mean_present
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
    n_reasons,
    step_frame,
    step_means,
    step_measures,
    step_tables,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS
from faithscope.probes.messages import NO_WORDS
from faithscope.probes.paraphrase import NONE_LEFT, STEP_REASONS

WRITER = Column("writer", meaning="Writer of the paraphrases: the model, or a rule.")
OF_STEPS = effects_of("", "a step is paraphrased") | REMOVED
WHOLE = effects_of("whole_", "all steps are paraphrased", "all reworded")
N_REASONS = {
    "paraphrase_empty": ("empty", "Steps whose paraphrase has no text."),
    "paraphrase_unchanged": ("unchanged", "Steps whose paraphrase has the same words."),
    "paraphrase_cut": ("cut off", "Steps whose paraphrase reached the token limit."),
    "paraphrase_changes_numbers": ("other numbers", "Steps whose numbers it changes."),
    "paraphrase_not_writable": ("not writable", "Steps the tokenizer cannot write so."),
    "no_rule_for_it": ("no rule", "Steps without an equation that a rule rewords."),
    "no_paraphrase_given": ("none given", "Steps for which `traces.edits` gives no paraphrase."),
}
WORDS = {NO_WORDS: "task is in no natural language", NONE_LEFT: "no step could be paraphrased"}


def _beyond(field: str) -> Callable[[Record], list[float | None]]:
    """Makes a function for the effect of removal minus that of the paraphrase, per step that has
    one."""

    def of(r: Record) -> list[float | None]:
        pairs = zip(r[f"removed_{field}"], r[field], strict=True)
        return [None if None in (a, b) else float(a) - float(b) for a, b in pairs]

    return of


BEYOND = {"beyond_flips": _beyond("flips"), "beyond_tv": _beyond("tv")}
_LABELS = {"beyond_flips": "flips", "beyond_tv": "tv"}
SCORES: dict[Column, Values] = step_means(OF_STEPS) | {
    Column(
        name, f"removed minus reworded, {_LABELS[name]}", "Over steps with a paraphrase."
    ): lambda rows, of=of: [mean_present(of(r)) for r in rows.to_dict("records")]
    for name, of in BEYOND.items()
}

paraphrase_picture = picture(
    "paraphrase",
    "Missed for its words, or for what it says?",
    "How far the answer distribution moves when a step is paraphrased, and when its text is "
    "removed: total variation, mean over items and writers of paraphrases. Where removal "
    "lies above the paraphrase, the answer hangs on what the step says, or on a hole in the text; "
    "where the paraphrase moves the answer as far, it hangs on the wording.",
    per_pair(
        "position",
        {
            "tv": Style(ORANGE, "s", "step paraphrased"),
            "removed_tv": Style(BLUE, "o", "step removed"),
        },
        (PLACE, "probability moved"),
        shares_along,
        pooled=True,
    ),
)


def _calls(records: OfItem) -> int:
    """Model calls: the unedited answer, every paraphrase, and the writing of the model's own
    ones."""
    return 1 + sum(r["n_reworded"] + (r["n_steps"] if r["n_written"] else 0) for r in records)


REPORT = MeasureReport(
    "paraphrase",
    Section(
        "paraphrase",
        "Paraphrase",
        "A step is paraphrased with its meaning kept, by the model itself or by a rule, "
        "and so are all steps together; every token outside of them keeps its id. Beside it, in "
        "the same pack, the step's text is removed. An answer that a paraphrase changes hangs on "
        "the wording; one that removal changes and a paraphrase does not hangs on what the step "
        "says, or on the hole that removal leaves. Whether a model's paraphrase keeps the meaning "
        "is not checked beyond its numbers.",
    ),
    step_tables(
        "paraphrase",
        (WRITER,),
        (
            *ITEMS_AND_STEPS,
            Total("n_reworded", label="paraphrased", meaning="Number of paraphrased steps."),
            *n_reasons({reason: N_REASONS[reason] for reason in STEP_REASONS}),
            *boots(SCORES | WHOLE),
            *flips_within_floor("", "removed_"),
            *forced_log_odds(OF_STEPS | WHOLE),
            *FORCED_DIFFERS,
            *LABEL_MASS,
        ),
        OF_STEPS,
        (
            "Paraphrased steps against their removal",
            "Paraphrase and removal by relative place of the step",
        ),
        paraphrase_picture,
        before=lambda frame: frame.assign(writer=frame["variant"]),
    ),
    (
        step_frame(
            "paraphrase",
            "A row per item, writer and step: effects of its paraphrase and of its removal.",
            *("texts", "reasons", "reworded", "flips", "tv", "log_odds"),
            *("removed", "removed_flips", "removed_tv", "removed_log_odds"),
            writer="variant",
        ),
    ),
    (
        # The score is whether the wording matters: an answer that follows the meaning survives a
        # paraphrase.
        *(
            Measure(
                f"paraphrase_{name}",
                "paraphrase",
                "logit",
                mean_over_variants(lambda r, name=name: mean_present(r[name])),
                _calls,
                higher_is_faithful=False,
                in_short="paraphrase of a step" if name == "tv" else "",
            )
            for name in ("flips", "tv")
        ),
        *step_measures(
            "paraphrase",
            "logit",
            {"beyond_flips": "", "beyond_tv": "removal minus paraphrase"},
            lambda records: _calls(records) + records[0]["n_steps"],
            fields=BEYOND,
        ),
    ),
    reasons=WORDS,
)
