"""RFEval's tables in the paper's own layout, from the tidy tables.

CSV keeps fractions; what is printed has the paper's headings and percents. The paper has one
reader of stances; a run may have several, each in rows of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable
from faithscope.experiments.analysis.tidy import groups, only, where
from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, TASKS
from faithscope.experiments.studies.rfeval.metrics.chains import EXCLUSIONS
from faithscope.experiments.studies.rfeval.metrics.failures import (
    BASELINE_LINKS,
    CAUSALITY,
    CAUSALITY_UNFAITHFUL,
    INTERVENED_LINKS,
    VIOLATIONS,
)
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL, WAY, with_overall
from faithscope.experiments.studies.rfeval.subjects.injection import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.subjects.model_files import REGIMES

LINK_NAMES = {"pr": "r′→r", "re": "r→e", "ea": "e→a", "ra": "r→a"}
VIOLATION_NAMES: dict[str, str] = dict(
    zip(VIOLATIONS, ("χ(o)=0", "χ(o′)=0", "κ=0", "Other"), strict=True)
)
CAUSALITY_NAMES: dict[str, str] = {c: c.capitalize() for c in CAUSALITY}
_HEADS = {"reader": "Reader", "model": "Model", "by": "By", "group": "Group"}


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """The paper's tables by number, those without rows too."""
    shares, places = tables["rf_failure_shares"], tables["rf_failure_locations"]
    violation = shares.loc[shares["statistic"] == "violation"]
    baseline = places.loc[places["statistic"] == "baseline_break"]
    intervened = places.loc[places["statistic"] == "intervened_break"]
    # "All shares below are proportions within the set of unfaithful cases" (appendix F)
    moved = where(tables["rf_causality"], statistic=CAUSALITY_UNFAITHFUL)
    made = [
        table_2(tables["rfeval"]),
        table_3(tables["rf_regimes"]),
        table_10(tables["rf_externality"]),
        table_11(tables["rf_externality_by_model"]),
        table_12(tables["rf_hours"]),
        table_13(tables["rf_waterfall"]),
        table_14(tables["rf_lengths"]),
        table_16(tables["rf_coverage_quartiles"]),
    ]
    for pair, data, values, names in (
        ((17, 21), violation, VIOLATIONS, VIOLATION_NAMES),
        ((18, 22), baseline, BASELINE_LINKS, LINK_NAMES),
        ((19, 23), intervened, INTERVENED_LINKS, LINK_NAMES),
        ((20, 24), moved, CAUSALITY, CAUSALITY_NAMES),
    ):
        for number, by in zip(pair, ("model", "task"), strict=True):
            made.append(_shares(number, data, by, values, names))
    made += [table_25(tables["rfeval"]), table_26(tables["rfeval"])]
    made.append(table_27(tables["rf_per_step"]))
    # of a run that had its r′ written
    return [*filtering_tables(tables["rf_filtering"]), *made]


def table_2(rf: pd.DataFrame) -> PaperTable:
    """RF in percent and coverage, a row per model, a pair of columns per task; of models into
    whose mouth r′ was put (`table_26` has the others)."""
    columns = ("rf", "contrast_coverage", "n_included")

    def shown(row: Mapping[str, Any]) -> dict[str, str]:
        return {"RF": _number(row["rf"], 2, 100), "c": _number(row["contrast_coverage"], 2)}

    return _by_task("paper_rf_table2", where(rf, framing=PREFIX), columns, shown)


def table_3(regimes: pd.DataFrame) -> PaperTable:
    """RF and coverage by post-training regime, a column per family, rows in the paper's order."""
    if regimes.empty:
        nothing = {"Variant": list(REGIMES), "no two models of one base": ["–"] * len(REGIMES)}
        return PaperTable("paper_rf_table3", regimes, pd.DataFrame(nothing))
    made = []
    readers, variants = dict.fromkeys(regimes["reader"]), [*REGIMES, *regimes["regime"]]
    for reader, regime in itertools.product(readers, dict.fromkeys(variants)):
        of = where(regimes, reader=reader, regime=regime)
        if of.empty:
            continue
        row: dict[str, Any] = {"Reader": reader, "Variant": regime}
        row |= dict.fromkeys(map(str, regimes["family"]), "–")
        for family, models in groups(of, ("family",)):
            cells = []
            for r in models.to_dict("records"):
                both = f"{_number(r['rf'], 2, 100)} / {_number(r['contrast_coverage'], 2)}"
                cells.append(both if len(models) == 1 else f"{both} ({r['model']})")
            row[str(family["family"])] = "; ".join(cells)
        made.append(row)
    return PaperTable("paper_rf_table3", regimes, pd.DataFrame(made))


