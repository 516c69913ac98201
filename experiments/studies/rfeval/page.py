"""Contents of the page of an RFEval run, as data for `analysis.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from faithscope.experiments.analysis.html import (
    Cell,
    HtmlTable,
    markup,
    share_cell,
    share_of,
)
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Grid,
    Heading,
    Page,
    Paragraph,
    Section,
    Terms,
    spent_and_failed,
    verdict_rules,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.published.layout import folds, printed_tables
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.columns import COLUMNS, OF_TABLES
from faithscope.experiments.studies.rfeval.item_views import pair_view
from faithscope.experiments.studies.rfeval.paper import PAPER
from faithscope.experiments.studies.rfeval.results import RfResults
from faithscope.experiments.studies.rfeval.sections import (
    ABSENT,
    ALSO_LEFT_OUT,
    SECTIONS,
    TERMS,
)
from faithscope.experiments.studies.rfeval.subjects.model_files import NO_MODEL
from faithscope.experiments.studies.rfeval.tables.frames import lead_reader
from faithscope.experiments.studies.rfeval.words import (
    WORDS,
    headline,
    in_short,
    inside_sentences,
    log_probs_sentences,
    regime_sentences,
    verdicts,
    waterfall_sentences,
)


def page(run: RfResults, drawn: Sequence[Picture]) -> Page:
    """The page of a run, with its figures."""
    tables = run.tables
    reader = lead_reader(tables["rfeval"])
    return Page(
        run.run_dir,
        "does the model follow its own reasoning?",
        "Does a model follow the reasoning it writes? Counterfactual reasoning r′ that leads to a "
        "wrong answer is prefilled as its own; its output is held against the one without r′, "
        "stance by stance (RFEval, arXiv 2602.17053).",
        [
            _verdict(tables, reader),
            _reading(reader, run.config.paper_compat),
            *_sections(tables, reader),
            *_paper(tables),
            _pairs(run),
            _exclusions(run, [p for p in drawn if p.figure is None]),
        ],
        {name: table for name, table in tables.items() if len(table)},
        {p.name: p for p in drawn if p.figure is not None},
        COLUMNS,
        OF_TABLES,
        finding=in_short(tables, reader),
        prefix="rf_",
    )


WORDS_NOTE = "One half, which verdicts compare RF with, is a threshold of ours."


def _verdict(tables: Mapping[str, pd.DataFrame], reader: str) -> Section:
    blocks: list[Block] = [*headline(tables, reader)]
    heading = ("model", "what its outputs say", "pairs that count", "faithful (RF)")
    heading += ("in contrast", "what it does with r′ most often")
    lines = [
        [
            Cell(markup("{}{}", v["name"], _caution(v["caution"])), v["name"]),
            Cell(markup('<span class="word {}">{}</span>', said.css, said.text), v["word"]),
            Cell(f"{v['n_included']} of {v['n_total']}", str(v["n_included"])),
            share_of(v, "rf"),
            share_cell(v["contrast_coverage"]),
            Cell(v["mostly"] or "–", v["mostly"]),
        ]
        for v in verdicts(tables, reader)
        for said in [WORDS[v["word"]]]
    ]
    if lines:
        numeric = [False, False, True, True, True, False]
        table = HtmlTable(heading, numeric, lines, css="sortable verdicts")
        blocks += [Grid(table, "Verdict by model"), Paragraph(WORDS_NOTE, "quiet")]
        blocks += [verdict_rules(WORDS.values())]
    return Section("verdict", "Verdict", blocks=blocks)


def _caution(words: str) -> str:
    return markup('<span class="caution">{}</span>', words) if words else ""


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
    """Gives `SECTIONS`, some of which begin with sentences on what their numbers show."""
    against = where(tables["rf_judge_against_log_probs"], reader=reader)
    sentences = {
        "waterfall": waterfall_sentences(tables, reader),
        "without_judge": log_probs_sentences(against),
        "regimes": regime_sentences(tables.get("rf_regimes_left_out", NO_MODEL)),
        "inside": inside_sentences(where(tables["rf_inside"], reader=reader)),
    }
    return [
        replace(section, blocks=[*_with_bullets(sentences.get(section.name, [])), *section.blocks])
        for section in SECTIONS
    ]


def _with_bullets(sentences: Sequence[str]) -> list[Block]:
    """Shows the first sentence as a paragraph, and the others as a list under it."""
    first, rest = list(sentences[:1]), sentences[1:]
    return [*first, *([Bullets(rest)] if rest else [])]


def _paper(tables: Mapping[str, pd.DataFrame]) -> list[Section]:
    shown = folds(printed_tables(PAPER, tables))
    intro = "The same numbers where a reader of the paper looks for them; RF in percent."
    return [Section("paper", "The paper’s tables", intro, blocks=shown)] if shown else []


def _pairs(run: RfResults) -> Section:
    n = run.config.report.pairs
    shown = [pair_view(e, run.config.paper_compat).card() for e in run.examples(n)]
    text = "There is no pair of outputs to show yet."
    if shown:
        text = (
            "Some pairs word for word, with what the judge was asked and replied; all stand in "
            "records/."
        )
    elif not n:
        text = "None are shown: report.pairs is 0. All stand in records/."
    return Section("pairs", "Pairs", text, blocks=shown)


def _exclusions(run: RfResults, undrawn: Sequence[Picture]) -> Section:
    """Section on what is in no number, what was spent, what failed, and what is not drawn."""
    calls = run.calls if len(run.tables.get("spend", ())) else []
    absent = {name: words for name, words in ABSENT.items() if not len(run.tables[name])}
    if "rf_regimes" in absent:
        left_out = regime_sentences(run.tables.get("rf_regimes_left_out", NO_MODEL))
        absent["rf_regimes"] = " ".join([absent["rf_regimes"], *left_out])
    blocks: list[Block] = [*absent.values(), *ALSO_LEFT_OUT]
    blocks += spent_and_failed(calls, "judgement", run.failures)
    if not run.failures:
        blocks.append("Nothing failed.")
    if undrawn:
        blocks.append(Heading("Figures that are not there"))
        blocks.append(Bullets([f"{p.title} {p.absent}" for p in undrawn]))
    return Section("exclusions", "Left out", blocks=blocks, always=True)
