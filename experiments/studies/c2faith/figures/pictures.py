"""The figures of C2-Faith, each drawn from the tables alone (the paper's Figures 2 to 8, and ours).

A judge that gave no verdict keeps its place in every figure, with a word that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd

from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.studies.c2faith.figures.comparisons import (
    injection_picture,
    panel_picture,
    sensitivity_picture,
)
from faithscope.experiments.studies.c2faith.figures.failures import (
    failure_overlap_picture,
    radar_picture,
)
from faithscope.experiments.studies.c2faith.figures.scores import (
    calibration_picture,
    coverage_calibration_picture,
    coverage_expected_picture,
    coverage_picture,
    coverage_scores_picture,
    localisation_calibration_picture,
)
from faithscope.experiments.studies.c2faith.figures.verdicts import (
    against_picture,
    detection_picture,
    localisation_picture,
    positions_picture,
    signed_error_picture,
    within_picture,
)


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure, from the tables of `experiments.studies.c2faith.tables.tables`.

    Of a judge with several prompts the first is drawn; the tables have all.
    """
    with mpl.rc_context(STYLE):
        return [
            detection_picture(tables["c2_detection"]),
            localisation_picture(tables["c2_localisation"]),
            coverage_scores_picture(tables["c2_coverage_scores"]),
            coverage_picture(tables["c2_coverage"]),
            radar_picture(
                tables["c2_detection"], tables["c2_localisation"], tables["c2_coverage_pooled"]
            ),
            signed_error_picture(tables["c2_signed_error"]),
            failure_overlap_picture(tables["c2_failure_overlap"]),
            within_picture(tables["c2_within"]),
            positions_picture(tables["c2_positions"]),
            calibration_picture(tables["c2_calibration"], tables["c2_detection"]),
            localisation_calibration_picture(
                tables["c2_localisation_calibration"], tables["c2_localisation_probabilities"]
            ),
            coverage_expected_picture(tables["c2_coverage_expected"]),
            coverage_calibration_picture(
                tables["c2_coverage_calibration"], tables["c2_coverage_probabilities"]
            ),
            against_picture(tables["c2_judge_against_internals"]),
            injection_picture(tables["c2_injection"]),
            panel_picture(tables["c2_panel"]),
            sensitivity_picture(tables["c2_prompt_variants"]),
        ]
