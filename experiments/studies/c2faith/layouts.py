"""C2-Faith's Tables 1 to 6 in the paper's own layout, from the tidy tables.

CSV keeps fractions; what is printed has the paper's headings, percents and marks. The paper has
one prompt and one reading; a run may have more, each in rows of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pandas as pd
from scipy.stats import rankdata

from faithscope.experiments.analysis.cells import Kept
from faithscope.experiments.analysis.columns import Column, by_name, described
from faithscope.experiments.analysis.paper_table import percent, whole
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import groups, rows, where
from faithscope.experiments.studies.c2faith.metrics.coverage import BY, COVERAGE
from faithscope.experiments.studies.c2faith.metrics.detection import DETECTION
from faithscope.experiments.studies.c2faith.metrics.frames import (
    COUNTS,
    LEVEL,
    PERTURBED,
    WAY,
    ends,
)
from faithscope.experiments.studies.c2faith.metrics.localisation import LOCALISATION
from faithscope.experiments.studies.c2faith.metrics.predictors import EDIT_TYPE, EDITS, PREDICTORS

ALPHA = 0.001
"""The level of Table 1's dagger, after Bonferroni."""
STARS = ((0.001, "***"), (0.01, "**"))
_COUNTS = ("n", "n_without_verdict")
_CONTROLS = ("n_control", "n_control_without_verdict")
_READ = {"judge": "Judge", "reading": "Reading", "prompt": "Prompt"}


def _columns(table: Table, *names: str) -> tuple[Column, ...]:
    """Columns as another table declares them, without the ends of their intervals."""
    of_table = by_name(table.columns)
    return tuple(replace(of_table[name], interval=False) for name in names)


def _pct(value: float) -> str:
    return "—" if math.isnan(value) else f"{percent(value)}%"


def _ci(low: float, high: float) -> str:
    return "—" if math.isnan(low) else f"[{percent(low)}, {percent(high)}]"


def _plain(value: float, decimals: int) -> str:
    return "—" if math.isnan(value) else f"{value:.{decimals}f}"


def _signed(value: float, decimals: int) -> str:
    return "—" if math.isnan(value) else f"{value:+.{decimals}f}"


def _stars(p: float) -> str:
    return next((mark for below, mark in STARS if p < below), "")


