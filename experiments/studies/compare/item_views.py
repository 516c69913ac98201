"""Traces of a comparison as items: all scores of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pandas as pd

from faithscope.experiments.analysis.columns import SHARED
from faithscope.experiments.analysis.html import html_table
from faithscope.experiments.analysis.item_view import Item, Items, ItemView, Part
from faithscope.experiments.analysis.page import Grid
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import only

SHOWN = ["measure", "family", "value", "higher_is_faithful", "missing"]


def items(run: Run) -> Iterator[Item]:
    """Every trace of the compared runs."""
    for key, scores in run.items.groupby(["model", "task", "item", "trace"], sort=True):
        model, task, item, trace = map(str, cast("tuple[Any, ...]", key))
        title = f"{task} · {item} · {model} · trace {trace}"
        yield Item(partial(_view, title, scores), [Part(model, task, [item])])


def _view(title: str, scores: pd.DataFrame) -> ItemView:
    table = html_table(only(scores, SHOWN).reset_index(drop=True), SHARED)
    return ItemView(title, below=[Grid(table, "Scores")])


ITEMS = Items("traces", items)
