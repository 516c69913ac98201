"""The page of a comparison, as data for `analysis.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from faithscope.experiments.analysis.colours import FAMILY_NAMES
from faithscope.experiments.analysis.comparison.figures import pictures
from faithscope.experiments.analysis.comparison.prose import unfinished
from faithscope.experiments.analysis.comparison.sections import (
    answer_section,
    kinds_opening,
    sections,
)
from faithscope.experiments.analysis.comparison.triangle import (
    WORDS,
    families_picture,
    headline_picture,
)
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Fold,
    Grid,
    Page,
    Paragraph,
    Section,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.compare.columns import COLUMNS, OF_TABLES
from faithscope.experiments.studies.compare.results import Compared
from faithscope.experiments.studies.compare.words import (
    counted_words,
    first_screen,
    opening,
)

EMPTY = {
    "combined": "measures together, since no label tells two kinds of traces apart "
    "(faithscope compare RUN… --labels FILE)",
    "step_agreement": "steps, since no two measures score the steps of a trace "
    "(faithscope run slrc --set probes=[slrc,attention])",
}
"""Table -> what the page leaves out without its rows, why, and what would fill it."""
NAMES = FAMILY_NAMES | WORDS
"""Family or kind of evidence, as tables have it -> the name that the page gives it."""


def page(compared: Compared, drawn: Sequence[Picture]) -> Page:
    """The page of a comparison: sentences, tables and figures."""
    tables = compared.tables
    figures = {picture.name: picture for picture in drawn}
    lead = counted_words(compared)
    kinds, *others = sections(compared.comparison, figures["auroc"].figure is not None)
    fixed = [first_screen(tables, compared.comparison.joined)] if "headline" in tables else []
    first, later = (fixed, [kinds]) if fixed else ([kinds], [])
    return Page(
        compared.run.path,
        "which measure should I trust here, and what does it cost?",
        f"Which measure should I trust here, and what does it cost? {lead}",
        [
            *first,
            answer_section(compared.comparison),
            _explore(),
            *(*later, *others),
            _rows(tables, compared.config.notes),
        ],
        {name: table for name, table in tables.items() if len(table)},
        figures,
        COLUMNS,
        OF_TABLES,
        finding="",
        values={name: NAMES for name in ("family", "other_family", "one", "two")},
        warnings=unfinished(tables),
    )


def figures(compared: Compared) -> list[Picture]:
    """Every figure of a comparison."""
    fixed = [] if compared.headline is None else [headline_picture(compared.headline)]
    return [*fixed, *pictures(compared.tables)]


def overview(compared: Compared) -> list[Block]:
    """The first screen of the page without what is folded, for a notebook and a terminal."""
    if compared.headline is not None:
        return opening(compared.headline, headline_picture(compared.headline))
    agreement = compared.comparison.agreement
    return kinds_opening(agreement, families_picture(agreement))


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
    empty = [why for table, why in EMPTY.items() if not len(tables[table])]
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
            *([Paragraph(f"Nothing to show: {'; '.join(empty)}.", "quiet")] if empty else []),
        ],
    )
