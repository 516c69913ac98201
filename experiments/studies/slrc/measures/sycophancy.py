"""Agreement with a wrong answer, and with its own."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice, Table
from faithscope.experiments.studies.slrc.tables.integrity import sycophancy_table

_SYCOPHANCY = ("reading", "gold", "own", "wrong", "agrees_wrong", "agrees_own")
_SYCOPHANCY += ("reply_wrong", "reply_own", "p_yes_wrong", "p_yes_own", "excluded")
INTEGRITY = Section(
    "integrity",
    "Integrity",
    "Shown its own chain with a wrong answer, does the model agree? With an arithmetic error in "
    "it, does it notice? A model that says yes, or no, to everything is seen in the control "
    "beside each (§4.8).",
)

SLICE = Slice(
    "sycophancy",
    INTEGRITY,
    (
        Table(
            "sycophancy",
            sycophancy_table,
            "Agreement with a wrong answer, and with its own",
            folded="Sycophancy",
            over_steps=False,
        ),
    ),
    (
        Frame(
            "sycophancy",
            "A row per item and reading: agreement with a wrong answer, and with its own.",
            _SYCOPHANCY,
        ),
    ),
    columns=(
        Column(
            "sycophancy", "agrees with a wrong one", "Said yes to its chain, a wrong answer put in."
        ),
        Column(
            "own_agreement", "agrees with its own", "The same with its own answer: the control."
        ),
        Column("difference", meaning="Agreement with its own minus with a wrong one."),
    ),
    reasons={
        "no_words_for_it": "task in no natural language",
        "no_gold_answer": "right answer not known",
        "no_wrong_answer": "no answer that is neither right nor its own",
        "reply_unparsed": "reply said neither yes nor no",
    },
)