def filtering_tables(filtering: pd.DataFrame) -> list[PaperTable]:
    """What the validation of written r′ removed, by task and by source; none of no rows."""
    if filtering.empty:
        return []
    counts = {"n_problems": "Pre Total", "n_removed": "# Removed", "n_kept": "# Kept"}
    pooled = with_overall(filtering, "task")
    by_task = [
        {**key, **{name: sum(of[name].tolist()) for name in counts}}
        for key, of in groups(pooled, ("task",))
    ]
    by_source = only(filtering, ["task", "source", *counts])
    made = []
    for number, data in ((8, pd.DataFrame(by_task)), (9, by_source)):
        heads = {"task": "Task", "source": "Source", **counts}
        printed = {head: data[name].tolist() for name, head in heads.items() if name in data}
        made.append(PaperTable(f"paper_rf_table{number}", data, pd.DataFrame(printed)))
    return made


def table_10(externality: pd.DataFrame) -> PaperTable:
    """Δ by task; the paper has one overlap, here each has its rows."""
    heads = {"task": "Task", "overlap": "Overlap", "context": "Context", "n": "Count"}
    places = {"mean": "Mean", "std": "Std", "median": "Median", "p75": "P75", "p90": "P90"}
    printed: dict[str, Any] = {title: externality[name].tolist() for name, title in heads.items()}
    printed |= {title: _numbers(externality[name], 3) for name, title in places.items()}
    printed["Small-vocab (%)"] = _numbers(externality["small_vocabulary"], 1, 100)
    return PaperTable("paper_rf_table10", externality, pd.DataFrame(printed))


def table_11(by_model: pd.DataFrame) -> PaperTable:
    """Δ by model, over the pairs that are there."""
    heads = {"reader": "Reader", "model": "Model", "overlap": "Overlap", "context": "Context"}
    heads |= {"n": "Count"}
    printed: dict[str, Any] = {title: by_model[name].tolist() for name, title in heads.items()}
    printed |= {"Mean": _numbers(by_model["mean"], 3), "Std": _numbers(by_model["std"], 3)}
    return PaperTable("paper_rf_table11", by_model, pd.DataFrame(printed))


def table_12(hours: pd.DataFrame) -> PaperTable:
    """Hours of generation, and those of devices, which the paper has; what they are is in the
    run's environment."""
    printed: dict[str, Any] = {"Model": hours["model"].tolist()}
    printed |= {"Device hours": _numbers(hours["device_hours"], 2)}
    printed |= {"Devices": _numbers(hours["devices"], 0), "Hours": _numbers(hours["hours"], 2)}
    printed["Outputs"] = [
        f"{r['n_timed']} of {r['n']}" if r["n_timed"] < r["n"] else str(r["n"])
        for r in hours.to_dict("records")
    ]
    return PaperTable("paper_rf_table12", hours, pd.DataFrame(printed))


def table_13(waterfall: pd.DataFrame) -> PaperTable:
    """Where all pairs of each model went."""
    data = waterfall.loc[(waterfall["task"] == OVERALL) & (waterfall["model"] != OVERALL)]
    names = ("Global Exclusion", "Unfinished/Truncated", "Evaluation Error", "Non-Contrast")
    heads = {"reader": "Reader", "model": "Model", "n_total": "Total", "n_included": "Included"}
    heads |= {f"n_{x}": name for x, name in zip(EXCLUSIONS, names, strict=True)}
    printed = {title: data[name].tolist() for name, title in heads.items()}
    return PaperTable("paper_rf_table13", data.reset_index(drop=True), pd.DataFrame(printed))


def table_14(lengths: pd.DataFrame) -> PaperTable:
    """Mean tokens of baseline (B) and intervened (I) outputs, by model and task."""
    data = lengths.loc[lengths["task"] != OVERALL]
    made = []
    for key, of in groups(data, ("model",)):
        row: dict[str, Any] = {"Model": key["model"]}
        for task in _tasks(data):
            for condition, head in (("baseline", "B"), ("intervened", "I")):
                one = of.loc[(of["task"] == task) & (of["condition"] == condition)]
                said = _number(one["mean_tokens"].iloc[0], 0) if len(one) else "–"
                row[f"{_short(task)} {head}"] = said
        made.append(row)
    return PaperTable("paper_rf_table14", data.reset_index(drop=True), pd.DataFrame(made))


def table_16(quartiles: pd.DataFrame) -> PaperTable:
    """RF by quartile of coverage, all models' tasks pooled and all tasks' models."""
    data = quartiles.loc[quartiles["group"] == OVERALL].reset_index(drop=True)
    made = []
    for key, of in groups(data, ("reader", "by")):
        row: dict[str, Any] = {"Reader": key["reader"]}
        row["Aggregation"] = f"By-{str(key['by']).capitalize()} (weighted)"
        at = dict(zip(of["quartile"], of["rf"], strict=True))
        for q, head in zip((1, 2, 3, 4), ("Q1 (Low)", "Q2", "Q3", "Q4 (High)"), strict=True):
            row[head] = _number(at.get(q, math.nan), 3)
        made.append(row)
    return PaperTable("paper_rf_table16", data, pd.DataFrame(made))


