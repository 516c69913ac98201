"""Several judges as one: a panel's verdicts in the same frames, so that the same numbers follow.

A panel speaks from the verdicts that its judges gave; where there is none, or the rule ends in a
tie, it has no verdict either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.tidy import Rows, count, groups, renamed, rows, tabled, where
from faithscope.experiments.studies.c2faith.metrics.coverage import coverage_row
from faithscope.experiments.studies.c2faith.metrics.detection import ALONE, detection_row
from faithscope.experiments.studies.c2faith.metrics.frames import (
    PERTURBED,
    verdicts_by_judge,
    who_spoke,
)
from faithscope.experiments.studies.c2faith.metrics.localisation import localisation_row

PANEL = ["task", "scale", "reference_judge", "reading", "prompt", "rule", "n_judges", "measure"]
PANEL += ["value", "value_low", "value_high", "best_judge", "best_value", "n"]
PANEL += ["n_without_verdict", "reason"]
MISSED = ["reading", "prompt", "item", "chain", "n_judges", "edit_type", "method"]
MISSED += ["relative_position"]
RULES = {
    "detection": ("majority", "mean", "any", "all"),
    "localisation": ("majority",),
    "coverage": ("majority", "mean"),
}
MEASURES = {
    "detection": {"detection": 1, "fpr": -1, "net": 1, "auroc": 1},
    "localisation": {"exact": 1, "detection": 1, "fpr": -1, "net": 1, "mae_all": -1},
    "coverage": {"bias": 0, "mae": -1, "inflation": -1, "spearman": 1, "spearman_kept": 1},
}
"""Task -> measure -> whether more is better (1), less (-1), or nearness to zero (0)."""


@tabled(*PANEL)
def panel_table(frames: Mapping[str, pd.DataFrame], how: Drawing) -> Rows:
    """A row per task, reading, prompt, rule and measure, beside the best single judge.

    Rules: `majority`, the verdict that more judges gave than any other; `mean`, of the
    probabilities to be broken (of verdicts where there are none; broken from one half), or of
    the scores; `any` and `all`: broken if any, if every judge says so. Coverage over all levels.
    Judges without any verdict are not of the panel.
    """
    for task, rules in RULES.items():
        frame = frames[task]
        names = ["reading", "prompt", *(["scale", "reference_judge"] if task == "coverage" else [])]
        for key, judged in groups(frame, names):
            key = {"task": task, "scale": "", "reference_judge": ""} | key
            verdict = "predicted" if task == "localisation" else "score"
            judges = count(judged.groupby("judge")[verdict].count() > 0)
            if judges < 2:
                alone = {"rule": "", "n_judges": judges, "n": 0, "reason": ALONE}
                yield key | alone | {"n_without_verdict": count(judged[verdict].isna())}
                continue
            single = {j: _ROW[task](where(judged, judge=j), how) for j in judged["judge"].unique()}
            for rule in rules:
                of_panel = _ROW[task](panel(judged, task, rule), how)
                key |= {"rule": rule, "n_judges": judges}
                yield from (key | row for row in _measured(of_panel, single, MEASURES[task]))


_ROW = {
    "detection": detection_row,
    "localisation": localisation_row,
    "coverage": coverage_row,
}


def _measured(
    of_panel: Mapping[str, Any],
    single: Mapping[str, Mapping[str, Any]],
    measures: Mapping[str, int],
) -> Iterator[dict[str, Any]]:
    for measure, better in measures.items():
        of_judges = {j: r[measure] for j, r in single.items() if not math.isnan(r[measure])}
        best = max(of_judges, key=lambda j: _goodness(of_judges[j], better), default="")
        yield {
            "measure": measure,
            **renamed(of_panel, measure, "value"),
            "best_judge": best,
            "best_value": of_judges.get(best, math.nan),
            "n": of_panel["n"],
            "n_without_verdict": of_panel["n_without_verdict"],
            "reason": "",
        }


def _goodness(value: float, better: int) -> float:
    return better * value if better else -abs(value)


def panel(judged: pd.DataFrame, task: str, rule: str) -> pd.DataFrame:
    """One verdict per item, in the columns of the task's frame; `judge` is `panel: rule`.

    Args:
        judged: several judges, of one reading and prompt (and scale).
    """
    keys = ["item", "level"] if task == "coverage" else ["item", "condition"]
    value = "predicted" if task == "localisation" else "score"
    items = judged.drop_duplicates(subset=keys).set_index(keys).sort_index().copy()
    verdicts = verdicts_by_judge(judged, value, keys).to_numpy()
    given = ~np.isnan(verdicts)
    p = np.full(len(items), math.nan)
    if rule == "majority":
        verdict = np.array([_most(row[~np.isnan(row)]) for row in verdicts])
    elif task == "coverage":
        verdict = _mean(verdicts)
    elif rule == "mean":
        suspect = judged["p_flag"].where(judged["p_flag"].notna(), 1 - judged["score"])
        flags = judged.assign(suspect=suspect.where(judged["score"].notna()))
        p = _mean(verdicts_by_judge(flags, "suspect", keys).to_numpy())
        verdict = np.where(np.isnan(p), math.nan, (p < 0.5).astype(float))
    else:
        flagged = (verdicts == 0).sum(axis=1) >= (1 if rule == "any" else given.sum(axis=1))
        verdict = np.where(given.any(axis=1), (~flagged).astype(float), math.nan)
    items["judge"] = f"panel: {rule}"
    items[value] = verdict
    items["outcome"] = np.where(np.isnan(verdict), "unparsed", "parsed")
    for column in {"p_flag", "p_target", "expected", "final_score"} & set(items.columns):
        items[column] = p if column == "p_flag" else math.nan
    if "probabilities" in items:
        items["probabilities"] = [()] * len(items)
    return items.reset_index()


@tabled(*MISSED)
def missed_by_all_table(detection: pd.DataFrame, features: pd.DataFrame) -> Rows:
    """The perturbed items that every judge of a reading and prompt passes as following.

    Items that some judge gave no verdict on are not among them; a judge without any verdict is
    left out, and not counted in `n_judges`.
    """
    about = {r["item"]: r for r in rows(features)}
    for key, judged in groups(where(detection, condition=PERTURBED), ("reading", "prompt")):
        verdicts = who_spoke(verdicts_by_judge(judged, "score", ("item",)))
        missed = set(verdicts.index[(verdicts == 1).all(axis=1)]) if verdicts.shape[1] else set()
        for row in rows(where(judged, item=missed).drop_duplicates(subset="item")):
            of_item = about.get(row["item"], {})
            known = {c: of_item.get(c) for c in ("edit_type", "method", "relative_position")}
            what = {"item": row["item"], "chain": row["chain"], "n_judges": verdicts.shape[1]}
            yield key | what | known


def _most(values: np.ndarray) -> float:
    """The value given more often than any other; NaN where there is none."""
    distinct_values, times = np.unique(values, return_counts=True)
    first = distinct_values[times == times.max()] if len(distinct_values) else distinct_values
    return float(first[0]) if len(first) == 1 else math.nan


def _mean(values: np.ndarray) -> np.ndarray:
    given = ~np.isnan(values)
    means_of_rows = np.full(len(values), math.nan)
    total, times = np.where(given, values, 0).sum(axis=1), given.sum(axis=1)
    np.divide(total, times, out=means_of_rows, where=times > 0)
    return means_of_rows
