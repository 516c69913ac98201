"""The tables of the SLRC paper in the paper's own layout, from a run's tidy tables.

The tidy tables are the data; these are the same numbers where a reader of the paper looks
for them. CSV keeps fractions; Markdown and LaTeX print what the paper prints: percent for
necessity and sufficiency, three decimals without the leading zero for SLRC.

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
from faithscope.experiments.analysis.tidy import distinct, rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant
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
"""Tasks of Table 1; the sentences of `sentiment` are of the kind that SST-2 labels."""
CUES = ("single_cue", "conflicting_cue", "multi_feature", "sequential_math")
MEASURED = ("necessity", "sufficiency", "slrc", "order_sensitivity", "n")
_WAY = ["framing", "reading"]


def paper_tables(
    tables: Mapping[str, pd.DataFrame], models: Mapping[str, Mapping[str, Any]] | None = None
) -> list[PaperTable]:
    """Every table of the paper that the run has numbers for.

    Where a run has chains of several units of removal, each unit has rows of its own. Table ED 4
    alone is of whole responses.

    Args:
        tables: the tidy tables by name; `slrc` and `steps` are needed.
        models: of each model whose size is known, `parameters` and `active_parameters`.
    """
    of_units = {unit: _of_unit(t, models or {}) for unit, t in of_each_unit(tables).items()}
    found = [
        _joined(name, {unit: made[name] for unit, made in of_units.items() if name in made})
        for name in dict.fromkeys(name for made in of_units.values() for name in made)
    ]
    responses = by_task("paper_ed4", _responses(_own(tables["steps"])), "multi_step", percent)
    return [*found, *([responses] if len(responses.data) else [])]


def _of_unit(
    tables: Mapping[str, pd.DataFrame], models: Mapping[str, Mapping[str, Any]]
) -> dict[str, PaperTable]:
    """By name, the tables of the chains of one unit of removal."""
    slrc, steps = _own(tables["slrc"]), _own(tables["steps"])
    made = [
        step_level(slrc),
        cue_tasks(slrc),
        scale(slrc, models),
        other_tasks(slrc),
        by_task("paper_ed6", steps, "mean_steps", lambda v: f"{v:.1f}"),
    ]
    if "taxonomy" in tables:
        made.insert(1, modes(_own(tables["taxonomy"])))
    if "threshold_sensitivity" in tables:
        made.append(thresholds(tables["threshold_sensitivity"]))
    return {table.name: table for table in made if len(table.data)}


def _joined(name: str, of_units: Mapping[str, PaperTable]) -> PaperTable:
    """One table of those of several units; of a single unit, printed as the paper prints it."""
    printed = [
        table.printed.assign(**({"Unit": UNIT_WORDS[unit]} if len(of_units) > 1 else {}))
        for unit, table in of_units.items()
    ]
    data = joined({unit: table.data for unit, table in of_units.items()})
    return PaperTable(name, data, pd.concat(printed, ignore_index=True))


def _responses(steps: pd.DataFrame) -> pd.DataFrame:
    """The share of responses with several steps, of all units: it counts no step."""
    made = []
    for pair in distinct(steps, "model", "task"):
        of_units = rows(where(steps, **pair))
        several = math.fsum(r["multi_step"] * r["n"] for r in of_units)
        made.append(pair | {"multi_step": several / sum(r["n"] for r in of_units)})
    return pd.DataFrame(made, columns=["model", "task", "multi_step"])


def step_level(slrc: pd.DataFrame) -> PaperTable:
    """Table 1: necessity, sufficiency and SLRC on sentiment and mathematics."""
    data = _wide(where(slrc, task=set(FIRST)), MEASURED)
    marks = {
        "necessity": ("Nec%", percent),
        "sufficiency": ("Suf%", percent),
        "slrc": ("SLRC", fraction),
        "order_sensitivity": ("Shuf%", percent),
        "n": ("n", whole),
    }
    return PaperTable("paper_table1", data, _printed(data, marks))


def modes(taxonomy: pd.DataFrame) -> PaperTable:
    """Table 2: every model and task in the field of its mode, with gap and necessity."""
    cells: dict[str, list[str]] = {}
    for row in rows(taxonomy):
        what = f"{row['model']} {title(row['task'])} ({_way(row)})"
        numbers = f"{100 * row['gap']:+.0f}/{100 * row['necessity']:.0f}%"
        cells.setdefault(str(row["mode"]), []).append(f"{what} ({numbers})")

    def cell(mode: str) -> str:
        found = cells.get(mode, [])
        pairs = f"{len(found)} pair{'' if len(found) == 1 else 's'}"
        return f"{mode.capitalize()} ({pairs})" + "".join(f"; {each}" for each in found)

    printed = pd.DataFrame(
        {
            "": ["Steps matter", "Steps don't"],
            "CoT helps": [cell("genuine"), cell("scaffolding")],
            "CoT doesn't help": [cell("empty"), cell("decorative")],
        }
    )
    return PaperTable("paper_table2", taxonomy, printed)


def cue_tasks(slrc: pd.DataFrame) -> PaperTable:
    """Table 3: necessity on the four tasks with controlled cues, a column per model."""
    of_cues = where(slrc, task=set(CUES))
    models = _models(of_cues)
    found = {(r["task"], r["framing"], r["reading"], r["model"]): r for r in rows(of_cues)}
    ways = list(dict.fromkeys((f, r) for _, f, r, _ in found))
    data, printed = [], []
    for framing, reading in ways:
        for task in CUES:
            mine = {m: found.get((task, framing, reading, m)) for m in models}
            if not any(mine.values()):
                continue
            way = {"framing": framing, "reading": reading}
            values = {m: r["necessity"] if r else math.nan for m, r in mine.items()}
            data.append({"task": task, **way, **values})
            said = {m: percent(v) for m, v in values.items()}
            printed.append({"Task": title(task), "Measured": _way(way), **said})
    columns = ["task", *_WAY, *models]
    return PaperTable("paper_table3", pd.DataFrame(data, columns=columns), pd.DataFrame(printed))


def scale(slrc: pd.DataFrame, models: Mapping[str, Mapping[str, Any]]) -> PaperTable:
    """Table 5: size against faithfulness: on which tasks steps matter (necessity ≥ .30)."""
    data, printed = [], []
    ways = list(dict.fromkeys((r["framing"], r["reading"]) for r in rows(slrc)))
    for model in (m for m in _models(slrc) if models.get(m, {}).get("parameters")):
        total = models[model]["parameters"]
        active = models[model].get("active_parameters")
        for framing, reading in ways:
            mine = rows(where(slrc, model=model, framing=framing, reading=reading))
            if not mine:
                continue
            tasks = [r["task"] for r in mine if r["necessity"] >= MATTERS]
            sizes = {"parameters": total, "active_parameters": active}
            way = {"framing": framing, "reading": reading}
            data.append(
                {"model": model, **way, **sizes}
                | {"moe": active != total, "n_tasks": len(mine), "steps_matter": " ".join(tasks)}
            )
            faithful = "No" if not tasks else ", ".join(map(title, tasks))
            printed.append(
                {"Model": model, "Measured": _way(way)}
                | {"Total": size(total), "Active": "—" if active is None else size(active)}
                | {"MoE?": "Dense" if active == total else "Yes", "Faithful?": faithful}
            )
    sizes = ["parameters", "active_parameters", "moe", "n_tasks", "steps_matter"]
    columns = ["model", *_WAY, *sizes]
    return PaperTable("paper_table5", pd.DataFrame(data, columns=columns), pd.DataFrame(printed))


def other_tasks(slrc: pd.DataFrame) -> PaperTable:
    """Extended Data Table 5: everything beyond the tasks of Table 1, a row per task."""
    rest = slrc.loc[~slrc["task"].isin([*FIRST, *CUES])]
    columns = ["model", "task", *_WAY, "n", "necessity", "sufficiency", "accuracy"]
    data = pd.DataFrame(rows(rest), columns=columns)
    printed = [
        {"Model": r["model"], "Task": title(r["task"]), "Measured": _way(r), "n": str(r["n"])}
        | {"Nec%": percent(r["necessity"]), "Suf%": percent(r["sufficiency"])}
        | {"Acc%": percent(r["accuracy"])}
        for r in rows(data)
    ]
    return PaperTable("paper_ed5", data, pd.DataFrame(printed))


def by_task(name: str, steps: pd.DataFrame, column: str, say: Callable[[float], str]) -> PaperTable:
    """Extended Data Tables 4 and 6: one number of every model (down) on every task (across).

    Table 4 is output rigidity, the share of responses with several steps; Table 6 the mean
    number of steps.
    """
    tasks = list(dict.fromkeys(steps["task"]))
    found = {(r["model"], r["task"]): r[column] for r in rows(steps)}
    models = _models(steps)
    data = [{"model": m, **{t: found.get((m, t), math.nan) for t in tasks}} for m in models]
    printed = [
        {"Model": row["model"], **{title(t): or_dash(say, row[t]) for t in tasks}} for row in data
    ]
    return PaperTable(name, pd.DataFrame(data, columns=["model", *tasks]), pd.DataFrame(printed))


def thresholds(sensitivity: pd.DataFrame) -> PaperTable:
    """Extended Data Table 3: pairs that keep their mode under another necessity threshold."""
    printed = [
        {"Nec threshold": f"{r['necessity_threshold']:.2f}", "Measured": _way(r)}
        | {"Classification": f"{r['n_same']}/{r['n']} ({or_dash(whole, 100 * r['agreement'])}%)"}
        for r in rows(sensitivity)
    ]
    return PaperTable("paper_ed3", sensitivity, pd.DataFrame(printed))


def title(task: str) -> str:
    """A task as the paper calls it; its own name where the paper has none."""
    return TITLES.get(task, task)


def size(parameters: int) -> str:
    """`135M`, `8B`, `1T`: parameters in the largest unit that leaves one before the point."""
    for unit, of in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if parameters >= of:
            return f"{parameters / of:.3g}{unit}"
    return str(parameters)


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """Without the prompt variants (`sst2:alternative`), which have a table of their own."""
    kept = table.loc[[not is_variant(task) for task in table["task"]]]
    assert isinstance(kept, pd.DataFrame)
    return kept


def _models(table: pd.DataFrame) -> list[str]:
    return sorted(set(table["model"]), key=model_order)


def _way(row: Mapping[str, Any]) -> str:
    return f"{row['framing']}, {row['reading']}"


def _wide(slrc: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """A row per model and way of measuring, a column per task and measure."""
    tasks = [t for t in FIRST if t in set(slrc["task"])]
    found = {(r["model"], r["framing"], r["reading"], r["task"]): r for r in rows(slrc)}
    keys = sorted({k[:3] for k in found}, key=lambda k: (model_order(k[0]), k))
    data = [
        dict(zip(("model", *_WAY), key, strict=True))
        | {
            f"{task}_{measure}": row[measure] if (row := found.get((*key, task))) else math.nan
            for task in tasks
            for measure in measures
        }
        for key in keys
    ]
    columns = ["model", *_WAY, *(f"{t}_{m}" for t in tasks for m in measures)]
    return pd.DataFrame(data, columns=columns)


def _printed(
    data: pd.DataFrame, marks: Mapping[str, tuple[str, Callable[[float], str]]]
) -> pd.DataFrame:
    tasks = [c.removesuffix("_necessity") for c in data.columns if c.endswith("_necessity")]
    return pd.DataFrame(
        [
            {"Model": row["model"], "Measured": _way(row)}
            | {
                f"{title(task)} {heading}": say(row[f"{task}_{measure}"])
                for task in tasks
                for measure, (heading, say) in marks.items()
            }
            for row in rows(data)
        ]
    )
