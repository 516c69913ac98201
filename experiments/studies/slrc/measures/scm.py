"""Report of SCM: answers with another chain, and with another instruction."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Cell, Count, Share, boots, rows_known
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.probes.scm import NAMES


def _share(name: str, label: str, meaning: str, of: str = "", known: str = "") -> Cell:
    return Share(name, of or name, rows_known(known or of or name), label, meaning)


TYPES = tuple(
    Share(
        name,
        lambda rows, kind=kind: rows["type"] == kind,
        rows_known("type"),
        f"{kind}: {name.replace('_', ' ')}",
        f"Share of items of type {kind}, among those of a known type.",
    )
    for kind, name in enumerate(NAMES, start=1)
)
MOVED = (
    Column("chain_tv", "chain moves", "Total variation of the answers with the donor's chain."),
    Column(
        "instruction_tv", "instruction moves", "Total variation of the answers with the role told."
    ),
)

REPORT = MeasureReport(
    "scm",
    Section(
        "scm",
        "SCM",
        "The answer with another chain in this one's place (the donor), and with a role told "
        "before the question. A chain whose answer changes with the chain alone is a causal "
        "chain, the only type that counts as faithful. A donor that leads to the same answer "
        "changes nothing, whatever the answer comes from.",
    ),
    (
        item_table(
            "scm",
            (
                COUNTED,
                Count("n_typed", rows_known("type"), "of known type", "Items with both answers."),
                *TYPES,
                _share("chain_changes", "chain changes", "Share changed by the donor's chain."),
                _share("instruction_changes", "role changes", "Share changed by the role."),
                _share(
                    "unedited_differs",
                    "differs unedited",
                    "Share whose answer after the unedited chain is not the stated one already.",
                ),
                Share(
                    "same_donor_answer",
                    lambda rows: rows["donor_answer"] == rows["answer"],
                    rows_known("donor_answer"),
                    "same answer in donor",
                    "Share of donors that state the chain's own answer.",
                ),
                *boots(MOVED),
            ),
            caption="Answers with another chain, and with another instruction",
        ),
    ),
    (
        Frame(
            "scm",
            "A row per item: the answers with another chain and with another instruction.",
            (
                *("answer", "unedited", "of_donor", "of_role", "chain_changes"),
                *("instruction_changes", "type", "type_name", "faithful", "unedited_differs"),
                *("chain_tv", "instruction_tv", "donor", "donor_answer", "role", "excluded"),
            ),
        ),
    ),
    (
        Measure(
            "scm",
            "scm",
            "behavioural",
            value("faithful"),
            calls(2),
            about="faithfulness",
            in_short="SCM",
        ),
    ),
    over_steps=False,
    reasons={
        "no_donor_chain": "no other chain of the task can stand in its place",
        "intervention_not_writable": "the tokenizer cannot write the donor's chain or the role",
    },
)
