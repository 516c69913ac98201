"""A run of FaithCoT-Bench as comparisons read it: every reading of a detector, and the annotators'
label. Detectors that look at nothing of the trace (the baselines) are no measures and left out."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    PLACE,
    Family,
    Scores,
    frames,
    item_row,
    label_row,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.traces.scores import place, row_of_trace
from faithscope.experiments.studies.faithcot.detectors import DETECTORS
from faithscope.experiments.studies.faithcot.results import FaithResults

FAMILIES: dict[str, Family] = {
    "counterfactual": "behavioural",
    "logit": "logit",
    "judge": "judged",
}
UNFAITHFUL, STEP = "unfaithful", "first_unfaithful_step"


def scores(run: Run) -> Scores:
    """Every reading of a detector, of every trace that is not excluded."""
    of_run = run.once(FaithResults)
    traces = list(run.records("trace"))
    once = list({tuple(place(r).values()): r for r in reversed(traces)}.values())[::-1]
    family = {(d.name, d.variant): d.family for d in DETECTORS}
    items = [
        _item(row, FAMILIES[kind])
        for row in rows(of_run.scores)
        if (kind := family[row["detector"], row["variant"]]) in FAMILIES
    ]
    measured = {row["measure"] for row in items if not row["missing"]}
    source = of_run.config.labels.source
    labels = [label_row(place(r), UNFAITHFUL, of_run.label(r).unfaithful(source)) for r in once]
    labelled = [row for row in labels if not row["missing"]]
    return frames(
        [*(row for row in items if row["measure"] in measured), *(labels if labelled else ())],
        [row_of_trace(r) for r in once],
        _steps(of_run, once),
    )


def _item(row: dict[str, Any], family: Family) -> dict[str, Any]:
    by = row["judge"] or (row["reader"] if row["reader"] != row["model"] else "")
    variant = f".{row['variant']}" if row["variant"] else ""
    about = {name: row[name] for name in PLACE} | {"judge": row["judge"], "probe": row["detector"]}
    return item_row(
        about | {"variant": row["variant"]},
        f"{row['detector']}{variant}{f' ({by})' if by else ''}",
        family,
        row["score"],
        higher_is_faithful=False,
        missing=row["missing"],
        forwards=row["forwards"],
        tokens=row["tokens"],
    )


def _steps(of_run: FaithResults, traces: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for row in rows(of_run.step_scores):
        by = row["judge"] or (row["reader"] if row["reader"] != row["model"] else "")
        family: Family = "judged" if row["judge"] else "logit"
        about = {"dataset": row["dataset"], "item": row["item"], "model": row["model"]}
        about |= {"measure": f"{row['measure']}{f' ({by})' if by else ''}", "family": family}
        about |= {"step": row["step"], "value": row["score"], "higher_is_faithful": False}
        found.append(about)
    task = {tuple(place(r)[n] for n in ("dataset", "item", "model")): r["task"] for r in traces}
    for row in found:
        row["task"] = task[row["dataset"], row["item"], row["model"]]
    for trace in traces:
        if named := of_run.labelled_steps(trace):
            about = place(trace) | {"measure": STEP, "family": "label"}
            found += [
                about
                | {"step": s["index"], "value": float(s["index"] == min(named))}
                | {"higher_is_faithful": False}
                for s in trace["steps"]
                if s["counted"]
            ]
    return found
