"""Report of sycophancy: agreement with a wrong answer, and with the model's own (SLRC, 4.8).

It also holds what all yes-or-no questions share: a row is over the items in which both replies say
yes or no; `n_unparsed` counts the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Number, Numbers, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tables import Groups
from faithscope.experiments.analysis.tidy import columns, mean
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.tables.outcomes import within_floor
from faithscope.probes.framing import READINGS

UNPARSED = "reply_unparsed"


def asked(probe: str) -> Groups:
    """Groups of a probe's records by model, task and reading, replies that are neither yes nor no
    included."""
    return aggregates.grouped(
        probe,
        {"reading": "reading"},
        rank=lambda r: READINGS.index(r["reading"]),
        counts=lambda r: r.get("excluded") in (None, UNPARSED),
    )


def parsed(same: Sequence[Record]) -> list[Record]:
    return [r for r in same if not r.get("excluded")]


def outcomes_of(field: str) -> Callable[[Sequence[Record]], list[bool]]:
    return lambda same: [bool(r[field]) for r in same]


def difference(of: Column, one: str, other: str) -> Numbers:
    """Difference of two shares over the same items, with Newcombe's paired interval."""
    return Numbers(
        aggregates.with_intervals(of),
        lambda same, how: columns(
            of.name, stats.paired_difference(outcomes_of(one)(same), outcomes_of(other)(same))
        ),
    )


def unclear_replies(*messages: str) -> tuple[Number, Number]:
    """Number of replies that are neither yes nor no, and share of verdicts within their item's
    noise floor."""

    def within(same: Sequence[Record]) -> float:
        margins = [(r, r.get(f"margin_{m}")) for r in parsed(same) for m in messages]
        return mean([x for r, margin in margins for x in within_floor(r, [True], [margin])])

    return (
        Number(
            "n_unparsed",
            lambda same: len(same) - len(parsed(same)),
            "unparsed",
            "Items with a reply that says neither yes nor no.",
        ),
        Number(
            "within_floor",
            within,
            "verdicts within the floor",
            "Share of the verdicts decided by no more than the noise floor.",
        ),
    )


SYCOPHANCY = aggregates.item_table(
    "sycophancy",
    asked("sycophancy"),
    aggregates.among(
        parsed,
        aggregates.COUNTED,
        Share(
            "sycophancy",
            "agrees_wrong",
            label="agrees with a wrong one",
            meaning="Said yes to its chain, a wrong answer put in.",
        ),
        Share(
            "own_agreement",
            "agrees_own",
            label="agrees with its own",
            meaning="Said yes to its chain with its own answer: the control.",
        ),
        difference(
            Column("difference", meaning="Agreement with its own minus with a wrong one."),
            "agrees_own",
            "agrees_wrong",
        ),
    ),
    *unclear_replies("wrong", "own"),
    caption="Agreement with a wrong answer, and with its own",
    folded="Sycophancy",
)
"""Rates of agreement with a wrong answer and with the model's own, and their difference (4.8)."""

_SYCOPHANCY = ("reading", "gold", "own", "wrong", "agrees_wrong", "agrees_own")
_SYCOPHANCY += ("reply_wrong", "reply_own", "p_yes_wrong", "p_yes_own", "excluded")
INTEGRITY = Section(
    "integrity",
    "Integrity",
    "Shown its own chain with a wrong answer, does the model agree? With an arithmetic error in "
    "it, does it notice? A model that says yes, or no, to everything is seen in the control "
    "beside each (§4.8).",
)

REPORT = MeasureReport(
    "sycophancy",
    INTEGRITY,
    (SYCOPHANCY,),
    (
        Frame(
            "sycophancy",
            "A row per item and reading: agreement with a wrong answer, and with its own.",
            _SYCOPHANCY,
        ),
    ),
    over_steps=False,
    reasons={
        "no_words_for_it": "task in no natural language",
        "no_gold_answer": "right answer not known",
        "no_wrong_answer": "no answer that is neither right nor its own",
        "reply_unparsed": "reply said neither yes nor no",
    },
)
