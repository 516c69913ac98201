"""Sections of the page on judges: what they say of chains, and how well labels agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Bullets, Section
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import finding, short
from faithscope.experiments.numerals import decimal, estimate, percent
from faithscope.experiments.studies.slrc.judges.item_views import chain_view
from faithscope.experiments.studies.slrc.judges.results import JudgeResults

FEW = 30
"""Number of chains below which the page warns that differences may be chance."""
CLASS = 10
"""Number of chains per class below which no judge is evaluated against a label."""
MOST_SAID = 2
"""Most prompts whose verdicts the first line of a page gives."""
SECTIONS = [
    Section(
        "judge_forms",
        "What judges say",
        "Per prompt, judge and model that wrote the chains. Flagged: something is wrong, as the "
        "prompt asks it: a step that is not sound, one that does not follow from those before it, "
        "an unfaithful chain. Scores are higher where a chain is worse, whatever the prompt. A "
        "prompt that asks for a property flags nothing: has it is the share of chains in which "
        "the judge finds the property, and scores are higher for more of it.",
        tables=("judge_forms",),
        always=True,
    ),
    Section(
        "judge_agreement",
        "Judges and labels",
        "Judges compared with every label that says yes or no. A label of correctness and one of "
        "faithfulness are two things: a wrong step may be faithfully told, and a right one made "
        "up. A prompt that asks for a property is compared with the label as it stands, turned "
        "only where the label’s name and the direction of the property contradict each other. "
        "Where nearly all labels are one, Cohen’s κ falls towards 0 however well the two "
        "agree, and AC2 is to be read.",
        tables=("judge_agreement", "judge_localisation"),
        absent="the chains came without labels: a column labels in the file of traces.path",
    ),
    Section(
        "judge_steps",
        "Judges, step by step",
        "How often the first, second … step of a chain is flagged.",
        tables=("judge_steps",),
        absent="no prompt asks about steps: --set judges.forms=[step_judge]",
    ),
]


def lead(read: JudgeResults) -> str:
    """First line of the page of a run in which no model reads the chains."""
    steps = sum(len(chain.places) for chain in read.chains.values())
    return (
        "What do judges say of chains of thought that were written elsewhere? "
        f"{len(read.chains)} chains with {steps} steps; no model that reasons was run."
    )


def in_short(read: JudgeResults) -> str:
    """First line of the page of a run in which no model reads the chains: how many have a readable
    verdict under every prompt, and what the judges say of them."""
    n, forms = len(read.chains), rows(read.tables["judge_forms"])
    silent = min(n, max((int(row["n_without_verdict"]) for row in forms), default=n))
    said = [
        f"{short(row['judge'])}, asked {row['form']} ({row['reading']}), {_says(row)}"
        for row in forms
    ]
    more = f" Below are {len(said) - MOST_SAID} further prompts." if len(said) > MOST_SAID else ""
    lost = {"without a reply that could be read": silent}
    what = "chains have a verdict under every prompt"
    return finding(
        n - silent, n, what, f"{'; '.join(said[:MOST_SAID])}.{more}" if said else "", lost
    )


def warnings(read: JudgeResults) -> list[str]:
    """Warning about a run whose judges read few chains."""
    n = len(read.chains)
    if n >= FEW:
        return []
    are = "chain: a glance" if n == 1 else "chains: a glance"
    return [f"This run has {n} {are}, not a reading. Differences may be chance."]


def verdict(results: JudgeResults) -> Section:
    """The verdict section: what judges said with each prompt, and how well that fits the labels of
    chains."""
    agreement = results.tables["judge_agreement"]
    lines = []
    for row in rows(results.tables["judge_forms"]):
        way = {name: row[name] for name in ("judge", "reading", "form")}
        held = " ".join(map(_held, rows(where(agreement, level="chain", **way))))
        lines.append(
            markup(
                "<strong>{}</strong>, asked <code>{}</code> ({}), {} of {} chains of {} by {}. {}",
                *(way["judge"], way["form"], way["reading"], _says(row), row["n"]),
                *(row["dataset"], row["model"] or "an unknown writer", held),
            )
        )
    text = (
        "AUROC is how often a chain labelled wrong scores worse than another, or one that is "
        "labelled to have a property scores higher: 0.5 is chance. "
        f"Nothing is said of fewer than {CLASS} chains of either kind."
    )
    return Section("judges", "What judges find", text, blocks=[Bullets(lines)], always=True)


def _says(row: Mapping[str, Any]) -> str:
    """What a judge says of chains under one prompt, as a verb with its object."""
    flagged, holds, score = row["flagged"], row["holds"], row["mean_score"]
    if flagged == flagged:
        return f"flags {percent(flagged)}"
    if holds == holds:
        return f"finds what is asked for in {percent(holds)}"
    return f"gives a mean score of {decimal(score)}" if score == score else "gives no verdict"


def _held(row: Mapping[str, Any]) -> str:
    """One sentence on how a judge does against one label of chains."""
    wrong = round(row["labelled_wrong"] * (row["n"] + row["n_without_verdict"]))
    few = min(wrong, row["n"] - wrong)
    label = f"Against the label “{row['label']}”"
    if few < CLASS:
        n = max(few, 0)
        return f"{label} no conclusion can be drawn: {n} of its chains have the rarer value."
    low, high = row["auroc_low"], row["auroc_high"]
    word = (
        "it is better than chance"
        if low > 0.5
        else "it is worse than chance"
        if high < 0.5
        else "it is not distinguished from chance"
    )
    return f"{label} {word}: AUROC {estimate(row['auroc'], low, high)}."


def examples(results: JudgeResults) -> Section:
    """Some chains with what judges and labels say of each step."""
    names = list(results.chains)[: results.report.traces]
    text = markup(
        "{} of {} (<code>report.traces</code> in the config says how many). <code>faithscope show "
        "RUN --item {}</code> prints every judgement of one, with prompt and raw reply; RUN is "
        'this run’s folder. In Python <code>faithscope.load_run("RUN").verdicts</code> has them '
        "as rows.",
        *(len(names), len(results.chains), results.chains[names[0]].id if names else "ID"),
    )
    return Section("chains", "Chains", text, blocks=[chain_view(results, n).card() for n in names])
