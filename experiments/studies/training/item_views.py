"""The trainings of a run as items: their steps, and what was measured after them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from faithscope.experiments.analysis.html import table_of
from faithscope.experiments.analysis.item_view import Item, Items, ItemView, Part
from faithscope.experiments.analysis.page import Block, Grid
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import distinct, only, rows, where
from faithscope.experiments.studies.training.tables import MEASURED

SHOWN = ("step", "reward", "accuracy", "changed", "followed", "value", "n_rewarded", "n_rollouts")
"""Columns of a training's steps that are shown."""


def items(run: Run) -> Iterator[Item]:
    """Every training, and every planted model as it was before training."""
    steps, battery = run.training, run.battery
    keys = ["model", "method", "seed"]
    for key in distinct(pd.concat([only(battery, keys), only(steps, keys)]), *keys):
        name = f"{key['method']}-{key['seed']}"
        of = (where(frame, **key) for frame in (steps, battery))
        part = Part(key["model"], key["method"], [name, key["method"]])
        yield Item(partial(_view, f"{key['model']} · {name}", *of), [part])


def _view(title: str, steps: pd.DataFrame, battery: pd.DataFrame) -> ItemView:
    below: list[Block] = []
    if len(steps):
        lines = [[row[column] for column in SHOWN] for row in rows(steps)]
        below.append(Grid(table_of(SHOWN, lines), "Steps"))
    for row in rows(battery):
        lines = [(column.label or column.name, row[column.name]) for column in MEASURED]
        below.append(Grid(table_of(("after training", "value"), lines), "What the answer follows"))
    return ItemView(title, below=below)


ITEMS = Items("trainings", items)
