"""The tables of the probes beside SLRC, of those that a run asked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from faithscope.experiments.config.taxonomy import TaxonomyConfig
from faithscope.experiments.tables.attention import attention_by_layer_table, attention_table
from faithscope.experiments.tables.causal_effects import (
    causal_effects_by_step_table,
    causal_effects_table,
)
from faithscope.experiments.tables.head_to_head import head_to_head_table
from faithscope.experiments.tables.information import information_by_step_table, information_table
from faithscope.experiments.tables.integrity import error_detection_table, sycophancy_table
from faithscope.experiments.tables.knockout import knockout_by_step_table, knockout_table
from faithscope.experiments.tables.layerwise import (
    flow_by_layer_table,
    flow_table,
    rigidity_by_layer_table,
    rigidity_table,
)
from faithscope.experiments.tables.measure_tables import measure_correlations_table, measures_table
from faithscope.experiments.tables.measures import PROBES_READ
from faithscope.experiments.tables.model_correlations import model_correlations_table
from faithscope.experiments.tables.models import Sizes, models_table
from faithscope.experiments.tables.outcomes import Record, is_variant
from faithscope.experiments.tables.patching import (
    patching_by_layer_table,
    patching_map_table,
    patching_table,
)
from faithscope.experiments.tables.planted import has_planted_truth, planted_table
from faithscope.experiments.tables.prompt_effects import prompt_interventions_table
from faithscope.experiments.tables.taxonomy import (
    direct_table,
    taxonomy_table,
    threshold_sensitivity_table,
)
from faithscope.experiments.tables.tracing import tracing_by_position_table, tracing_table


def whole_tables(records: Sequence[Record], seed: int, resamples: int) -> dict[str, pd.DataFrame]:
    """Tables of what was asked of whole chains or of questions: their steps' unit is nothing to it.

    Each by its file name; a table is there if its probe has records, excluded ones too.
    """
    asked = {r["probe"] for r in records}
    made: dict[str, pd.DataFrame] = {}
    if "direct" in asked:
        made["direct"] = direct_table(records)
    if "sycophancy" in asked:
        made["sycophancy"] = sycophancy_table(records)
    if "error_detection" in asked:
        made["error_detection"] = error_detection_table(records)
    if "rigidity" in asked:
        made["rigidity"] = rigidity_table(records, seed=seed, resamples=resamples)
        made["rigidity_by_layer"] = rigidity_by_layer_table(records, seed=seed, resamples=resamples)
    if "flow" in asked:
        made["flow"] = flow_table(records, seed=seed, resamples=resamples)
        made["flow_by_layer"] = flow_by_layer_table(records, seed=seed, resamples=resamples)
    return made


def step_tables(
    records: Sequence[Record],
    seed: int,
    resamples: int,
    settings: TaxonomyConfig,
    sizes: Sizes | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables over steps, of the records of one unit of removal.

    Each by its file name; a table is there if its probes have records, excluded ones too.
    """
    asked = {r["probe"] for r in records}
    made: dict[str, pd.DataFrame] = {}
    if {"direct", "slrc"} <= asked:
        made["taxonomy"] = taxonomy_table(records, settings)
        made["threshold_sensitivity"] = threshold_sensitivity_table(made["taxonomy"], settings)
    if "attention" in asked:
        made["attention"] = attention_table(records, seed, resamples)
        made["attention_by_layer"] = attention_by_layer_table(records, seed, resamples)
    if "slrc" in asked:
        made["models"] = models_table(
            records, prompt=settings.prompt, sizes=sizes, seed=seed, resamples=resamples
        )
        made["model_correlations"] = model_correlations_table(made["models"], seed=seed)
    if "tracing" in asked:
        made["tracing"] = tracing_table(records, seed, resamples)
        made["tracing_by_position"] = tracing_by_position_table(records, seed, resamples)
    if "information" in asked:
        made["information"] = information_table(records, seed, resamples)
        made["information_by_step"] = information_by_step_table(records, seed, resamples)
    if "knockout" in asked:
        made["knockout"] = knockout_table(records, seed, resamples)
        made["knockout_by_step"] = knockout_by_step_table(records, seed, resamples)
    if "patching" in asked:
        made["patching"] = patching_table(records, seed, resamples)
        made["patching_by_layer"] = patching_by_layer_table(records, seed, resamples)
        made["patching_map"] = patching_map_table(records, seed, resamples)
    if "causal_effects" in asked:
        made["causal_effects"] = causal_effects_table(records, seed, resamples)
        made["causal_effects_by_step"] = causal_effects_by_step_table(records, seed, resamples)
        made["head_to_head"] = head_to_head_table(records, seed=seed, resamples=resamples)
    if any(is_variant(r["dataset"]) for r in records if r["probe"] == "slrc"):
        made["prompt_interventions"] = prompt_interventions_table(
            records, settings, seed=seed, resamples=resamples
        )
    if len(asked & set(PROBES_READ)) > 1:
        made["measures"] = measures_table(records, seed=seed, resamples=resamples)
        made["measure_correlations"] = measure_correlations_table(records)
    if has_planted_truth(records):
        made["planted"] = planted_table(records, seed=seed, resamples=resamples)
    return made
