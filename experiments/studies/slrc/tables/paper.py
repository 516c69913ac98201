"""The SLRC paper's tables in its own layout, built from a run's tidy tables.

The tidy tables are the data; these are the same numbers where a reader of the paper looks
for them. CSV keeps fractions; Markdown and LaTeX print what the paper prints.

The paper measured in one way, black-box: `reprompt`, `generated`. A run may measure in four;
each has rows of its own, marked by `framing` and `reading`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import (
    PaperTable,
    fraction,
    or_dash,
    percent,
    whole,
)
from faithscope.experiments.analysis.removal_units import UNIT_WORDS, joined, of_each_unit
from faithscope.experiments.analysis.tidy import distinct, keep, rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.layout import (
    MEASURED,
    WAY,
    models_of,
    own_tasks,
    table_of,
    text_of,
    title,
    way_of,
)
from faithscope.experiments.studies.slrc.tables.paper_sections import (
    layers,
    model_pairs,
    prompts,
)
from faithscope.experiments.studies.slrc.tables.taxonomy import CLASSIFICATION
from faithscope.experiments.studies.slrc.words import MATTERS

FIRST = ("sst2", "gsm8k", "sentiment")
"""Tasks of Table 1; `sentiment` has sentences like those that SST-2 labels."""
CUES = ("single_cue", "conflicting_cue", "multi_feature", "sequential_math")
_TABLE_1 = {
    "necessity": ("Nec%", percent),
    "sufficiency": ("Suf%", percent),
    "slrc": ("SLRC", fraction),
    "order_sensitivity": ("Shuf%", percent),
    "n": ("n", whole),
}


def paper_tables(
    tables: Mapping[str, pd.DataFrame],
    models: Mapping[str, Mapping[str, Any]] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> list[PaperTable]:
    """All tables of the paper that the run has numbers for.

    If a run has chains of several units of removal, each unit has rows of its own, except in Table
    ED 4, which is about whole responses, and in that of section 2.7, which is about layers.

    Args:
        tables: the tidy tables by name; `slrc` and `steps` are needed.
        models: model of known size -> its `parameters` and `active_parameters`.
        groups: name of a group -> its models, by which Table 1 is arranged.
    """
    of_units = {
        unit: _of_unit(t, models or {}, groups or {}) for unit, t in of_each_unit(tables).items()
    }
    joined_tables = [
        _joined(
            name, {unit: of_unit[name] for unit, of_unit in of_units.items() if name in of_unit}
        )
        for name in dict.fromkeys(name for of_unit in of_units.values() for name in of_unit)
    ]
    responses = by_task("paper_ed4", _responses(own_tasks(tables["steps"])), "multi_step", percent)
    of_whole = [layers(tables), responses]
    return [*joined_tables, *(table for table in of_whole if len(table.data))]


def _of_unit(
    tables: Mapping[str, pd.DataFrame],
    models: Mapping[str, Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
) -> dict[str, PaperTable]:
    """Name -> table, for the chains of one unit of removal."""
    slrc, steps = own_tasks(tables["slrc"]), own_tasks(tables["steps"])
    laid_out = [
        step_level(slrc, groups, tables.get("model_groups")),
        *([modes(own_tasks(tables["taxonomy"]))] if "taxonomy" in tables else []),
        cue_tasks(slrc),
        scale(slrc, models),
        other_tasks(slrc),
        by_task("paper_ed6", steps, "mean_steps", lambda v: f"{v:.1f}"),
        *([thresholds(tables[t])] if (t := "threshold_sensitivity") in tables else []),
        *([attention(tables["attention"])] if "attention" in tables else []),
        *([prompts(tables[t])] if (t := "prompt_interventions") in tables else []),
        *([model_pairs(tables[t])] if (t := "model_pairs") in tables else []),
    ]
    return {table.name: table for table in laid_out if len(table.data)}


def _joined(name: str, of_units: Mapping[str, PaperTable]) -> PaperTable:
    """Joins the tables of several units into one; a single unit's table is left as the paper prints
    it."""
    printed = [
        table.printed.assign(**({"Unit": UNIT_WORDS[unit]} if len(of_units) > 1 else {}))
        for unit, table in of_units.items()
    ]
    data = joined({unit: table.data for unit, table in of_units.items()})
    return PaperTable(name, data, pd.concat(printed, ignore_index=True))


def _responses(steps: pd.DataFrame) -> pd.DataFrame:
    """Share of responses with several steps, pooled over units of removal."""
    shares = []
    for pair in distinct(steps, "model", "task"):
        of_units = rows(where(steps, **pair))
        several = math.fsum(r["multi_step"] * r["n"] for r in of_units)
        shares.append(pair | {"multi_step": several / sum(r["n"] for r in of_units)})
    return pd.DataFrame(shares, columns=["model", "task", "multi_step"])


def step_level(
    slrc: pd.DataFrame,
    groups: Mapping[str, Sequence[str]] | None = None,
    means: pd.DataFrame | None = None,
) -> PaperTable:
    """Table 1: necessity, sufficiency and SLRC on sentiment and mathematics, with tasks as columns.

    Args:
        groups: name of a group -> its models, which stand together below its name and above its
            mean; models of no group come first.
        means: table `model_groups`.
    """
    tasks = [task for task in FIRST if task in set(slrc["task"])]
    cells = {f"{task}_{measure}": (task, measure) for task in tasks for measure in _TABLE_1}
    headings = {
        f"{title(task)} {heading}": text_of(f"{task}_{measure}", say)
        for task in tasks
        for measure, (heading, say) in _TABLE_1.items()
    }
    group_of = {model: name for name, models in (groups or {}).items() for model in models}
    lines = _across(where(slrc, task=set(tasks)), cells)
    data = [line | {"group": group_of.get(line["model"], "")} for line in lines]
    if means is not None:
        of_groups = _across(where(means, task=set(tasks)).rename(columns={"group": "model"}), cells)
        data += [line | {"group": line["model"]} for line in of_groups]
        order = ["", *(groups or {})]
        data.sort(key=lambda line: order.index(line["group"]))
        headings = {"Group": text_of("group")} | MEASURED | headings
        return table_of("paper_table1", data, ["group", "model", *WAY, *cells], headings)
    return table_of("paper_table1", data, ["model", *WAY, *cells], MEASURED | headings)


def _across(table: pd.DataFrame, cells: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """One line per model and way of measuring, with tasks as columns; NaN for what was not
    measured."""
    of = {(r["model"], r["framing"], r["reading"], r["task"]): r for r in rows(table)}
    keys = sorted({key[:3] for key in of}, key=lambda key: (model_order(key[0]), key))
    return [
        dict(zip(("model", *WAY), key, strict=True))
        | {name: of.get((*key, task), {}).get(m, math.nan) for name, (task, m) in cells.items()}
        for key in keys
    ]


def modes(taxonomy: pd.DataFrame) -> PaperTable:
    """Table 2: every model and task in the cell of its mode, with gap and necessity."""
    cells: dict[str, list[str]] = {}
    for row in rows(taxonomy):
        what = f"{row['model']} {title(row['task'])} ({way_of(row)})"
        numbers = f"{100 * row['gap']:+.0f}/{100 * row['necessity']:.0f}%"
        cells.setdefault(str(row["mode"]), []).append(f"{what} ({numbers})")

    def cell(mode: str) -> str:
        of_mode = cells.get(mode, [])
        pairs = f"{len(of_mode)} pair{'' if len(of_mode) == 1 else 's'}"
        return "; ".join([f"{mode.capitalize()} ({pairs})", *of_mode])

    printed = pd.DataFrame(
        {
            "": ["Steps matter", "Steps don't"],
            "CoT helps": [cell("genuine"), cell("scaffolding")],
            "CoT doesn't help": [cell("empty"), cell("decorative")],
        }
    )
    return PaperTable("paper_table2", taxonomy, printed)


def cue_tasks(slrc: pd.DataFrame) -> PaperTable:
    """Table 3: necessity on the four tasks with controlled cues, with models as columns."""
    of_cues = where(slrc, task=set(CUES))
    models = models_of(of_cues)
    data = []
    for way in distinct(of_cues, *WAY):
        for task in CUES:
            of = {r["model"]: r["necessity"] for r in rows(where(of_cues, task=task, **way))}
            if of:
                data.append({"task": task, **way, **{m: of.get(m, math.nan) for m in models}})
    headings = {"Task": text_of("task", title), "Measured": way_of}
    headings |= {model: text_of(model, percent) for model in models}
    return table_of("paper_table3", data, ["task", *WAY, *models], headings)


def scale(slrc: pd.DataFrame, models: Mapping[str, Mapping[str, Any]]) -> PaperTable:
    """Table 5: model size against the tasks on which steps matter (necessity ≥ .30)."""
    data = []
    ways = distinct(slrc, *WAY)
    for model in (m for m in models_of(slrc) if models.get(m, {}).get("parameters")):
        total, active = (models[model].get(x) for x in ("parameters", "active_parameters"))
        for way in ways:
            of_tasks = rows(where(slrc, model=model, **way))
            if not of_tasks:
                continue
            tasks = [r["task"] for r in of_tasks if r["necessity"] >= MATTERS]
            data.append(
                {"model": model, **way, "parameters": total, "active_parameters": active}
                | {"moe": active != total, "n_tasks": len(of_tasks)}
                | {"steps_matter": " ".join(tasks)}
            )
    headings = MEASURED | {
        "Total": text_of("parameters", size),
        "Active": text_of("active_parameters", lambda n: "—" if n is None else size(n)),
        "MoE?": text_of("moe", lambda moe: "Yes" if moe else "Dense"),
        "Faithful?": text_of("steps_matter", lambda ts: ", ".join(map(title, ts.split())) or "No"),
    }
    sizes = ["parameters", "active_parameters", "moe", "n_tasks", "steps_matter"]
    return table_of("paper_table5", data, ["model", *WAY, *sizes], headings)


def other_tasks(slrc: pd.DataFrame) -> PaperTable:
    """Extended Data Table 5: all tasks beyond those of Table 1, one row per task."""
    rest = rows(keep(slrc, ~slrc["task"].isin([*FIRST, *CUES])))
    shares = {"necessity": "Nec%", "sufficiency": "Suf%", "accuracy": "Acc%"}
    headings = {
        "Model": text_of("model"),
        "Task": text_of("task", title),
        "Measured": way_of,
        "n": text_of("n"),
    }
    headings |= {heading: text_of(column, percent) for column, heading in shares.items()}
    return table_of("paper_ed5", rest, ["model", "task", *WAY, "n", *shares], headings)


def by_task(name: str, steps: pd.DataFrame, column: str, say: Callable[[float], str]) -> PaperTable:
    """Extended Data Tables 4 and 6: one number per model (rows) and task (columns).

    Table 4 is output rigidity, the share of responses with several steps; Table 6 the mean
    number of steps.
    """
    tasks = list(dict.fromkeys(steps["task"]))
    of = {(r["model"], r["task"]): r[column] for r in rows(steps)}
    data = [
        {"model": model, **{task: of.get((model, task), math.nan) for task in tasks}}
        for model in models_of(steps)
    ]
    headings = {title(task): text_of(task, lambda value: or_dash(say, value)) for task in tasks}
    return table_of(name, data, ["model", *tasks], {"Model": text_of("model"), **headings})


def thresholds(sensitivity: pd.DataFrame) -> PaperTable:
    """Extended Data Table 3: per necessity threshold, the pairs in which necessity and gain in
    accuracy agree; for classification tasks, and for all tasks."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for r in rows(sensitivity):
        key = (f"{r['necessity_threshold']:.2f}", way_of(r))
        line = lines.setdefault(key, {"Nec threshold": key[0], "Measured": key[1]})
        heading = "Classification" if r["tasks"] == CLASSIFICATION else "All tasks"
        line[heading] = (
            f"{r['n_consistent']}/{r['n']} ({or_dash(lambda x: f'{whole(x)}%', 100 * r['as_gap'])})"
        )
    order = ["Nec threshold", "Measured", "Classification", "All tasks"]
    there = [c for c in order if any(c in line for line in lines.values())]
    return PaperTable("paper_ed3", sensitivity, pd.DataFrame(list(lines.values()), columns=there))


def attention(table: pd.DataFrame) -> PaperTable:
    """Table 4: attention of the answer to the reasoning, real and shuffled, in percentage points.

    The paper leaves open which summary its numbers are: means over layers and heads come first,
    then the gap of what is lost from the first layer to the last.
    """
    points = {"Real": "real", "Shuf": "shuffled"}
    headings = {"Model": text_of("model"), "Task": text_of("task", title)}
    headings |= {
        name: text_of(column, lambda v: f"{100 * v:.0f}%") for name, column in points.items()
    }
    for name, column in (("Gap", "gap"), ("Gap, drop", "gap_drop")):
        headings[name] = text_of(column, lambda v: or_dash(lambda x: f"{100 * x:+.0f}pp", v))
        signal = column.replace("gap", "signal")
        headings[name.replace("Gap", "Signal")] = text_of(
            signal, lambda word: word.capitalize() or "—"
        )
    lines = sorted(rows(own_tasks(table)), key=lambda r: model_order(r["model"]))
    return table_of("paper_table4", lines, list(table.columns), headings)


def size(parameters: int) -> str:
    """Number of parameters in short form: `135M`, `8B`, `1T`."""
    for unit, of in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= of:
            return f"{parameters / of:.3g}{unit}"
    return str(parameters)
