"""RFEval's tables in the paper's own layout, from the tidy tables.

CSV keeps fractions; what is printed has the paper's headings and percents. The paper has one
reader of stances; a run may have several, each in rows of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable
from faithscope.experiments.analysis.tidy import groups, only, rows, where
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, TASKS
from faithscope.experiments.studies.rfeval.metrics.faithfulness import (
    BASELINE_LINKS,
    CAUSALITY,
    CAUSALITY_ALL,
    INTERVENED_LINKS,
    VIOLATIONS,
)
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL, WAY, with_overall
from faithscope.experiments.studies.rfeval.subjects.model_files import REGIMES

Head = str | tuple[str, int] | tuple[str, int, float]
"""A heading; of numbers with their decimals, and what they are multiplied by (100 for percent)."""
LINK_NAMES = {"pr": "r′→r", "re": "r→e", "ea": "e→a", "ra": "r→a"}
VIOLATION_NAMES: dict[str, str] = dict(
    zip(VIOLATIONS, ("χ(o)=0", "χ(o′)=0", "κ=0", "Other"), strict=True)
)
CAUSALITY_NAMES: dict[str, str] = {c: c.capitalize() for c in CAUSALITY}
COUNTS = {"n_problems": "Pre Total", "n_removed": "# Removed", "n_kept": "# Kept"}
WAYS = {"reader": "Reader", "model": "Model"}
OVERLAP = {"overlap": "Overlap", "context": "Context", "n": "Count"}
HEADS: dict[int, dict[str, Head]] = {
    8: {"task": "Task", **COUNTS},
    9: {"task": "Task", "source": "Source", **COUNTS},
    10: {"task": "Task", **OVERLAP}
    | {"mean": ("Mean", 3), "std": ("Std", 3), "median": ("Median", 3)}
    | {"p75": ("P75", 3), "p90": ("P90", 3), "small_vocabulary": ("Small-vocab (%)", 1, 100)},
    11: {**WAYS, **OVERLAP, "mean": ("Mean", 3), "std": ("Std", 3)},
    12: {"model": "Model", "device_hours": ("Device hours", 2), "devices": ("Devices", 0)}
    | {"hours": ("Hours", 2)},
    13: {**WAYS, "n_total": "Total", "n_included": "Included", "n_global": "Global Exclusion"}
    | {"n_unfinished": "Unfinished/Truncated", "n_evaluation_error": "Evaluation Error"}
    | {"n_non_contrast": "Non-Contrast"},
    26: {**WAYS, "task": "Task", "rf": ("RF (%)", 2, 100), "contrast_coverage": ("c", 4)}
    | {"chi_baseline": ("χ(o)", 4), "chi_intervened": ("χ(o′)", 4), "kappa": ("κ", 4)},
}
"""Tables that the paper prints as rows: column -> heading."""


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """The paper's tables by number, those without rows too; 8 and 9 of a run that had its r′
    written."""
    rf, shares, places = (
        tables[n] for n in ("rfeval", "rf_failure_shares", "rf_failure_locations")
    )
    falls = tables["rf_waterfall"]
    tables_of_paper = [
        *filtering_tables(tables["rf_filtering"]),
        table_2(rf),
        table_3(tables["rf_regimes"]),
        table_4(tables["rf_step_reward"]),
        # the paper has one overlap, here each has its rows
        _listed(10, tables["rf_externality"]),
        _listed(11, tables["rf_externality_by_model"]),
        table_12(tables["rf_hours"]),
        _listed(13, falls.loc[(falls["task"] == OVERALL) & (falls["model"] != OVERALL)]),
        table_14(tables["rf_lengths"]),
        table_16(tables["rf_coverage_quartiles"]),
    ]
    # of all that count with κ = 1: over no other pairs do Tables 20 and 24 pool to the same shares
    moved = where(tables["rf_causality"], statistic=CAUSALITY_ALL)
    breaks = {c: where(places, statistic=f"{c}_break") for c in ("baseline", "intervened")}
    for pair, data, values, names in (
        ((17, 21), where(shares, statistic="violation"), VIOLATIONS, VIOLATION_NAMES),
        ((18, 22), breaks["baseline"], BASELINE_LINKS, LINK_NAMES),
        ((19, 23), breaks["intervened"], INTERVENED_LINKS, LINK_NAMES),
        ((20, 24), moved, CAUSALITY, CAUSALITY_NAMES),
    ):
        for number, by in zip(pair, ("model", "task"), strict=True):
            tables_of_paper.append(_shares(number, data, by, values, names))
    return [*tables_of_paper, table_25(rf), table_26(rf), table_27(tables["rf_per_step"])]


def table_2(rf: pd.DataFrame) -> PaperTable:
    """RF in percent and coverage, a row per model, a pair of columns per task; of models into
    whose mouth r′ was put (`table_26` has the others)."""
    shown = {"RF": ("rf", 2, 100), "c": ("contrast_coverage", 2, 1)}
    return _by_task(2, rf, ("rf", "contrast_coverage", "n_included"), shown)


def table_3(regimes: pd.DataFrame) -> PaperTable:
    """RF and coverage by post-training regime, a column per family, rows in the paper's order."""
    if regimes.empty:
        nothing = {"Variant": list(REGIMES), "no two models of one base": ["–"] * len(REGIMES)}
        return _table(3, regimes, pd.DataFrame(nothing))
    lines = []
    readers, variants = dict.fromkeys(regimes["reader"]), [*REGIMES, *regimes["regime"]]
    for reader, regime in itertools.product(readers, dict.fromkeys(variants)):
        of = where(regimes, reader=reader, regime=regime)
        if of.empty:
            continue
        line: dict[str, Any] = {"Reader": reader, "Variant": regime}
        line |= dict.fromkeys(map(str, regimes["family"]), "–")
        for family, models in groups(of, ("family",)):
            cells = []
            for r in rows(models):
                both = f"{_number(r['rf'], 2, 100)} / {_number(r['contrast_coverage'], 2)}"
                cells.append(both if len(models) == 1 else f"{both} ({r['model']})")
            line[str(family["family"])] = "; ".join(cells)
        lines.append(line)
    return _table(3, regimes, pd.DataFrame(lines))


