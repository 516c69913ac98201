"""One item of C2-Faith in the terminal: what was done to it, and every judgement word for word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from faithscope.experiments.analysis.item_view import Narrowing, narrowed, print_item
from faithscope.experiments.analysis.page import Fold
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.c2faith.asks import CONDITIONS
from faithscope.experiments.studies.c2faith.benchmark.injection import twin_of
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.itemview import (
    inside_block,
    item_blocks,
    judgement_block,
)
from faithscope.experiments.studies.c2faith.judgements import READINGS
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.units import INJECTED, INSIDE
from faithscope.interp.errors import UserError


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
    for of in dict.fromkeys(items.of(key) for key in keys):
        print_item(console, Fold(of.id, item_blocks(of)))
        for key in (k for k in keys if items.of(k) == of):
            failed = index.get(key)
            if failed is not None and failed.failed is not None:
                print_item(console, Fold(" · ".join((*key[1:], "failed")), [failed.failed]))
                continue
            for record in index.records(key):
                if key[0] != INSIDE:
                    form = read.forms[record["variant"]]
                    print_item(console, judgement_block(record, form))
                elif item in items.names(key, record["condition"]):
                    print_item(console, inside_block(record))


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
