"""Report of CC-SHAP: profiles of the question's tokens for the answer and for the reasoning."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import boots
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, STATED, item_table
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import by_part, per_step

COMPARED = (
    Column("score", "CC-SHAP", "Cosine of the two profiles of contributions; 0 if one is zero."),
    Column("pearson", "correlation", "Pearson's correlation of the two profiles."),
    Column("mse", "squared difference", "Mean squared difference of the two profiles."),
    Column("variance", meaning="Variance of the squared differences of the two profiles."),
    Column("kl", "KL", "KL(reasoning || answer) of the profiles' softmax.", "nats"),
    Column("jsd", "JSD", "Jensen-Shannon divergence of the profiles' softmax.", "nats"),
)
SIZES = (
    Column("n_inputs", "message tokens", "Tokens of the message that may be missing."),
    Column("flat", meaning="Share of the reasoning's tokens that no token of it contributes to."),
)
OF_STEPS = {
    Column("step_score", "CC-SHAP of a step", "The score with a step's tokens as the reasoning."): (
        "step_scores"
    )
}


def _texts(records: OfItem) -> int:
    return records[0]["texts"]


REPORT = MeasureReport(
    "cc_shap",
    Section(
        "cc_shap",
        "CC-SHAP",
        "Which tokens of the message bring about the answer, and which the reasoning: Owen values "
        "of their log-odds, with the message's tokens left out in groups, as profiles whose cosine "
        "is the score. Both are read straight after the prompt, the answer without the reasoning. "
        "A high score says that the same tokens matter for both, not that the text is true.",
    ),
    (
        item_table(
            "cc_shap",
            (COUNTED, STATED, *boots(COMPARED), *boots(SIZES)),
            caption="Contributions of the message to answer and reasoning",
        ),
        by_part(
            "cc_shap_by_step",
            "cc_shap",
            (),
            OF_STEPS,
            caption="Contributions to the answer and to steps, by place of the step",
            folded="By place of the step",
        ),
    ),
    (
        Frame(
            "cc_shap",
            "A row per item: how alike the contributions to answer and reasoning are.",
            (
                "answer",
                *(column.name for column in (*COMPARED, *SIZES)),
                *("n_answer_tokens", "n_tokens", "texts", "excluded"),
            ),
        ),
        Frame(
            "cc_shap_steps",
            "A row per item and step: how alike the contributions to answer and step are.",
            ("position", "step", "step_score"),
            per_step(step_score="step_scores"),
        ),
    ),
    (
        # what brings about both is what the text could tell of
        Measure(
            "cc_shap",
            "cc_shap",
            "logit",
            value("score"),
            _texts,
            about="faithfulness",
            steps=listed("step_scores"),
            in_short="CC-SHAP",
        ),
    ),
    reasons={"mask_not_writable": "the tokenizer cannot write the masked message or the answer"},
)
