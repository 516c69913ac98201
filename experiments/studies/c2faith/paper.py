"""C2-Faith's Tables 1 to 6 in the paper's own layout, from the tidy tables.

CSV keeps fractions; what is printed has the paper's headings, percents and marks. The paper has
one prompt and one reading; a run may have more, each in rows of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from scipy.stats import rankdata

from faithscope.experiments.analysis.paper_table import PaperTable, percent, whole
from faithscope.experiments.analysis.tidy import groups, only, rows, where
from faithscope.experiments.studies.c2faith.metrics.frames import PERTURBED, WAY

ALPHA = 0.001
"""The level of Table 1's dagger, after Bonferroni."""
STARS = ((0.001, "***"), (0.01, "**"))
_COUNTS = ["n", "n_without_verdict"]
_READ = {"judge": "Judge", "reading": "Reading", "prompt": "Prompt"}


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """The six tables, those without rows too; see `experiments.studies.c2faith.tables.tables`."""
    return [
        table_1(tables["c2_detection"], tables["c2_mcnemar"]),
        table_2(tables["c2_localisation"]),
        table_3(tables["c2_coverage"]),
        table_4(tables["c2_detection"], tables["c2_localisation"], tables["c2_coverage"]),
        table_5(tables["c2_predictors"]),
        table_6(tables["c2_edit_types"]),
    ]


def table_1(detection: pd.DataFrame, mcnemar: pd.DataFrame) -> PaperTable:
    """Binary detection. `better_than`: judges that this one is significantly better than."""
    wanted = [*WAY, *_COUNTS, "n_control", "n_control_without_verdict"]
    wanted += ["detection", "fpr", "detection_low", "detection_high", "std", "net"]
    data = only(detection, wanted)
    better = [_better_than(r, mcnemar) for r in rows(detection)]
    data["better_than"] = pd.Series(["; ".join(b) for b in better], dtype=str)
    printed = _named(data) | {
        "Detect": [_pct(r["detection"]) + (" †" if r["better_than"] else "") for r in rows(data)],
        "FPR": [_pct(v) for v in data["fpr"]],
        "95% CI": [_ci(r["detection_low"], r["detection_high"]) for r in rows(data)],
        "Std.": [_plain(v, 3) for v in data["std"]],
        "Net": [_pct(v) for v in data["net"]],
        "n": data["n"].tolist(),
        f"† better than (McNemar, Bonferroni, p < {ALPHA})": data["better_than"].tolist(),
    }
    return PaperTable("paper_c2_table1", data, pd.DataFrame(printed))


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


def table_2(localisation: pd.DataFrame) -> PaperTable:
    """Localisation, by the index named; the last column, ours, is `contradicts`."""
    shares = {"exact": "Exact", "detection": "Det.", "fpr": "FPR"}
    errors = {"mae_all": "MAE all", "mae_detected": "MAE det"}
    near = {"within_1": "W@1", "within_2": "W@2"}
    more = ["net", "signed_error", "n_final_score", "contradicts"]
    wanted = [*WAY, *_COUNTS, "n_control", "n_control_without_verdict", "n_detected"]
    data = only(localisation, [*wanted, *shares, *errors, *near, *more])
    printed = _named(data)
    printed |= {title: [_pct(v) for v in data[name]] for name, title in shares.items()}
    printed |= {title: [_plain(v, 2) for v in data[name]] for name, title in errors.items()}
    printed |= {title: [_pct(v) for v in data[name]] for name, title in near.items()}
    printed |= {"n": data["n"].tolist()}
    printed |= {"Index against final score": [_pct(v) for v in data["contradicts"]]}
    return PaperTable("paper_c2_table2", data, pd.DataFrame(printed))


def table_3(coverage: pd.DataFrame) -> PaperTable:
    """Coverage per judge and level; `spearman_kept` needs no reference judge."""
    wanted = [*WAY, "scale", "reference_judge", "level", *_COUNTS, "n_reference", "mean", "sd"]
    wanted += ["reference_mean", "bias", "mae", "inflation", "spearman", "spearman_p"]
    data = only(coverage, [*wanted, "spearman_kept", "spearman_kept_p"])
    every = rows(data)
    printed = _named(data) | {
        "Scale": data["scale"].tolist(),
        "Level": [f"{_plain(100 * r['level'], 0)}%" for r in every],
        "Mean (±σ)": [f"{_plain(r['mean'], 2)} ± {_plain(r['sd'], 2)}" for r in every],
        "Ref. mean": [_plain(v, 2) for v in data["reference_mean"]],
        "Bias": [_signed(v, 2) for v in data["bias"]],
        "MAE": [_plain(v, 2) for v in data["mae"]],
        "Infl.%": [_pct(v) for v in data["inflation"]],
        "ρ": [_plain(r["spearman"], 3) + _stars(r["spearman_p"]) for r in every],
        "ρ, share kept": [
            _plain(r["spearman_kept"], 3) + _stars(r["spearman_kept_p"]) for r in every
        ],
        "n": data["n"].tolist(),
    }
    return PaperTable("paper_c2_table3", data, pd.DataFrame(printed))