def _printed(
    cells: Mapping[str, Callable[[Mapping[str, Any]], Any]],
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The layout of a table with a judge in each row: heading -> what stands there for a row."""
    of_row = {title: itemgetter(name) for name, title in _READ.items()} | dict(cells)
    return lambda data: pd.DataFrame(
        {title: [say(row) for row in rows(data)] for title, say in of_row.items()}
    )


def _with_daggers(detection: pd.DataFrame, mcnemar: pd.DataFrame) -> pd.DataFrame:
    better = ["; ".join(_better_than(row, mcnemar)) for row in rows(detection)]
    return detection.assign(better_than=pd.Series(better, detection.index, dtype=str))


def _better_than(row: Mapping[str, Any], mcnemar: pd.DataFrame) -> list[str]:
    same = where(mcnemar, reading=row["reading"], prompt=row["prompt"], condition=PERTURBED)
    beaten = []
    for pair in rows(same):
        if pair["other"] == "" or math.isnan(pair["p"]) or not pair["p_bonferroni"] < ALPHA:
            continue
        if row["judge"] == pair["judge"] and pair["difference"] > 0:
            beaten.append(pair["other"])
        if row["judge"] == pair["other"] and pair["difference"] < 0:
            beaten.append(pair["judge"])
    return beaten


_BETTER = described(
    better_than="Judges that this one is significantly better than (McNemar, Bonferroni)."
)
TABLE_1 = Table(
    "paper_c2_table1",
    ("c2_detection", "c2_mcnemar"),
    WAY,
    [
        Kept(_columns(DETECTION, *_COUNTS, *_CONTROLS, "detection", "fpr")),
        Kept(ends("detection", "the 95 % interval of detection")),
        Kept((*_columns(DETECTION, "std", "net"), *_BETTER)),
    ],
    prepare=_with_daggers,
    layout=_printed(
        {
            "Detect": lambda r: _pct(r["detection"]) + (" †" if r["better_than"] else ""),
            "FPR": lambda r: _pct(r["fpr"]),
            "95% CI": lambda r: _ci(r["detection_low"], r["detection_high"]),
            "Std.": lambda r: _plain(r["std"], 3),
            "Net": lambda r: _pct(r["net"]),
            "n": itemgetter("n"),
            f"† better than (McNemar, Bonferroni, p < {ALPHA})": itemgetter("better_than"),
        }
    ),
)
"""Binary detection by each judge (Table 1)."""


_SHARES = {"exact": "Exact", "detection": "Det.", "fpr": "FPR"}
_ERRORS = {"mae_all": "MAE all", "mae_detected": "MAE det"}
_NEAR = {"within_1": "W@1", "within_2": "W@2"}
_MORE = ("net", "signed_error", "n_final_score", "contradicts")
TABLE_2 = Table(
    "paper_c2_table2",
    "c2_localisation",
    WAY,
    [
        Kept(
            _columns(LOCALISATION, *_COUNTS, *_CONTROLS, "n_detected", *_SHARES, *_ERRORS, *_NEAR)
        ),
        Kept(_columns(LOCALISATION, *_MORE)),
    ],
    layout=_printed(
        {title: lambda r, name=name: _pct(r[name]) for name, title in _SHARES.items()}
        | {title: lambda r, name=name: _plain(r[name], 2) for name, title in _ERRORS.items()}
        | {title: lambda r, name=name: _pct(r[name]) for name, title in _NEAR.items()}
        | {"n": itemgetter("n"), "Index against final score": lambda r: _pct(r["contradicts"])}
    ),
)
"""Localisation, by the index named; the last column, ours, is `contradicts`."""


_RATED = ("n_reference", "mean", "sd", "reference_mean", "bias", "mae", "inflation")
_RANKED = ("spearman", "spearman_p", "spearman_kept", "spearman_kept_p")
TABLE_3 = Table(
    "paper_c2_table3",
    "c2_coverage",
    (*BY, LEVEL),
    [Kept(_columns(COVERAGE, *_COUNTS, *_RATED, *_RANKED))],
    layout=_printed(
        {
            "Scale": itemgetter("scale"),
            "Level": lambda r: f"{_plain(100 * r['level'], 0)}%",
            "Mean (±σ)": lambda r: f"{_plain(r['mean'], 2)} ± {_plain(r['sd'], 2)}",
            "Ref. mean": lambda r: _plain(r["reference_mean"], 2),
            "Bias": lambda r: _signed(r["bias"], 2),
            "MAE": lambda r: _plain(r["mae"], 2),
            "Infl.%": lambda r: _pct(r["inflation"]),
            "ρ": lambda r: _plain(r["spearman"], 3) + _stars(r["spearman_p"]),
            "ρ, share kept": lambda r: _plain(r["spearman_kept"], 3) + _stars(r["spearman_kept_p"]),
            "n": itemgetter("n"),
        }
    ),
)
"""Coverage per judge and level; `spearman_kept` needs no reference judge."""


def _across_tasks(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    entries: list[dict[str, Any]] = []
    entries += _cross(detection, "exp 1 detect", "detection", 1)
    entries += _cross(detection, "exp 1 fpr", "fpr", -1)
    entries += _cross(localisation, "exp 2 exact match", "exact", 1)
    entries += _cross(localisation, "exp 2 fpr", "fpr", -1)
    if len(coverage):
        first = coverage.iloc[0]
        of_scale = where(coverage, scale=first["scale"], reference_judge=first["reference_judge"])
        high, low = of_scale["level"].max(), of_scale["level"].min()
        rho = "spearman_kept" if not any(of_scale["n_reference"]) else "spearman"
        symbol = "ρ" if rho == "spearman" else "ρ with share kept"
        entries += _cross(where(of_scale, level=high), f"cov. {symbol} @{100 * high:.0f}%", rho, 1)
        if rho == "spearman":
            entries += _cross(where(of_scale, level=low), f"cov. bias @{100 * low:.0f}%", "bias", 0)
    data = pd.DataFrame(entries)
    ranked = _overall(data) if entries else {}
    ranks = [ranked.get((r["reading"], r["judge"]), math.nan) for r in entries]
    return data.assign(overall_rank=ranks)


def _printed_4(data: pd.DataFrame) -> pd.DataFrame:
    printed = []
    judges = list(dict.fromkeys(data["judge"]))
    for key, of_task in groups(data, ("reading", "task")):
        cells = {r["judge"]: _cell(r) for r in rows(of_task)}
        line = {"Reading": key["reading"], "Task": key["task"]}
        printed.append(line | {j: cells.get(j, "—") for j in judges})
    for key, of_reading in groups(data, ["reading"]):
        ranks = dict(zip(of_reading["judge"], of_reading["overall_rank"], strict=True))
        line = {"Reading": key["reading"], "Task": "overall rank"}
        printed.append(line | {j: whole(ranks.get(j, math.nan)) for j in judges})
    return pd.DataFrame(printed)


def _cross(table: pd.DataFrame, task: str, measure: str, better: int) -> list[dict[str, Any]]:
    """Rows of one task. `better` says which value is better: the greater (1), the smaller (-1), or
    the one nearer to zero (0)."""
    entries = []
    for reading in dict.fromkeys(table["reading"]):
        of_reading = rows(where(table, reading=reading).drop_duplicates(subset="judge"))
        good = [better * r[measure] if better else -abs(r[measure]) for r in of_reading]
        known = [g for g in good if not math.isnan(g)]
        # a judge that stands alone is not the best of several
        top = max(known) if len(known) > 1 else math.nan
        entries += [
            {"reading": reading, "task": task, "judge": r["judge"], "value": r[measure]}
            | {"best": g == top, "goodness": g}
            | {name: r[name] for name in _COUNTS}
            for r, g in zip(of_reading, good, strict=True)
        ]
    return entries


def _overall(data: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(reading, judge) -> overall place, for the judges that have every row of their reading."""
    ranks: dict[tuple[str, str], float] = {}
    for reading in dict.fromkeys(data["reading"]):
        of_reading = where(data, reading=reading)
        wide = of_reading.pivot(index="judge", columns="task", values="goodness").dropna()
        if len(wide) < 2:
            continue
        places = rankdata(-wide.to_numpy(dtype=float), axis=0)
        overall = rankdata(places.mean(axis=1).round(9), method="min")
        ranks |= {(reading, j): float(p) for j, p in zip(wide.index, overall, strict=True)}
    return ranks


def _cell(row: Mapping[str, Any]) -> str:
    task, value = row["task"], row["value"]
    if math.isnan(value):
        return "—"
    rank, bias = "ρ" in task, "bias" in task
    text = _plain(value, 3) if rank else _signed(value, 2) if bias else _pct(value)
    return f"{text} (best)" if row["best"] else text


_VALUE, _BEST, _RANK = described(
    value="The measure that the task names.",
    best="Whether no other judge of the reading is better.",
    overall_rank="Rank of the judge by the mean of its ranks in all rows, 1 is best.",
)
TABLE_4 = Table(
    "paper_c2_table4",
    ("c2_detection", "c2_localisation", "c2_coverage"),
    ("reading", "task", "judge"),
    [Kept((_VALUE, _BEST, *COUNTS, _RANK))],
    prepare=_across_tasks,
    layout=_printed_4,
)
"""Judges across tasks: a row per task and judge, `best` where none of several is better.

Each task by its first prompt, coverage on its first scale, rank correlation at the highest
level and bias at the lowest, as the paper. Where no reference was scored, the correlation
is with the share kept. `overall_rank` orders judges of one reading that have all rows by
the mean of their ranks in them: our rule, the paper gives none.
"""


FEATURES = {
    "math_symbol_density": ("Math symbol density", 3),
    "edit_similarity": ("Edit similarity", 3),
    "relative_position": ("Relative position", 3),
    "n_words": ("Word count (negated)", 1),
    "n_steps": ("Chain length", 1),
    "n_chars": ("Character count (negated)", 1),
}
"""Feature -> its name in the paper, and the decimals that are printed."""
_SIDES = ("n_correct", "n_wrong", "n_without_verdict", "mean_correct", "mean_wrong", "difference")
TABLE_5 = Table(
    "paper_c2_table5",
    "c2_predictors",
    (*WAY, *_columns(PREDICTORS, "feature")),
    [Kept(_columns(PREDICTORS, *_SIDES))],
    layout=_printed(
        {
            "Feature": lambda r: FEATURES[r["feature"]][0],
            "Correct": lambda r: _plain(r["mean_correct"], FEATURES[r["feature"]][1]),
            "Wrong": lambda r: _plain(r["mean_wrong"], FEATURES[r["feature"]][1]),
            "Δ": lambda r: _signed(r["difference"], FEATURES[r["feature"]][1]),
        }
    ),
)
"""Means of structural features over the broken steps flagged and passed."""


TABLE_6 = Table(
    "paper_c2_table6",
    "c2_edit_types",
    (*WAY, EDIT_TYPE),
    [Kept(_columns(EDITS, *_COUNTS, "detection"))],
    layout=_printed(
        {
            "Edit type": lambda r: r["edit_type"].replace("_", " ").capitalize(),
            "N": itemgetter("n"),
            "Acc.%": lambda r: percent(r["detection"]),
        }
    ),
)
"""Detection of broken steps by edit type (Table 6)."""
PAPER = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6)
