"""Report of the suppression matrix: which step feeds which, by distance and by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import SMALL
from faithscope.experiments.analysis.cells import INCLUDED, Boot, Kept, boots
from faithscope.experiments.analysis.charts import field
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.item_view import HeatMap
from faithscope.experiments.analysis.measure import calls
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    ITEMS_AND_STEPS,
    N_LAYERS,
    PARTS,
    POSITION,
    item_table,
    over_lists,
    part_of,
)
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import Table, computed_table
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport, SlrcAnalysis
from faithscope.experiments.studies.slrc.step_reports import (
    per_step,
    span_table,
    step_means,
    step_measures,
)

ANSWER = "answer"
KL = Boot("kl", label="KL", meaning="What a later step loses by a step being cut off.", unit="nats")


def _effects(what: str) -> tuple[Column, ...]:
    return (
        Column(
            "to_answer",
            "effect on the answer",
            f"Effect of cutting off {what} on the answer, KL.",
            "nats",
        ),
        Column(
            "later",
            "effect on later steps",
            f"Effect of cutting off {what} on later steps, KL, mean over these.",
            "nats",
        ),
    )


EFFECTS = _effects("a step")
_FARTHEST = 20
"""Largest distance between steps that has a row in the table."""


def _distances(frame: pd.DataFrame) -> list[list[tuple[int]]]:
    return [[(d,) for d in range(1, len(of) + 1)] for of in frame["by_distance"]]


def _pairs(matrix: np.ndarray) -> Iterator[tuple[float, str, float]]:
    """Yields the place of the step cut off, the place of the later step or `ANSWER`, and the mean
    KL over the pairs there."""
    n = len(matrix)
    part = part_of(np.arange(n), n)
    for cut in range(PARTS):
        for later in (*range(cut, PARTS), ANSWER):
            to = np.array([n]) if later == ANSWER else np.flatnonzero(part == later)
            pairs = matrix[np.ix_(np.flatnonzero(part == cut), to)]
            if (known := pairs[~np.isnan(pairs)]).size:
                place = ANSWER if later == ANSWER else decimal((int(later) + 0.5) / PARTS, 1)
                yield (cut + 0.5) / PARTS, place, float(known.mean())


MAP = Table(
    "suppression_map",
    "",
    ("model", "task"),
    (COUNTED, KL),
    along=(
        POSITION,
        Column(
            "to_position", "to", "Middle of the fifth that the later step is of, or the answer."
        ),
    ),
)


def _by_places(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    """Rows of mean KL over items by place of both steps, each item's pairs averaged first.

    Raises:
        ValueError: a record has no arrays.
    """
    of_items = []
    stored = {place: arrays["matrix"] for place, arrays in analysis.arrays("suppression")}
    for model, task, item in frame[["model", "task", "item"]].itertuples(index=False):
        if (model, task, str(item)) not in stored:
            raise ValueError(f"suppression of {model}: no arrays of {item!r}")
        for position, later, kl in _pairs(stored[model, task, str(item)]):
            keys = {"model": model, "task": task, "position": position, "to_position": later}
            of_items.append(keys | {"kl": kl})
    yield from rows(MAP.make(pd.DataFrame(of_items, columns=[*MAP.keys, "kl"]), how=analysis))


def _drawn(table: pd.DataFrame) -> Figure | None:
    most = float(np.nanmax(table["kl"].to_numpy(dtype=float))) or 1.0
    froms, tos = sorted(set(table["position"])), sorted(set(table["to_position"]))

    def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
        grid = of_pair.pivot_table(
            index="position", columns="to_position", values="kl", dropna=False
        )
        values = grid.reindex(index=froms, columns=tos).to_numpy(dtype=float)
        names = [decimal(p, 1) for p in froms]
        field(ax, values, names, tos, limits=(0, most), text=decimal, fontsize=SMALL)

    labels = ("place of the later step", "place of the step cut off")
    return pair_panels(table, panel, across=4, height=2.3, labels=labels)


suppression_picture = picture(
    "suppression",
    "Which step feeds which?",
    "How far the next-token distributions at the tokens of a later step, or at the token before "
    "the answer, move when no later token can look at a step: KL in nats, mean over items, by "
    "fifths of the reasoning. A dark diagonal says that each step takes up the one before; a dark "
    "last column says which steps the answer is read off.",
    _drawn,
)


def _of_trace(record: Record, arrays: Mapping[str, Any]) -> Iterator[HeatMap]:
    if record.get("excluded") or "matrix" not in arrays:
        return
    steps = [str(step + 1) for step in record["steps"]]
    yield HeatMap(
        "Suppression: what a later step, or the answer, loses by a step being cut off (nats)",
        "step cut off",
        "later step",
        steps,
        [*steps, ANSWER],
        arrays["matrix"].tolist(),
    )


REPORT = MeasureReport(
    "suppression",
    Section(
        "suppression",
        "Suppression",
        "All attention to one step is cut, in all layers, from every token after it, while its "
        "text stays; measured is how far the model's next-token distributions at each later step, "
        "and before the answer, move (attention suppression of Thought Anchors). A text can be "
        "tightly knit, each step computed from the one before, and its answer still be read off "
        "elsewhere: the answer's column tells, the others do not.",
    ),
    (
        item_table(
            "suppression",
            (*ITEMS_AND_STEPS, *boots(step_means(EFFECTS)), Kept((N_LAYERS,))),
            alike=("n_layers",),
            caption="Steps that no later token can look at",
        ),
        span_table(
            "suppression_spans",
            "suppression",
            {Column("span", meaning="Name of the declared span that is cut off."): "span_names"},
            dict(zip(_effects("the span"), ("span_to_answer", "span_later"), strict=True)),
            caption="Declared spans that no later token can look at",
        ),
        item_table(
            "suppression_by_distance",
            (COUNTED, KL),
            of="suppression",
            along=(
                Column(
                    "distance",
                    meaning="By how many steps the later step is behind the one cut off.",
                ),
            ),
            prepare=over_lists(("distance",), _distances, ("n_layers",), kl="by_distance"),
            among=lambda pairs: pairs["distance"] <= _FARTHEST,
            alike=("n_layers",),
            caption="Effect of a step on a later one by how many steps they are apart",
            folded="By distance",
        ),
        computed_table(
            "suppression_map",
            MAP.columns,
            "suppression",
            _by_places,
            among=INCLUDED,
            caption="Effect of a step on later ones and on the answer by relative place",
            folded="By place of both steps",
            draw=suppression_picture,
        ),
    ),
    (
        Frame(
            "suppression",
            "A row per item and step: what cutting it off does to the answer and to later steps.",
            ("position", "step", "to_answer", "later", "received"),
            per_step("to_answer", "later", "received"),
        ),
        Frame(
            "suppression_edges",
            "A row per item and pair of steps, the ten of which the later loses most.",
            ("from", "to", "kl"),
            lambda r: [
                dict(zip(("from", "to", "kl"), edge, strict=True))
                for edge in zip(
                    *(r.get(f"edge_{x}", ()) for x in ("from", "to", "kl")), strict=True
                )
            ],
        ),
    ),
    step_measures(
        "suppression",
        "internal",
        {
            "to_answer": "suppression: effect on the answer's token",
            "later": "suppression: effect on later steps",
        },
        calls(1, 1),
    ),
    reasons={"no_attention_knockout": "model's attention cannot be cut"},
    of_trace=_of_trace,
)
