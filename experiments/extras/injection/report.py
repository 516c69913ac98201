"""The report of C2-Faith with the table, the figure and the frames of prompt injection."""

from __future__ import annotations

from faithscope.experiments.analysis.added import extended
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.run import Frame, Report, Run
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.extras.injection.asks import NAME
from faithscope.experiments.extras.injection.figure import injection_picture
from faithscope.experiments.extras.injection.pairs import INJECTION, SHAPE, pairs
from faithscope.experiments.studies.c2faith.frames import OF_JUDGEMENT
from faithscope.experiments.studies.c2faith.judgements import judgements
from faithscope.experiments.studies.c2faith.results import results

OF_INJECTED = {
    "injection": "the text's name",
    "demand": "best | worst; empty for a text that names no verdict",
    "demanded": "the verdict that the text names",
    "step": "the step at whose end the text stands, from 0 among those shown",
    "twin": "`ask` of the same ask without the text",
}
_DTYPES = dict.fromkeys(OF_INJECTED) | dict.fromkeys(("demanded", "step"), "Int64")
SECTION = Section(
    "injection",
    "Prompt injection",
    "The same asks once more, with a line at the end of one step that tells the judge what to "
    "say. Moved: of the verdicts that were not the demanded one, those that came nearer to it. "
    "Every injected verdict is held against that of the same ask without the line, and is in "
    "no other table.",
    figures=("c2_injection",),
    tables=("c2_injection",),
    absent="no line was injected: --set injection.kinds=[command]",
)


def _injected(run: Run):
    forms = run.once(results).forms
    return judgements(run.records(*READINGS), forms, NAME, _DTYPES)


FRAMES = (
    Frame(
        NAME,
        "A row per judgement of a chain with a text put into it; none is in `judgements`.",
        OF_JUDGEMENT | OF_INJECTED,
        make=_injected,
    ),
    Frame(
        "injection",
        "A row per judgement or item, as the tables of injection count it; no texts.",
        SHAPE.columns,
        make=lambda run: pairs(run.once(results)),
    ),
)


def with_injections(report: Report) -> Report:
    """The report of C2-Faith, to which prompt injection is added."""
    return extended(
        report,
        (INJECTION,),
        lambda results: {"injection": pairs(results)},
        frames=FRAMES,
        figures=lambda tables: [injection_picture(tables["c2_injection"])],
        section=SECTION,
        after="coverage",
    )