def filtering_tables(filtering: pd.DataFrame) -> list[PaperTable]:
    """What the validation of written r′ removed, by task and by source; none of no rows."""
    if filtering.empty:
        return []
    counts = with_overall(filtering, "task").groupby("task", sort=False)[list(COUNTS)].sum()
    by_source = only(filtering, ["task", "source", *COUNTS])
    return [_listed(8, pd.DataFrame(counts).reset_index()), _listed(9, by_source)]


def table_4(rewards: pd.DataFrame) -> PaperTable:
    """Open-R1's reward for steps of consistent and of other outputs, a column per model."""

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        means = {r["model"]: _number(r["reward"], 4) for r in rows(of)}
        overall = means.pop(OVERALL)
        return {"": f"χ = {of['chi'].iloc[0]:.0f}"} | means | {"Overall": overall}

    return _grouped(4, where(rewards, condition="both"), ("reader", "chi"), cells)


def table_12(hours: pd.DataFrame) -> PaperTable:
    """Hours of generation, and those of devices, which the paper has; what they are is in the
    run's environment."""
    outputs = [
        f"{r['n_timed']} of {r['n']}" if r["n_timed"] < r["n"] else str(r["n"]) for r in rows(hours)
    ]
    return _table(12, hours, _listed(12, hours).printed.assign(Outputs=outputs))


def table_14(lengths: pd.DataFrame) -> PaperTable:
    """Mean tokens of baseline (B) and intervened (I) outputs, by model and task."""
    data = lengths.loc[lengths["task"] != OVERALL]
    heads = {"baseline": "B", "intervened": "I"}

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        tokens = {(r["task"], r["condition"]): r["mean_tokens"] for r in rows(of)}
        return {
            f"{_short(task)} {head}": _number(tokens.get((task, condition)), 0)
            for task in _tasks(data)
            for condition, head in heads.items()
        }

    return _grouped(14, data, ("model",), cells)


def table_16(quartiles: pd.DataFrame) -> PaperTable:
    """RF by quartile of coverage, all models' tasks pooled and all tasks' models."""
    heads = {1: "Q1 (Low)", 2: "Q2", 3: "Q3", 4: "Q4 (High)"}

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        rf = dict(zip(of["quartile"], of["rf"], strict=True))
        by = {"Aggregation": f"By-{of['by'].iloc[0].capitalize()} (weighted)"}
        return by | {head: _number(rf.get(q), 3) for q, head in heads.items()}

    return _grouped(16, where(quartiles, group=OVERALL), ("reader", "by"), cells)


def table_25(rf: pd.DataFrame) -> PaperTable:
    """Consistency of the baseline outputs alone, a column per task."""
    return _by_task(25, rf, ("chi_baseline", "n_included"), {"": ("chi_baseline", 4, 1)})


