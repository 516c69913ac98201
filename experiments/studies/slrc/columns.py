"""All table columns of the SLRC study, and reasons for leaving items out, in words."""

from faithscope.experiments.analysis.columns import Column, by_name
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.tables import declared
from faithscope.experiments.engine.tallies.reasons import WORDS
from faithscope.experiments.studies.slrc.comparison import TABLES as COMPARED
from faithscope.experiments.studies.slrc.detectors.findings import NOT_ASKED
from faithscope.experiments.studies.slrc.detectors.tables import TABLES as DETECTOR_TABLES
from faithscope.experiments.studies.slrc.judges.answer_curve import TABLES as ANSWER_TABLES
from faithscope.experiments.studies.slrc.judges.tables import REASONS as JUDGE_REASONS
from faithscope.experiments.studies.slrc.judges.tables import TABLES as JUDGE_TABLES
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.outcomes import LABEL_MASSES
from faithscope.experiments.studies.slrc.topics import TOPICS

_OF_TOPICS = (table for topic in TOPICS for table in topic.tables)
_DECLARED, OF_TABLES = declared(
    [*_OF_TOPICS, LABEL_MASSES, *JUDGE_TABLES, *ANSWER_TABLES, *DETECTOR_TABLES, *COMPARED]
)
_OTHERS = (
    *COUNTED.columns,
    Column(
        "unit",
        "unit of removal",
        "What a step is: sentence, item, paragraph, thought, a group of these, or as it was given.",
    ),
    Column("moe", meaning="Whether only a part of the parameters is active for a token."),
    Column(
        "steps_matter", meaning="Tasks in which necessity is so high that steps count as mattering."
    ),
)
"""Columns of tables that declare none themselves: exclusions, the paper's layouts, and tables by
unit of removal (`removal_units`)."""
COLUMNS = {**by_name(_OTHERS), **_DECLARED}
REASONS = {
    "total": "all items",
    "included": "measured",
    **WORDS,
    **JUDGE_REASONS,
    NOT_ASKED: "the probe or judge that it reads was not asked for",
    **{reason: words for s in REPORTS.values() for reason, words in s.reasons.items()},
}
