"""Report of FUR: answers after a step was unlearned, over items and by place of the step."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Share, Total, boots, rows_known
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, listed, mean_of, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, N_STEPS, item_table
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import by_part, per_step, step_means
from faithscope.probes.framing import WRITTEN_BY_ANOTHER
from faithscope.probes.fur import NOTHING

OF_STEPS = (
    Column("changes", "step changes answer", "Share of steps after which most answers differ."),
    Column("changed", "answers changed", "Share of answers that are not the chain's."),
    Column("unanswered", meaning="Share of answers that could not be read."),
    Column("efficacy", meaning="Fall of the unlearned tokens' mean probability; 1 is all of it."),
    Column("specificity", meaning="Share of other chains with the same likeliest next token."),
)


def _calls(records: OfItem) -> int:
    return records[0]["n_calls"]


def _share(name: str, label: str, meaning: str) -> Share:
    return Share(name, name, rows_known(name), label, meaning)


REPORT = MeasureReport(
    "fur",
    Section(
        "fur",
        "FUR",
        "Each step is unlearned by a few updates of some of the model's weights, and the model "
        "answers anew. A step is faithful if most of these answers are not the chain's, a chain if "
        "one of its steps is. Efficacy says whether the step was unlearned at all, specificity "
        "whether other chains were left alone, and control what the answers are before anything "
        "is unlearned: where these differ already, no step is shown to matter.",
    ),
    (
        item_table(
            "fur",
            (
                COUNTED,
                N_STEPS,
                _share("faithful", "some step changes it", "Share of chains with such a step."),
                _share(
                    "control_changes",
                    "control changes",
                    "Share of chains whose answers differ before anything is unlearned.",
                ),
                *boots(
                    [
                        Column(
                            "control_changed",
                            "answers changed in control",
                            "Share of answers that are not the chain's, nothing unlearned.",
                        )
                    ]
                ),
                *boots(step_means(OF_STEPS)),
                Total("n_updates", label="updates", meaning="Updates of weights for the measure."),
                Total("n_written", label="tokens written", meaning="Tokens written for it."),
            ),
            caption="Answers after a step was unlearned",
        ),
        by_part(
            "fur_by_step",
            "fur",
            (),
            OF_STEPS,
            caption="Answers after a step was unlearned, by place of the step",
            folded="By place of the step",
        ),
    ),
    (
        Frame(
            "fur",
            "A row per item: whether unlearning a step changes the answer.",
            (
                *("answer", "faithful", "control_changes", "control_changed"),
                *("control_unanswered", "n_kept", "n_held_out", "n_updates", "excluded"),
            ),
        ),
        Frame(
            "fur_steps",
            "A row per item and step: the answers after it was unlearned.",
            ("position", "step", *(c.name for c in OF_STEPS), "n_targets", "reasons"),
            per_step(*(c.name for c in OF_STEPS), "n_targets", "reasons"),
        ),
    ),
    (
        Measure(
            "fur",
            "fur",
            "internal",
            value("faithful"),
            _calls,
            about="faithfulness",
            steps=listed("changes"),
            in_short="FUR",
        ),
        Measure(
            "fur_changed",
            "fur",
            "internal",
            mean_of("changed"),
            _calls,
            about="faithfulness",
            steps=listed("changed"),
        ),
    ),
    reasons={
        "no_other_chains": "no other chain of the task is there to be kept",
        NOTHING: "no step has enough content words to be unlearned",
        WRITTEN_BY_ANOTHER: "another model wrote the chain",
    },
)
