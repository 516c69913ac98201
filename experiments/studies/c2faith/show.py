"""An item of C2-Faith on the page and in the terminal: what was done to it, and all judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from faithscope.experiments.analysis.html import Cell, HtmlTable
from faithscope.experiments.analysis.item_view import (
    narrowed,
    print_item,
    print_records,
    reply_block,
)
from faithscope.experiments.analysis.page import Block, Fold, Grid, Paragraph, Verbatim
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.c2faith.benchmark.injection import twin_of
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.inside import steps_of
from faithscope.experiments.studies.c2faith.judgements import (
    expected_verdict,
    is_injected,
    right_verdict,
    truth,
)
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.units import INJECTED, INSIDE
from faithscope.probes.record import Record


def show_item(
    run_dir: str | Path,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
) -> None:
    """Print all that a run holds of an item: prompts, raw replies, verdicts, signals by step.

    Args:
        item: id of a benchmark item (`….causal`), of one condition of it
            (`….causal.perturbed`), of one ask with a text put into the chain
            (`….causal.perturbed+command.best`), or of a chain, for all that was made of it.
        model, task: only this judge or model looked into; only this form.

    Raises:
        UserError: no such item, model or form in the run, with what was probably meant.
    """
    console = console or Console()
    read = results(load_run(run_dir))
    index, items = read.run.index, _Items(read.benchmark)
    keys = find([k for k in index if k[0] in (*READINGS, INSIDE)], items, item, model, task)

    def block(key: Key, record: Record) -> Fold | None:
        if key[0] != INSIDE:
            return judgement_block(record, read.forms[record["variant"]])
        return inside_block(record) if item in items.names(key, record["condition"]) else None

    for of in dict.fromkeys(items.of(key) for key in keys):
        print_item(console, Fold(of.id, item_blocks(of)))
        for key in (k for k in keys if items.of(k) == of):
            print_records(console, index, key, lambda r, key=key: block(key, r))


class _Items:
    """The names by which an item can be asked for."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._by_id: dict[str, CausalItem | CoverageItem] = {}
        for item in (*benchmark.causal, *benchmark.coverage):
            self._by_id[item.id] = item
            if isinstance(item, CausalItem):
                self._by_id |= dict.fromkeys((f"{item.id}.{c}" for c in CONDITIONS), item)

    def of(self, key: Key) -> CausalItem | CoverageItem:
        return self._by_id[_ask(key)]

    def names(self, key: Key, condition: str | None = None) -> list[str]:
        """Names that find a record: the ask, with a text in the chain and without, then the item
        and the chain; for a look inside, its conditions take the ask's place."""
        of = self.of(key)
        conditions = CONDITIONS if condition is None else (condition,)
        asks = [f"{of.id}.{c}" for c in conditions] if key[0] == INSIDE else [key[3], _ask(key)]
        return list(dict.fromkeys([*asks, of.id, of.chain]))


def _ask(key: Key) -> str:
    """Id of a record's ask; for an ask with a text put into its chain, that of its twin without."""
    return twin_of(key[3]) if key[2].endswith(INJECTED) else key[3]


def find(
    keys: Sequence[Key], items: _Items, item: str, model: str | None, task: str | None
) -> list[Key]:
    """Keys of what the run holds of an item, planted models first.

    Raises:
        UserError: nothing is left; names the first of model, task and item that fits nothing.
    """
    ordered = sorted(keys, key=lambda k: (model_order(k[1]), k[2], k[3], k[0]))
    asked = (ordered, "judgements", item, model, task)
    return narrowed(*asked, lambda key: (key[1:2], key[2:3], items.names(key)))


MOST_CHANCES = 12
"""Most probabilities on one line; for a finer scale or a longer chain the likeliest are shown."""


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


def judgement_block(record: Record, form: TaskForm) -> Fold:
    """One judgement, its verdict beside the right one, and how likely the judge held each."""
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["ask"]]
    if is_injected(record):
        demand = f" for the {record['demand']} verdict" if record["demand"] else ""
        parts.append(f"injected {record['injection']}{demand}")
    chances = _chances(record, form) if record["probabilities"] else ""
    return reply_block(record, parts, chances, [_verdict(record, form)])


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
    """Table of the signals inside a model at each step of a chain, and of the step that each
    names."""
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
