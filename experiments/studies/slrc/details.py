"""Explorer details of each trace: the answers of all its branches, and what probes read along
it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from faithscope.experiments.analysis.comparison.details import Detail, Details
from faithscope.experiments.analysis.page import Block, Bullets
from faithscope.experiments.analysis.records import Place, Record, place_of
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.engine import arrays
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.show import facts, trace_block


def details(run: Run) -> Details:
    """Details of every trace; a chain that several models read has one entry per reader."""
    drawn = [s.probe for s in REPORTS.values() if s.of_trace is not None]
    for trace in run.records("trace"):
        yield tuple(place(trace).values()), partial(_detail, run, place_of(trace), drawn)


def _detail(run: Run, at: Place, drawn: Iterable[str]) -> Detail:
    def of(stage: str) -> list[Record]:
        key = (stage, *at)
        return list(run.index.records(key)) if run.index.is_whole(key) else []

    (trace,), branches = of("trace"), of("slrc")
    pictures = []
    for probe in drawn:
        draw = REPORTS[probe].of_trace
        assert draw is not None
        whole = arrays.of_unit(run.index, (probe, *at))
        for record in of(probe):
            # Array names of a variant start with the variant's name (`engine.arrays.take_arrays`).
            prefix = f"{record['variant']}/" if record["variant"] else ""
            own = {n.removeprefix(prefix): x for n, x in whole.items() if n.startswith(prefix)}
            pictures += draw(record, own)
    blocks: list[Block]
    blocks = [trace_block([trace, *branches])] if branches else [Bullets(list(facts(trace, [])))]
    question = trace["question"]
    options = question.get("options")
    answers = [f"Answers: {', '.join(options)}"] if options else []
    return Detail(
        "\n".join([question["text"], *answers]),
        trace.get("answer"),
        question.get("gold"),
        [step["text"] for step in trace["steps"]],
        blocks,
        pictures,
    )
