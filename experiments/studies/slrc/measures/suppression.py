"""Report of the suppression matrix: which step feeds which, by distance and by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.charts import field
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.item_view import HeatMap
from faithscope.experiments.analysis.measure import calls
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record, place_of
from faithscope.experiments.analysis.tables import Group, Groups, computed_table
from faithscope.experiments.studies.slrc.measure_helpers import (
    mean_steps,
    pair_panels,
    per_step,
    picture,
    step_measures,
)
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

ITEMS = aggregates.grouped("suppression", alike=("n_layers",))
ANSWER = "answer"
KL = aggregates.means(
    [Column("kl", "KL", "What a later step loses by a step being cut off.", "nats")]
)
EFFECTS = (
    Column(
        "to_answer",
        "effect on the answer",
        "Effect of cutting off a step on the answer, KL.",
        "nats",
    ),
    Column(
        "later",
        "effect on later steps",
        "Effect of cutting off a step on later steps, KL, mean over these.",
        "nats",
    ),
)
_FARTHEST = 20
"""Largest distance between steps that has a row in the table."""


def _by_distance(records: Sequence[Record]) -> Iterator[Group]:
    for key, same in ITEMS.of(records):
        for d in range(1, _FARTHEST + 1):
            of: list[Record] = [
                {"kl": r["by_distance"][d - 1]} for r in same if len(r["by_distance"]) >= d
            ]
            if of:
                yield key | {"distance": d}, of


def _by_places(
    records: Sequence[Record], analysis: aggregates.Analysis
) -> Iterator[dict[str, Any]]:
    """Rows of mean KL over items by place of both steps, each item's pairs averaged first.

    Raises:
        ValueError: a record has no arrays.
    """
    matrices = {place: arrays["matrix"] for place, arrays in analysis.arrays("suppression")}
    for key, same in ITEMS.of(records):
        if lost := [r["item"] for r in same if place_of(r) not in matrices]:
            raise ValueError(f"suppression of {key['model']}: no arrays of {lost[0]!r}")
        for part in range(aggregates.PLACES):
            for later in (*range(part, aggregates.PLACES), ANSWER):
                pairs = [_pairs(matrices[place_of(r)], part, later) for r in same]
                items: list[Record] = [{"kl": np.mean(c)} for c in pairs if len(c)]
                to_position = (
                    later if later == ANSWER else f"{(later + 0.5) / aggregates.PLACES:.1f}"
                )
                at = {"position": (part + 0.5) / aggregates.PLACES, "to_position": to_position}
                if items:
                    numbers = (cell.of(items, analysis) for cell in (aggregates.COUNTED, KL))
                    yield key | at | {n: x for of_cell in numbers for n, x in of_cell.items()}


def _pairs(matrix: np.ndarray, part: int, later: int | str) -> np.ndarray:
    n = len(matrix)
    to = [n] if isinstance(later, str) else aggregates.steps_in(n, later)
    pairs = matrix[np.ix_(aggregates.steps_in(n, part), to)].ravel()
    return pairs[~np.isnan(pairs)]


def _drawn(table: pd.DataFrame) -> Figure | None:
    most = float(np.nanmax(table["kl"].to_numpy(dtype=float))) or 1.0
    froms, tos = sorted(set(table["position"])), sorted(set(table["to_position"]))

    def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
        grid = of_pair.pivot_table(
            index="position", columns="to_position", values="kl", dropna=False
        )
        values = grid.reindex(index=froms, columns=tos).to_numpy(dtype=float)
        names = [f"{p:.1f}" for p in froms]
        field(ax, values, names, tos, limits=(0, most), text=lambda x: f"{x:.2f}", fontsize=7)

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
        aggregates.item_table(
            "suppression",
            ITEMS,
            *aggregates.ITEMS_AND_STEPS,
            aggregates.means(mean_steps(EFFECTS)),
            aggregates.first(aggregates.N_LAYERS),
            caption="Steps that no later token can look at",
        ),
        aggregates.item_table(
            "suppression_by_distance",
            Groups(
                (
                    *ITEMS.by,
                    Column(
                        "distance",
                        meaning="By how many steps the later step is behind the one cut off.",
                    ),
                ),
                _by_distance,
            ),
            aggregates.COUNTED,
            KL,
            caption="Effect of a step on a later one by how many steps they are apart",
            folded="By distance",
        ),
        computed_table(
            "suppression_map",
            (
                SHARED["model"],
                SHARED["task"],
                aggregates.POSITION,
                Column(
                    "to_position",
                    "to",
                    "Middle of the fifth that the later step is of, or the answer.",
                ),
                *aggregates.COUNTED.columns,
                *KL.columns,
            ),
            aggregates.RECORDS,
            _by_places,
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