def table_25(rf: pd.DataFrame) -> PaperTable:
    """Consistency of the baseline outputs alone, a column per task."""
    columns = ("chi_baseline", "n_included")

    def shown(row: Mapping[str, Any]) -> dict[str, str]:
        return {"": _number(row["chi_baseline"], 4)}

    return _by_task("paper_rf_table25", where(rf, framing=PREFIX), columns, shown)


def table_26(rf: pd.DataFrame) -> PaperTable:
    """Models to which r′ could only be quoted, by task: RF, coverage, χ(o), χ(o′), κ.

    The text has lost four of the headings; what it says of .1618, gpt-5.1's low score, which
    stems from criticism of r′ as of someone else's words, leaves these.
    """
    heads = {"contrast_coverage": "c", "chi_baseline": "χ(o)", "chi_intervened": "χ(o′)"}
    heads |= {"kappa": "κ"}
    quoted = where(rf, framing=MULTI_TURN)
    data = only(quoted.loc[quoted["model"] != OVERALL], [*WAY, "task", "n_included", "rf", *heads])
    printed: dict[str, Any] = {_HEADS[name]: data[name].tolist() for name in WAY}
    printed |= {
        "Task": [_short(task) for task in data["task"]],
        "RF (%)": _numbers(data["rf"], 2, 100),
    }
    printed |= {title: _numbers(data[name], 4) for name, title in heads.items()}
    return PaperTable("paper_rf_table26", data.reset_index(drop=True), pd.DataFrame(printed))


def table_27(per_step: pd.DataFrame) -> PaperTable:
    """RF taken step by step beside RF of whole blocks, in percent.

    "Ours" is Table 2's, of all pairs that count, as the paper prints it; below it the same of the
    pairs that were judged step by step, and how many of those that count these are.
    """
    made = []
    for key, of in groups(per_step, WAY):
        about: dict[str, Any] = {_HEADS[name]: key[name] for name in WAY}
        by = {r["task"]: r for r in of.to_dict("records")}
        of_tasks = {_short(task): by.get(task) for task in [*_tasks(per_step), OVERALL]}
        for column, metric in (
            ("rf_per_step", "Per-Step"),
            ("rf_included", "Ours"),
            ("rf", "Ours, the same pairs"),
        ):
            said = {t: _number(r[column] if r else math.nan, 2, 100) for t, r in of_tasks.items()}
            made.append(about | {"Metric": metric} | said)
        counts = {t: f"{r['n']} of {r['n_included']}" if r else "–" for t, r in of_tasks.items()}
        made.append(about | {"Metric": "Pairs"} | counts)
    return PaperTable("paper_rf_table27", per_step, pd.DataFrame(made))


def _by_task(name: str, rf: pd.DataFrame, columns: Sequence[str], shown: Any) -> PaperTable:
    data = only(rf, [*WAY, "task", *columns])
    made = []
    for key, of in groups(data, WAY):
        row: dict[str, Any] = {_HEADS[head]: key[head] for head in WAY}
        by = {r["task"]: r for r in of.to_dict("records")}
        nothing = dict.fromkeys(data.columns, math.nan)
        for task in [*_tasks(data), OVERALL]:
            for head, said in shown(by.get(task, nothing)).items():
                row[f"{_short(task)} {head}".strip()] = said
        made.append(row)
    return PaperTable(name, data.reset_index(drop=True), pd.DataFrame(made))


def _shares(
    number: int, shares: pd.DataFrame, by: str, values: Sequence[str], names: Mapping[str, str]
) -> PaperTable:
    data = shares.loc[(shares["by"] == by) & (shares["group"] != OVERALL)]
    if by == "task":
        place = {task: i for i, task in enumerate(TASKS)}
        data = data.sort_values("group", key=lambda g: g.map(place), kind="stable")
    made = []
    for key, of in groups(data, ("reader", "group")):
        row: dict[str, Any] = {"Reader": key["reader"], by.capitalize(): key["group"]}
        at = dict(zip(of["value"], of["share"], strict=True))
        row |= {names[v]: _number(at.get(v, math.nan), 3) for v in values}
        made.append(row | {"n": int(of["n_of"].iloc[0])})
    return PaperTable(f"paper_rf_table{number}", data.reset_index(drop=True), pd.DataFrame(made))


def _tasks(frame: pd.DataFrame) -> list[str]:
    """Those of the frame, in the paper's order."""
    there = set(frame["task"])
    return [task for task in TASKS if task in there]


def _short(task: str) -> str:
    return {**ABBREVIATIONS, OVERALL: "Overall"}[task]


def _numbers(values: Any, digits: int, times: float = 1) -> list[str]:
    return [_number(v, digits, times) for v in values]


def _number(value: Any, digits: int, times: float = 1) -> str:
    return "–" if value is None or math.isnan(value) else f"{value * times:.{digits}f}"
