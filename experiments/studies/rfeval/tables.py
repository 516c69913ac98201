"""Every table of RFEval, from the tidy frames of judged outputs; pure functions, no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.studies.rfeval.config_sections import Framing
from faithscope.experiments.studies.rfeval.counterfactuals.construction import FILTERING
from faithscope.experiments.studies.rfeval.metrics import (
    accuracy,
    chains,
    faithfulness,
    inside,
    people,
    steps,
    texts,
)
from faithscope.experiments.studies.rfeval.metrics.frames import READINGS, readings
from faithscope.experiments.studies.rfeval.report.paper import paper_tables

_NONE_READ = pd.DataFrame(columns=list(READINGS))


@dataclass(frozen=True)
class RfFrames:
    """What was judged, and what is known beside it. What was not run is an empty frame."""

    judged: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per reader, model, task and item: `metrics.frames.checked`."""
    lengths: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per output: `metrics.texts.LENGTHS`."""
    rewards: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per output: `metrics.texts.REWARDS`."""
    items: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per item: `task`, `item`, `question`, `options`, `context`, `r_prime`."""
    steps: pd.DataFrame = field(default_factory=pd.DataFrame)
    """A row per part of an output judged step by step: `metrics.steps.STEPS`."""
    steps_left: pd.DataFrame | None = None
    """The pairs that were to be, and are not: `metrics.steps.LEFT`; None where `steps` has all."""
    annotations: pd.DataFrame = field(default_factory=pd.DataFrame)
    """People's labels: `metrics.people.ANNOTATIONS`."""
    readings: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Stances that further readers read, of some parts only: `metrics.frames.READINGS`."""
    evaluator: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What the reader that is held against them said: `metrics.people.DECISION`, `label`."""
    without_judge: pd.DataFrame = field(default_factory=pd.DataFrame)
    """As `judged`, by the model's own log-probs: `inside.scored_stances`."""
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
        externality: the Δ that parts low from high (`metrics.texts.rf_by_externality`).
    """
    pairs = faithfulness.with_framing(chains.scored(frames.judged, paper_compat), frames.framings)
    read = pd.concat([f for f in (readings(pairs), frames.readings) if not f.empty] or [_NONE_READ])
    cells = accuracy.accuracy_cells(pairs)
    deltas = texts.externality_of_items(frames.items)
    judged_steps = frames.steps if len(frames.steps) else pd.DataFrame(columns=list(steps.STEPS))
    left = frames.steps_left
    by_step = steps.per_step_table(steps.per_step(pairs, judged_steps, left), pairs)
    unjudged = faithfulness.with_framing(
        chains.scored(frames.without_judge, paper_compat), frames.framings
    )
    made = make_tables(faithfulness.TABLES, {"pairs": pairs, "unjudged": unjudged})
    rf = made["rfeval"]
    against = people.pairs_against_log_probs(pairs, unjudged)
    filtering = frames.filtering if len(frames.filtering) else pd.DataFrame(columns=FILTERING)
    tidy = {
        "rf_filtering": filtering,
        "rfeval": made["rfeval"],
        "rf_pairs": pairs,
        "rf_waterfall": made["rf_waterfall"],
        "rf_exclusion_reasons": made["rf_exclusion_reasons"],
        "rf_regimes": faithfulness.regime_table(rf, regimes or {}),
        "rf_failure_shares": made["rf_failure_shares"],
        "rf_failure_locations": made["rf_failure_locations"],
        "rf_causality": made["rf_causality"],
        "rf_behaviours": made["rf_behaviours"],
        "rf_coverage_quartiles": made["rf_coverage_quartiles"],
        "rf_accuracy": cells,
        "rf_accuracy_association": accuracy.accuracy_association(
            accuracy.accuracy_cells(faithfulness.leading(pairs)), seed, resamples
        ),
        "rf_externality": texts.externality_table(deltas),
        "rf_externality_by_model": texts.externality_by_model(deltas, pairs),
        "rf_by_externality": texts.rf_by_externality(deltas, pairs, externality),
        "rf_lengths": texts.length_table(frames.lengths),
        "rf_step_reward": texts.step_reward_table(frames.rewards, pairs, seed, resamples),
        "rf_hours": texts.hours_table(frames.lengths),
        "rf_per_step": by_step,
        "rf_per_step_exclusions": steps.step_exclusions(pairs, judged_steps, left),
        "rf_per_step_ranks": steps.step_ranks(by_step),
        "rf_without_judge": made["rf_without_judge"],
        "rf_without_judge_waterfall": made["rf_without_judge_waterfall"],
        "rf_judge_against_log_probs": people.against_log_probs(against),
        "rf_judge_against_log_probs_pairs": against,
        "rf_readers": people.reader_agreement(read),
        "rf_evaluator": people.evaluator_validation(frames.annotations, frames.evaluator),
        **inside.inside_tables(frames.inside, pairs, seed, resamples),
    }
    return tidy | {table.name: table.data for table in paper_tables(tidy)}
