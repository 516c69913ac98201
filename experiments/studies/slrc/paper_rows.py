"""Numbers of a run in the form in which the SLRC paper prints its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.published.paper import Tables
from faithscope.experiments.analysis.tidy import (
    groups,
    keep,
    only,
    renamed,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.numerals import significant
from faithscope.experiments.studies.slrc.config import TaxonomyConfig
from faithscope.experiments.studies.slrc.measures.attention import signal
from faithscope.experiments.studies.slrc.paper_names import TITLES
from faithscope.experiments.studies.slrc.tables.groups import MODEL_GROUPS
from faithscope.experiments.studies.slrc.tables.models import MODELS, SIZES
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.pairs import MODEL_PAIRS, PROMPT_INTERVENTIONS
from faithscope.experiments.studies.slrc.tables.slrc import SLRC, SLRC_ORIGINAL, STEPS
from faithscope.experiments.studies.slrc.tables.taxonomy import mode
from faithscope.experiments.studies.slrc.words import MATTERS

ENDS = ("", "_low", "_high")
"""Endings of an estimate's columns."""
STATED, ASKED_AGAIN = "stated", "asked_again"
"""What edited reasoning is compared with (column `reference`): the response's own answer, as in the
paper, or the one given when asked again without an edit."""
MEMBERS = "members"
"""Name of the frame of models and their group, among the tables that the paper's are made of."""
UNDER_PROMPTS = ("necessity", "sufficiency", "accuracy_written", "mean_steps")
NORMAL = 1.959964
"""97.5 % point of the normal distribution, for 95 % intervals of means."""


def signals(row: Mapping[str, Any]) -> set[str]:
    """The words of Table 4 that the interval of an attention gap allows; none without one."""
    low, high = row["gap_low"], row["gap_high"]
    return {signal(gap) for gap in np.linspace(low, high, 101).tolist()} if low < high else set()


def modes(row: Mapping[str, Any]) -> set[str]:
    """The modes that the intervals of necessity and gap allow; none without both."""
    ends = [[row[f"{name}_low"], row[f"{name}_high"]] for name in ("necessity", "gap")]
    if not all(low < high for low, high in ends):
        return set()
    at = TaxonomyConfig()
    return {mode(n, gap, at.necessity, at.gap) for n, gap in itertools.product(*ends)}


def own_tasks(table: pd.DataFrame) -> pd.DataFrame:
    """Rows without prompt variants (`sst2:alternative`), which have a table of their own."""
    return keep(table, [not is_variant(task) for task in table["task"]])


