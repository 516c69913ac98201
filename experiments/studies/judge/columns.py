"""Columns of the tables of judges on given chains, as the tables declare them."""

from faithscope.experiments.studies.judge.tables import COLUMNS, OF_TABLES

__all__ = ["COLUMNS", "OF_TABLES"]
