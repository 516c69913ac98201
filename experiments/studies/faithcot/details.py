"""Explorer details of each chain: its detectors' findings, labels and judgements."""

from __future__ import annotations

from functools import partial

from faithscope.experiments.analysis.comparison.details import Detail, Details
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.data.traces import to_trace
from faithscope.experiments.studies.faithcot.results import FaithResults, Place
from faithscope.experiments.studies.faithcot.show import chain_block
from faithscope.experiments.studies.faithcot.units import shown_question


def details(run: Run) -> Details:
    results = run.once(FaithResults)
    for at, stages in results.records.items():
        yield tuple(place(stages["trace", ""][0]).values()), partial(_detail, results, at)


def _detail(results: FaithResults, at: Place) -> Detail:
    (trace,) = results.records[at]["trace", ""]
    question = trace["question"]
    return Detail(
        shown_question(to_trace(trace).question),
        trace.get("answer"),
        question.get("gold"),
        [step["text"] for step in trace["steps"]],
        [chain_block(results, at)],
    )