def table_26(rf: pd.DataFrame) -> PaperTable:
    """Models to which r′ could only be quoted, by task: RF, coverage, χ(o), χ(o′), κ.

    The text has lost four of the headings; what it says of .1618, gpt-5.1's low score, which
    stems from criticism of r′ as of someone else's words, leaves these.
    """
    names = ["n_included", "rf", "contrast_coverage", "chi_baseline", "chi_intervened", "kappa"]
    quoted = where(rf, framing=MULTI_TURN)
    data = only(quoted.loc[quoted["model"] != OVERALL], [*WAY, "task", *names])
    shortened = data.assign(task=list(map(_short, data["task"])))
    return _table(26, data, _listed(26, shortened).printed)


def table_27(per_step: pd.DataFrame) -> PaperTable:
    """RF taken step by step beside RF of whole blocks, in percent.

    "Ours" is Table 2's, of all pairs that count, as the paper prints it; below it the same of the
    pairs that were judged step by step, and how many of those that count these are.
    """
    metrics = {"rf_per_step": "Per-Step", "rf_included": "Ours", "rf": "Ours, the same pairs"}
    tasks = [*_tasks(per_step), OVERALL]
    lines = []
    for key, of in groups(per_step, WAY):
        about: dict[str, Any] = {WAYS[name]: key[name] for name in WAY}
        by = {r["task"]: r for r in rows(of)}
        for column, metric in metrics.items():
            cells = {_short(t): _number(by.get(t, {}).get(column), 2, 100) for t in tasks}
            lines.append(about | {"Metric": metric} | cells)
        counts = {t: f"{by[t]['n']} of {by[t]['n_included']}" if t in by else "–" for t in tasks}
        lines.append(about | {"Metric": "Pairs"} | {_short(t): n for t, n in counts.items()})
    return _table(27, per_step, pd.DataFrame(lines))


def _listed(number: int, data: pd.DataFrame) -> PaperTable:
    """Makes a table that the paper prints as rows, under its headings (`HEADS`)."""
    printed = {}
    for name, head in HEADS[number].items():
        if isinstance(head, str):
            printed[head] = data[name].tolist()
        else:
            title, *how = head
            printed[title] = [_number(value, *how) for value in data[name]]
    return _table(number, data, pd.DataFrame(printed))


def _by_task(
    number: int,
    rf: pd.DataFrame,
    columns: Sequence[str],
    shown: Mapping[str, tuple[str, int, float]],
) -> PaperTable:
    """A row per model into whose mouth r′ was put, and for each task the columns that are shown.

    Args:
        shown: what is added to the task's heading -> column, decimals, and factor.
    """
    data = only(where(rf, framing=PREFIX), [*WAY, "task", *columns])

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        by = {r["task"]: r for r in rows(of)}
        return {
            f"{_short(task)} {head}".strip(): _number(by.get(task, {}).get(column), *how)
            for task in [*_tasks(data), OVERALL]
            for head, (column, *how) in shown.items()
        }

    return _grouped(number, data, WAY, cells)


def _shares(
    number: int, shares: pd.DataFrame, by: str, values: Sequence[str], names: Mapping[str, str]
) -> PaperTable:
    data = shares.loc[(shares["by"] == by) & (shares["group"] != OVERALL)]
    if by == "task":
        place = {task: i for i, task in enumerate(TASKS)}
        data = data.sort_values("group", key=lambda g: g.map(place), kind="stable")

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        at = dict(zip(of["value"], of["share"], strict=True))
        line = {by.capitalize(): of["group"].iloc[0]}
        return line | {names[v]: _number(at.get(v), 3) for v in values} | {"n": of["n_of"].iloc[0]}

    return _grouped(number, data, ("reader", "group"), cells)


def _grouped(
    number: int,
    data: pd.DataFrame,
    keys: Sequence[str],
    cells: Callable[[pd.DataFrame], Mapping[str, Any]],
) -> PaperTable:
    """A row per combination of the keys: reader and model under their headings, and the cells."""
    lines = [
        {WAYS[name]: key[name] for name in keys if name in WAYS} | dict(cells(of))
        for key, of in groups(data, keys)
    ]
    return _table(number, data, pd.DataFrame(lines))


def _table(number: int, data: pd.DataFrame, printed: pd.DataFrame) -> PaperTable:
    return PaperTable(f"paper_rf_table{number}", data.reset_index(drop=True), printed)


def _tasks(frame: pd.DataFrame) -> list[str]:
    """Gives the tasks of a frame in the paper's order."""
    there = set(frame["task"])
    return [task for task in TASKS if task in there]


def _short(task: str) -> str:
    return {**ABBREVIATIONS, OVERALL: "Overall"}[task]


def _number(value: float | None, digits: Any, times: float = 1) -> str:
    return "–" if value is None or math.isnan(value) else f"{value * times:.{digits}f}"
