"""What detectors and annotators say of a chain, for the view of an item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from faithscope.experiments.analysis.html import HtmlTable, markup, table_of
from faithscope.experiments.analysis.item_view import ItemView
from faithscope.experiments.analysis.page import Block, Grid, Step
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.traces.items import numbered
from faithscope.experiments.data.principles import BY_ID
from faithscope.experiments.studies.slrc.detectors.readings import detector_of
from faithscope.experiments.studies.slrc.detectors.results import FaithResults, Place

_LABELS = {True: "unfaithful", False: "faithful", None: "no label"}


def described(view: ItemView, run: Run, at: Place, marks: bool) -> ItemView:
    """The view of a trace with what annotators say of it, and every detector's finding.

    Args:
        marks: whether steps that annotators name are marked; false where steps have marks of edits.
    """
    results = run.once(FaithResults)
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
    grid: list[Block] = [Grid(_grid(scores), "Detectors")] if scores else []
    return replace(
        view,
        facts=[*view.facts, *_facts(about)],
        steps=steps if marks else view.steps,
        below=[*view.below, *grid],
    )


def _facts(about: Mapping[str, Any]) -> Iterator[str]:
    unfaithful = about["unfaithful"]
    label = _LABELS[unfaithful if isinstance(unfaithful, bool) else None]
    principles = ", ".join(BY_ID[i].name for i in about["principles"])
    why = " ".join(filter(None, (principles and f"({principles})", about["reason"])))
    yield markup("label: <strong>{}</strong> {}", label, why)


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
