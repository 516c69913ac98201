"""All tables of a comparison by name, and the columns that each declares."""

from __future__ import annotations

from faithscope.experiments.analysis.comparison.agreement import (
    AGREEMENT,
    FAMILIES,
    HITS,
    STEP_AGREEMENT,
)
from faithscope.experiments.analysis.comparison.combining import ABLATION, COMBINED
from faithscope.experiments.analysis.comparison.disagreements import COMMON, LISTED, PARTING
from faithscope.experiments.analysis.comparison.headline import HEADLINE
from faithscope.experiments.analysis.comparison.join import JOINS, MISSING
from faithscope.experiments.analysis.comparison.scores_vs_labels import AGAINST, RELIABILITY
from faithscope.experiments.analysis.comparison.step_labels import STEP_AGAINST
from faithscope.experiments.analysis.comparison.trust import FRONT, TRUST
from faithscope.experiments.analysis.tables import declared
from faithscope.experiments.studies.compare.reading import SOURCES
from faithscope.experiments.studies.compare.results import MEASURES

TABLES = (
    *(SOURCES, JOINS, MISSING, MEASURES, STEP_AGREEMENT, HITS, STEP_AGAINST, AGREEMENT, FAMILIES),
    *(TRUST, COMBINED, PARTING, LISTED, COMMON, AGAINST, RELIABILITY, FRONT, ABLATION),
    HEADLINE,
)
COLUMNS, OF_TABLES = declared(TABLES)
