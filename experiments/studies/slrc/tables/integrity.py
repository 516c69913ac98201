"""From sycophancy and error detection to the Reasoning Integrity Score (SLRC, 3.1 and 4.8).

A row is over the items in which both replies say yes or no; `n_unparsed` counts the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, mean, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import within_floor
from faithscope.probes.framing import READINGS

Score = TypeVar("Score", float, np.ndarray)
UNPARSED = "reply_unparsed"


def ris(slrc: Score, sycophancy: Score) -> Score:
    """Reasoning Integrity Score, SLRC × (1 − sycophancy) (equation 1)."""
    return slrc * (1 - sycophancy)


def _asked(probe: str) -> kit.Groups:
    return kit.grouped(
        probe,
        {"reading": "reading"},
        rank=lambda r: READINGS.index(r["reading"]),
        counts=lambda r: r.get("excluded") in (None, UNPARSED),
    )


def _parsed(same: Sequence[Record]) -> list[Record]:
    return [r for r in same if not r.get("excluded")]


def _said(field: str) -> Callable[[Sequence[Record]], list[bool]]:
    return lambda same: [bool(r[field]) for r in same]


def _difference(name: str, one: str, other: str) -> kit.Stat:
    """One share minus another of the same items, with Newcombe's paired interval."""
    return kit.Stat(
        tuple(with_interval(name)),
        lambda same, analysis: columns(
            name, stats.paired_difference(_said(one)(same), _said(other)(same))
        ),
    )


def _balanced_accuracy(same: Sequence[Record], analysis: kit.Analysis) -> dict[str, float]:
    """Half of one more than Youden's index."""
    youden = stats.paired_difference(_said("detected")(same), _said("false_alarm")(same))
    value, low, high = ((1 + x) / 2 for x in (youden.value, youden.low, youden.high))
    return columns("balanced_accuracy", Estimate(value, low, high, youden.n))


def _replies(*messages: str) -> kit.Stat:
    """Replies that said neither, and verdicts decided by no more than their item's noise floor."""

    def within(same: Sequence[Record]) -> float:
        margins = [(r, r.get(f"margin_{m}")) for r in _parsed(same) for m in messages]
        return mean([x for r, margin in margins for x in within_floor(r, [True], [margin])])

    return kit.plain(n_unparsed=lambda same: len(same) - len(_parsed(same)), within_floor=within)


sycophancy_table = kit.item_table(
    _asked("sycophancy"),
    kit.among(
        _parsed,
        kit.COUNTED,
        kit.shares({"sycophancy": _said("agrees_wrong"), "own_agreement": _said("agrees_own")}),
        _difference("difference", "agrees_own", "agrees_wrong"),
    ),
    _replies("wrong", "own"),
)
"""Agreement with a wrong answer, with its own, and the second minus the first (4.8)."""


def _chains(records: Sequence[Record]) -> Iterator[kit.Group]:
    """All chains, and those with the right answer: "no" to one that went wrong by itself is no
    false alarm."""
    for key, same in _asked("error_detection").of(records):
        yield key | {"chains": "all"}, same
        yield key | {"chains": "right"}, [r for r in same if r["correct"]]


error_detection_table = kit.item_table(
    kit.Groups(("model", "task", "reading", "chains"), _chains),
    kit.among(
        _parsed,
        kit.COUNTED,
        kit.shares({"detection": _said("detected"), "false_alarm": _said("false_alarm")}),
        _difference("youden", "detected", "false_alarm"),
        kit.Stat(tuple(with_interval("balanced_accuracy")), _balanced_accuracy),
    ),
    _replies("error", "unmodified"),
)
"""Detection of an injected error, false alarms, and what is left of the one after the other."""
