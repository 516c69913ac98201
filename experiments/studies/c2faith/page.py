"""The page of a C2-Faith run: the paper's tables and figures, and judgements word for word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from markupsafe import Markup

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Grid, Page, Section, spent_and_failed
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.models.judges import STAGES
from faithscope.experiments.numerals import significant
from faithscope.experiments.studies.c2faith import words
from faithscope.experiments.studies.c2faith.item_views import ask_card
from faithscope.experiments.studies.c2faith.results import C2Results
from faithscope.experiments.studies.c2faith.tables.every_table import COLUMNS, OF_TABLES

SECTIONS = [
    Section(
        "against",
        "Judge against internals",
        "The same broken steps, told from sound ones by what a judge says and by what a model "
        "shows inside while it reads them. AUROC 0.5 is chance.",
        figures=("c2_judge_against_internals",),
        tables=("c2_judge_against_internals",),
    ),
    Section(
        "detection",
        "Detection (experiment 1)",
        "One step is put to the judge with those before it. Detected: broken steps that it says do "
        "not follow. False alarms: sound steps of which it says the same.",
        figures=("c2_detection", "c2_positions", "c2_failure_overlap"),
        tables=("c2_detection", "c2_mcnemar", "c2_positions", "c2_edit_types"),
    ),
    Section(
        "localisation",
        "Localisation (experiment 2)",
        "The whole chain is put to the judge, which names the first step that does not follow, or "
        "none. The paper's form also asks for a final score, 1 if all steps are valid: where the "
        "two contradict each other the step named is what counts, and the table says how often "
        "that is, and what detection and false alarms would be by the final score.",
        figures=("c2_localisation", "c2_signed_error", "c2_within"),
        tables=("c2_localisation", "c2_within"),
    ),
    Section(
        "coverage",
        "Coverage",
        "Chains with steps left out, rated for completeness. Inflation: the share of ratings of "
        "three quarters of the scale and more.",
        figures=("c2_coverage_scores", "c2_coverage", "c2_radar"),
        tables=("c2_coverage", "c2_coverage_pooled"),
    ),
    Section(
        "agreement",
        "Agreement and prompts",
        "How far judges agree, and how far the numbers depend on the prompt.",
        figures=("c2_prompts",),
        tables=("c2_agreement", "c2_prompts", "c2_prompt_agreement", "c2_predictors"),
    ),
    Section(
        "mass",
        "What probabilities of verdicts are worth",
        "A scored verdict is the likeliest number where the number must stand, whatever else the "
        "model would have written there. Mass: the share of its probability that all numbers "
        "allowed have together. {mass} Where it is low, the model was not about to give a verdict, "
        "and the one that is counted says little. Reliability: how often what the probabilities "
        "speak of comes true, by bins of probability and overall. Recalibrated: what they are "
        "worth on the right scale, which other chains show; a gain above 0 over the base rate is "
        "what the judge knows.",
        figures=("c2_reliability",),
        tables=("c2_mass", "c2_reliability"),
    ),
]


def page(results: C2Results, drawn: Sequence[Picture]) -> Page:
    """The page of a run, with its figures."""
    tables = {name: table for name, table in results.tables.items() if len(table)}
    made_of = results.benchmark
    mass = _mass_in_words(results.tables["c2_mass"])
    return Page(
        results.run.path,
        "can judges tell broken reasoning?",
        f"Can judges tell broken reasoning from sound? {made_of.made_of['chains']['n']} chains of "
        f"reasoning, {len(made_of.causal)} of them with one step replaced by one that does not "
        f"follow, {len(made_of.coverage)} with steps left out; {len(results.judged)} judgements "
        "(C2-Faith, arXiv 2603.05167).",
        [
            words.section(results.tables),
            *(replace(s, text=s.text.format(mass=mass)) for s in SECTIONS),
            _judgements(results),
            _exclusions(results, "exclusions" in tables),
        ],
        tables,
        {p.name: p for p in drawn if p.figure is not None},
        COLUMNS,
        OF_TABLES,
        finding=words.in_short(results.tables, made_of.made_of["chains"]["n"], len(made_of.causal)),
        prefix="c2_",
        order=model_order,
        warnings=_few(made_of.made_of["chains"]["n"]),
    )


def _few(n_chains: int) -> list[str]:
    """A warning if no figure of the page can say much."""
    if n_chains >= words.ENOUGH:
        return []
    chains = "chain" if n_chains == 1 else "chains"
    return [
        f"This run has {n_chains} {chains}: a glance, not a reading. Intervals are wide or "
        "missing, and a difference between judges may be chance; the paper has 450."
    ]


def _judgements(results: C2Results) -> Section:
    shown = [ask_card(r, results.forms[r["variant"]]) for r in examples(results)]
    n = len(results.judged) + len(results.varied)
    frames = dict.fromkeys(f"<code>.{row['varied']}</code>" for row in results.varied)
    text = markup(
        "{} of {} word for word (<code>report.judgements</code> in the config says how many). "
        "<code>faithscope show RUN --item {}</code> prints every one of an item, with prompt and "
        "raw reply; RUN is this run’s folder, ID any of <code>benchmark/causal.jsonl</code> and "
        "<code>coverage.jsonl</code>, or a chain’s. In Python "
        '<code>faithscope.load_run("RUN").judgements</code> has them all as rows{}.',
        *(len(shown), n, next((item.id for item in results.benchmark.causal), "ID")),
        Markup(f", and {', '.join(frames)} those of varied asks" if frames else ""),
    )
    return Section("judgements", "Judgements", text, blocks=shown)


def _exclusions(results: C2Results, some: bool) -> Section:
    """Section on what is in no number, what was spent, and what failed."""
    heading = "Left out"
    none = "Every solution gave a chain, and every judgement a verdict."
    return Section(
        "exclusions",
        heading,
        blocks=[
            Grid("exclusions", heading) if some else none,
            Grid("usage", "Calls and tokens", "Calls and tokens"),
            *spent_and_failed(results.run.calls, "judgement", results.run.failures),
        ],
        always=True,
    )


def _mass_in_words(mass: pd.DataFrame) -> str:
    """The least and the greatest mean mass of the run, in a sentence."""
    known = mass.dropna(subset=["mean_mass"]).sort_values("mean_mass", kind="stable")
    if not len(known):
        return ""
    least, most = rows(known)[0], rows(known)[-1]
    sentence = f"Here it is {significant(least['mean_mass'])} on average of {_way(least)}"
    if len(known) == 1:
        return f"{sentence}."
    return f"{sentence}, the least, and {significant(most['mean_mass'])} of {_way(most)}, the most."


def _way(row: dict[str, Any]) -> str:
    return f"{row['judge']} under {row['prompt']}"


def examples(results: C2Results) -> Iterator[dict[str, Any]]:
    """Records of judgements to be shown: as many of every judge, form and reading in turn."""
    waiting: dict[tuple[str, str, str], list[tuple[str, str, str, str]]] = {}
    for key in results.run.index:
        stage, model, task, _ = key
        if stage in STAGES.values() and results.run.index.is_whole(key):
            waiting.setdefault((model, task, stage), []).append(key)
    kinds = list(waiting.values())
    order = [of[i] for i in range(max(map(len, kinds), default=0)) for of in kinds if i < len(of)]
    for key in order[: results.config.report.judgements]:
        yield from results.run.index.records(key)
