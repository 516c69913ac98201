"""What measures of every layer share: groups of records of one depth, curves over depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.plots import GREY, LINES, share_ticks, short
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.stats import Estimate
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where
from faithscope.experiments.analysis.wording import model_order

PAIR = ["model", "task"]


def by_model(
    records: Iterable[Record], probe: str, *further: str
) -> list[tuple[dict[str, Any], list[Record]]]:
    """The records of a probe by model, task and what else is named, in order of names.

    Raises:
        ValueError: a model with two numbers of layers: another stood under its name.
    """
    found: dict[tuple[str, ...], list[Record]] = {}
    for r in records:
        if r["probe"] == probe and not r.get("excluded"):
            key = (r["model"], r["task"], *(r[name] for name in further))
            found.setdefault(key, []).append(r)
    for key, mine in found.items():
        depths = {r["n_layers"] for r in mine}
        if len(depths) > 1:
            raise ValueError(
                f"{probe} of {key[0]} on {key[1]}: records of {sorted(depths)} layers; the records "
                "of two models are mixed: run again under another name"
            )
    names = [*PAIR, *further]
    return [(dict(zip(names, key, strict=True)), found[key]) for key in sorted(found)]


def over_items(values: np.ndarray) -> np.ndarray:
    return values.mean(0)


def as_depth(estimate: Estimate, layers: int) -> Estimate:
    """A layer as a depth."""
    return Estimate(
        estimate.value / layers, estimate.low / layers, estimate.high / layers, estimate.n
    )


def by_depth(ax: Axes, table: pd.DataFrame, measure: str) -> Axes:
    """A line per model and task over depth, with its 95 % interval as a band."""
    pairs = sorted(distinct(table, "model", "task"), key=lambda p: model_order(p["model"]))
    for i, pair in enumerate(pairs):
        colour, marker = LINES[i % len(LINES)]
        line = rows(where(table, **pair))
        x = [r["depth"] for r in line]
        label = f"{short(pair['model'])} · {visible(pair['task'])}"
        ax.plot(x, [r[measure] for r in line], f"{marker}-", color=colour, lw=1, ms=4, label=label)
        low, high = ([r[f"{measure}_{end}"] for r in line] for end in ("low", "high"))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)
