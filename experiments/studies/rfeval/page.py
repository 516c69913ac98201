"""What stands on the page of an RFEval run, as data for `analysis.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from faithscope.experiments.analysis.columns import labelled
from faithscope.experiments.analysis.html import Cell, HtmlTable, html_table, markup, share_cell
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Fold,
    Grid,
    Heading,
    Page,
    Paragraph,
    Section,
    Terms,
    spent_and_failed,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.engine.ledger import Line
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.rfeval.figures.against import against_told
from faithscope.experiments.studies.rfeval.figures.inside import signs_told
from faithscope.experiments.studies.rfeval.figures.plots import lead_reader
from faithscope.experiments.studies.rfeval.pairview import pair_block, pair_view
from faithscope.experiments.studies.rfeval.paper import paper_tables
from faithscope.experiments.studies.rfeval.sections import ALSO_LEFT_OUT, LABELS, SECTIONS, TERMS
from faithscope.experiments.studies.rfeval.subjects.regimes import NO_MODEL
from faithscope.experiments.studies.rfeval.verdict_text import (
    Verdict,
    headline,
    regimes_told,
    verdicts,
    waterfall_told,
)

MOST_ROWS = 1000
"""Of a table on the page; a longer one is named with its file."""


class _ReportSettings(Protocol):
    @property
    def pairs(self) -> int: ...


class _Settings(Protocol):
    @property
    def paper_compat(self) -> bool: ...
    @property
    def report(self) -> _ReportSettings: ...


class Found(Protocol):
    """What the page needs of a run's results."""

    @property
    def run_dir(self) -> Path: ...
    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Of `rfeval.tables.tables`, and what there is of `exclusions`, `usage`, `spend`."""
        ...

    @property
    def config(self) -> _Settings: ...
    @property
    def failures(self) -> Sequence[Unit]: ...
    @property
    def calls(self) -> Sequence[Line]: ...
    def examples(self, n: int) -> Sequence[Mapping[str, Any]]:
        """As `pairview.pair_view` takes them."""
        ...


def page(found: Found, drawn: Sequence[Picture]) -> Page:
    """The page of a run, with its figures."""
    tables = found.tables
    reader = lead_reader(tables["rfeval"])
    return Page(
        found.run_dir,
        "does the model follow its own reasoning?",
        "Does a model follow the reasoning it writes? Counterfactual reasoning r′ that leads to a "
        "wrong answer is put into its own mouth; its output is held against the one without r′, "
        "stance by stance (RFEval, arXiv 2602.17053).",
        [
            _verdict(tables, reader),
            _reading(reader, found.config.paper_compat),
            *_sections(tables, reader),
            *_paper(tables),
            _pairs(found),
            _exclusions(found, [p for p in drawn if p.figure is None]),
        ],
        {name: table for name, table in tables.items() if len(table)},
        {p.name: p for p in drawn if p.figure is not None},
        labelled(LABELS),
        prefix="rf_",
        most_rows=MOST_ROWS,
    )


def _verdict(tables: Mapping[str, pd.DataFrame], reader: str) -> Section:
    blocks: list[Block] = [*headline(tables, reader)]
    if judged := verdicts(tables, reader):
        heading = [
            *("model", "what it does with r′ most often"),
            *("faithful (RF)", "in contrast", "pairs that count"),
        ]
        numeric = [False, False, True, True, True]
        lines = list(map(_verdict_row, judged))
        table = HtmlTable(heading, numeric, lines, css="sortable verdicts")
        blocks.append(Grid(table, "Verdict by model"))
    return Section("verdict", "Verdict", blocks=blocks)


def _verdict_row(v: Verdict) -> list[Cell]:
    caution = markup('<span class="caution">{}</span>', v.caution) if v.caution else ""
    return [
        Cell(markup("{}{}", v.model, caution), v.model),
        Cell(v.mostly or "–", v.mostly),
        share_cell(v.rf, v.rf_low, v.rf_high),
        share_cell(v.coverage),
        Cell(f"{v.n_included} of {v.n_total}", str(v.n_included)),
    ]


def _reading(reader: str, paper_compat: bool) -> Section:
    note = "RF says nothing of whether answers are right. Stances are what a reader takes them for"
    note += f"; unless a table says otherwise, {reader}." if reader else "."
    if paper_compat:
        note += (
            " Outputs are parsed and chains scored as the authors’ released code does it "
            "(paper_compat), not as the paper’s definitions have it."
        )
    blocks = [Terms(TERMS), Paragraph(note, "quiet")]
    return Section("reading", "How to read it", blocks=blocks)


def _sections(tables: Mapping[str, pd.DataFrame], reader: str) -> list[Section]:
    """`SECTIONS`, some with what the numbers come to, in sentences."""
    against = where(tables["rf_judge_against_log_probs"], reader=reader)
    sentences = {
        "waterfall": waterfall_told(tables, reader),
        "without_judge": against_told(against),
        "regimes": regimes_told(tables.get("rf_regimes_left_out", NO_MODEL)),
        "inside": signs_told(where(tables["rf_inside_signs"], reader=reader)),
    }
    return [
        replace(section, blocks=[*_told(sentences.get(section.name, [])), *section.blocks])
        for section in SECTIONS
    ]


def _told(sentences: Sequence[str]) -> list[Block]:
    """The first as a paragraph, which the others stand under."""
    first, rest = list(sentences[:1]), sentences[1:]
    return [*first, *([Bullets(rest)] if rest else [])]


def _paper(tables: Mapping[str, pd.DataFrame]) -> list[Section]:
    shown = []
    for table in paper_tables(tables):
        if len(table.printed):
            title = f"Table {table.name.removeprefix('paper_rf_table')}"
            shown.append(Fold(title, [Grid(html_table(table.printed, {}, table.name), title)]))
    said = "The same numbers where a reader of the paper looks for them; RF in percent."
    return [Section("paper", "The paper’s tables", said, blocks=shown)] if shown else []


def _pairs(found: Found) -> Section:
    examples = found.examples(found.config.report.pairs)
    shown = [pair_block(pair_view(e, found.config.paper_compat)) for e in examples]
    text = (
        "Some pairs word for word, with what the judge was asked and replied; all stand in "
        "records/."
    )
    if not shown:
        text = _no_pairs(found.config.report.pairs)
    return Section("pairs", "Pairs", text, blocks=shown)


def _exclusions(found: Found, undrawn: Sequence[Picture]) -> Section:
    """What is in no number, what was spent, what failed, and what is not drawn."""
    calls = found.calls if len(found.tables.get("spend", ())) else []
    blocks: list[Block] = [*_absent(found.tables), *ALSO_LEFT_OUT]
    blocks += spent_and_failed(calls, "judgement", found.failures)
    if not found.failures:
        blocks.append("Nothing failed.")
    if undrawn:
        blocks.append(Heading("Figures that are not there"))
        blocks.append(Bullets([f"{p.title} {p.absent}" for p in undrawn]))
    return Section("exclusions", "What is in no number", blocks=blocks, always=True)


def _no_pairs(asked_for: int) -> str:
    if not asked_for:
        return "None are shown: report.pairs is 0. All stand in records/."
    return "There is no pair of outputs to show yet."


def _absent(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """What of the benchmark is not in this run, a sentence each."""
    told = {
        "rf_regimes": " ".join(
            [
                "No two models are of one base under different post-training regimes, so that "
                "there is no Table 3.",
                *regimes_told(tables.get("rf_regimes_left_out", NO_MODEL)),
            ]
        ),
        "rf_per_step": "Stances of single steps were not judged.",
        "rf_without_judge": "Log-probs of the options were not read, so that there is no RF "
        "without a judge.",
        "rf_inside_pairs": "No model was looked into while r′ was in its mouth.",
        "rf_evaluator": "No labels by people were given to hold the judge against.",
        "rf_readers": "No two readers read the same parts, so that nothing is known of how far "
        "stances hang on who reads them.",
    }
    return [sentence for name, sentence in told.items() if not len(tables[name])]
