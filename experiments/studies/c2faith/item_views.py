"""Items of C2-Faith as they are shown: what was done to each chain, and all judgements on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from faithscope.experiments.analysis.html import Cell, table_of
from faithscope.experiments.analysis.item_view import (
    Item,
    Items,
    ItemView,
    Part,
    judgement_card,
    unit_part,
)
from faithscope.experiments.analysis.page import Fold, Grid, Paragraph, Step
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.c2faith.additions import twin_of, varying
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.inside import steps_of
from faithscope.experiments.studies.c2faith.judgements import is_varied, right_verdict, truth
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS
from faithscope.experiments.studies.c2faith.results import C2Results, results
from faithscope.experiments.studies.c2faith.scores import place, steps_in
from faithscope.experiments.studies.c2faith.units import INSIDE
from faithscope.probes.record import Record


def items(run: Run) -> Iterator[Item]:
    """Every chain in each condition, and every chain with steps left out.

    An item is found by its id in the benchmark (`….causal`), by that of one condition
    (`….causal.perturbed`), by a varied ask (`….causal.perturbed+command.best`), and by the id of
    its chain.
    """
    read = run.once(results)
    of_ask: dict[str, list[Key]] = defaultdict(list)
    for key in run.index:
        if key[0] in (*READINGS, INSIDE):
            of_ask[twin_of(key[3]) if "+" in key[2] else key[3]].append(key)
    for item in read.benchmark.causal:
        for condition in CONDITIONS:
            ask = f"{item.id}.{condition}"
            parts = [
                _part(read, key, [ask, item.id, item.chain], condition)
                for key in (*of_ask[ask], *of_ask[item.id])
            ]
            yield Item(partial(_causal, item, condition), parts, partial(place, item, condition))
    for item in read.benchmark.coverage:
        parts = [_part(read, key, [item.id, item.chain]) for key in of_ask[item.id]]
        yield Item(partial(_coverage, item), parts)


ITEMS = Items("judgements", items)


def _part(read: C2Results, key: Key, names: list[str], condition: str = "") -> Part:
    def card(record: Record) -> Fold | None:
        if key[0] != INSIDE:
            return ask_card(record, read.forms[record["variant"]])
        return _inside_card(record) if record["condition"] == condition else None

    own = [] if key[0] == INSIDE else [key[3]]
    return unit_part(read.run.index, read.run.records_of, key, [*own, *names], card)


def _causal(item: CausalItem, condition: str) -> ItemView:
    by = f" by {item.author}" if item.author else ""
    broken = item.target if condition == "perturbed" else None
    return ItemView(
        f"{item.id}.{condition}",
        item.problem,
        facts=[f"step {item.target} is replaced ({item.method}{by}) in the perturbed chain"],
        texts={
            f"Step {item.target} of the original chain": item.original,
            f"Step {item.target} of the perturbed chain": item.replacement,
        },
        steps=[
            Step(text, i, "all", "replaced") if i == broken else Step(text, i)
            for i, text in enumerate(steps_in(item, condition))
        ],
    )


def _coverage(item: CoverageItem) -> ItemView:
    n, middle = len(item.removed), item.n_middle
    removed = zip(item.removed, item.removed_steps, strict=True)
    return ItemView(
        item.id,
        item.problem,
        facts=[f"{n} of {middle} middle steps are left out (level {item.level})"],
        texts={f"Step {at}, left out": text for at, text in removed},
        steps=[Step(text, i) for i, text in enumerate(item.steps)],
    )


def ask_card(record: Record, form: TaskForm) -> Fold:
    """One judgement, its verdict beside the right one, and how likely the judge held each."""
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["ask"]]
    if is_varied(record) and record["varied"] in varying():
        parts.append(varying()[record["varied"]].words(record)[0])
    given, right = record["verdict"], right_verdict(form.task, record)
    words = f"{'No verdict' if given is None else f'Verdict {given}'} ({record['outcome']})"
    mark = "" if None in (given, right) else " ✓" if given == right else " ✗"
    is_right = "" if right is None else f" right is {right}:"
    verdict = f"{words}{mark};{is_right} {truth(record)}."
    return judgement_card(record, parts, [verdict], form.form.verdict_field.low or 0)


def _inside_card(record: Mapping[str, Any]) -> Fold:
    """Table of the signals inside a model at each step of a chain, and of the step that each
    names."""
    signals = steps_of(record)
    broken = record["target"] if record["condition"] == "perturbed" else None
    lines = [
        [
            Cell(f"{i} broken" if i == broken else str(i), str(i)),
            *(_signal(of[i], i == record[f"predicted_{s}"]) for s, of in signals.items()),
        ]
        for i in range(record["n_steps"])
    ]
    table = table_of(["step", *(signal.replace("_", " ") for signal in signals)], lines)
    key = Paragraph("▲ the step that a signal finds most suspicious", "quiet")
    title = " · ".join((record["model"], "inside", record["condition"]))
    return Fold(title, [Grid(table, "Signals by step"), key])


def _signal(value: float | None, is_named: bool) -> Cell | float | None:
    return Cell(f"▲ {decimal(value, 3)}", repr(value)) if is_named and value is not None else value
