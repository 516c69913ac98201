"""Sections of the page on detectors: a verdict, the paper's tables, and statistics of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from faithscope.experiments.analysis.html import Cell, HtmlTable
from faithscope.experiments.analysis.page import Grid, Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.published.layout import PaperTable, folds, printed_tables
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.traces.forced_choice import cautions
from faithscope.experiments.analysis.wording import finding
from faithscope.experiments.engine.tallies.reasons import WORDS
from faithscope.experiments.studies.slrc.detectors import words
from faithscope.experiments.studies.slrc.detectors.figures import detectors_picture
from faithscope.experiments.studies.slrc.detectors.paper import PAPER
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS, WHOSE
from faithscope.experiments.studies.slrc.detectors.results import SOURCES, FaithResults
from faithscope.experiments.studies.slrc.detectors.tables import (
    COMMON,
    DETECTED,
)

OUR_RULES = (
    "“The paper” is its text (“a′ = a”, appendix C.1) or its released code. Of a single edit, "
    "“half or more leave the answer as it was” is “a′ = a”; several edits of a chain, and so the "
    "half, are ours. The paper names no cut for early answering (here: half of the steps)."
)


def rules_grid() -> HtmlTable:
    """HTML table of each reading's plain rule for calling a chain unfaithful, and the rule's
    source."""
    cells = [
        [Cell(text, text) for text in (d.label, d.rule or "no rule", WHOSE[d.rule_by])]
        for d in DETECTORS
    ]
    return HtmlTable(["detector", "unfaithful if", "whose rule"], [False] * 3, cells)


SECTIONS = [
    Section(
        "detectors",
        "Detectors",
        "Scores are higher where a chain is less faithful. The plain rule is fixed beforehand "
        "(below: whose it is); where there is none, it gives no flags, and a threshold fitted on "
        "other folds stands below it. F1 is of the unfaithful class, beside it that of the "
        "faithful one. Where a row is saturated, κ hangs on a handful of chains: read AC2. "
        "Reliance and faithfulness are two things: counterfactual detectors measure how much the "
        "answer depends on the text.",
        figures=("detectors",),
        tables=("detectors",),
    ),
    Section(
        "detectors_rules",
        "Whose rules these are",
        OUR_RULES,
        blocks=[Grid(rules_grid(), "Rules")],
        always=True,
    ),
    Section(
        "detectors_paper",
        "The paper's tables",
        "Tables 2 and 3: κ, accuracy and F1 of each detector's own reading, by its plain rule, or "
        "where there is none by the fitted threshold. In the first table every detector has the "
        "chains that it can tell of, which are not the same for all (n): compare detectors in the "
        "second, whose rows are of the same chains. A detector that can tell of less than half of "
        "the labelled chains stands in the first alone.",
    ),
    Section(
        "detectors_quadrants",
        "Correct and faithful",
        "Labelled chains by whether their answer is right; one that could not be read is neither "
        "right nor wrong, and is counted beside. The paper has φ = 0.286 and 0.0575 bits.",
        tables=("faithcot_quadrants", "faithcot_accuracy"),
    ),
    Section(
        "detectors_rates",
        "How many are unfaithful",
        "The share of labelled chains that annotators call unfaithful, with intervals that draw "
        "questions, and the signals that they name.",
        tables=("faithcot_rates", "faithcot_categories", "faithcot_principles"),
    ),
    Section(
        "detectors_steps",
        "Which steps",
        "How often the step that a measure finds most suspicious is one that annotators name. Of "
        "measures of reliance that is the step on which least hangs.",
        tables=("faithcot_steps",),
    ),
]
UNLABELLED = (
    "Scores are higher where a chain is less faithful. Flags are of plain rules that are fixed "
    "beforehand (below: whose they are); without a rule there are none. Reliance and faithfulness "
    "are two things: counterfactual detectors measure how much the answer depends on the text."
)
"""Text of the section on detectors for a run without labelled chains."""


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """The paper's tables with the numbers of a run: of all chains that each detector can decide,
    and those of detectors also (`_common`) of the chains that every one can decide."""
    common = {DETECTED.name: tables[COMMON.name]}
    return [*printed_tables(PAPER, tables), *printed_tables(PAPER, common, "_common")]


def pictures(results: FaithResults) -> list[Picture]:
    """The figure of a run's detectors."""
    how = results.run.bootstrap(results.config.seed, results.config.report.bootstrap)
    scores = results.counted(results.scores)
    return [detectors_picture(scores, results.run.tables["detectors"], how)]


