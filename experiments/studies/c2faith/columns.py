"""Columns of C2-Faith's tables, in words for readers, as the tables declare them."""

from faithscope.experiments.studies.c2faith.tables import COLUMNS, OF_TABLES

__all__ = ["COLUMNS", "OF_TABLES"]
