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

from faithscope.experiments.analysis.by_unit import UNIT_WORDS, joined, of_each_unit
from faithscope.experiments.analysis.paper_table import (
    PaperTable,
    fraction,
    or_dash,
    percent,
    whole,
)
from faithscope.experiments.analysis.tidy import distinct, keep, rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
from faithscope.experiments.studies.slrc.tables.taxonomy import CLASSIFICATION
from faithscope.experiments.studies.slrc.tables.verdict import MATTERS

TITLES = {
    "sst2": "SST-2",
    "gsm8k": "GSM8K",
    "ag_news": "AG News",
    "medqa": "MedQA",
    "commonsense_qa": "CSQA",
    "arc_challenge": "ARC",
    "sentiment": "Rotten Tomatoes",
    "single_cue": "Single-cue",
    "conflicting_cue": "Conflicting-cue",
    "multi_feature": "Multi-feature",
    "sequential_math": "Sequential math",
}
FIRST = ("sst2", "gsm8k", "sentiment")
"""Tasks of Table 1; `sentiment` has sentences like those that SST-2 labels."""
CUES = ("single_cue", "conflicting_cue", "multi_feature", "sequential_math")
_WAY = ["framing", "reading"]
Row = Mapping[str, Any]


def _way(row: Row) -> str:
    return f"{row['framing']}, {row['reading']}"


_MEASURED = {"Model": lambda row: row["model"], "Measured": _way}
_TABLE_1 = {
    "necessity": ("Nec%", percent),
    "sufficiency": ("Suf%", percent),
    "slrc": ("SLRC", fraction),
    "order_sensitivity": ("Shuf%", percent),
    "n": ("n", whole),
}


def paper_tables(
    tables: Mapping[str, pd.DataFrame], models: Mapping[str, Mapping[str, Any]] | None = None
) -> list[PaperTable]:
    """All tables of the paper that the run has numbers for.

    If a run has chains of several units of removal, each unit has rows of its own, except in Table
    ED 4, which is about whole responses.

    Args:
        tables: the tidy tables by name; `slrc` and `steps` are needed.
        models: model of known size -> its `parameters` and `active_parameters`.
    """
    of_units = {unit: _of_unit(t, models or {}) for unit, t in of_each_unit(tables).items()}
    joined_tables = [
        _joined(
            name, {unit: of_unit[name] for unit, of_unit in of_units.items() if name in of_unit}
        )
        for name in dict.fromkeys(name for of_unit in of_units.values() for name in of_unit)
    ]
    responses = by_task("paper_ed4", _responses(_own(tables["steps"])), "multi_step", percent)
    return [*joined_tables, *([responses] if len(responses.data) else [])]


