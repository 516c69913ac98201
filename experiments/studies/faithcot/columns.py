"""Columns of the tables of FaithCoT-Bench, as the tables declare them."""

from faithscope.experiments.studies.faithcot.tables import COLUMNS, OF_TABLES

__all__ = ["COLUMNS", "OF_TABLES"]
