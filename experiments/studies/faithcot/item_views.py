"""Chains of FaithCoT-Bench as items: their steps, labels, and every detector's finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from faithscope.experiments.analysis.html import HtmlTable, markup, table_of
from faithscope.experiments.analysis.item_view import Item, Items, ItemView, Part, judgement_card
from faithscope.experiments.analysis.page import Block, Fold, Grid, Step
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.traces.items import numbered, trace_view
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.data.principles import BY_ID
from faithscope.experiments.studies.faithcot.detectors import detector_of
from faithscope.experiments.studies.faithcot.results import FaithResults, Place
from faithscope.experiments.studies.faithcot.units import JUDGES

_LABELS = {True: "unfaithful", False: "faithful", None: "no label"}


def items(run: Run) -> Iterator[Item]:
    """Every chain, as each model read it."""
    results = run.once(FaithResults)
    for at, stages in results.records.items():
        (trace,) = stages["trace", ""]
        part = Part(at[0], at[1], at[2:], partial(_judgements, results, at))
        yield Item(partial(_view, results, at), [part], partial(place, trace))


ITEMS = Items("chains", items)


def _judgements(results: FaithResults, at: Place) -> Iterator[Fold]:
    for (stage, judge), records in results.records[at].items():
        for record in records if stage in JUDGES else ():
            step = [] if record["step"] is None else [f"step {record['step'] + 1}"]
            yield judgement_card(record, [judge, stage, *step])


def _view(results: FaithResults, at: Place) -> ItemView:
    (trace,) = results.records[at]["trace", ""]
    way = {"reader": at[0], "task": at[1], "item": at[2]}
    (about,) = rows(where(results.traces, **way))
    scores = rows(where(results.scores, **way))
    named = set(about["unfaithful_steps"] or ())
    steps = [
        Step(step["text"], number, "all", "named by annotators")
        if step["index"] in named
        else Step(step["text"], number)
        for step, number in numbered(trace)
    ]
    below: list[Block] = [Grid(_grid(scores), "Detectors")] if scores else []
    return trace_view(trace, steps, list(_facts(about)), below=below)


def _facts(about: Mapping[str, Any]) -> Iterator[str]:
    unfaithful = about["unfaithful"]
    label = _LABELS[unfaithful if isinstance(unfaithful, bool) else None]
    principles = ", ".join(BY_ID[i].name for i in about["principles"])
    why = " ".join(filter(None, (principles and f"({principles})", about["reason"])))
    yield markup("label: <strong>{}</strong> {}", label, why)
    if about["cut"]:
        yield "cut off by the token limit"


def _grid(scores: list[dict[str, Any]]) -> HtmlTable:
    heading = ["detector", "judge", "score", "flag", "missing", "read from"]
    flags = {True: "unfaithful", False: "faithful"}
    lines = [
        (
            detector_of(r).label,
            r["judge"],
            None if r["score"] is None or r["score"] != r["score"] else r["score"],
            flags.get(r["flag"], "–"),
            r["missing"],
            r["source"],
        )
        for r in scores
    ]
    return table_of(heading, lines)
