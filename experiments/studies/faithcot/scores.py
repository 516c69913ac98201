"""Scores of a run of FaithCoT-Bench, for comparisons: every reading of every detector, and labels.

Detectors score a chain higher for less faithful, the opposite direction of most measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    Family,
    Scores,
    frames,
    item_row,
    label_row,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.traces.scores import (
    by_reader,
    label_rows,
    place,
    row_of_trace,
    step_label_rows,
)
from faithscope.experiments.data.given.fine_cot import UNFAITHFUL
from faithscope.experiments.studies.faithcot.detectors import detector_of
from faithscope.experiments.studies.faithcot.results import SOURCES, FaithResults

FAMILIES: dict[str, Family] = {
    "baseline": "logit",
    "counterfactual": "behavioural",
    "logit": "logit",
    "judge": "judged",
}
"""Family of a detector -> the family of measures that it belongs to in a comparison."""


def scores(run: Run) -> Scores:
    """Every detector's scores, and the labels that came with the chains or from `labels.path`."""
    results = run.once(FaithResults)
    traces = [stages["trace", ""][0] for stages in results.records.values()]
    by_place = {(t["model"], t["task"], t["item"]): t for t in traces}
    items = []
    for row in rows(results.scores):
        trace = by_place[row["reader"], row["task"], row["item"]]
        name = ".".join(filter(None, (row["detector"], row["variant"])))
        name = f"{name} ({row['judge']})" if row["judge"] else name
        judge = row["judge"] or None
        about = {**trace, **place(trace), "probe": row["detector"], "judge": judge}
        items.append(
            item_row(
                {**about, "variant": row["variant"]},
                by_reader(name, trace),
                FAMILIES[detector_of(row).family],
                row["score"],
                higher_is_faithful=False,
                missing=row["missing"],
                forwards=row["forwards"] or row["calls"],
                tokens=row["tokens"],
            )
        )
    # A chain that several models read is a single trace.
    once = list({tuple(place(t).values()): t for t in reversed(traces)}.values())[::-1]
    given = {tuple(place(t).values()) for t in once if t["origin"].get("given")}
    labels = [row for t in once for row in label_rows(t)]
    labels += [r for t in once if tuple(place(t).values()) not in given for r in _own(results, t)]
    return frames(
        [*items, *labels],
        [row_of_trace(t) for t in once],
        [row for t in once for row in step_label_rows(t)],
    )


def _own(results: FaithResults, trace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of labels that `labels.path` gives for a chain that a model of this run wrote."""
    label = results.label(trace)
    for source in SOURCES:
        value = label.unfaithful(source)
        if value is not None:
            yield label_row({**trace, **place(trace)}, UNFAITHFUL + source, float(value))
