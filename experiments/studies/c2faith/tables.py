"""Every table of C2-Faith, from the tidy frames of judgements; pure functions, no disk."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.studies.c2faith.metrics import (
    agreement,
    calibration,
    coverage,
    detection,
    internals,
    localisation,
    predictors,
    probabilities,
    sensitivity,
)
from faithscope.experiments.studies.c2faith.metrics.frames import Frames
from faithscope.experiments.studies.c2faith.paper import paper_tables

__all__ = ["Frames", "tables"]


def tables(
    frames: Frames, *, seed: int = 0, resamples: int = stats.RESAMPLES
) -> dict[str, pd.DataFrame]:
    """The tidy tables by name, and the paper's six in its own layout (`paper_c2_table1` ...).

    A task that was not run gives tables without rows; a judge without any verdict, or alone
    where two are compared, gives rows that say so. Every table counts what it leaves out.
    """
    how = Drawing(seed, resamples)
    tidy = _tidy(frames, how)
    return tidy | {table.name: table.data for table in paper_tables(tidy)}


def _tidy(frames: Frames, how: Drawing) -> dict[str, pd.DataFrame]:
    of_task = {
        "detection": frames.detection,
        "localisation": frames.localisation,
        "coverage": frames.coverage,
    }
    of_items = predictors.joined(frames.detection, frames.features)
    over = {
        "detection": detection.detection_table(frames.detection, how),
        "localisation": localisation.localisation_table(frames.localisation, how),
        "coverage": coverage.pooled_coverage_table(frames.coverage, how),
    }
    return {
        "c2_detection": over["detection"],
        "c2_localisation": over["localisation"],
        "c2_coverage": coverage.coverage_table(frames.coverage, how),
        "c2_coverage_pooled": over["coverage"],
        "c2_coverage_scores": coverage.scores_table(frames.coverage),
        "c2_mcnemar": detection.mcnemar_table(frames.detection),
        "c2_edit_types": predictors.edit_types_table(of_items),
        "c2_methods": predictors.methods_table(of_items),
        "c2_predictors": predictors.predictors_table(of_items, how),
        "c2_positions": predictors.positions_table(of_items),
        "c2_failure_overlap": agreement.failure_overlap_table(frames.detection),
        "c2_missed_by_all": agreement.missed_by_all_table(frames.detection, frames.features),
        "c2_agreement": agreement.agreement_table(*of_task.values()),
        "c2_prompts": sensitivity.prompts_table(over),
        "c2_prompt_variants": sensitivity.variants_table(over),
        "c2_prompt_agreement": sensitivity.prompt_agreement_table(of_task),
        "c2_calibration": calibration.calibration_table(frames.detection),
        "c2_recalibration": calibration.recalibration_table(frames, how),
        "c2_localisation_probabilities": probabilities.localisation_probabilities_table(
            frames.localisation, how
        ),
        "c2_coverage_probabilities": probabilities.coverage_probabilities_table(
            frames.coverage, how
        ),
        "c2_coverage_expected": probabilities.coverage_expected_table(frames.coverage, how),
        "c2_signed_error": localisation.signed_error_table(frames.localisation),
        "c2_within": localisation.within_table(frames.localisation),
        "c2_injection": sensitivity.injection_table(frames.injection, how),
        "c2_judge_against_internals": internals.against_table(frames, how),
    }
