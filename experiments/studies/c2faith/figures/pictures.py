"""The figures of C2-Faith, each drawn from the tables alone (the paper's Figures 2 to 8, and ours).

A judge that gave no verdict keeps its place in every figure, with a word that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd

from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.studies.c2faith.figures import comparisons, failures, scores, verdicts


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure of a run, from its tables by name.

    For a judge with several prompts the first is drawn; the tables have all.
    """
    with mpl.rc_context(STYLE):
        return [
            verdicts.detection_picture(tables["c2_detection"]),
            verdicts.localisation_picture(tables["c2_localisation"]),
            scores.coverage_scores_picture(tables["c2_coverage_scores"]),
            scores.coverage_picture(tables["c2_coverage"]),
            failures.radar_picture(
                tables["c2_detection"], tables["c2_localisation"], tables["c2_coverage_pooled"]
            ),
            verdicts.signed_error_picture(tables["c2_signed_error"]),
            failures.failure_overlap_picture(tables["c2_failure_overlap"]),
            verdicts.within_picture(tables["c2_within"]),
            verdicts.positions_picture(tables["c2_positions"]),
            scores.reliability_picture(tables["c2_reliability"]),
            verdicts.against_picture(tables["c2_judge_against_internals"]),
            comparisons.sensitivity_picture(tables["c2_prompt_variants"]),
        ]
