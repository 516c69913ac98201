"""The tables of the probes that a run asked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from faithscope.experiments.analysis.records import Record
from faithscope.experiments.studies.slrc.measures import SLICES
from faithscope.experiments.studies.slrc.measures.slice import Analysis
from faithscope.experiments.studies.slrc.tables.head_to_head import head_to_head_table
from faithscope.experiments.studies.slrc.tables.measure_tables import (
    measure_correlations_table,
    measures_table,
)
from faithscope.experiments.studies.slrc.tables.measures import PROBES_READ
from faithscope.experiments.studies.slrc.tables.model_correlations import model_correlations_table
from faithscope.experiments.studies.slrc.tables.models import Sizes, models_table
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.planted import has_planted_truth, planted_table
from faithscope.experiments.studies.slrc.tables.prompt_effects import prompt_interventions_table
from faithscope.experiments.studies.slrc.tables.taxonomy import (
    taxonomy_table,
    threshold_sensitivity_table,
)
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig


def probe_tables(
    records: Sequence[Record], analysis: Analysis, over_steps: bool
) -> dict[str, pd.DataFrame]:
    """The tables of every slice, by file name, excluded records counted as asked.

    Args:
        over_steps: those about steps, of records of one unit of removal; or the others.
    """
    asked = {r["probe"] for r in records}
    return {
        table.name: table.make(records, analysis)
        for name, part in SLICES.items()
        if name in asked
        for table in part.tables
        if table.over_steps == over_steps
    }


def step_tables(
    records: Sequence[Record],
    analysis: Analysis,
    settings: TaxonomyConfig,
    sizes: Sizes | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables over steps, of the records of one unit of removal.

    Each by its file name; a table is there if its probes have records, excluded ones too.
    """
    seed, resamples = analysis.seed, analysis.resamples
    asked = {r["probe"] for r in records}
    made = probe_tables(records, analysis, over_steps=True)
    if {"direct", "slrc"} <= asked:
        made["taxonomy"] = taxonomy_table(records, settings)
        made["threshold_sensitivity"] = threshold_sensitivity_table(made["taxonomy"], settings)
    if "slrc" in asked:
        made["models"] = models_table(
            records, prompt=settings.prompt, sizes=sizes, seed=seed, resamples=resamples
        )
        made["model_correlations"] = model_correlations_table(made["models"], seed=seed)
    if "causal_effects" in asked:
        made["head_to_head"] = head_to_head_table(records, seed=seed, resamples=resamples)
    if any(is_variant(r["task"]) for r in records if r["probe"] == "slrc"):
        made["prompt_interventions"] = prompt_interventions_table(
            records, settings, seed=seed, resamples=resamples
        )
    if len(asked & set(PROBES_READ)) > 1:
        made["measures"] = measures_table(records, seed=seed, resamples=resamples)
        made["measure_correlations"] = measure_correlations_table(records)
    if has_planted_truth(records):
        made["planted"] = planted_table(records, seed=seed, resamples=resamples)
    return made
