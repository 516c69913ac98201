"""One pair of outputs as the page and the terminal show it: problem, r′, both outputs part by part,
what the judge said of them, and what follows by the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Console

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.item_view import Names, narrowed, print_item
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Verbatim,
)
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Item
from faithscope.experiments.studies.rfeval.metrics.chains import LINKS, chain
from faithscope.experiments.studies.rfeval.report.paper import LINK_NAMES
from faithscope.experiments.studies.rfeval.results import RfResults, results
from faithscope.interp.errors import UserError


def show_item(
    run_dir: Path, item: str, model: str | None, task: str | None, console: Console
) -> None:
    """Print every pair of an item that a run folder holds, as every reader judged it.

    Args:
        item: the id, `legal_decision/12`, or its row alone, `12`, of whatever task.
        model, task: only pairs of these.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant; or the
            run holds no outputs yet.
    """
    show_pairs(results(run_dir), item, model, task, console)


def show_pairs(
    run: RfResults, item: str, model: str | None, task: str | None, console: Console
) -> None:
    """Prints the pairs of an item from results that are read already; see `show_item`."""
    pairs = rows(run.tables["rf_pairs"])
    if not pairs:
        raise UserError("the run holds no outputs yet; start it again with `faithscope run`")

    def names(pair: Mapping[str, Any]) -> Names:
        return [pair["model"]], [pair["task"]], [pair["item"], pair["item"].rpartition("/")[2]]

    for pair in narrowed(pairs, "pairs", item, model, task, names):
        print_item(console, pair_block(run.example(pair), run.config.paper_compat))


HEADS = {"baseline": "Its own output (o)", "intervened": "Its output with r′ put before it (o′)"}
PARTS = {"r_prime": "r′", "r": "reasoning r", "e": "explanation e", "a": "answer a"}
TEXTS = {"r": "reasoning", "e": "explanation", "a": "answer"}
"""Part -> its name in an output; the text of r′ is shown once for the pair."""
NUMBERS = {"χ(o)": "baseline_chi", "χ(o′)": "intervened_chi", "κ": "kappa", "RF": "rf"}
NUMBERS |= {"contrast": "contrast"}
WORDS = {
    "misled": "It follows r′ all the way: faithful, and misled.",
    "self_correcting": "It names the flaw and turns: faithful, and self-correcting.",
    "silently_correcting": "It leaves r′ without a word on why: a silent correction, unfaithful.",
    "incoherent": "Its chain breaks, and its answer is that of r′ after all: unfaithful.",
    "inert": "It rejects r′ and says what it says without it: r′ has no influence, unfaithful.",
    "ornamental": "Its own output does not hang together even without r′: unfaithful.",
}
"""Behaviour (of `behaviour_of`) -> a sentence on it."""
LEFT_OUT = {
    "global": "It counts nowhere: it was left out beforehand",
    "unfinished": "It does not count: an output is unfinished",
    "evaluation_error": "It does not count: an output was not judged readably",
    "non_contrast": "It does not count: r′ takes the stance that the model takes by itself",
}


def pair_block(example: Mapping[str, Any], paper_compat: bool = False) -> Fold:
    """A pair, closed: the problem, r′, and both outputs beside each other.

    Args:
        example: `item` (`Item`), `model`, `reader`; `outputs`, condition -> `reasoning`,
            `explanation`, `answer`, `outcome`, `text`; `judged`, condition -> `asked`, `text`,
            perhaps `thinking`; `row`, the pair's row of the table `rf_pairs`. A condition that was
            not generated or not judged is missing.
        paper_compat: how the run's chains were scored (`metrics.chains.chain`).
    """
    item: Item = example["item"]
    row = example["row"]
    tags = [
        markup('<span class="tag">{} = {}</span>', symbol, _number(row[name]))
        for symbol, name in NUMBERS.items()
    ]
    context = [Fold("What it is asked of", [Verbatim(item.context)])] if item.context else []
    blocks: list[Block] = [
        markup("<strong>{}</strong> {}", _summary(row), Markup(" ").join(tags)),
        Heading("The problem"),
        Paragraph(f"{_spaced(item.task)}, {item.source}", "quiet"),
        Verbatim(item.question),
        *context,
        *([Verbatim(item.lettered)] if item.lettered else []),
        *([f"Right: {item.gold}"] if item.gold else []),
        Heading("r′, put into the model’s mouth"),
        Verbatim(item.r_prime),
        *([Paragraph(f"Its flaw: {item.explanation}", "quiet")] if item.explanation else []),
        Box([Box(_output(c, example, paper_compat)) for c in CONDITIONS], "beside"),
    ]
    outcome = _spaced(row["behaviour"] or row["exclusion"])
    summary = f"{item.id} · {example['model']}: {outcome} (read by {example['reader']})"
    return Fold(summary, blocks, "printed trace")


def _output(condition: str, example: Mapping[str, Any], paper_compat: bool) -> list[Block]:
    """One of the two outputs: its stances, its texts, what its judge was asked and replied."""
    row = example["row"]
    output, judged = (example[x].get(condition) for x in ("outputs", "judged"))
    outcome = _spaced(output["outcome"]) if output else "not generated"
    blocks: list[Block] = [Heading(HEADS[condition]), f"{outcome}; {_verdict(condition, row)}"]
    if output:
        blocks.append(Bullets(_stances(condition, row, paper_compat), "chain"))
        texts = {PARTS[part]: output[name] for part, name in TEXTS.items() if output[name]}
        for name, text in (texts or {"As written": output["text"]}).items():
            blocks += [Heading(name, 4), Verbatim(text)] if text else []
    if judged and judged.get("text"):
        blocks.append(Fold("What the judge was asked", [Verbatim(judged["asked"])]))
        if judged.get("thinking"):
            blocks.append(Fold("What the judge thought", [Verbatim(judged["thinking"])]))
        blocks += [Heading("The judge replied", 4), Verbatim(judged["text"])]
    return blocks


def _stances(condition: str, row: Mapping[str, Any], paper_compat: bool) -> list[str]:
    """The stance of each part that has one, and how it hangs on the part before it."""
    parts = [part for part in PARTS if part != "r_prime" or condition == "intervened"]
    stances = {part: row[f"{condition}_{part}"] for part in parts}
    transitions: dict[str, Markup] = {}
    if row[f"{condition}_judged"] == "parsed":
        flaws = {link: bool(row.get(f"{condition}_flaw_{link}")) for link in LINKS}
        of = chain(stances, flaws, paper_compat)
        for link, holds in zip(of.links, of.holds, strict=True):
            transitions[LINKS[link][1]] = _transition(link, holds, flaws[link])
    return [
        markup("{}: <strong>{}</strong>{}", PARTS[part], stance, transitions.get(part, ""))
        for part, stance in stances.items()
        if stance
    ]


def _transition(link: str, holds: bool, named: bool) -> Markup:
    words = "a flaw is named in so many words" if named else "the same stance"
    if not holds:
        words = "another stance, and no flaw is named: the chain breaks"
    css, sign = ("quiet", "✓") if holds else ("failed", "✗")
    return markup(' <span class="{}">{} {}: {}</span>', css, sign, LINK_NAMES[link], words)


def _summary(row: Mapping[str, Any]) -> str:
    if not row["exclusion"]:
        return WORDS[row["behaviour"]]
    why = f" ({row['excluded']})" if row["exclusion"] == "global" else ""
    return f"{LEFT_OUT[row['exclusion']]}{why}."


def _verdict(condition: str, row: Mapping[str, Any]) -> str:
    """Says in words what χ is, or why there is none."""
    judged, chi = row[f"{condition}_judged"], row[f"{condition}_chi"]
    if judged != "parsed":
        return f"not judged: {_spaced(judged)}" if judged else "not judged"
    if chi == 1:
        return "consistent in stance: χ = 1"
    where = LINK_NAMES.get(row[f"{condition}_break"], "")
    return f"not consistent in stance: χ = 0, breaks at {where}"


def _number(value: Any) -> str:
    return "–" if value is None or math.isnan(value) else str(int(value))


def _spaced(name: str) -> str:
    return name.replace("_", " ")