def _of_unit(
    tables: Mapping[str, pd.DataFrame], models: Mapping[str, Mapping[str, Any]]
) -> dict[str, PaperTable]:
    """Name -> table, for the chains of one unit of removal."""
    slrc, steps = _own(tables["slrc"]), _own(tables["steps"])
    laid_out = [
        step_level(slrc),
        *([modes(_own(tables["taxonomy"]))] if "taxonomy" in tables else []),
        cue_tasks(slrc),
        scale(slrc, models),
        other_tasks(slrc),
        by_task("paper_ed6", steps, "mean_steps", lambda v: f"{v:.1f}"),
        *([thresholds(tables[t])] if (t := "threshold_sensitivity") in tables else []),
        *([attention(tables["attention"])] if "attention" in tables else []),
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


def step_level(slrc: pd.DataFrame) -> PaperTable:
    """Table 1: necessity, sufficiency and SLRC on sentiment and mathematics, with tasks as
    columns."""
    tasks = [task for task in FIRST if task in set(slrc["task"])]
    of_tasks = where(slrc, task=set(tasks))
    of = {(r["model"], r["framing"], r["reading"], r["task"]): r for r in rows(of_tasks)}
    keys = sorted({key[:3] for key in of}, key=lambda key: (model_order(key[0]), key))
    cells = {f"{task}_{measure}": (task, measure) for task in tasks for measure in _TABLE_1}
    data = [
        dict(zip(("model", *_WAY), key, strict=True))
        | {name: of.get((*key, task), {}).get(m, math.nan) for name, (task, m) in cells.items()}
        for key in keys
    ]
    headings = {
        f"{title(task)} {heading}": _of(f"{task}_{measure}", say)
        for task in tasks
        for measure, (heading, say) in _TABLE_1.items()
    }
    return _table("paper_table1", data, ["model", *_WAY, *cells], _MEASURED | headings)


def modes(taxonomy: pd.DataFrame) -> PaperTable:
    """Table 2: every model and task in the cell of its mode, with gap and necessity."""
    cells: dict[str, list[str]] = {}
    for row in rows(taxonomy):
        what = f"{row['model']} {title(row['task'])} ({_way(row)})"
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
    models = _models(of_cues)
    data = []
    for way in distinct(of_cues, *_WAY):
        for task in CUES:
            of = {r["model"]: r["necessity"] for r in rows(where(of_cues, task=task, **way))}
            if of:
                data.append({"task": task, **way, **{m: of.get(m, math.nan) for m in models}})
    headings = {"Task": _of("task", title), "Measured": _way}
    headings |= {model: _of(model, percent) for model in models}
    return _table("paper_table3", data, ["task", *_WAY, *models], headings)


def scale(slrc: pd.DataFrame, models: Mapping[str, Mapping[str, Any]]) -> PaperTable:
    """Table 5: model size against the tasks on which steps matter (necessity ≥ .30)."""
    data = []
    ways = distinct(slrc, *_WAY)
    for model in (m for m in _models(slrc) if models.get(m, {}).get("parameters")):
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
    headings = _MEASURED | {
        "Total": _of("parameters", size),
        "Active": _of("active_parameters", lambda n: "—" if n is None else size(n)),
        "MoE?": _of("moe", lambda moe: "Yes" if moe else "Dense"),
        "Faithful?": _of("steps_matter", lambda ts: ", ".join(map(title, ts.split())) or "No"),
    }
    sizes = ["parameters", "active_parameters", "moe", "n_tasks", "steps_matter"]
    return _table("paper_table5", data, ["model", *_WAY, *sizes], headings)


def other_tasks(slrc: pd.DataFrame) -> PaperTable:
    """Extended Data Table 5: all tasks beyond those of Table 1, one row per task."""
    rest = rows(keep(slrc, ~slrc["task"].isin([*FIRST, *CUES])))
    shares = {"necessity": "Nec%", "sufficiency": "Suf%", "accuracy": "Acc%"}
    headings = {"Model": _of("model"), "Task": _of("task", title), "Measured": _way, "n": _of("n")}
    headings |= {heading: _of(column, percent) for column, heading in shares.items()}
    return _table("paper_ed5", rest, ["model", "task", *_WAY, "n", *shares], headings)


def by_task(name: str, steps: pd.DataFrame, column: str, say: Callable[[float], str]) -> PaperTable:
    """Extended Data Tables 4 and 6: one number per model (rows) and task (columns).

    Table 4 is output rigidity, the share of responses with several steps; Table 6 the mean
    number of steps.
    """
    tasks = list(dict.fromkeys(steps["task"]))
    of = {(r["model"], r["task"]): r[column] for r in rows(steps)}
    data = [
        {"model": model, **{task: of.get((model, task), math.nan) for task in tasks}}
        for model in _models(steps)
    ]
    headings = {title(task): _of(task, lambda value: or_dash(say, value)) for task in tasks}
    return _table(name, data, ["model", *tasks], {"Model": _of("model"), **headings})


def thresholds(sensitivity: pd.DataFrame) -> PaperTable:
    """Extended Data Table 3: per necessity threshold, the pairs in which necessity and gain in
    accuracy agree; for classification tasks, and for all tasks."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for r in rows(sensitivity):
        key = (f"{r['necessity_threshold']:.2f}", _way(r))
        line = lines.setdefault(key, {"Nec threshold": key[0], "Measured": key[1]})
        heading = "Classification" if r["tasks"] == CLASSIFICATION else "All tasks"
        line[heading] = (
            f"{r['n_as_gap']}/{r['n']} ({or_dash(lambda x: f'{whole(x)}%', 100 * r['as_gap'])})"
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
    headings = {"Model": _of("model"), "Task": _of("task", title)}
    headings |= {name: _of(column, lambda v: f"{100 * v:.0f}%") for name, column in points.items()}
    for name, column in (("Gap", "gap"), ("Gap, drop", "gap_drop")):
        headings[name] = _of(column, lambda v: or_dash(lambda x: f"{100 * x:+.0f}pp", v))
        signal = column.replace("gap", "signal")
        headings[name.replace("Gap", "Signal")] = _of(signal, lambda word: word.capitalize() or "—")
    lines = sorted(rows(_own(table)), key=lambda r: model_order(r["model"]))
    return _table("paper_table4", lines, list(table.columns), headings)


def title(task: str) -> str:
    """Name of a task in the paper; the task's own name if the paper has none."""
    return TITLES.get(task, task)


def size(parameters: int) -> str:
    """Number of parameters in short form: `135M`, `8B`, `1T`."""
    for unit, of in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= of:
            return f"{parameters / of:.3g}{unit}"
    return str(parameters)


def _table(
    name: str,
    data: Sequence[Row],
    columns: Sequence[str],
    headings: Mapping[str, Callable[[Row], str]],
) -> PaperTable:
    """A paper table with one column per heading; each heading's function formats a row."""
    printed = [{heading: say(row) for heading, say in headings.items()} for row in data]
    return PaperTable(name, pd.DataFrame(data, columns=list(columns)), pd.DataFrame(printed))


def _of(column: str, say: Callable[[Any], str] = str) -> Callable[[Row], str]:
    return lambda row: say(row[column])


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """Rows without prompt variants (`sst2:alternative`), which have a table of their own."""
    return keep(table, [not is_variant(task) for task in table["task"]])


def _models(table: pd.DataFrame) -> list[str]:
    return sorted(set(table["model"]), key=model_order)
