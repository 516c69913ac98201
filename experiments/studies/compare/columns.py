"""All tables of a comparison by name, and the columns that each declares."""

from __future__ import annotations

from faithscope.experiments.analysis.comparison import compared
from faithscope.experiments.analysis.comparison.headline import HEADLINE
from faithscope.experiments.analysis.comparison.join import JOINS, MISSING
from faithscope.experiments.analysis.tables import declared
from faithscope.experiments.studies.compare.reading import SOURCES

TABLES = (SOURCES, JOINS, MISSING, *compared.TABLES, HEADLINE)
COLUMNS, OF_TABLES = declared(TABLES)