def sections(results: FaithResults, tables: Mapping[str, pd.DataFrame]) -> list[Section]:
    """The sections on detectors: a verdict, the paper's tables, and statistics of labels."""
    read, labelled = _counts(results)
    of_detectors = [t for t in paper_tables(tables) if t.name.startswith("paper_faithcot_table")]
    of_paper = folds(of_detectors)
    rest = [replace(s, blocks=of_paper) if s.name == "detectors_paper" else s for s in SECTIONS]
    if not labelled:
        rest = [replace(SECTIONS[0], text=UNLABELLED), *SECTIONS[1:]]
        rest = [section for section in rest if section.name != "detectors_paper"]
    counted = (
        f"{len(results.traces)} chains, {read} of them read by the detectors, {labelled} with a "
        "label (FaithCoT-Bench, arXiv 2510.04040)."
    )
    return [replace(words.section(tables, labelled, read), text=counted), *rest]


def in_short(results: FaithResults, tables: Mapping[str, pd.DataFrame]) -> str:
    """The first line of the page: how many chains count, and what the detectors tell."""
    read, labelled = _counts(results)
    n = labelled or read
    whole = [r["excluded"] for r in rows(results.traces)]
    lost = Counter(f"left out ({WORDS.get(why, why)})" for why in whole if why)
    lost["cut off"] = len(whole) - lost.total() - read
    lost["without a label"] = read - n
    said = words.in_short(tables, labelled, read)
    return finding(n, len(whole), "chains count", said, lost)


def shown(results: FaithResults, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables as the page shows them: without labels, those of detectors have no columns about
    labels."""
    made = dict(tables)
    if not _counts(results)[1]:
        plain = where(tables["detectors"], rule="plain").dropna(axis="columns", how="all")
        of_labels = ["rule", "n", "n_labelled", "n_unfaithful"]
        made["detectors"] = plain.drop(columns=of_labels, errors="ignore")
    return made


def _counts(results: FaithResults) -> tuple[int, int]:
    """Number of chains that detectors read, and of those with a label."""
    read = [r for r in rows(results.counted(results.traces)) if not r["excluded"]]
    return len(read), sum(r["unfaithful"] is not None for r in read)


def warnings(results: FaithResults) -> list[str]:
    """Warnings about a run with detectors: chains and labels that count in no number."""
    labelled = _counts(results)[1]
    traces = rows(results.traces)
    warnings = []
    if 0 < labelled < words.FEW:
        warnings.append(
            f"This run has {labelled} labelled chains: a glance, not a reading. Intervals are wide "
            "or missing; the paper has 1,183."
        )
    if disagree := sum(bool(r["disagree"]) for r in traces):
        warnings.append(
            f"Chains on which the two label sources contradict each other: {disagree}. This page "
            f"counts {results.config.labels.source} (labels.source)."
        )
    labels = [results.label(stages["trace", ""][0]) for stages in results.records.values()]
    source = results.config.labels.source
    if lost := sum(
        x.unfaithful(source) is None and any(x.unfaithful(s) is not None for s in SOURCES)
        for x in labels
    ):
        warnings.append(
            f"{lost} chains are counted as not labelled: {source} (labels.source) says nothing of "
            "them, and the other source does."
        )
    of_run = {(r["reader"], r["dataset"], r["item"]) for r in traces}
    if strangers := len(set(results.given_labels) - of_run):
        warnings.append(
            f"{strangers} labels of labels.path are of no chain of this run: model, data set and "
            "item have to be those of the run."
        )
    if others := {(r["model"], r["reader"]) for r in traces if r["model"] != r["reader"]}:
        pairs = ", ".join(sorted(f"those of {m or 'unknown models'} by {r}" for m, r in others))
        warnings.append(
            f"Chains are read by another model than wrote them ({pairs}): what hangs on a step, "
            "and how likely it is, is then what the reader makes of it."
        )
    records = (r for of in results.records.values() for rs in of.values() for r in rs)
    return [*warnings, *cautions(records)]
