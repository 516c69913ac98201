"""Every table of C2-Faith, from the tidy frames of judgements; pure functions, no disk."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.resampling import Drawing
from faithscope.experiments.studies.c2faith.metrics.agreement import agreement_table
from faithscope.experiments.studies.c2faith.metrics.calibration import (
    calibration_tables,
    recalibration_table,
)
from faithscope.experiments.studies.c2faith.metrics.coverage import (
    coverage_table,
    pooled_coverage_table,
    scores_table,
)
from faithscope.experiments.studies.c2faith.metrics.detection import (
    detection_table,
    mcnemar_table,
)
from faithscope.experiments.studies.c2faith.metrics.frames import Frames
from faithscope.experiments.studies.c2faith.metrics.injection import injection_table
from faithscope.experiments.studies.c2faith.metrics.internals import against_table
from faithscope.experiments.studies.c2faith.metrics.localisation import (
    localisation_table,
    signed_error_table,
    within_table,
)
from faithscope.experiments.studies.c2faith.metrics.overlap import failure_overlap_table
from faithscope.experiments.studies.c2faith.metrics.panels import missed_by_all_table, panel_table
from faithscope.experiments.studies.c2faith.metrics.predictors import (
    edit_types_table,
    joined,
    methods_table,
    positions_table,
    predictors_table,
)
from faithscope.experiments.studies.c2faith.metrics.probabilities import (
    coverage_expected_table,
    coverage_probabilities_table,
    localisation_probabilities_table,
)
from faithscope.experiments.studies.c2faith.metrics.sensitivity import (
    prompt_agreement_table,
    prompts_table,
    variants_table,
)
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
    made = _tidy(frames, how)
    return made | {table.name: table.data for table in paper_tables(made)}


def _tidy(frames: Frames, how: Drawing) -> dict[str, pd.DataFrame]:
    of_task = {
        "detection": frames.detection,
        "localisation": frames.localisation,
        "coverage": frames.coverage,
    }
    of_items = joined(frames.detection, frames.features)
    detection = detection_table(frames.detection, how)
    localisation = localisation_table(frames.localisation, how)
    pooled = pooled_coverage_table(frames.coverage, how)
    over = {"detection": detection, "localisation": localisation, "coverage": pooled}
    return {
        "c2_detection": detection,
        "c2_localisation": localisation,
        "c2_coverage": coverage_table(frames.coverage, how),
        "c2_coverage_pooled": pooled,
        "c2_coverage_scores": scores_table(frames.coverage),
        "c2_mcnemar": mcnemar_table(frames.detection),
        "c2_edit_types": edit_types_table(of_items),
        "c2_methods": methods_table(of_items),
        "c2_predictors": predictors_table(of_items, how),
        "c2_positions": positions_table(of_items),
        "c2_failure_overlap": failure_overlap_table(frames.detection),
        "c2_missed_by_all": missed_by_all_table(frames.detection, frames.features),
        "c2_agreement": agreement_table(*of_task.values()),
        "c2_panel": panel_table(of_task, how),
        "c2_prompts": prompts_table(over),
        "c2_prompt_variants": variants_table(over),
        "c2_prompt_agreement": prompt_agreement_table(of_task),
        **calibration_tables(frames),
        "c2_localisation_probabilities": localisation_probabilities_table(frames.localisation, how),
        "c2_coverage_probabilities": coverage_probabilities_table(frames.coverage, how),
        "c2_coverage_expected": coverage_expected_table(frames.coverage, how),
        "c2_recalibration": recalibration_table(frames, how),
        "c2_signed_error": signed_error_table(frames.localisation),
        "c2_within": within_table(frames.localisation),
        "c2_injection": injection_table(frames.injection, how),
        "c2_judge_against_internals": against_table(
            frames.detection,
            frames.localisation,
            frames.internals,
            frames.internals_localisation,
            how,
        ),
    }
