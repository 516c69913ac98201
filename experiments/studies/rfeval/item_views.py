"""Pairs of outputs as items: problem, r′, both outputs part by part, what the judge said of them,
and what follows by the definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from markupsafe import Markup

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.item_view import (
    Item,
    Items,
    ItemView,
    Part,
    judgement_card,
    text_blocks,
)
from faithscope.experiments.analysis.page import Block, Box, Bullets, Fold, Heading, Verbatim
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval import items as data
from faithscope.experiments.studies.rfeval.paper_names import LINK_NAMES
from faithscope.experiments.studies.rfeval.results import RfResults
from faithscope.experiments.studies.rfeval.scores import place
from faithscope.experiments.studies.rfeval.tables.chains import LINKS, chain

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


def pairs_of(results: RfResults) -> Iterator[Item]:
    """Every pair of outputs, as every reader judged it.

    A pair is found by its item, `legal_decision/12`, or by the item's row alone, `12`, of whatever
    task.
    """
    for pair in rows(results.tables["rf_pairs"]):
        names = (pair["item"], pair["item"].rpartition("/")[2])
        key = (pair["model"], pair["item"])
        yield Item(
            lambda pair=pair: pair_view(results.example(pair), results.config.paper_compat),
            [Part(pair["model"], pair["task"], names)],
            partial(place, results, key),
        )


ITEMS = Items("pairs", lambda run: pairs_of(run.once(RfResults)))


def pair_view(example: Mapping[str, Any], paper_compat: bool = False) -> ItemView:
    """A pair: the problem, r′, and both outputs beside each other.

    Args:
        example: `item` (`Item`), `model`, `reader`; `outputs`, condition -> `reasoning`,
            `explanation`, `answer`, `outcome`, `text`; `judged`, condition -> the record of the
            judgement; `row`, the pair's row of the table `rf_pairs`; `said`, phrases on what is not
            measured. A condition that was not
            generated or not judged is missing.
        paper_compat: how the run's chains were scored (`tables.chains.chain`).
    """
    item: data.Item = example["item"]
    row, own = example["row"], example["outputs"].get("baseline", {})
    tags = [
        markup('<span class="tag">{} = {}</span>', symbol, _number(row[name]))
        for symbol, name in NUMBERS.items()
    ]
    outcome = _spaced(row["behaviour"] or row["exclusion"])
    right = [markup("right answer <strong>{}</strong>", item.gold)] if item.gold else []
    context = [Fold("What it is asked of", [Verbatim(item.context)])] if item.context else []
    return ItemView(
        f"{item.id} · {example['model']}: {outcome} (read by {example['reader']})",
        "\n".join(filter(None, (item.question, item.lettered))),
        own.get("answer"),
        item.gold,
        [f"{_spaced(item.task)}, {item.source}", *right, *example["said"]],
        above=context,
        texts={"r′, the injected reasoning": item.r_prime, "Flaw of r′": item.explanation},
        below=[
            markup("<strong>{}</strong> {}", _summary(row), Markup(" ").join(tags)),
            Box([Box(_output(c, example, paper_compat)) for c in data.CONDITIONS], "beside"),
        ],
        chain=[own["reasoning"]] if own.get("reasoning") else [],
    )


def _output(condition: str, example: Mapping[str, Any], paper_compat: bool) -> list[Block]:
    """One of the two outputs: its stances, its texts, what its judge was asked and replied."""
    row = example["row"]
    output, judged = (example[x].get(condition) for x in ("outputs", "judged"))
    outcome = _spaced(output["outcome"]) if output else "not generated"
    blocks: list[Block] = [Heading(HEADS[condition]), f"{outcome}; {_verdict(condition, row)}"]
    if output:
        blocks.append(Bullets(_stances(condition, row, paper_compat), "chain"))
        texts = {PARTS[part]: output[name] for part, name in TEXTS.items() if output[name]}
        blocks += text_blocks(texts or {"As written": output["text"]})
    if judged:
        blocks.append(judgement_card(judged, [f"read by {example['reader']}"]))
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
