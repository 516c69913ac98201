"""Detection of unfaithful steps: each measure that scores steps, against each step label.

A step with a low credit is called unfaithful, whether the credit is an effect on the answer or a
judge's verdict; directions are those of the measures. A step that matters to the answer need not be
true, so the table also shows how far effects predict labels of correctness.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions, settings
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.scores import (
    COST_COLUMNS,
    COSTS,
    LABELS,
    STEP_LABEL,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    COVERS,
    G_MEAN,
    LABEL,
    NOT_WITHIN,
    ONE_KIND,
    TOO_FEW,
    g_mean_columns,
)
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.against_label import OF_SCORES, against_label
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import (
    columns_of,
    groups,
    numbers,
    only,
    rows,
    where,
)
from faithscope.experiments.numerals import percent

PLACE_OF_STEP, BASELINE = "place in the trace", "baseline"
"""Name and family of a baseline that reads nothing and gives later steps more credit. A measure
whose AUROC is no further from one half than the baseline's may only tell early steps from late."""
TOO_SPARSE_STEPS = f"scores of less than {percent(COVERS)} of the labelled steps"
"""Reason for listing a measure last: which steps it scores may depend on what it measures."""
NONE_TO_TELL = (ONE_KIND, NOT_WITHIN)
"""Reasons for having no AUROC inside models and tasks."""
STEP_AGAINST = computed_table("step_against", (
    *(LABEL, "measure", "family"),
    Column("n", "steps", "Labelled steps that have a score."),
    Column("n_items", "traces", "Traces that the labelled steps with a score are of."),
    Column("n_unfaithful", "spoken against", "Steps that the label speaks against."),
    Column("n_missing", "without a score", "Labelled steps that the measure has no score of."),
    Column("auroc", "AUROC", "How well the score tells the steps that the label speaks against, "
           "which are those with the least credit, from others of the same model and task; one "
           "half is chance.", interval=True),
    Column("pooled", "AUROC, pooled", "AUROC over pairs of steps of whatever model and task.",
           interval=True),
    Column("average_precision", meaning="Average precision for the steps spoken against."),
    *(G_MEAN, *COST_COLUMNS, "reason"),
))  # fmt: skip
"""A row per step label and measure: first the measures with enough scores, the best AUROC first.

`n` labelled steps of `n_items` traces have a score, `n_missing` have none. `auroc` compares steps
of the same model and task, `pooled` compares all steps. Intervals resample questions; the threshold
of the squared g-mean is chosen on other questions. Costs are per trace, for all its steps.
"""


def step_against_table(joined: Joined, how: Bootstrap, n_folds: int) -> pd.DataFrame:
    """The table `STEP_AGAINST` of a comparison."""
    of_trace = dict(
        zip(joined.index, zip(questions(joined), settings(joined), strict=True), strict=True)
    )
    costs = {cost: joined.wide(cost).mean().to_dict() for cost in COSTS}
    labelled = where(joined.steps, family=STEP_LABEL)
    measures = joined.steps.loc[~joined.steps["family"].isin(LABELS)]
    measures = pd.concat([measures, _places(joined, labelled)])
    table = []
    for label, of_label in groups(labelled, ["measure"]):
        for measure, of in groups(measures, ["measure", "family"]):
            both = of_label.merge(of, on=[*KEY, "step"], suffixes=("_label", ""))
            if not len(both):
                continue
            keys = both[list(KEY)].itertuples(index=False)
            clusters, strata = (np.array(x) for x in zip(*(of_trace[k] for k in keys), strict=True))
            against = np.where(both["higher_is_faithful_label"].astype(bool), 0.0, 1.0)
            kind = numbers(both["value_label"]) == against
            sign = np.where(both["higher_is_faithful"].astype(bool), -1.0, 1.0)
            score = (numbers(both["value"]) * sign).round(DECIMALS)
            row: dict[str, Any] = {"label": label["measure"], **measure, "n": len(both)}
            row |= {"n_items": len(both[list(KEY)].drop_duplicates())}
            row |= {"n_unfaithful": int(kind.sum()), "n_missing": len(of_label) - len(both)}
            row |= {cost: of_cost.get(measure["measure"]) for cost, of_cost in costs.items()}
            row |= _held(clusters, strata, kind, score, how, n_folds)
            if len(both) < COVERS * len(of_label) and row["reason"] not in NONE_TO_TELL:
                row["reason"] = TOO_SPARSE_STEPS
            table.append(row)
    frame = STEP_AGAINST.filled(table)
    sparse = frame["reason"].isin((TOO_SPARSE_STEPS, *NONE_TO_TELL))
    frame = frame.assign(_sparse=sparse).sort_values(
        ["label", "_sparse", "auroc"], ascending=[True, True, False], kind="stable"
    )
    return frame.drop(columns="_sparse").reset_index(drop=True)


def _places(joined: Joined, labelled: pd.DataFrame) -> pd.DataFrame:
    """Rows of the baseline `PLACE_OF_STEP` for every labelled step: its index as a share of the
    trace's number of steps."""
    steps = only(labelled, [*KEY, "step"]).drop_duplicates()
    n = joined.traces.set_index(list(KEY))["n_steps"].to_dict()
    share = [k["step"] / max(n[tuple(k[name] for name in KEY)], 1) for k in rows(steps)]
    return steps.assign(
        measure=PLACE_OF_STEP, family=BASELINE, value=share, higher_is_faithful=True
    )


def _held(
    clusters: np.ndarray,
    strata: np.ndarray,
    kind: np.ndarray,
    score: np.ndarray,
    how: Bootstrap,
    n_folds: int,
) -> dict[str, Any]:
    if len(set(kind)) < 2:
        return {"reason": ONE_KIND}
    row = columns_of(against_label(OF_SCORES, kind, clusters, how, score=score, strata=strata))
    if math.isnan(row["auroc"]):
        row["reason"] = NOT_WITHIN
        return row
    fold = detection.folds(kind, clusters, n_folds, how.seed)
    if fold is None:
        return row | {"reason": TOO_FEW}
    called = detection.called_by(kind, score, fold, detection.best_threshold)
    gained = {} if called is None else g_mean_columns(kind, called, clusters, how)
    return row | gained | {"reason": ""}
