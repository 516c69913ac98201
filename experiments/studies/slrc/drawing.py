"""Traces as HTML in a notebook: their steps, coloured by the labels that came with them or by what
a probe found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from faithscope.experiments.analysis.comparison.scores import says_faithful
from faithscope.experiments.analysis.exports.notebook import html_of
from faithscope.experiments.analysis.html import html_table, markup
from faithscope.experiments.analysis.item_view import ItemView
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.page import MARKS, Block, Grid, Paragraph, Step
from faithscope.experiments.analysis.traces.items import numbered, trace_view
from faithscope.experiments.data.traces import to_record
from faithscope.experiments.engine.traces.measured import Measured
from faithscope.experiments.numerals import significant
from faithscope.experiments.studies.slrc import item_views
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.stages import low_mass
from faithscope.interventions.trace import Trace
from faithscope.probes.record import Record

GREAT, SMALL = 0.5, 0.1
"""Shares of the greatest effect in a chain at which a step counts as greatly or slightly
effective."""
AGAINST, FOR = "all", "none"
"""Levels of a step that its label speaks against, and of one that it speaks for."""


def html(trace: Trace, records: Sequence[Record] = ()) -> str:
    """A trace as the output of a cell, with its steps and, of a probe, the table of its numbers.

    Args:
        records: records of one probe of this trace, by which the steps are coloured; without any
            they are coloured by their labels.
    """
    if not records:
        return html_of([_labelled(trace).card(open=True)])
    measured = Measured(records)
    table = html_table(measured.numbers, {})
    return html_of(
        [
            Paragraph(measured.head, "quiet"),
            _measured(trace, records).card(open=True),
            Grid(table, "Numbers of the records"),
        ]
    )


def _labelled(trace: Trace) -> ItemView:
    """The trace with every step coloured by the labels that its file has for it."""
    record, given = to_record(trace), trace.origin.given
    labels = {} if given is None else given.step_labels
    steps = []
    for step, number in numbered(record):
        own = {n: x for n, of in labels.items() if (x := of[step["index"]]) is not None}
        said = ", ".join(f"{name}: {value}" for name, value in own.items())
        steps.append(Step(step["text"], number, _level_of_labels(own), said))
    edits = [edit.words for edit in trace.edits]
    chain = {} if given is None else given.labels
    labelled = [markup("label {}: <strong>{}</strong>", n, x) for n, x in chain.items()]
    return trace_view(record, steps, [*edits, *labelled])


def _level_of_labels(labels: Mapping[str, object]) -> str:
    for name, value in labels.items():
        if isinstance(value, bool) or value in (0, 1):
            return FOR if bool(value) == says_faithful(name) else AGAINST
    return "unknown"


def _measured(trace: Trace, records: Sequence[Record]) -> ItemView:
    """The trace with every step coloured by the probe's own measure of steps."""
    record, probe = to_record(trace), records[0]["probe"]
    if probe == item_views.PROBE:
        known = [{**r, "excluded": r.get("excluded") or low_mass(r, {})} for r in records]
        return item_views.view([record, *known])
    credits = dict(_credits(REPORTS[probe].measures if probe in REPORTS else (), records))
    if not credits:
        return trace_view(record, [Step(step["text"], n) for step, n in numbered(record)])
    # a measure that is zero at every step tells nothing apart
    leading = next((name for name, of in credits.items() if any(of.values())), next(iter(credits)))
    greatest = max(map(abs, credits[leading].values()))
    steps = []
    for step, number in numbered(record):
        at = step["index"]
        own = {name: of[at] for name, of in credits.items() if at in of}
        level = _level(own.get(leading), greatest)
        said = ", ".join(f"{name} {significant(value, 3)}" for name, value in own.items())
        mark = [(level, MARKS[level], significant(own[leading], 3))] if leading in own else []
        blocks: list[Block] = [said] if said else []
        steps.append(Step(step["text"], number, level, said, marks=mark, blocks=blocks))
    words = "Coloured by {}: {} at least half of the greatest effect, {} at least a tenth, {} less."
    legend = markup(words, leading, *(MARKS[level] for level in ("all", "some", "none")))
    return trace_view(record, steps, above=[Paragraph(legend, "quiet")])


def _credits(
    measures: Sequence[Measure], records: Sequence[Record]
) -> Iterator[tuple[str, dict[int, float]]]:
    for measure in measures:
        own = [r for r in measure.records(records) if not r.get("excluded")]
        if measure.steps is not None and own and (credits := measure.steps(own)):
            yield measure.name, credits


def _level(value: float | None, greatest: float) -> str:
    if value is None:
        return "unknown"
    share = abs(value) / greatest if greatest else 0.0
    return "all" if share >= GREAT else "some" if share >= SMALL else "none"
