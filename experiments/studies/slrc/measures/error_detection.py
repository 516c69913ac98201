"""Errors detected, and false alarms."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice, Table
from faithscope.experiments.studies.slrc.measures.sycophancy import INTEGRITY
from faithscope.experiments.studies.slrc.tables.integrity import error_detection_table

_ERRORS = ("reading", "correct", "step_text", "error_text", "rule", "detected", "false_alarm")
_ERRORS += ("reply_error", "reply_unmodified", "p_yes_error", "p_yes_unmodified", "excluded")

SLICE = Slice(
    "error_detection",
    INTEGRITY,
    (
        Table(
            "error_detection",
            error_detection_table,
            "Errors detected, and false alarms",
            folded="Error detection",
            over_steps=False,
        ),
    ),
    (
        Frame(
            "error_detection",
            "A row per item and reading: the error put in, whether it was seen, false alarms.",
            _ERRORS,
        ),
    ),
    columns=(
        Column(
            "chains", meaning="All, or those with the right answer: no false alarm is due then."
        ),
        Column("detection", meaning="Chains with an error put in that the model says is wrong."),
        Column("false_alarm", "false alarms", "The same chains without it, said to be wrong."),
        Column("youden", "Youden's index", "Detection minus false alarms."),
        Column("balanced_accuracy", meaning="Half of one more than Youden's index."),
    ),
    reasons={
        "no_calculation": "no calculation in the chain",
        "no_calculation_holds": "no right calculation in the chain",
    },
)
