"""Every table of RFEval, from the tidy frames of judged outputs; pure functions, no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.studies.rfeval.counterfactuals.construction import FILTERING
from faithscope.experiments.studies.rfeval.metrics.accuracy import (
    accuracy_association,
    accuracy_cells,
)
from faithscope.experiments.studies.rfeval.metrics.against_log_probs import (
    against_log_probs,
    pairs_against_log_probs,
)
from faithscope.experiments.studies.rfeval.metrics.chains import scored
from faithscope.experiments.studies.rfeval.metrics.coverage import coverage_quartiles
from faithscope.experiments.studies.rfeval.metrics.evaluator import (
    VALIDATION,
    evaluator_validation,
    reader_agreement,
)
from faithscope.experiments.studies.rfeval.metrics.externality import (
    EXTERNALITY,
    externality_by_model,
    externality_of_items,
    externality_table,
    rf_by_externality,
)
from faithscope.experiments.studies.rfeval.metrics.failures import (
    behaviours,
    causality_types,
    failure_locations,
    failure_shares,
)
from faithscope.experiments.studies.rfeval.metrics.faithfulness import (
    exclusion_reasons,
    regime_table,
    rf_table,
    waterfall,
)
from faithscope.experiments.studies.rfeval.metrics.frames import READINGS, readings
from faithscope.experiments.studies.rfeval.metrics.framings import (
    apart,
    each_model,
    leading,
    with_framing,
)
from faithscope.experiments.studies.rfeval.metrics.inside import inside_tables
from faithscope.experiments.studies.rfeval.metrics.lengths import hours_table, length_table
from faithscope.experiments.studies.rfeval.metrics.steps import (
    LEFT,
    PER_STEP,
    STEP_EXCLUSIONS,
    STEPS,
    per_step,
    per_step_table,
    step_exclusions,
    step_ranks,
)
from faithscope.experiments.studies.rfeval.paper import paper_tables
from faithscope.experiments.studies.rfeval.subjects.injection import Framing

__all__ = ["RfFrames", "tables"]

_NONE_READ = pd.DataFrame(columns=list(READINGS))


@dataclass(frozen=True)
class RfFrames:
    """What was judged, and what is known beside it. What was not run is an empty frame."""

    judged: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per reader, model, task and item: `metrics.frames.checked`."""
    lengths: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per output: `metrics.lengths.LENGTHS`."""
    items: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per item: `task`, `item`, `question`, `options`, `context`, `r_prime`."""
    steps: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per part of an output judged step by step: `metrics.steps.STEPS`."""
    steps_left: pd.DataFrame | None = None
    """The pairs that were to be, and are not: `metrics.steps.LEFT`; None where `steps` has all."""
    annotations: pd.DataFrame = field(default_factory=pd.DataFrame)
    """People's labels: `metrics.evaluator.ANNOTATIONS`."""
    readings: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Stances that further readers read, of some parts only: `metrics.frames.READINGS`."""
    evaluator: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What the reader that is held against them said: `metrics.evaluator.DECISION`, `label`."""
    without_judge: pd.DataFrame = field(default_factory=pd.DataFrame)
    """As `judged`, by the model's own log-probs: `rfeval.without_judge`."""
    framings: Mapping[str, Framing] = field(default_factory=dict)
    """Model -> how r′ came into its conversation; `prefix` of those not named. Models of different
    framings are pooled apart, and no comparison over models has both."""
    inside: Sequence[Mapping[str, Any]] = ()
    """What goes on inside, a record per output: `inside.looking.look_inside`."""
    filtering: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What became of the problems that r′ was written for: `construction.filtering`."""


def tables(
    frames: RfFrames,
    regimes: Mapping[str, tuple[str, str]] | None = None,
    *,
    paper_compat: bool = False,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
    externality: float | None = None,
) -> dict[str, pd.DataFrame]:
    """The tidy tables by name, and the paper's in its own layout (`paper_rf_table2` ...).

    Args:
        regimes: model -> family and post-training regime (`metrics.faithfulness.regime_table`).
        paper_compat: chains as the authors' released code scores them (`metrics.chains.scored`).
        externality: the Δ that parts low from high (`metrics.externality.rf_by_externality`).
    """
    made = _tidy(frames, regimes or {}, paper_compat, seed, resamples, externality)
    return made | {table.name: table.data for table in paper_tables(made)}


def _tidy(
    frames: RfFrames,
    regimes: Mapping[str, tuple[str, str]],
    paper_compat: bool,
    seed: int,
    resamples: int,
    externality: float | None = None,
) -> dict[str, pd.DataFrame]:
    pairs = with_framing(scored(frames.judged, paper_compat), frames.framings)
    rf = apart(rf_table, pairs)
    read = pd.concat([f for f in (readings(pairs), frames.readings) if not f.empty] or [_NONE_READ])
    cells = accuracy_cells(pairs)
    deltas = pd.DataFrame(columns=EXTERNALITY)
    if not frames.items.empty:
        deltas = externality_of_items(frames.items)
    by_step = pd.DataFrame(columns=PER_STEP)
    step_counts = pd.DataFrame(columns=STEP_EXCLUSIONS)
    left = frames.steps_left
    if not frames.steps.empty or (left is not None and len(left)):
        steps = frames.steps if len(frames.steps) else pd.DataFrame(columns=list(STEPS))
        by_step = per_step_table(per_step(pairs, steps, left), pairs)
        nothing = pd.DataFrame(columns=list(LEFT))
        step_counts = step_exclusions(pairs, steps, nothing if left is None else left)
    unjudged = with_framing(scored(frames.without_judge, paper_compat), frames.framings)
    against = pairs_against_log_probs(pairs, unjudged)
    validation = pd.DataFrame(columns=VALIDATION)
    if not frames.annotations.empty:
        validation = evaluator_validation(frames.annotations, frames.evaluator)
    filtered = frames.filtering
    return {
        "rf_filtering": filtered if len(filtered) else pd.DataFrame(columns=FILTERING),
        "rfeval": rf,
        "rf_pairs": pairs,
        "rf_waterfall": apart(waterfall, pairs),
        "rf_exclusion_reasons": exclusion_reasons(pairs),
        "rf_regimes": regime_table(rf, regimes),
        "rf_failure_shares": each_model(failure_shares, pairs),
        "rf_failure_locations": each_model(failure_locations, pairs),
        "rf_causality": each_model(causality_types, pairs),
        "rf_behaviours": each_model(behaviours, pairs),
        "rf_coverage_quartiles": each_model(coverage_quartiles, rf),
        "rf_accuracy": cells,
        "rf_accuracy_association": accuracy_association(
            accuracy_cells(leading(pairs)), seed, resamples
        ),
        "rf_externality": externality_table(deltas),
        "rf_externality_by_model": externality_by_model(deltas, pairs),
        "rf_by_externality": rf_by_externality(deltas, pairs, externality),
        "rf_lengths": length_table(frames.lengths),
        "rf_hours": hours_table(frames.lengths),
        "rf_per_step": by_step,
        "rf_per_step_exclusions": step_counts,
        "rf_per_step_ranks": step_ranks(by_step),
        "rf_without_judge": apart(rf_table, unjudged),
        "rf_without_judge_waterfall": apart(waterfall, unjudged),
        "rf_judge_against_log_probs": against_log_probs(against),
        "rf_judge_against_log_probs_pairs": against,
        "rf_readers": reader_agreement(read),
        "rf_evaluator": validation,
        **inside_tables(frames.inside, pairs, seed, resamples),
    }
