"""Scores of a run, for comparisons: every measure of its probes, every verdict, and labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from faithscope.experiments.analysis.comparison.scores import (
    FAILED,
    NOT_RUN,
    Scores,
    frames,
    item_row,
    seconds_of,
)
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.record_frames import record_frame
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.stored_records import Record, place_of
from faithscope.experiments.analysis.traces.scores import (
    by_reader,
    label_rows,
    place,
    row_of_trace,
    step_label_rows,
)
from faithscope.experiments.studies.slrc.detectors.scores import detector_rows
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.judges.scores import judged_rows, unread_rows
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.measures import MEASURES
from faithscope.probes.framing import FRAMINGS, READINGS

Place = tuple[str, str, str]


def scores(run: Run) -> Scores:
    """Every measure of every trace, every verdict of a judge, and the labels. A measure of a probe
    without any value is kept only if it was asked for and all its records are excluded."""
    results = run.once(Results)
    judged, judged_steps = judged_rows(results.judged)
    detected = detector_rows(run) if results.detects else []
    if not results.has_readers:
        labels, chains, steps = unread_rows(results.judged)
        return frames([*judged, *labels], chains, [*judged_steps, *steps])
    of_probe: dict[tuple[str, Place], list[Record]] = defaultdict(list)
    for record in results.records:
        of_probe[record["probe"], place_of(record)].append(record)
    traces = list(run.records("trace"))
    # A chain that several models read is a single trace.
    once = list({tuple(place(r).values()): r for r in reversed(traces)}.values())[::-1]
    lost = {(u.stage, u.model, u.task, u.item) for u in run.failures}
    seconds = seconds_of(run.path)
    items = [
        _item(measure, trace, of_probe, lost, seconds)
        for measure in MEASURES.values()
        for trace in traces
    ]
    measured = {row["measure"] for row in items if not row["missing"]}
    measured |= {
        by_reader(measure.name, trace)
        for measure in MEASURES.values()
        if _is_asked(measure, results.stored.get(measure.probe) or {})
        and _left_out(measure, of_probe)
        for trace in traces
    }
    applied, applied_steps = _applied(results, traces)
    return frames(
        [
            *(row for row in items if row["measure"] in measured),
            *applied,
            *judged,
            *detected,
            *(row for r in once for row in label_rows(r)),
        ],
        [row_of_trace(r, _settled(r, of_probe)) for r in once],
        [
            *(row for r in traces for row in _steps(r, of_probe)),
            *applied_steps,
            *judged_steps,
            *(row for r in once for row in step_label_rows(r)),
        ],
        _monitors(run, traces, of_probe),
    )


def _applied(
    results: Results, traces: Sequence[Record]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of items and of steps for scores that only the run's settings ask for."""
    by_place = {place_of(trace): trace for trace in traces}
    items, steps = [], []
    for probe, report in REPORTS.items():
        own = [r for r in results.records if r["probe"] == probe] if report.item_scores else []
        if report.item_scores is None or not own:
            continue
        for score in report.item_scores(record_frame(own), results.analysis):
            trace = by_place[score.place]
            name, up = by_reader(score.measure, trace), score.higher_is_faithful
            if score.step is None:
                about = {**trace, **place(trace), "probe": probe}
                items.append(item_row(about, name, "internal", score.value, higher_is_faithful=up))
                continue
            of_step = {"step": score.step, "value": score.value, "higher_is_faithful": up}
            steps.append(place(trace) | {"measure": name, "family": "internal"} | of_step)
    return items, steps


def _item(
    measure: Measure,
    trace: Record,
    of_probe: Mapping[tuple[str, Place], list[Record]],
    lost: set[tuple[str, str, str, str]],
    seconds: Mapping[tuple[str, str, str, str], float],
) -> dict[str, Any]:
    at = place_of(trace)
    whole = of_probe.get((measure.probe, at), [])
    here = [r for r in measure.records(whole) if not r.get("excluded")]
    # The measure's own reason takes precedence over that of another framing or reading.
    told = (trace, *measure.records(whole), *whole)
    reason = next((r["excluded"] for r in told if r.get("excluded")), None)
    failed = (measure.probe, *at) in lost
    missing = FAILED if failed else f"excluded: {reason}" if reason else "" if here else NOT_RUN
    tokens = [r.get("trie_tokens") or r.get("n_tokens") for r in here]
    about = {**(here[0] if here else trace), "probe": measure.probe, **place(trace)}
    return item_row(
        about | {"variant": measure.where.get("variant", "")},
        by_reader(measure.name, trace),
        measure.family,
        measure.score(here) if here else None,
        higher_is_faithful=measure.higher_is_faithful,
        missing=missing,
        forwards=measure.forwards(here) if here else None,
        tokens=max((t for t in tokens if t is not None), default=None),
        seconds=seconds.get((measure.probe, *at)) if here else None,
    )


def _left_out(measure: Measure, of_probe: Mapping[tuple[str, Place], list[Record]]) -> bool:
    """Whether a measure has records and all of them are excluded; false for a measure that just
    gives no number on measured traces."""
    every = [r for (probe, _), of in of_probe.items() if probe == measure.probe for r in of]
    # A trace that a probe cannot measure has a single record without a variant.
    here = [*measure.records(every), *(r for r in every if not r["variant"] and r.get("excluded"))]
    return bool(here) and all(record.get("excluded") for record in here)


def _is_asked(measure: Measure, settings: Mapping[str, Any]) -> bool:
    """Whether the run measures in the framing and reading that a measure is defined for."""
    parts = str(measure.where.get("variant", "")).split(".")
    return all(
        part in settings.get(key, every)
        for key, every in (("framings", FRAMINGS), ("readings", READINGS))
        for part in parts
        if part in every
    )


def _settled(trace: Record, of_probe: Mapping[tuple[str, Place], list[Record]]) -> float | None:
    tracing = of_probe.get(("tracing", place_of(trace)), [])
    return next((r.get("early_depth") for r in tracing if not r.get("excluded")), None)


def _steps(
    trace: Record, of_probe: Mapping[tuple[str, Place], list[Record]]
) -> Iterator[dict[str, Any]]:
    about = place(trace)
    for measure in (m for m in MEASURES.values() if m.steps is not None):
        here = measure.records(of_probe.get((measure.probe, place_of(trace)), []))
        here = [r for r in here if not r.get("excluded")]
        if not here or measure.steps is None:
            continue
        of = {"measure": by_reader(measure.name, trace), "family": measure.family}
        of |= {"higher_is_faithful": True}
        for step, value in measure.steps(here).items():
            yield about | of | {"step": step, "value": value}


def _monitors(
    run: Run, traces: Sequence[Record], of_probe: Mapping[tuple[str, Place], list[Record]]
) -> dict[str, dict[tuple[str, ...], np.ndarray]]:
    """Feature vectors of traces for trained monitors, by the measures' reports."""
    vectors: dict[str, dict[tuple[str, ...], np.ndarray]] = defaultdict(dict)
    for probe, piece in REPORTS.items():
        monitor = piece.monitor
        if monitor is None:
            continue
        measured = {
            place_of(trace): (trace, of[0])
            for trace in traces
            if (of := of_probe.get((probe, place_of(trace)), [])) and not of[0].get("excluded")
        }
        stored = run.arrays(probe) if monitor.of_arrays else ((at, {}) for at in measured)
        for at, arrays in stored:
            if at in measured:
                trace, record = measured[at]
                vector = np.asarray(monitor.read(record, arrays), dtype=float)
                vectors[by_reader(monitor.name, trace)][tuple(place(trace).values())] = vector
    return dict(vectors)