def table_4(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> PaperTable:
    """Judges across tasks: a row per task and judge, `best` where none of several is better.

    Each task by its first prompt, coverage on its first scale, rank correlation at the highest
    level and bias at the lowest, as the paper. Where no reference was scored, the correlation
    is with the share kept. `overall_rank` orders judges of one reading that have all rows by
    the mean of their ranks in them: our rule, the paper gives none.
    """
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
    data = pd.DataFrame(entries, columns=["reading", "task", "judge", "value", "best", *_COUNTS])
    goodness = pd.Series([r["goodness"] for r in entries], dtype=float)
    ranked = _overall(data.assign(goodness=goodness))
    data["overall_rank"] = [ranked.get((r["reading"], r["judge"]), math.nan) for r in rows(data)]
    printed = []
    judges = list(dict.fromkeys(data["judge"]))
    for key, of_task in groups(data, ("reading", "task")):
        cells = {r["judge"]: _cell(r) for r in rows(of_task)}
        line = {"Reading": key["reading"], "Task": key["task"]}
        printed.append(line | {j: cells.get(j, "—") for j in judges})
    for reading in dict.fromkeys(data["reading"]):
        line = {"Reading": reading, "Task": "overall rank"}
        ranks = {j: ranked.get((reading, j), math.nan) for j in judges}
        printed.append(line | {j: whole(r) for j, r in ranks.items()})
    return PaperTable("paper_c2_table4", data, pd.DataFrame(printed))


def _cross(table: pd.DataFrame, task: str, measure: str, better: int) -> list[dict[str, Any]]:
    """Rows of one task; `better`: more (1), less (-1), or nearer to zero (0)."""
    entries = []
    for reading in dict.fromkeys(table["reading"]):
        of_reading = rows(where(table, reading=reading).drop_duplicates(subset="judge"))
        good = [better * r[measure] if better else -abs(r[measure]) for r in of_reading]
        known = [g for g in good if not math.isnan(g)]
        # who stands alone is better than nobody
        top = max(known) if len(known) > 1 else math.nan
        entries += [
            {"reading": reading, "task": task, "judge": r["judge"], "value": r[measure]}
            | {"best": g == top, "goodness": g}
            | {name: r[name] for name in _COUNTS}
            for r, g in zip(of_reading, good, strict=True)
        ]
    return entries


def _overall(data: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(reading, judge) -> place, of the judges that have every row of their reading."""
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


def table_5(predictors: pd.DataFrame) -> PaperTable:
    """Means of structural features over the broken steps flagged and passed."""
    counts = ["n_correct", "n_wrong", "n_without_verdict"]
    data = only(predictors, [*WAY, "feature", *counts, "mean_correct", "mean_wrong", "difference"])
    titles = {
        "math_symbol_density": ("Math symbol density", 3),
        "edit_similarity": ("Edit similarity", 3),
        "relative_position": ("Relative position", 3),
        "n_words": ("Word count (negated)", 1),
        "n_steps": ("Chain length", 1),
        "n_chars": ("Character count (negated)", 1),
    }
    every = [(r, *titles[r["feature"]]) for r in rows(data)]
    printed = _named(data) | {
        "Feature": [title for _, title, _ in every],
        "Correct": [_plain(r["mean_correct"], d) for r, _, d in every],
        "Wrong": [_plain(r["mean_wrong"], d) for r, _, d in every],
        "Δ": [_signed(r["difference"], d) for r, _, d in every],
    }
    return PaperTable("paper_c2_table5", data, pd.DataFrame(printed))


def table_6(edit_types: pd.DataFrame) -> PaperTable:
    """Detection by edit type."""
    data = only(edit_types, [*WAY, "edit_type", *_COUNTS, "detection"])
    printed = _named(data) | {
        "Edit type": [t.replace("_", " ").capitalize() for t in data["edit_type"]],
        "N": data["n"].tolist(),
        "Acc.%": [percent(v) for v in data["detection"]],
    }
    return PaperTable("paper_c2_table6", data, pd.DataFrame(printed))


def _named(data: pd.DataFrame) -> dict[str, Sequence[Any]]:
    return {title: data[name].tolist() for name, title in _READ.items()}


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
