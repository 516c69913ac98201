"""One item of C2-Faith in the terminal: what was done to it, and every judgement word for word.

Nothing that a model or a chain says reaches the terminal as anything but text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from faithscope.experiments.analysis.item_view import Narrowing, narrowed
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.judges import as_sent
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.c2faith.asks import CONDITIONS
from faithscope.experiments.studies.c2faith.injection import twin_of
from faithscope.experiments.studies.c2faith.inside import steps_of
from faithscope.experiments.studies.c2faith.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.judgements import (
    READINGS,
    expected_verdict,
    is_injected,
    right_verdict,
    truth,
)
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.saved import Benchmark
from faithscope.experiments.studies.c2faith.units import INJECTED, INSIDE
from faithscope.interp.errors import UserError

Record = dict[str, Any]
MOST_CHANCES = 12
"""Probabilities on one line; of a finer scale or a longer chain the likeliest are told."""


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
    found = results(run_dir)
    items = _Items(found.benchmark)
    keys = find([k for k in found.index if k[0] in (*READINGS, INSIDE)], items, item, model, task)
    for of in dict.fromkeys(items.of(key) for key in keys):
        _print_item(console, of)
        for key in (k for k in keys if items.of(k) == of):
            failed = found.index.get(key)
            if failed is not None and failed.failed is not None:
                _head(console, *key[1:], "failed")
                console.print(Text(visible(failed.failed), style="bold"))
                continue
            for record in found.index.records(key):
                if key[0] != INSIDE:
                    _print_judgement(console, record, found.forms[record["variant"]])
                elif item in items.names(key, record["condition"]):
                    _print_inside(console, record)


class _Items:
    """The names by which an item can be asked for."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._by_id: dict[str, CausalItem | CoverageItem] = {}
        for made in (*benchmark.causal, *benchmark.coverage):
            self._by_id[made.id] = made
            if isinstance(made, CausalItem):
                self._by_id |= dict.fromkeys((f"{made.id}.{c}" for c in CONDITIONS), made)

    def of(self, key: Key) -> CausalItem | CoverageItem:
        return self._by_id[_ask(key)]

    def names(self, key: Key, condition: str | None = None) -> list[str]:
        """The ask first, with a text in the chain and without, then the item and the chain; of a
        look inside, its conditions."""
        of = self.of(key)
        conditions = CONDITIONS if condition is None else (condition,)
        asks = [f"{of.id}.{c}" for c in conditions] if key[0] == INSIDE else [key[3], _ask(key)]
        return list(dict.fromkeys([*asks, of.id, of.chain]))


def _ask(key: Key) -> str:
    """The id of the ask; of one with a text put into its chain, that of its twin without."""
    return twin_of(key[3]) if key[2].endswith(INJECTED) else key[3]


def find(
    keys: Sequence[Key], items: _Items, item: str, model: str | None, task: str | None
) -> list[Key]:
    """What there is of an item, planted models first.

    Raises:
        UserError: nothing is left; names the first of model, task and item that fits nothing.
    """
    if not keys:
        raise UserError("the run holds no judgements yet; start it again with `faithscope run`")
    ordered = sorted(keys, key=lambda k: (model_order(k[1]), k[2], k[3], k[0]))
    by: list[Narrowing[Key]] = [
        ("model", model, lambda key: key[1:2]),
        ("task", task, lambda key: key[2:3]),
        ("item", item, items.names),
    ]
    return narrowed(ordered, by, "judgements")


def _head(console: Console, *parts: str) -> None:
    console.print()
    console.print(Text(visible(" · ".join(p for p in parts if p)), style="bold"))


def _print_item(console: Console, of: CausalItem | CoverageItem) -> None:
    console.rule(Text(visible(of.id), style="bold"), align="left")
    console.print(Text(visible(of.problem)))
    console.print()
    if isinstance(of, CausalItem):
        by = f" by {of.author}" if of.author else ""
        console.print(Text(f"Step {of.target} is replaced ({visible(of.method + by)}):"))
        for label, text in (("was", of.original), ("is", of.replacement)):
            _print_indented(console, f"{label}: {text}")
    else:
        n, middle = len(of.removed), of.n_middle
        console.print(Text(f"{n} of {middle} middle steps are left out (level {of.level}):"))
        for at, text in zip(of.removed, of.removed_steps, strict=True):
            _print_indented(console, f"{at}: {text}")


def _print_under(console: Console, label: str, text: str) -> None:
    console.print(Text(label, style="dim"))
    _print_indented(console, text)


def _print_indented(console: Console, text: str) -> None:
    console.print(Padding(Text(visible(text)), (0, 0, 0, 2)))


def _print_judgement(console: Console, r: Record, form: TaskForm) -> None:
    parts = (r["judge"], r["variant"], READINGS[r["probe"]], r["condition"] or "")
    _head(console, *parts, _injection(r) if is_injected(r) else "")
    console.print(Text(_verdict(r, form)))
    for label, text in (
        ("Told", r["system"] or ""),
        ("Asked", as_sent(r)),
        ("Thought", r["thinking"]),
        ("Replied", r["text"]),
        ("Problem", r["problem"]),
    ):
        if text:
            _print_under(console, label, text)
    if r["probabilities"]:
        _print_under(console, "Probabilities", _chances(r, form))


def _injection(r: Record) -> str:
    demand = f" for the {r['demand']} verdict" if r["demand"] else ""
    return f"injected {r['injection']}{demand}"


def _verdict(r: Record, form: TaskForm) -> str:
    said = "No verdict" if r["verdict"] is None else f"Verdict {r['verdict']}"
    right = right_verdict(form.task, r)
    if right is None:
        told = f"; {truth(r)}"
    else:
        mark = "" if r["verdict"] is None else " ✓" if r["verdict"] == right else " ✗"
        told = f"{mark}; right is {right}: {truth(r)}"
    return f"{said} ({r['outcome']}){told}."


def _chances(r: Record, form: TaskForm) -> str:
    """The likeliest verdicts in their order, the mean of all, and what they have together."""
    low, p = form.form.verdict_field.low or 0, r["probabilities"]
    likeliest = sorted(sorted(range(len(p)), key=lambda i: -p[i])[:MOST_CHANCES])
    told = "   ".join(f"{low + i}: {p[i]:.3f}" for i in likeliest)
    more = f"   … ({len(p)} in all)" if len(p) > MOST_CHANCES else ""
    mean = expected_verdict(r, form)
    return f"{told}{more}\nmean {mean:.2f}; mass {r['mass']:.3g} of the model's probability"


def _print_inside(console: Console, r: Record) -> None:
    _head(console, r["model"], "inside", r["condition"])
    signals = steps_of(r)
    broken = r["target"] if r["condition"] == "perturbed" else None
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step")
    for signal in signals:
        table.add_column(Text(signal.replace("_", " ")), justify="right")
    for i in range(r["n_steps"]):
        cells = [_signal(values[i], i == r[f"predicted_{s}"]) for s, values in signals.items()]
        table.add_row(Text(f"{i}{' broken' if i == broken else ''}"), *cells)
    console.print(table)
    console.print(Text("▲ the step that a signal finds most suspicious", style="dim"))


def _signal(value: float | None, is_named: bool) -> Text:
    if value is None:
        return Text("–", style="dim")
    return Text(f"{'▲ ' if is_named else ''}{value:.3f}", style="bold" if is_named else "")
