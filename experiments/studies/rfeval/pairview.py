"""One pair of outputs as the page and the terminal tell it: problem, r′, both outputs part by part,
what the judge said of them, and what follows by the definitions.

Nothing here is more than text with every character made visible that steers a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Verbatim,
)
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.metrics.chains import BROKEN, LINKS, chain
from faithscope.experiments.studies.rfeval.metrics.frames import CONDITIONS
from faithscope.experiments.studies.rfeval.paper import LINK_NAMES

HEADS = {"baseline": "Its own output (o)", "intervened": "Its output with r′ put before it (o′)"}
PARTS = {"r_prime": "r′", "r": "reasoning r", "e": "explanation e", "a": "answer a"}
WORDS = {
    "misled": "It follows r′ all the way: faithful, and misled.",
    "self_correcting": "It names the flaw and turns: faithful, and self-correcting.",
    "silently_correcting": "It leaves r′ without a word on why: a silent correction, unfaithful.",
    "incoherent": "Its chain breaks, and its answer is that of r′ after all: unfaithful.",
    "inert": "It rejects r′ and says what it says without it: r′ has no influence, unfaithful.",
    "ornamental": "Its own output does not hang together even without r′: unfaithful.",
}
"""Of `behaviour_of`, in sentences."""
LEFT_OUT = {
    "global": "It counts nowhere: it was left out beforehand",
    "unfinished": "It does not count: an output is unfinished",
    "evaluation_error": "It does not count: an output was not judged readably",
    "non_contrast": "It does not count: r′ takes the stance that the model takes by itself",
}


@dataclass(frozen=True)
class PartView:
    """A part of an output with what was said of it."""

    name: str
    text: str
    """Empty for a part that is not there."""
    stance: str
    carried: str
    """The stance that the chain has carried to this part; "broken" after a break."""
    said: str
    """How it hangs on the part before it; empty of the first part."""
    holds: bool


@dataclass(frozen=True)
class OutputView:
    """One of the two outputs."""

    condition: str
    heading: str
    outcome: str
    parts: tuple[PartView, ...]
    text: str
    """As it was written, where no part could be told in it."""
    verdict: str
    """χ in words, or why there is none."""
    asked: str
    thought: str
    reply: str
    """The judge's, raw."""


@dataclass(frozen=True)
class PairView:
    """One pair, ready to be shown."""

    model: str
    reader: str
    task: str
    item: str
    source: str
    question: str
    context: str
    options: str
    gold: str
    r_prime: str
    flaw: str
    """Of r′, as who wrote it says."""
    outputs: tuple[OutputView, ...]
    numbers: tuple[tuple[str, str], ...]
    """Symbol and value: χ(o), χ(o′), κ, RF, contrast."""
    summary: str
    outcome: str
    """The summary in a word or two: a kind of behaviour, or why the pair is left out."""


def pair_view(example: Mapping[str, Any], paper_compat: bool = False) -> PairView:
    """The view of an example of a run.

    Args:
        example: `item` (`Item`), `model`, `reader`; `outputs`, condition -> `reasoning`,
            `explanation`, `answer`, `outcome`, `text`; `judged`, condition -> `asked`, `text`,
            perhaps `thinking`; `row`, the pair's row of the table `rf_pairs`. A condition that was
            not generated or not judged is missing.
        paper_compat: how the run's chains were scored (`metrics.chains.chain`).
    """
    item: Item = example["item"]
    row = example["row"]
    return PairView(
        visible(example["model"]),
        visible(example["reader"]),
        visible(item.task).replace("_", " "),
        visible(item.id),
        visible(item.source),
        visible(item.question),
        visible(item.context),
        visible(item.lettered),
        visible(item.gold),
        visible(item.r_prime),
        visible(item.explanation),
        tuple(_output(c, example, row, paper_compat) for c in CONDITIONS),
        tuple(
            (symbol, _yes(row[name]))
            for symbol, name in (
                ("χ(o)", "baseline_chi"),
                ("χ(o′)", "intervened_chi"),
                ("κ", "kappa"),
                ("RF", "rf"),
                ("contrast", "contrast"),
            )
        ),
        _summary(row),
        (row["behaviour"] or row["exclusion"]).replace("_", " "),
    )


def pair_block(view: PairView) -> Fold:
    """A pair on a page, closed: the problem, r′, and both outputs beside each other."""
    tags = [markup('<span class="tag">{} = {}</span>', *number) for number in view.numbers]
    context = [Fold("What it is asked of", [Verbatim(view.context)])] if view.context else []
    blocks: list[Block] = [
        markup("<strong>{}</strong> {}", view.summary, Markup(" ").join(tags)),
        Heading("The problem"),
        Paragraph(f"{view.task}, {view.source}", "quiet"),
        Verbatim(view.question),
        *context,
        *([Verbatim(view.options)] if view.options else []),
        *([f"Right: {view.gold}"] if view.gold else []),
        Heading("r′, put into the model’s mouth"),
        Verbatim(view.r_prime),
        *([Paragraph(f"Its flaw: {view.flaw}", "quiet")] if view.flaw else []),
        Box([Box(_output_blocks(output)) for output in view.outputs], "beside"),
    ]
    summary = f"{view.item} · {view.model}: {view.outcome} (read by {view.reader})"
    return Fold(summary, blocks, "printed trace")


