"""The page of a comparison, as data for `analysis.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from faithscope.experiments.analysis.comparison.prose import unfinished
from faithscope.experiments.analysis.comparison.sections import answer_section, sections
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Bullets,
    Fold,
    Grid,
    Page,
    Section,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.compare.columns import COLUMNS, OF_TABLES
from faithscope.experiments.studies.compare.results import Compared
from faithscope.experiments.studies.compare.words import counted_words, first_screen

MOST_ROWS = 400


def page(compared: Compared, drawn: Sequence[Picture]) -> Page:
    """The page of a comparison: sentences, tables and figures."""
    tables = compared.tables
    figures = {picture.name: picture for picture in drawn}
    lead = counted_words(compared)
    fixed = [first_screen(tables, compared.comparison.joined)] if "headline" in tables else []
    return Page(
        compared.run.path,
        "which measure should I trust here, and what does it cost?",
        f"Which measure should I trust here, and what does it cost? {lead}",
        [
            *fixed,
            answer_section(compared.comparison),
            _explore(),
            *sections(compared.comparison, figures["auroc"].figure is not None),
            _rows(tables, compared.config.notes),
        ],
        tables,
        figures,
        COLUMNS,
        OF_TABLES,
        most_rows=MOST_ROWS,
        warnings=unfinished(tables),
    )


def _explore() -> Section:
    link = '<a href="explore.html">explore.html</a>'
    words = (
        f"{link} has every score of every trace: measures against measures, any two of them, and "
        "one trace or two side by side, with what each probe read and each judge wrote. It needs "
        "no network; it lies beside this page."
    )
    return Section("explore", "Trace by trace", markup(words), "Trace by trace", always=True)


def _rows(tables: Mapping[str, pd.DataFrame], notes: Sequence[str]) -> Section:
    gone = tables["missing"].loc[tables["missing"]["reason"] != "measured"]
    n = sum(row["n"] for row in rows(gone))
    return Section(
        "rows",
        "Which traces are the same, and what is missing",
        "Traces of one name are held against each other: token ids, else text, else the question.",
        "Joins and gaps",
        [
            Grid("sources", "The runs"),
            Grid("joins", "Traces that two runs share", "Every two runs"),
            Fold("Measures, directions and cuts", [Grid("measures", "Measures")]),
            Fold(f"{n:,} cells without a score, by reason", [Grid("missing", "Missing")]),
            *([Bullets(notes)] if notes else []),
        ],
    )