def members(of_groups: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """A row per model of each group of `report.groups`, in their order."""
    lines = [(model, name) for name, models in of_groups.items() for model in models]
    return pd.DataFrame(lines, columns=["model", "group"])


def measured(tables: Tables) -> pd.DataFrame | None:
    """Necessity, sufficiency, SLRC and accuracy, compared with the response's own answer and with
    that given when asked again, which `reference` tells apart."""
    table = _with_both_references(tables)
    return None if table is None else own_tasks(table)


def _with_both_references(tables: Tables) -> pd.DataFrame | None:
    again = tables.get(SLRC.name)
    if again is None or again.empty:
        return None
    keys = ["model", "task", "unit", "framing", "reading"]
    accuracy = [f"accuracy_written{end}" for end in ENDS]
    as_asked = {f"accuracy_written{end}": again[f"accuracy{end}"] for end in ENDS}
    parts = [again.assign(**as_asked, reference=ASKED_AGAIN)]
    if SLRC_ORIGINAL.name in tables:
        stated = tables[SLRC_ORIGINAL.name].merge(only(again, [*keys, *accuracy]), on=keys)
        parts.insert(0, stated.assign(reference=STATED))
    return pd.concat(parts, ignore_index=True)


def step_level(tables: Tables) -> pd.DataFrame | None:
    """The rows of `measured` with the `group` of each model, and the mean of each group below its
    models, as a row of the group's own name."""
    table = measured(tables)
    if table is None:
        return None
    of_groups = tables.get(MEMBERS, members({}))
    group_of = dict(zip(of_groups["model"], of_groups["group"], strict=True))
    table = table.assign(group=[group_of.get(model, "") for model in table["model"]])
    if MODEL_GROUPS.name in tables:
        means = tables[MODEL_GROUPS.name]
        means = means.assign(model=means["group"], reference=ASKED_AGAIN)
        table = pd.concat([table, means], ignore_index=True)
    order = ["", *dict.fromkeys(of_groups["group"])]
    return table.sort_values("group", key=lambda of: of.map(order.index), kind="stable")


def tasks_with_steps_that_matter(tables: Tables) -> pd.DataFrame | None:
    """A row per model: its size, and the titles of the tasks on which its necessity reaches the
    threshold, or `No`."""
    table = measured(tables)
    if table is None:
        return None
    titles = {task: title for title, task in reversed(TITLES.items())}
    lines = [
        key
        | {"n": len(of), "unit": of["unit"].iloc[0]}
        | {"tasks": [titles.get(t, t) for t in of["task"][of["necessity"] >= MATTERS]]}
        for key, of in groups(table, ["model", "framing", "reading", "reference"])
    ]
    matter = pd.DataFrame(lines)
    matter["tasks"] = [", ".join(tasks) or "No" for tasks in matter["tasks"]]
    names = [column.name for column in SIZES]
    sizes = only(tables[MODELS.name], ["model", *names]).drop_duplicates("model")
    table = matter.merge(sizes, on="model", how="left")
    of_both = list(zip(*(table[name] for name in names), strict=True))
    texts = {f"{name}_text": [size(n) for n in table[name]] for name in names}
    kinds = ["" if pd.isna(n) else "Dense" if n == total else "Yes" for total, n in of_both]
    return table.assign(**texts, moe=kinds)


def size(parameters: float) -> str:
    """Number of parameters in short form: `135M`, `8B`, `1T`; empty for an unknown one."""
    if pd.isna(parameters):
        return ""
    for unit, of in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= of:
            return f"{significant(parameters / of, 3)}{unit}"
    return str(round(parameters))


def lengths(steps: pd.DataFrame) -> pd.DataFrame:
    """Table `steps` with a normal 95 % interval for the mean number of steps."""
    return own_tasks(_with_interval(steps))


def _with_interval(steps: pd.DataFrame) -> pd.DataFrame:
    half = NORMAL * steps["sd_steps"] / np.sqrt(steps["n"])
    low, high = steps["mean_steps"] - half, steps["mean_steps"] + half
    return steps.assign(mean_steps_low=low, mean_steps_high=high)


def responses(steps: pd.DataFrame) -> pd.DataFrame:
    """Share of responses with several steps, pooled over units of removal; without an interval
    where there are several."""
    lines = []
    for key, of in groups(own_tasks(steps), ["model", "task"]):
        n = of["n"].sum()
        pooled = {"n": n, "multi_step": (of["multi_step"] * of["n"]).sum() / n}
        lines.append(rows(of)[0] if len(of) == 1 else key | pooled)
    return pd.DataFrame(lines).drop(columns="unit", errors="ignore")


def under_both_prompts(tables: Tables) -> pd.DataFrame | None:
    """One row per task and prompt variant: the measures of section 2.6 under the task's own prompt
    (`…_standard`) and under the variant, and the `difference` in necessity."""
    both, steps = _with_both_references(tables), tables.get(STEPS.name)
    if both is None or steps is None or PROMPT_INTERVENTIONS.name not in tables:
        return None
    keys = ["model", "task", "unit"]
    measures = [f"{m}{end}" for m in UNDER_PROMPTS for end in ENDS]
    of_steps = only(_with_interval(steps), [*keys, *with_interval("mean_steps")])
    both = both.merge(of_steps, on=keys, suffixes=("_of_slrc", ""))
    way = [*keys, "framing", "reading"]
    numbers = only(both, [*way, "reference", "n", *measures])
    changed = keep(numbers, [is_variant(task) for task in numbers["task"]])
    changed = changed.assign(variant=changed["task"].str.partition(":")[2])
    changed = changed.assign(task=changed["task"].str.partition(":")[0])
    standard = numbers.drop(columns="n").rename(columns={m: standard_of(m) for m in measures})
    gains = where(tables[PROMPT_INTERVENTIONS.name], measure="necessity")
    gains = only(gains, [*way, "variant", *with_interval("difference")])
    changed = changed.merge(standard, on=[*way, "reference"])
    return changed.merge(gains, on=[*way, "variant"])


def standard_of(column: str) -> str:
    """The column of the same number under the task's own prompt: `x_low` -> `x_standard_low`."""
    name, _, end = column.rpartition("_")
    return f"{name}_standard_{end}" if end in ("low", "high") else f"{column}_standard"


_OF_LAYERS = {
    "rigidity": {"stable_layer": "stable_layer", "depth": "stable_depth"},
    "flow": {name: name for name in ("peak_layer", "peak_depth", "peak_value")},
}
"""Table -> its columns -> those of `of_layers`."""


def of_layers(tables: Tables) -> pd.DataFrame | None:
    """Section 2.7: the layer from which the answer is settled, the answer's attention to reasoning
    and prompt, and the layer at which the reasoning is most like the answer.

    The paper's shares of attention add up to one and name question and reasoning alone, so ours are
    of the attention that goes to either: the question with the rest of the prompt, its first token
    included. The bounds are those of `attention`, divided by the same sum. Attention is of the
    chains of one unit of removal, and missing where a run has several.
    """
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for name, columns in _OF_LAYERS.items():
        for row in rows(own_tasks(tables[name])) if name in tables else ():
            if row.get("lens", "logit") == "logit":
                line = lines.setdefault((row["model"], row["task"]), {})
                line |= {key: row[key] for key in ("model", "task", "n", "n_layers")}
                for old, new in columns.items():
                    line |= renamed(row, old, new)
    for (model, task), line in lines.items():
        read = "attention" in tables
        attended = rows(where(tables["attention"], model=model, task=task)) if read else []
        line |= _shares(attended[0]) if len(attended) == 1 else {}
    return pd.DataFrame(list(lines.values())) if lines else None


def _shares(row: Mapping[str, Any]) -> dict[str, float]:
    """Shares of reasoning and prompt in the attention that goes to either."""
    before = row["first_token"] + row["template"] + row["question"]
    both = row["real"] + before
    low, high = row["real_low"] / both, row["real_high"] / both
    reasoning = {"reasoning": row["real"] / both, "reasoning_low": low, "reasoning_high": high}
    return reasoning | {"prompt": before / both, "prompt_low": 1 - high, "prompt_high": 1 - low}


def of_labs(tables: Tables) -> pd.DataFrame | None:
    """Necessity of every model, as in `measured`; and of both models of each pair that
    `report.pairs` names (column `pair`), on the items that both have, with the difference."""
    table = measured(tables)
    if table is None:
        return None
    table = table.assign(pair="")
    if MODEL_PAIRS.name not in tables:
        return table
    pairs = where(tables[MODEL_PAIRS.name], measure="necessity").assign(reference=ASKED_AGAIN)
    first = dict(zip(with_interval("first"), with_interval("necessity"), strict=True))
    second = dict(zip(with_interval("second"), with_interval("necessity"), strict=True))
    difference = with_interval("difference")
    one = pairs.rename(columns=first).drop(columns=difference)
    other = pairs.drop(columns="model").rename(columns={"other": "model", **second})
    return pd.concat([table, one, other], ignore_index=True)
