"""Our rows for printed tables of the C2-Faith paper that need more than one of our tables, or
numbers that follow from ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published.paper import Tables
from faithscope.experiments.analysis.statistics.stats import FEWEST, wilson
from faithscope.experiments.analysis.tidy import (
    columns,
    groups,
    keep,
    numbers,
    only,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.numerals import hundredths
from faithscope.experiments.studies.c2faith.tables.coverage import COVERAGE, SCORES
from faithscope.experiments.studies.c2faith.tables.detection import DETECTION
from faithscope.experiments.studies.c2faith.tables.frames import PERTURBED
from faithscope.experiments.studies.c2faith.tables.localisation import LOCALISATION

NORMAL = 1.959964
"""97.5 % point of the normal distribution."""
ALPHA = 0.001
"""The level of Table 1's dagger, after Bonferroni."""
GREATER, SMALLER, NEARER_ZERO = 1, -1, 0
"""Which value of a task is the better one."""


def steps_flagged(table: pd.DataFrame) -> pd.DataFrame:
    """Table `c2_detection` with the share of broken steps passed, and the interval of the standard
    deviation, which both follow from the detection rate."""
    low, high = numbers(table["detection_low"]), numbers(table["detection_high"])
    ends = np.sqrt([low * (1 - low), high * (1 - high)])
    # a standard deviation of yes and no is greatest at one half
    greatest = np.where((low <= 0.5) & (high >= 0.5), 0.5, ends.max(axis=0))
    passed = {"passed": 1 - table["detection"], "passed_low": 1 - high, "passed_high": 1 - low}
    return table.assign(**passed, std_low=ends.min(axis=0), std_high=greatest)


def either_way(table: pd.DataFrame) -> pd.DataFrame:
    """McNemar's tests on broken steps, every two judges in both orders, with whether the first of
    them is significantly better (`better`)."""
    one = keep(table, rows_with(condition=PERTURBED)(table) & table["p"].notna().to_numpy())
    value, low, high = with_interval("difference")
    turned = {value: -one[value], low: -one[high], high: -one[low]}
    both = pd.concat([one, one.assign(judge=one["other"], other=one["judge"], **turned)])
    return both.assign(better=(both[value] > 0) & (both["p_bonferroni"] < ALPHA))


def may_be_better(row: Mapping[str, Any]) -> set[bool]:
    """Whether a judge may be significantly better by our numbers: not where the whole interval of
    the difference lies below 0, and surely where our own test says so."""
    if row["better"]:
        return {True}
    return {True, False} if row["difference_high"] > 0 else {False}


def scored(tables: Tables) -> pd.DataFrame | None:
    """Table `c2_coverage` with a normal 95 % interval of the standard deviation of scores, from the
    shares of all scores."""
    table, shares = tables.get(COVERAGE.name), tables.get(SCORES.name)
    if table is None or shares is None:
        return None
    keys = [*COVERAGE.keys]
    half = {}
    for key, of in groups(shares, keys):
        score, share = numbers(of["score"]), numbers(of["share"])
        squares = (score - (score * share).sum()) ** 2
        variance = (squares * share).sum()
        # of the delta method: Var(s) is (μ₄ − σ⁴) / 4 σ² n
        spread = max(0.0, (squares**2 * share).sum() - variance**2)
        n = float(of["n"].iloc[0])
        error = np.sqrt(spread / (4 * variance * n)) if variance > 0 and n >= FEWEST else np.nan
        half[tuple(key.values())] = NORMAL * error
    ends = np.array([half.get(tuple(row), np.nan) for row in only(table, keys).to_numpy()])
    return table.assign(sd_low=table["sd"] - ends, sd_high=table["sd"] + ends)


def with_intervals_of_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Table `c2_coverage_scores` with Wilson's 95 % intervals of the shares."""
    known = keep(table, table["share"].notna().to_numpy())
    shares = (wilson(round(r["share"] * r["n"]), int(r["n"])) for r in rows(known))
    return known.assign(
        **pd.DataFrame([columns("share", share) for share in shares], index=known.index)
    )


def across_tasks(tables: Tables) -> pd.DataFrame | None:
    """Judges across tasks (Table 4): a row per judge, reading and task, each number with its
    interval from the table of its task, then the overall `rank`.

    Each task by its first prompt, coverage on its first scale, rank correlation at the highest
    level and bias at the lowest, as the paper. Where no reference was scored, the correlation
    is with the share kept. The rank orders judges of one reading that have all rows by the mean of
    their ranks in them: our rule, the paper gives none.
    """
    sources = (DETECTION, LOCALISATION, COVERAGE)
    if not all(table.name in tables for table in sources):
        return None
    entries = pd.concat([*_entries(*(tables[table.name] for table in sources))])
    if entries.empty:
        return None
    ranks = only(entries, ["judge", "reading", "prompt"]).drop_duplicates(["judge", "reading"])
    places = _places(entries)
    ranked = [places.get((r["reading"], r["judge"])) for r in rows(ranks)]
    return pd.concat([entries, ranks.assign(task="Overall rank", rank=ranked)], ignore_index=True)


def _entries(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> Iterator[pd.DataFrame]:
    yield _entry("Exp 1 detect", detection, "detection", GREATER)
    yield _entry("Exp 1 FPR", detection, "fpr", SMALLER, n="n_control")
    yield _entry("Exp 2 exact match", localisation, "exact", GREATER)
    yield _entry("Exp 2 FPR", localisation, "fpr", SMALLER, n="n_control")
    if coverage.empty:
        return
    first = coverage.iloc[0]
    of_scale = where(coverage, scale=first["scale"], reference_judge=first["reference_judge"])
    high, low = float(of_scale["level"].max()), float(of_scale["level"].min())
    at_high, at_low = where(of_scale, level=high), where(of_scale, level=low)
    if any(of_scale["n_reference"]):
        yield _entry(f"Cov. ρ @{hundredths(high)}%", at_high, "spearman", GREATER)
        yield _entry(f"Cov. bias @{hundredths(low)}%", at_low, "bias", NEARER_ZERO)
    else:
        yield _entry(
            f"Cov. ρ with share kept @{hundredths(high)}%", at_high, "spearman_kept", GREATER
        )


def _entry(task: str, table: pd.DataFrame, column: str, better: int, n: str = "n") -> pd.DataFrame:
    """Rows of one task; `goodness` is greater for a better judge."""
    first = table.drop_duplicates(["judge", "reading"])
    ends = dict(zip(with_interval("value"), with_interval(column), strict=True))
    values = {ours: first[of_task] for ours, of_task in ends.items() if of_task in first}
    keys = {name: first[name] for name in ("judge", "reading", "prompt")}
    goodness = better * first[column] if better else -first[column].abs()
    return pd.DataFrame({**keys, "task": task, **values, "n": first[n], "goodness": goodness})


def _places(entries: pd.DataFrame) -> dict[tuple[str, str], str]:
    """(reading, judge) -> overall place, for the judges that have every row of their reading."""
    places: dict[tuple[str, str], str] = {}
    for key, of in groups(entries, ["reading"]):
        wide = of.pivot(index="judge", columns="task", values="goodness").dropna()
        if len(wide) > 1:
            ranks = scipy.stats.rankdata(-wide.to_numpy(dtype=float), axis=0)
            overall = scipy.stats.rankdata(ranks.mean(axis=1).round(9), method="min")
            places |= {
                (key["reading"], j): str(int(p)) for j, p in zip(wide.index, overall, strict=True)
            }
    return places
