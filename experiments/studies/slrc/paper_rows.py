"""Numbers of a run in the form in which the SLRC paper prints its own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.published.paper import Tables
from faithscope.experiments.analysis.tidy import groups, keep, only
from faithscope.experiments.studies.slrc.tables.layout import own_tasks, title
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.pairs import PROMPT_INTERVENTIONS
from faithscope.experiments.studies.slrc.tables.paper_sections import layers
from faithscope.experiments.studies.slrc.tables.slrc import SLRC, SLRC_ORIGINAL, STEPS
from faithscope.experiments.studies.slrc.words import MATTERS

ENDS = ("", "_low", "_high")
"""Endings of an estimate's columns."""
UNDER_PROMPTS = ("necessity", "sufficiency", "accuracy_written", "mean_steps")
NORMAL = 1.959964
"""97.5 % point of the normal distribution, for 95 % intervals of means."""


def against_the_response(tables: Tables) -> pd.DataFrame | None:
    """Table `slrc_original` with the accuracy of the answers as written, out of table `slrc`."""
    table = _held_against_the_response(tables)
    return None if table is None else own_tasks(table)


def _held_against_the_response(tables: Tables) -> pd.DataFrame | None:
    if SLRC_ORIGINAL.name not in tables:
        return None
    keys = [k for k in ("model", "task", "unit", "framing", "reading") if k in tables[SLRC.name]]
    accuracy = [f"accuracy_written{end}" for end in ENDS]
    return tables[SLRC_ORIGINAL.name].merge(tables[SLRC.name][[*keys, *accuracy]], on=keys)


def lengths(tables: Tables) -> pd.DataFrame | None:
    """Table `steps` with a normal 95 % interval for the mean number of steps."""
    table = _with_interval_of_steps(tables)
    return None if table is None else own_tasks(table)


def _with_interval_of_steps(tables: Tables) -> pd.DataFrame | None:
    if STEPS.name not in tables:
        return None
    table = tables[STEPS.name]
    half = NORMAL * table["sd_steps"] / np.sqrt(table["n"])
    return table.assign(
        mean_steps_low=table["mean_steps"] - half, mean_steps_high=table["mean_steps"] + half
    )


def under_both_prompts(tables: Tables) -> pd.DataFrame | None:
    """One row per task and prompt variant: the measures of section 2.6 under the task's own prompt
    (`…_standard`) and under the variant, and the `difference` in necessity."""
    measured, steps = _held_against_the_response(tables), _with_interval_of_steps(tables)
    if measured is None or steps is None or PROMPT_INTERVENTIONS.name not in tables:
        return None
    keys = ["model", "task", "unit"]
    measures = [f"{m}{end}" for m in UNDER_PROMPTS for end in ENDS]
    both = measured.merge(steps[[*keys, *(f"mean_steps{end}" for end in ENDS)]], on=keys)
    numbers = only(both, [*keys, "framing", "reading", "n", *measures])
    changed = keep(numbers, [is_variant(task) for task in numbers["task"]])
    changed = changed.assign(variant=changed["task"].str.partition(":")[2])
    changed = changed.assign(task=changed["task"].str.partition(":")[0])
    standard = numbers.drop(columns="n").rename(columns={m: standard_of(m) for m in measures})
    gains = tables[PROMPT_INTERVENTIONS.name]
    gains = keep(gains, gains["measure"] == "necessity")
    way = [*keys, "framing", "reading"]
    differences = [f"difference{end}" for end in ENDS]
    return changed.merge(standard, on=way).merge(
        only(gains, [*way, "variant", *differences]), on=[*way, "variant"]
    )


def standard_of(column: str) -> str:
    """The column of the same number under the task's own prompt: `x_low` -> `x_standard_low`."""
    name, _, end = column.rpartition("_")
    return f"{name}_standard_{end}" if end in ("low", "high") else f"{column}_standard"


def of_layers(tables: Tables) -> pd.DataFrame | None:
    """The layout of section 2.7 as numbers."""
    table = layers(tables).data
    return table if len(table) else None


def tasks_with_steps_that_matter(tables: Tables) -> pd.DataFrame | None:
    """Model -> the titles of the tasks on which its necessity reaches the threshold, or `No`."""
    table = against_the_response(tables)
    if table is None or table.empty:
        return None
    return pd.DataFrame(
        key
        | {"tasks": ", ".join(title(t) for t in of["task"][of["necessity"] >= MATTERS]) or "No"}
        | {"n": len(of)}
        for key, of in groups(table, ["model", "framing", "reading"])
    )
