"""The labels of a run by the names that comparisons use, and the names that a config may give.

A label is a column of a given chain, an outcome of a measure (`hints_followed`), the score of a
measure or of a judge, or `correct`: whether the chain's answer is right. Steps have labels of given
chains, credits of measures, and verdicts of judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.traces.scores import (
    NAMED_STEP,
    PLANTED,
    label_rows,
    step_label_rows,
)
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.studies.slrc.detectors.results import FaithResults
from faithscope.experiments.studies.slrc.judges.asking import JudgedUnits
from faithscope.experiments.studies.slrc.judges.chains import name_of
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.experiments.studies.slrc.judges.verdicts import measured
from faithscope.experiments.studies.slrc.label_probes.values import Lengths, RunLabels
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.measures import MEASURES
from faithscope.probes.record import is_right

DETECTOR = "detector"
"""Beginning of the names of detectors' scores."""
CORRECT = "correct"
"""Label of every chain whose answer and right answer are known, unless its file has one of the
name."""


def run_labels(run: Run, records: Sequence[Record]) -> RunLabels:
    """All labels of a run.

    Args:
        records: of traces and probes; those that tables leave out say why in `excluded`.
    """
    traces = list(run.records("trace"))
    of_probe: dict[str, dict[Place, list[Record]]] = {}
    for r in records:
        if not r.get("excluded"):
            of_probe.setdefault(r["probe"], {}).setdefault(place_of(r), []).append(r)
    judged = run.once(JudgeResults)
    places = {name_of(t): place_of(t) for t in traces}
    chains: dict[str, Callable[[], Mapping[Place, Any]]] = {
        CORRECT: lambda: {place_of(t): is_right(t["answer"], t["question"]["gold"]) for t in traces}
    }
    steps: dict[str, Callable[[], Mapping[Place, Mapping[int, Any]]]] = {}
    for m in MEASURES.values():
        if m.probe in of_probe:
            chains[m.name] = partial(_scores, m, of_probe[m.probe], m.score)
            if m.steps is not None:
                steps[m.name] = partial(_scores, m, of_probe[m.probe], m.steps)
    chains |= _by_name(
        (places[name], label, value)
        for name, of in judged.outcomes.items()
        if name in places
        for label, value in of.items()
    )
    chains |= _by_name(
        (places[row["chain"]], judge_label(row), _verdict(row)) for row in judged.verdicts
    )
    steps |= _by_step(
        (places[row["chain"]], judge_label(row), row["step"], row["score"]) for row in judged.steps
    )
    if stored_config(run.path).get("detectors") is not None:
        chains |= _by_name(
            ((row["reader"], row["task"], row["item"]), detector_label(row), row["score"])
            for row in rows(run.once(FaithResults).scores)
            if not row["judge"]
        )
    chains |= _by_name(
        (place_of(t), row["measure"], row["value"])
        for t in traces
        for row in label_rows(t)
        if not row["missing"]
    )
    steps |= _by_step(
        (place_of(t), row["measure"], row["step"], row["value"])
        for t in traces
        for row in step_label_rows(t)
    )
    # a column stands as it came: `label_rows` has those alone that say yes or no
    given = [(place_of(t), of) for t in traces if (of := t["origin"].get("given"))]
    chains |= _by_name((at, n, x) for at, of in given for n, x in of.get("labels", {}).items())
    steps |= _by_step(
        (at, name, i, x)
        for at, of in given
        for name, values in of.get("step_labels", {}).items()
        for i, x in enumerate(values)
    )
    return RunLabels(chains, steps, {place_of(t): _lengths(t) for t in traces})


def judge_label(row: Mapping[str, Any]) -> str:
    """Name of a judge's verdict among labels: that of its score in comparisons."""
    return f"{row['form']} {row['reading']} ({row['judge']})"


def detector_label(row: Mapping[str, Any]) -> str:
    """Name of a detector's score among labels: that of comparisons."""
    return ".".join(filter(None, (DETECTOR, row["detector"], row["variant"])))


def _verdict(row: Mapping[str, Any]) -> Any:
    """The score of a verdict; the verdict itself where it is a text of a form of one's own."""
    return row["rating"] if isinstance(row["rating"], str) else row["score"]


def _scores(
    measure: Measure, of: Mapping[Place, list[Record]], read: Callable[[Sequence[Record]], Any]
) -> Mapping[Place, Any]:
    own = ((place, measure.records(records)) for place, records in of.items())
    return {place: read(records) for place, records in own if records}


def _by_name(
    values: Iterable[tuple[Place, str, Any]],
) -> dict[str, Callable[[], Mapping[Place, Any]]]:
    found: dict[str, dict[Place, Any]] = {}
    for place, name, value in values:
        found.setdefault(name, {})[place] = value
    return {name: partial(_itself, of) for name, of in found.items()}


def _by_step(
    values: Iterable[tuple[Place, str, int, Any]],
) -> dict[str, Callable[[], Mapping[Place, Mapping[int, Any]]]]:
    found: dict[str, dict[Place, dict[int, Any]]] = {}
    for place, name, step, value in values:
        found.setdefault(name, {}).setdefault(place, {})[step] = value
    return {name: partial(_itself, of) for name, of in found.items()}


def _itself(values: Any) -> Any:
    return values


def _lengths(trace: Record) -> Lengths:
    steps = {s["index"]: s["tokens"][1] - s["tokens"][0] for s in trace["steps"] if s["counted"]}
    return Lengths(len(trace["reasoning_ids"]), steps)


def names_of(
    probes: Iterable[str], judged: JudgedUnits, given: Iterable[str], given_steps: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Names of the labels of chains, and of steps, that a planned run can have.

    Args:
        given: names of labels that came with its chains.
        given_steps: names of labels that came with their steps.
    """
    probes = set(probes)
    verdicts = [
        judge_label({"form": of.name, "reading": asked.reading, "judge": asked.judge})
        for asked in judged.stages.values()
        for of in measured(judged.forms[asked.form], asked.reading)
    ]
    outcomes = (r.outcomes for p, r in REPORTS.items() if p in probes and r.outcomes is not None)
    of_run = [m for m in MEASURES.values() if m.probe in probes]
    chains = [*(name for of in outcomes for name in of.names), *(m.name for m in of_run)]
    firsts = (f"first_{x}" for n in given_steps for x in (f"{n}_step", f"step_not_{n}"))
    steps = [*firsts, NAMED_STEP, *(m.name for m in of_run if m.steps is not None)]
    return (
        [*dict.fromkeys([*given, CORRECT, *chains, *verdicts, PLANTED])],
        [*dict.fromkeys([*given_steps, *steps, *verdicts])],
    )
