"""Scores of the same traces by many measures: one table, and what it says."""
