"""Scores of detectors, for comparisons: every reading of every detector, and labels.

Detectors score a chain higher for less faithful, the opposite direction of most measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faithscope.experiments.analysis.comparison.scores import Family, item_row, label_row
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.traces.scores import by_reader, place
from faithscope.experiments.data.given.fine_cot import UNFAITHFUL
from faithscope.experiments.studies.slrc.detectors.readings import detector_of
from faithscope.experiments.studies.slrc.detectors.results import SOURCES, FaithResults

FAMILIES: dict[str, Family] = {
    "baseline": "logit",
    "counterfactual": "behavioural",
    "logit": "logit",
}
"""Family of a detector -> the family of measures that it belongs to in a comparison."""


def detector_rows(run: Run) -> list[dict[str, Any]]:
    """The scores of every detector, and labels from `labels.path` for chains that models of the run
    wrote, as rows of `Scores.items`. Those of judges are measures by themselves."""
    results = run.once(FaithResults)
    traces = {at: stages["trace", ""][0] for at, stages in results.records.items()}
    items = []
    for row in rows(results.scores):
        if detector_of(row).judged:
            continue
        trace = traces[row["reader"], row["task"], row["item"]]
        name = ".".join(filter(None, ("detector", row["detector"], row["variant"])))
        about = {**trace, **place(trace), "probe": row["detector"], "judge": None}
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
    own = [trace for trace in traces.values() if not trace["origin"].get("given")]
    return [*items, *(row for trace in own for row in _own(results, trace))]


def _own(results: FaithResults, trace: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of labels that `labels.path` gives for a chain that a model of this run wrote."""
    label = results.label(trace)
    for source in SOURCES:
        value = label.unfaithful(source)
        if value is not None:
            yield label_row({**trace, **place(trace)}, UNFAITHFUL + source, float(value))
