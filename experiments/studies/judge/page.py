"""The page of a run of judges on given chains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Bullets, Grid, Page, Section, spent_and_failed
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order, percent
from faithscope.experiments.studies.judge.item_views import chain_view
from faithscope.experiments.studies.judge.results import JudgeResults
from faithscope.experiments.studies.judge.tables import COLUMNS, OF_TABLES

FEW = 30
"""Number of chains below which the page warns that differences may be chance."""
CLASS = 10
"""Number of chains per class below which no judge is evaluated against a label."""
SECTIONS = [
    Section(
        "forms",
        "What judges say",
        "Per prompt, judge and model that wrote the chains. Flagged: something is wrong, as the "
        "prompt asks it: a step that is not sound, one that does not follow from those before it, "
        "an unfaithful chain. Scores are higher where a chain is worse, whatever the prompt.",
        tables=("judge_forms",),
        always=True,
    ),
    Section(
        "agreement",
        "Agreement with labels",
        "Judges compared with every label that says yes or no. A label of correctness and one of "
        "faithfulness are two things: a wrong step may be faithfully told, and a right one made "
        "up. Where nearly all labels are one, Cohen’s κ falls towards 0 however well the two "
        "agree, and AC2 is to be read.",
        tables=("judge_agreement", "judge_localisation"),
    ),
    Section(
        "steps",
        "Step by step",
        "How often the first, second … step of a chain is flagged.",
        tables=("judge_steps",),
    ),
]


def page(results: JudgeResults) -> Page:
    """The page of a run of judges on given chains."""
    chains, n = list(results.chains.values()), len(results.chains)
    steps = sum(len(chain.places) for chain in chains)
    warnings = []
    if n < FEW:
        are = "chain: a glance" if n == 1 else "chains: a glance"
        warnings = [f"This run has {n} {are}, not a reading. Differences may be chance."]
    if cut := sum(chain.cut for chain in chains):
        said = (
            "They count in every table all the same (report.cut)."
            if results.config.report.cut == "kept"
            else "They are in no number here; report.cut=kept counts them."
        )
        warnings.append(
            f"{cut} of {n} chains were cut off by a token limit, as their file says. {said}"
        )
    return Page(
        results.run.path,
        "what do judges say of these chains?",
        f"What do judges say of chains of thought that were written elsewhere? {n} chains with "
        f"{steps} steps; no model that reasons was run.",
        [_verdict(results), *SECTIONS, _examples(results), _exclusions(results)],
        {name: table for name, table in results.tables.items() if len(table)},
        {},
        COLUMNS,
        OF_TABLES,
        prefix="judge_",
        order=model_order,
        warnings=warnings,
    )


def _verdict(results: JudgeResults) -> Section:
    """The verdict section: what judges said with each prompt, and how well that fits the labels of
    chains."""
    agreement = results.tables["judge_agreement"]
    lines = []
    for row in rows(results.tables["judge_forms"]):
        flagged, score = row["flagged"], row["mean_score"]
        says = (
            f"flags {percent(flagged)}"
            if flagged == flagged
            else f"gives a mean score of {score:.2f}"
            if score == score
            else "gives no verdict"
        )
        way = {name: row[name] for name in ("judge", "reading", "form")}
        held = " ".join(map(_held, rows(where(agreement, level="chain", **way))))
        lines.append(
            markup(
                "<strong>{}</strong>, asked <code>{}</code> ({}), {} of {} chains of {} by {}. {}",
                *(way["judge"], way["form"], way["reading"], says, row["n"]),
                *(row["dataset"], row["model"] or "an unknown writer", held),
            )
        )
    text = (
        "AUROC is how often a chain labelled wrong scores worse than another: .5 is chance. "
        f"Nothing is said of fewer than {CLASS} chains of either kind."
    )
    return Section("verdict", "Verdict", text, blocks=[Bullets(lines)], always=True)


def _held(row: Mapping[str, Any]) -> str:
    """One sentence on how a judge does against one label of chains."""
    wrong = round(row["labelled_wrong"] * (row["n"] + row["n_without_verdict"]))
    few = min(wrong, row["n"] - wrong)
    label = f"Against the label “{row['label']}”"
    if few < CLASS:
        return f"{label} nothing can be said: {max(few, 0)} chains of one kind are too few."
    low, high = row["auroc_low"], row["auroc_high"]
    word = (
        "it is better than chance"
        if low > 0.5
        else "it is worse than chance"
        if high < 0.5
        else "it cannot be told from chance"
    )
    return f"{label} {word}: AUROC {row['auroc']:.2f} [{low:.2f}, {high:.2f}]."


def _examples(results: JudgeResults) -> Section:
    chains = list(results.chains.values())[: results.config.report.chains]
    text = markup(
        "{} of {} (<code>report.chains</code> in the config says how many). <code>faithscope show "
        "RUN --item {}</code> prints every judgement of one, with prompt and raw reply; RUN is "
        'this run’s folder. In Python <code>faithscope.load_run("RUN").verdicts</code> has them '
        "as rows.",
        *(len(chains), len(results.chains), chains[0].id if chains else "ID"),
    )
    return Section("chains", "Chains", text, blocks=[chain_view(results, c).card() for c in chains])


def _exclusions(results: JudgeResults) -> Section:
    heading = "Where every chain went"
    blocks = [
        Grid("exclusions", heading),
        *spent_and_failed(results.run.calls, "judgement", results.run.failures),
    ]
    return Section("exclusions", heading, blocks=blocks, always=True)
