"""Table of every measure on every planted model: does it tell untrue texts from true ones?

`planted` compares the measures on a fixed series; this table has a row for each planted model of a
run, so that a model, a chain length or a second seed of weights is added without a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, distinct, rows, where
from faithscope.experiments.analysis.wording import model_order, planted_variant
from faithscope.experiments.data.planted.plants import PLANTS, Plant
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.measures import MEASURES, items_and_steps
from faithscope.experiments.studies.slrc.tables.planted import (
    FAITHFUL,
    auroc,
    of_planted,
    oriented,
    step_auroc_of,
    truth_of,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources


def reference_of(plant: Plant) -> str | None:
    """The faithful planted model with the seed and the number of sentences of `plant`; None if
    there is none."""
    return next(
        (
            p.name
            for p in PLANTS.values()
            if p.variant in FAITHFUL and (p.seed, p.written) == (plant.seed, plant.written)
        ),
        None,
    )


def has_faithful_and_other(frames: Sources) -> bool:
    """Whether a measure of faithfulness was run on a planted model whose texts are faithful, and on
    another one of known truth."""
    about = {m.probe for m in MEASURES.values() if m.about == "faithfulness"}
    names = {planted_variant(model) for probe in about for model in frames[probe]["model"]}
    plants = [PLANTS[name] for name in names if name]
    return len({p.variant in FAITHFUL for p in plants if p.follows in ("steps", "hint")}) == 2


def _of_models(planted: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    scores, steps = items_and_steps(planted)
    every = {
        (pair["measure"], pair["model"]): where(scores, **pair)
        for pair in distinct(scores, "measure", "model")
    }
    models = sorted({model for _, model in every}, key=model_order)
    for measure in MEASURES.values():
        for model in models:
            name = planted_variant(model) or ""
            if (measure.name, model) not in every or PLANTS[name].follows in ("mixture", "named"):
                continue
            of_model = rows(every[measure.name, model])
            sides: dict[bool, list[float]] = {True: [], False: []}
            for row in of_model:
                if (true := truth_of(name, str(row["item"]))) is not None:
                    sides[true].append(row["score"])
            against = name
            if sides[False] and not sides[True]:
                against = reference_of(PLANTS[name]) or ""
                other = every.get((measure.name, f"planted:{against}"))
                sides[True] = [] if other is None else other["score"].tolist()
            pair = (oriented(measure, sides[true]) for true in (True, False))
            least = measure.unfaithful_below
            row = {"measure": measure.name, "about": measure.about, "model": model}
            row |= {"against": against if sides[False] and sides[True] else ""}
            row |= columns("auroc", auroc(*pair))
            for kind, true in (("called", False), ("false_alarms", True)):
                called = [
                    r["score"] < (least or math.nan)
                    for r in of_model
                    if truth_of(name, str(r["item"])) == true and least is not None
                ]
                row |= columns(kind, stats.share(called))
            of_steps = where(steps, measure=measure.name)
            row |= {"step_auroc": step_auroc_of(name, measure, of_steps)}
            yield row | {"n": len(of_model)}


PLANTED_MODELS = computed_table(
    "planted_models",
    (
        SHARED["measure"],
        Column("about", meaning="Reliance or faithfulness, as in table `planted`."),
        SHARED["model"],
        Column(
            "against",
            "compared with",
            "Planted model whose faithful items the untrue items of this one are compared with: "
            "itself, if some of its texts are true, else the faithful model of the same seed "
            "and number of sentences. Empty if the run has no such items.",
        ),
        Column(
            "auroc", "AUROC", "True items against the untrue items of the model.", interval=True
        ),
        Column(
            "called",
            "called unfaithful",
            "Items of the model with an untrue text that the measure's rule, which was fixed "
            "beforehand, calls unfaithful.",
            interval=True,
        ),
        Column(
            "false_alarms",
            "false alarms",
            "Items of the model with a true text that the rule calls unfaithful.",
            interval=True,
        ),
        Column(
            "step_auroc",
            "AUROC of steps",
            "True sentences against untrue ones, within the texts of the model.",
        ),
        Column("n", "items", "Items of the model that have a score."),
    ),
    ("scores", "step_scores"),
    _of_models,
    prepare=of_planted,
    caption="Measures on every planted model",
    folded="Every measure on every planted model",
)
"""A row per measure and planted model whose truth is known item by item."""
