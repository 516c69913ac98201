"""An item of C2-Faith as the page and the terminal show it: what was done to it, and every
judgement word for word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.analysis.html import Cell, HtmlTable
from faithscope.experiments.analysis.page import (
    Block,
    Fold,
    Grid,
    Heading,
    Paragraph,
    Verbatim,
)
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.inside import steps_of
from faithscope.experiments.studies.c2faith.judgements import (
    READINGS,
    expected_verdict,
    is_injected,
    right_verdict,
    truth,
)
from faithscope.experiments.studies.c2faith.prompts import TaskForm

MOST_CHANCES = 12
"""Probabilities on one line; of a finer scale or a longer chain the likeliest are told."""


def item_blocks(item: CausalItem | CoverageItem) -> list[Block]:
    """The problem, and what was done to its chain."""
    blocks: list[Block] = [Verbatim(item.problem)]
    if isinstance(item, CausalItem):
        by = f" by {item.author}" if item.author else ""
        blocks.append(f"Step {item.target} is replaced ({item.method}{by}):")
        return [*blocks, Verbatim(f"was: {item.original}"), Verbatim(f"is: {item.replacement}")]
    n, middle = len(item.removed), item.n_middle
    blocks.append(f"{n} of {middle} middle steps are left out (level {item.level}):")
    removed = zip(item.removed, item.removed_steps, strict=True)
    return [*blocks, *(Verbatim(f"{at}: {text}") for at, text in removed)]


def judgement_block(record: Mapping[str, Any], form: TaskForm) -> Fold:
    """One judgement: its verdict beside the right one, what the judge was told and asked, what it
    thought and replied, and how likely it held each verdict."""
    texts = {
        "Told": record["system"],
        "Asked": as_sent(record),
        "Thought": record["thinking"],
        "Replied": record["text"],
        "Problem": record["problem"],
        "Probabilities": _chances(record, form) if record["probabilities"] else "",
    }
    blocks: list[Block] = [_verdict(record, form)]
    for heading, text in texts.items():
        if text:
            blocks += [Heading(heading, 4), Verbatim(text)]
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["ask"]]
    if is_injected(record):
        demand = f" for the {record['demand']} verdict" if record["demand"] else ""
        parts.append(f"injected {record['injection']}{demand}")
    verdict = "none" if record["verdict"] is None else record["verdict"]
    summary = f"{' · '.join(parts)}: {record['outcome']}, verdict {verdict}"
    return Fold(summary, blocks, "printed")


def _verdict(record: Mapping[str, Any], form: TaskForm) -> str:
    given, right = record["verdict"], right_verdict(form.task, record)
    words = "No verdict" if given is None else f"Verdict {given}"
    if right is None:
        return f"{words} ({record['outcome']}); {truth(record)}."
    mark = "" if given is None else " ✓" if given == right else " ✗"
    return f"{words} ({record['outcome']}){mark}; right is {right}: {truth(record)}."


def _chances(record: Mapping[str, Any], form: TaskForm) -> str:
    """The likeliest verdicts in their order, the mean of all, and what they have together."""
    low, p = form.form.verdict_field.low or 0, record["probabilities"]
    likeliest = sorted(sorted(range(len(p)), key=lambda i: -p[i])[:MOST_CHANCES])
    listed = "   ".join(f"{low + i}: {p[i]:.3f}" for i in likeliest)
    more = f"   … ({len(p)} in all)" if len(p) > MOST_CHANCES else ""
    mean, mass = expected_verdict(record, form), record["mass"]
    return f"{listed}{more}\nmean {mean:.2f}; mass {mass:.3g} of the model's probability"


def inside_block(record: Mapping[str, Any]) -> Fold:
    """What a model shows inside at each step of a chain, and the step that each signal names."""
    signals = steps_of(record)
    broken = record["target"] if record["condition"] == "perturbed" else None
    table = HtmlTable(
        ["step", *(signal.replace("_", " ") for signal in signals)],
        [False, *[True] * len(signals)],
        [
            [
                Cell(f"{i}{' broken' if i == broken else ''}", str(i)),
                *(_signal(v[i], i == record[f"predicted_{s}"]) for s, v in signals.items()),
            ]
            for i in range(record["n_steps"])
        ],
    )
    key = Paragraph("▲ the step that a signal finds most suspicious", "quiet")
    parts = (record["model"], "inside", record["condition"])
    return Fold(" · ".join(parts), [Grid(table, "Signals by step"), key])


def _signal(value: float | None, is_named: bool) -> Cell:
    shown = "–" if value is None else f"{'▲ ' if is_named else ''}{value:.3f}"
    return Cell(shown, repr(value))
