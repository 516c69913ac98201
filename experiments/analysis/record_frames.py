"""Frames of one probe's records: a row per record, per part of the reasoning, or per layer.

    Table("flow_by_layer", "flow", ("model", "task"), (Boot("cosine", "cosine"),),
          prepare=per_layer(cosine="cosine"), along=LAYER_AND_DEPTH)

A column of `record_frame` is a field of the records, and its lists stay lists. The other functions
prepare such a frame for a table over the values in its lists.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import INCLUDED, Cell, Count, Total
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.statistics.stats import over
from faithscope.experiments.analysis.stored_records import Record, place_of
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import keep
from faithscope.probes.record import KEYS, mean_of_steps

PARTS = 5
"""Number of equal parts of the reasoning, in which steps are pooled by their relative position."""
OF_ALL_RECORDS = (*KEYS, "unit", "excluded", "inclusion", "n_steps", "label_mass", "forced_differs")
"""Columns of every `record_frame`, also where no record has the field."""
Prepare = Callable[[pd.DataFrame], pd.DataFrame]
Lists = str | Callable[[pd.DataFrame], Sequence[Any]]
"""A field of the records that is a list, or a function from their frame to a list per record."""


def record_frame(records: Iterable[Record]) -> pd.DataFrame:
    """A row per record, in the order of model, task and item, and a column per field; None or NaN
    where a record lacks the field."""
    ordered = sorted(records, key=place_of)
    names = dict.fromkeys(OF_ALL_RECORDS) | {n: None for r in ordered for n in r}
    return pd.DataFrame({n: pd.Series([r.get(n) for r in ordered]) for n in names})


def item_table(
    name: str, cells: Sequence[Cell], keys: Sequence[str | Column] = (), of: str = "", **more: Any
) -> Table:
    """A table of a probe's records that are not excluded, by model, task and `keys`.

    Args:
        of: name of the probe; by default that of the table.
        more: further fields of `Table`.
    """
    fields: dict[str, Any] = {"among": INCLUDED} | more
    return Table(name, of or name, ("model", "task", *keys), cells, **fields)


def lists_of(frame: pd.DataFrame, lists: Lists) -> Sequence[Any]:
    """A list, or None, per row of the frame."""
    return frame[lists].tolist() if isinstance(lists, str) else lists(frame)


def step_mean(lists: Lists) -> Callable[[pd.DataFrame], list[float | None]]:
    """Values of a cell: per record the mean over its steps of a list with one value per step. Where
    a sample of the steps is edited, each counts by the inverse of its inclusion probability."""

    def means(frame: pd.DataFrame) -> list[float | None]:
        pairs = zip(lists_of(frame, lists), frame["inclusion"], strict=True)
        return [
            mean_of_steps(x, i if _is_list(i) else None) if _is_list(x) else None for x, i in pairs
        ]

    return means


def over_lists(
    names: Sequence[str],
    places: Callable[[pd.DataFrame], Sequence[Sequence[Any]]],
    also: Sequence[str] = (),
    **lists: Lists,
) -> Prepare:
    """Prepares a frame with a row per included record and place in its lists, with the join keys.

    Args:
        names: names of the columns that identify a place.
        places: maps the frame to a list of places per record, each a tuple of the columns' values.
        also: further columns to keep.
        lists: column -> its values, a list per record with one value per place.
    """

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        included = keep(frame, INCLUDED(frame))
        if not len(included):
            return included
        of_records = places(included)
        at = list(itertools.chain.from_iterable(of_records))
        rows = np.repeat(np.arange(len(included)), list(map(len, of_records)))
        values = {n: _flat(lists_of(included, of), of_records) for n, of in lists.items()}
        keys = {name: [place[i] for place in at] for i, name in enumerate(names)}
        kept = included[list(dict.fromkeys((*KEYS, "excluded", *also)))].iloc[rows]
        return kept.assign(**keys, **values).reset_index(drop=True)

    return prepare


def per_layer(also: Sequence[str] = (), **lists: Lists) -> Prepare:
    """Prepares a frame with a row per included record and layer of its model (columns `layer`, from
    1, and `depth`), with the join keys and `n_layers`.

    Args:
        also: further columns to keep.
        lists: column -> its values, a list per record with one value per layer.
    """
    return over_lists(("layer", "depth"), _layers, ("n_layers", *also), **lists)


def _layers(frame: pd.DataFrame) -> list[list[tuple[int, float]]]:
    depths = frame["n_layers"].astype(int)
    return [[(layer, layer / n) for layer in range(1, n + 1)] for n in depths]


def per_part(also: Sequence[str] = (), **lists: Lists) -> Prepare:
    """Prepares a frame with a row per included record and fifth of its reasoning, with the join
    keys; step i of T stands at (i - 1/2) / T.

    The column `position` is the middle of the fifth, `n_steps` the number of steps in it. Every
    other named column is the mean over these steps, each weighted by the inverse of its inclusion
    probability.

    Args:
        also: further columns to keep.
        lists: column -> its values, a list per record with one value per step.
    """

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        included = keep(frame, INCLUDED(frame)).reset_index(drop=True)
        if not len(included):
            return included
        n_steps = included["n_steps"].to_numpy(dtype=int)
        record = np.repeat(np.arange(len(included)), n_steps)
        at = np.arange(len(record)) - np.repeat(np.cumsum(n_steps) - n_steps, n_steps)
        bins = record * PARTS + part_of(at, n_steps[record])
        every = [range(n) for n in n_steps]
        weights = 1 / np.nan_to_num(_flat(included["inclusion"], every), nan=1.0)
        total = lambda x: np.bincount(bins, x, len(included) * PARTS)  # noqa: E731
        counts = total(np.ones(len(bins))).astype(int)
        columns: dict[str, Any] = {}
        for name, of in lists.items():
            values = _flat(lists_of(included, of), every)
            known = ~np.isnan(values)
            sums = total(np.where(known, values, 0) * weights), total(known * weights)
            columns[name] = over(*sums)[counts > 0]
        places = np.flatnonzero(counts)
        position = (places % PARTS + 0.5) / PARTS
        kept = included[list(dict.fromkeys((*KEYS, "excluded", *also)))]
        rows = kept.iloc[places // PARTS].reset_index(drop=True)
        return rows.assign(position=position, n_steps=counts[places], **columns)

    return prepare


def part_of(at: np.ndarray, n_steps: np.ndarray | int) -> np.ndarray:
    """Which of the `PARTS` parts of the reasoning the steps `at` lie in; both count from 0."""
    return ((at + 0.5) / n_steps * PARTS).astype(int)


def _flat(lists: Iterable[Any], like: Sequence[Any]) -> np.ndarray:
    """The values of all lists as floats; NaN for None, and for each value of a record without a
    list.

    Raises:
        ValueError: a list is not as long as the list of `like` beside it.
    """
    pairs = zip(lists, like, strict=True)
    own = [x if _is_list(x) else [None] * len(places) for x, places in pairs]
    if any(len(x) != len(places) for x, places in zip(own, like, strict=True)):
        raise ValueError("two lists of one record, with a value per place, differ in length")
    return np.array(list(itertools.chain.from_iterable(own)), dtype=float)


def _is_list(value: Any) -> bool:
    return hasattr(value, "__len__")


DEPTH = Column("depth", meaning="The layer over the number of layers.")
LAYER_AND_DEPTH = (SHARED["layer"], DEPTH)
POSITION = Column("position", meaning="Relative place in the reasoning, 0 to 1.")
N_LAYERS = Column("n_layers", "layers", "Number of layers of the model.")
COUNTED = Count("n", label="items", meaning="Items that the row is of.")
N_STEPS = Total(
    "n_steps", "n_steps", label="steps", meaning="Steps that the row is of, over all its items."
)
ITEMS_AND_STEPS = (COUNTED, N_STEPS)
STATED = Count(
    "n_stated",
    lambda frame: frame["stated"].eq(True).to_numpy(),
    "items that state an answer",
    "Items whose answer could be read.",
)
"""Number of items whose chain states an answer, for tables of means over answers: of the others
these are about the answer that the model is made to give. The frame has the column `stated`."""