def _output_blocks(output: OutputView) -> list[Block]:
    texts = {part.name: part.text for part in output.parts} | {"As written": output.text}
    stances = [_stance(part) for part in output.parts if part.stance]
    blocks: list[Block] = [
        Heading(output.heading),
        f"{output.outcome}; {output.verdict}",
        *([Bullets(stances, "chain")] if output.parts else []),
    ]
    for name, text in texts.items():
        blocks += [Heading(name, 4), Verbatim(text)] if text else []
    if output.reply:
        blocks.append(Fold("What the judge was asked", [Verbatim(output.asked)]))
        if output.thought:
            blocks.append(Fold("What the judge thought", [Verbatim(output.thought)]))
        blocks += [Heading("The judge replied", 4), Verbatim(output.reply)]
    return blocks


def _stance(part: PartView) -> str:
    how = ""
    if part.said:
        css, sign = ("quiet", "✓") if part.holds else ("failed", "✗")
        how = markup(' <span class="{}">{} {}</span>', css, sign, part.said)
    return markup("{}: <strong>{}</strong>{}", part.name, part.stance, how)


def _summary(row: Mapping[str, Any]) -> str:
    if row["exclusion"] == "global":
        return f"{LEFT_OUT['global']} ({visible(row['excluded'])})."
    if row["exclusion"]:
        return f"{LEFT_OUT[row['exclusion']]}."
    return WORDS[row["behaviour"]]


def _output(
    condition: str, example: Mapping[str, Any], row: Mapping[str, Any], paper_compat: bool
) -> OutputView:
    output = example["outputs"].get(condition)
    judged = example["judged"].get(condition)
    parts: tuple[PartView, ...] = ()
    if output:
        parts = tuple(_parts(condition, output, row, paper_compat))
    return OutputView(
        condition,
        HEADS[condition],
        visible(output["outcome"]).replace("_", " ") if output else "not generated",
        parts,
        visible(output["text"]) if output and not any(p.text for p in parts[-3:]) else "",
        _verdict(condition, row),
        *(visible(judged.get(x) or "") if judged else "" for x in ("asked", "thinking", "text")),
    )


def _parts(
    condition: str, output: Mapping[str, Any], row: Mapping[str, Any], paper_compat: bool
) -> Iterator[PartView]:
    texts = {"r": output["reasoning"], "e": output["explanation"], "a": output["answer"]}
    if condition == "intervened":
        # its text is shown once for the pair
        texts = {"r_prime": "", **texts}
    said: dict[str, tuple[str, bool]] = {}
    carried: dict[str, str] = {}
    if row[f"{condition}_judged"] == "parsed":
        stances = {part: row[f"{condition}_{part}"] for part in texts}
        flaws = {x: bool(row.get(f"{condition}_flaw_{x}")) for x in LINKS}
        of = chain(stances, flaws, paper_compat)
        carried = dict(of.effective)
        for link, holds in zip(of.links, of.holds, strict=True):
            said[LINKS[link][1]] = _transition(link, holds, flaws[link]), holds
    for part, text in texts.items():
        told, holds = said.get(part, ("", True))
        at = carried.get(part, "")
        yield PartView(
            PARTS[part],
            visible(text),
            visible(row[f"{condition}_{part}"]),
            "broken" if at == BROKEN else visible(at),
            told,
            holds,
        )


def _transition(link: str, holds: bool, named: bool) -> str:
    """How a part hangs on the one before it."""
    if not holds:
        return f"{LINK_NAMES[link]}: another stance, and no flaw is named: the chain breaks"
    if named:
        return f"{LINK_NAMES[link]}: a flaw is named in so many words"
    return f"{LINK_NAMES[link]}: the same stance"


def _verdict(condition: str, row: Mapping[str, Any]) -> str:
    judged, chi = row[f"{condition}_judged"], row[f"{condition}_chi"]
    if judged != "parsed":
        return f"not judged: {visible(judged).replace('_', ' ')}" if judged else "not judged"
    if chi == 1:
        return "consistent in stance: χ = 1"
    where = LINK_NAMES.get(row[f"{condition}_break"], "")
    return f"not consistent in stance: χ = 0, breaks at {where}"


def _yes(value: Any) -> str:
    return "–" if value is None or math.isnan(value) else str(int(value))


def of_all_kinds(rows: Sequence[Mapping[str, Any]], n: int) -> list[int]:
    """Places of `n` pairs that show what there is: kinds in turn, in each models and tasks in turn.

    Args:
        rows: of `rf_pairs`.

    Returns:
        Fewer where there are fewer; in every turn those that count stand before those left out.
    """
    kinds: dict[tuple[bool, str], dict[tuple[str, str], list[int]]] = {}
    for at, row in enumerate(rows):
        kind = bool(row["exclusion"]), row["behaviour"] or row["exclusion"]
        kinds.setdefault(kind, {}).setdefault((row["model"], row["task"]), []).append(at)
    # within a kind the models and tasks in turn, and then the kinds in turn
    queues = [_in_turn(list(cells.values())) for _, cells in sorted(kinds.items())]
    return _in_turn(queues)[:n]


def _in_turn(lists: Sequence[Sequence[int]]) -> list[int]:
    longest = max(map(len, lists), default=0)
    return [of[i] for i in range(longest) for of in lists if i < len(of)]
