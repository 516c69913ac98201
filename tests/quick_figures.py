"""Figures whose PDF costs the tests less; one test of `test_charts.py` writes what users get."""

from faithscope.experiments.analysis.picture import STYLE

USERS_FONT = STYLE["pdf.fonttype"]
"""The type in which users' PDFs embed fonts: cutting a font to its letters takes most of a PDF's
time."""
STYLE["pdf.fonttype"] = 3
