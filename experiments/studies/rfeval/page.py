"""The page of an RFEval run: the verdict in words, the tables and figures, pairs word for word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from faithscope.experiments.analysis.html import drawing, flat, html_table, read_json, render_page
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.engine.ledger import Line, in_words
from faithscope.experiments.engine.store import Unit
from faithscope.experiments.files import write_atomically
from faithscope.experiments.studies.rfeval.figures.against import against_told
from faithscope.experiments.studies.rfeval.figures.inside import signs_told
from faithscope.experiments.studies.rfeval.figures.plots import lead_reader
from faithscope.experiments.studies.rfeval.pairview import pair_view
from faithscope.experiments.studies.rfeval.paper import paper_tables
from faithscope.experiments.studies.rfeval.subjects.regimes import NO_MODEL
from faithscope.experiments.studies.rfeval.verdict_text import (
    headline,
    regimes_told,
    verdicts,
    waterfall_told,
)

LABELS = {
    "n": "n",
    "n_total": "pairs",
    "n_problems": "problems",
    "n_removed": "removed",
    "n_kept": "kept",
    "n_no_reasoning": "no r′ that could be read",
    "n_unvalidated": "no verdict",
    "n_attempted": "pairs attempted",
    "n_coverage": "pairs that coverage is of",
    "n_included": "pairs that count",
    "contrast_coverage": "contrast coverage",
    "rf": "RF",
    "rf_per_step": "RF, step by step",
    "rf_included": "RF of all pairs that count",
    "chi_baseline": "χ(o)",
    "chi_intervened": "χ(o′)",
    "kappa": "κ",
    "n_global": "left out beforehand",
    "n_unfinished": "unfinished",
    "n_evaluation_error": "not judged",
    "n_non_contrast": "not in contrast",
    "n_of": "of",
    "by": "by",
    "value_low": "low",
    "n_without_answer": "without an answer",
    "n_cells": "models × tasks",
    "coverage_min": "coverage, least",
    "coverage_max": "coverage, most",
    "p": "p",
    "df": "degrees of freedom",
    "std": "standard deviation",
    "p75": "75th percentile",
    "p90": "90th percentile",
    "small_vocabulary": "few words",
    "n_unread": "read by one of them",
    "cohen_kappa": "Cohen’s κ",
    "n_unmatched": "without a label of the judge",
    "n_without_steps": "pairs without steps",
    "mean_seconds": "seconds, mean",
    "n_timed": "of known time",
    "device_hours": "hours of accelerators",
    "devices": "accelerators",
    "total_tokens": "tokens in all",
    "auroc_within": "AUROC within model and task",
    "auroc": "AUROC over all pairs",
    "p_holm": "p, corrected (Holm)",
    "turn_part": "turns",
    "n_of_judge_only": "count for the judge only",
    "n_of_log_probs_only": "count by log-probs only",
    "by_judge": "1 by the judge",
    "by_log_probs": "1 by log-probs",
    "n_both": "by both",
    "n_judge_only": "by the judge alone",
    "n_log_probs_only": "by log-probs alone",
    "n_neither": "by neither",
}
SECTIONS = (
    (
        "building",
        "How r′ was written",
        "What of the problems a model wrote reasoning for, and what of it another one let in. What "
        "was left out stands in benchmark/left_out.jsonl with the reason.",
        ("rf_filtering",),
        (),
    ),
    (
        "waterfall",
        "Where the pairs went",
        "A pair is one item under one model: its own output and the one with r′.",
        ("rf_waterfall",),
        ("rf_waterfall",),
    ),
    (
        "faithfulness",
        "Faithfulness by model and task",
        "RF with contrast coverage, and the three conditions whose product it is. Over all tasks "
        "every pair weighs the same.",
        ("rfeval",),
        ("rf_faithfulness", "rf_cells", "rf_components"),
    ),
    (
        "behaviours",
        "What models do with r′",
        "Every pair that counts is of one kind; the first two are the faithful.",
        ("rf_behaviours",),
        ("rf_behaviours",),
    ),
    (
        "failures",
        "Why and where it fails",
        "Which condition fails in the unfaithful pairs, at which transition chains break, and "
        "what r′ changes.",
        ("rf_failure_shares", "rf_failure_locations", "rf_causality"),
        ("rf_failures", "rf_causality"),
    ),
    (
        "regimes",
        "Post-training regimes",
        "Models of one family that were trained on differently.",
        ("rf_regimes",),
        ("rf_regimes",),
    ),
    (
        "coverage",
        "RF against coverage",
        "RF is of pairs in contrast alone. Whether it changes with how many those are is asked of "
        "the tasks of each model, and of the models on each task.",
        ("rf_coverage_quartiles",),
        ("rf_quartiles_model", "rf_quartiles_task"),
    ),
    (
        "accuracy",
        "RF against accuracy",
        "Whether models that are right more often are more faithful, with what is peculiar to "
        "each model and each task taken out.",
        ("rf_accuracy_association", "rf_accuracy"),
        ("rf_accuracy",),
    ),
    (
        "steps",
        "Step by step",
        "Stances of every step of the reasoning instead of the whole block, of the pairs whose "
        "steps were judged; beside it RF of the same pairs, and of all that count.",
        ("rf_per_step", "rf_per_step_ranks", "rf_per_step_exclusions"),
        ("rf_per_step",),
    ),
    (
        "without_judge",
        "RF without a judge",
        "The same pairs with the model’s own log-probs of the options in place of a judge: what it "
        "would answer after r′, after its reasoning, after its explanation, and the answer that it "
        "wrote. No flaw is named by log-probs, so that this RF is a bound from below. Items "
        "without options are left out. Pair by pair: "
        "tables/rf_judge_against_log_probs_pairs.csv.",
        ("rf_judge_against_log_probs", "rf_without_judge"),
        ("rf_judge_against_log_probs",),
    ),
    (
        "readers",
        "Who reads the stances",
        "All numbers hang on the stances that a reader takes the parts for. Readers that need no "
        "judge: matching the parsed answer (or running the tests of code), and the open model’s "
        "own log-probs after each part, which say what it would answer there, not what the part "
        "says.",
        ("rf_readers", "rf_evaluator"),
        ("rf_readers", "rf_evaluator"),
    ),
    (
        "lengths",
        "Lengths and times",
        "Tokens generated without and with r′; mean seconds from when an output was asked for "
        "until it ended, of which those that are written together overlap. Hours do not: they are "
        "the workers’ own, all outputs of a model.",
        ("rf_lengths", "rf_hours"),
        ("rf_lengths",),
    ),
    (
        "externality",
        "Externality of r′",
        "How much of r′ is not in the words of the problem: of the items, not of the models.",
        ("rf_externality", "rf_externality_by_model", "rf_by_externality"),
        ("rf_externality",),
    ),
    (
        "inside",
        "Inside the model",
        "What the model shows inside while r′ is in its mouth: its answer traced through r′ and "
        "its own text, where it looks when it answers, what its layers would answer. All signs "
        "by behaviour, violation and causality stand in tables/rf_inside.csv, how well each tells "
        "two kinds apart in rf_inside_signs.csv, every pair in rf_inside_pairs.csv.",
        ("rf_inside_best", "rf_inside_turns"),
        ("rf_inside_traces", "rf_inside_signs"),
    ),
)
"""(anchor, heading, text, tables, figures); what was not run is left out."""
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


def write_report(found: Found, drawn: Sequence[Picture]) -> Path:
    """Write `report.html` of a run; gives its path."""
    path = found.run_dir / "report.html"
    write_atomically(path, render(found, drawn))
    return path


def render(found: Found, drawn: Sequence[Picture]) -> str:
    """The page as text."""
    tables, run_dir = found.tables, found.run_dir
    made = {name: table for name, table in tables.items() if len(table)}
    figures = {p.name: drawing(p) for p in drawn}
    reader = lead_reader(tables["rfeval"])
    told = {"waterfall": waterfall_told(tables, reader)}
    against = where(tables["rf_judge_against_log_probs"], reader=reader)
    told |= {"without_judge": against_told(against)}
    told |= {"regimes": regimes_told(tables.get("rf_regimes_left_out", NO_MODEL))}
    told |= {"inside": signs_told(where(tables["rf_inside_signs"], reader=reader))}
    sections = _sections(made, figures, told)
    shown = {name for section in sections for name in section["tables"]}
    shown |= {"rf_exclusion_reasons", "exclusions", "rf_tests", "usage", "spend"} & set(made)
    config = found.config
    pairs = [pair_view(e, config.paper_compat) for e in found.examples(config.report.pairs)]
    return render_page(
        "rfeval.html.jinja",
        name=visible(run_dir.resolve().name),
        reader=visible(reader),
        paper_compat=config.paper_compat,
        headline=headline(tables, reader),
        verdicts=verdicts(tables, reader),
        nan=math.nan,
        sections=sections,
        tables={
            n: html_table(n, made[n], LABELS, planted_first=False)
            for n in shown
            if len(made[n]) <= MOST_ROWS
        },
        long={n: f"{len(made[n]):,}" for n in shown if len(made[n]) > MOST_ROWS},
        paper=[
            html_table(t.name, t.printed, {}, planted_first=False)
            for t in paper_tables(tables)
            if len(t.printed)
        ],
        figures=figures,
        pairs=pairs,
        no_pairs=_no_pairs(config.report.pairs),
        absent=_absent(tables),
        undrawn=[p for p in drawn if p.figure is None],
        spent=in_words(found.calls) if "spend" in made else "",
        failures=[
            {
                "model": visible(u.model),
                "stage": visible(u.stage),
                "item": visible(u.item),
                "why": visible(u.failed or ""),
            }
            for u in found.failures
        ],
        environment=flat(read_json(run_dir / "environment.json")),
        config=visible((run_dir / "config.yaml").read_text("utf-8")),
    )


def _sections(
    made: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Any],
    told: Mapping[str, Sequence[str]],
) -> list[dict[str, Any]]:
    sections = [
        {
            "anchor": anchor,
            "heading": heading,
            "text": text,
            "told": told.get(anchor, []),
            "tables": [t for t in tables if t in made],
            "figures": [f for f in of if f in figures and figures[f]["svg"]],
        }
        for anchor, heading, text, tables, of in SECTIONS
    ]
    return [s for s in sections if s["tables"] or s["figures"]]


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
