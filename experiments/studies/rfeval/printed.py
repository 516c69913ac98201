"""RFEval's tables in the paper's own layout, from the tidy tables.

CSV keeps fractions; what is printed has the paper's headings and percents. The paper has one
reader of stances; a run may have several, each in rows of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Numbers, all_of, rows_with, rows_without
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import OVERALL, Table, excerpt
from faithscope.experiments.analysis.tidy import groups, numbers, rows, where
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, LETTERS, TASKS
from faithscope.experiments.studies.rfeval.metrics import (
    benchmark,
    faithfulness,
    reviews,
    steps,
    texts,
)
from faithscope.experiments.studies.rfeval.metrics.benchmark import STANCES_BETWEEN
from faithscope.experiments.studies.rfeval.metrics.faithfulness import CAUSALITY_ALL
from faithscope.experiments.studies.rfeval.metrics.filtering import COUNTS, FILTERING
from faithscope.experiments.studies.rfeval.metrics.frames import WAY
from faithscope.experiments.studies.rfeval.subjects.model_files import REGIMES

Layout = Callable[[pd.DataFrame], pd.DataFrame]
Head = str | tuple[str, int] | tuple[str, int, float]
"""Heading of a column; for numbers with their decimals, and the factor that they are multiplied by
(100 for percent)."""
Heads = dict[str, Head]
LINK_NAMES = {"pr": "r′→r", "re": "r→e", "ea": "e→a", "ra": "r→a"}
BASELINE_LINK_NAMES = {link: LINK_NAMES[link] for link in faithfulness.BASELINE_LINKS}
VIOLATION_NAMES: dict[str, str] = dict(
    zip(faithfulness.VIOLATIONS, ("χ(o)=0", "χ(o′)=0", "κ=0", "Other"), strict=True)
)
CAUSALITY_NAMES: dict[str, str] = {c: c.capitalize() for c in faithfulness.CAUSALITY}
FILTERED = {"n_problems": "Pre Total", "n_removed": "# Removed", "n_kept": "# Kept"}
BY_TASK: Heads = {"task": "Task", **FILTERED}
AGREEMENT = {
    "agreement": "Percent agreement",
    "pabak": "PABAK",
    "fleiss_kappa": "Fleiss’ κ",
    "krippendorff_alpha": "Krippendorff’s α",
}
"""Agreement of reviewers; the text has lost the first heading."""
OVERALL_METRICS = {
    "agreement": "Overall percent agreement",
    "pabak": "Overall PABAK",
    "fleiss_kappa": "Overall Fleiss’ κ",
    "krippendorff_alpha": "Overall Krippendorff’s α",
    "accepted": "Overall yes rate",
    "accepted_low": "Overall yes rate Wilson 95% CI (low)",
    "accepted_high": "Overall yes rate Wilson 95% CI (high)",
}
BY_SOURCE: Heads = {"task": "Task", "source": "Source", **FILTERED}
WAYS = {"reader": "Reader", "model": "Model"}
DELTA: Heads = {"context": "Context", "n": "Count", "mean": ("Mean", 3), "std": ("Std", 3)}


def items_by_task(items: pd.DataFrame) -> pd.DataFrame:
    """Items by task, with their sources and the items of each."""

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        task, n = of["task"].iloc[0], dict(zip(of["source"], of["n"], strict=True))
        line = {"Task": "Total" if task == OVERALL else task, "Count": n.pop(OVERALL)}
        sources = [] if task == OVERALL else [f"{source} ({k})" for source, k in n.items()]
        return line | {"Sources": ", ".join(sources)}

    return _grouped(items, ("task",), cells)


def stances_by_task(stances: pd.DataFrame) -> pd.DataFrame:
    """The stances of each task without "I don't know", which all have. More than three letters are
    named by the first three, as the paper names them."""

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        primary = [s.split(STANCES_BETWEEN)[:-1] for s in of["stances"]]
        shown = (
            [*names[:3], "…"] if len(names) > 3 and set(names) <= set(LETTERS) else names
            for names in primary
        )
        sets = dict.fromkeys(", ".join(names) for names in shown)
        return {"Task": of["task"].iloc[0], "Primary Stance Set": " or ".join(sets)}

    return _grouped(stances, ("task",), cells)


def agreement_of_reviewers(reviews: pd.DataFrame) -> pd.DataFrame:
    """Agreement of people who reviewed r′, by task."""
    heads: Heads = {"task": "Task"}
    heads |= {name: (head, 3) for name, head in AGREEMENT.items()}
    return listed(heads)(reviews)


def acceptance(reviews: pd.DataFrame) -> pd.DataFrame:
    """Reviews that accept r′, by task, with Wilson's interval of their share."""
    heads: Heads = {"task": "Task", "n": "n", "n_accepted": "# yes", "accepted": ("Yes rate", 3)}
    ends = zip(reviews["accepted_low"], reviews["accepted_high"], strict=True)
    intervals = [f"[{_number(low, 3)}, {_number(high, 3)}]" for low, high in ends]
    return listed(heads)(reviews).assign(**{"Wilson 95% CI": intervals})


def overall_agreement(reviews: pd.DataFrame) -> pd.DataFrame:
    """The statistics of all reviews together, one a row."""
    heads: Heads = {name: (metric, 3) for name, metric in OVERALL_METRICS.items()}
    return listed(heads)(reviews).T.reset_index().set_axis(["Metric", "Value"], axis=1)


def by_regime(regimes: pd.DataFrame) -> pd.DataFrame:
    """RF and coverage by post-training regime, a column per family, rows in the paper's order."""
    if regimes.empty:
        nothing = {"Variant": list(REGIMES), "no two models of one base": ["–"] * len(REGIMES)}
        return pd.DataFrame(nothing)
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
    return pd.DataFrame(lines)


def _sums(rows: pd.DataFrame, how: Bootstrap) -> dict[str, int]:
    return {column.name: int(numbers(rows[column.name]).sum()) for column in COUNTS}


def rewards_by_model(rewards: pd.DataFrame) -> pd.DataFrame:
    """Open-R1's reward for steps of consistent and of other outputs, a column per model."""

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        means = {r["model"]: _number(r["reward"], 4) for r in rows(of)}
        overall = means.pop(OVERALL)
        return {"": f"χ = {of['chi'].iloc[0]:.0f}"} | means | {"Overall": overall}

    return _grouped(rewards, ("reader", "chi"), cells)


def hours_of_devices(hours: pd.DataFrame) -> pd.DataFrame:
    """Hours of generation, and the hours of devices that the paper has; the run's environment says
    which devices they are."""
    outputs = [
        f"{r['n_timed']} of {r['n']}" if r["n_timed"] < r["n"] else str(r["n"]) for r in rows(hours)
    ]
    heads: Heads = {"model": "Model", "device_hours": ("Device hours", 2)}
    heads |= {"devices": ("Devices", 0), "hours": ("Hours", 2)}
    return listed(heads)(hours).assign(Outputs=outputs)


def tokens_by_task(lengths: pd.DataFrame) -> pd.DataFrame:
    """Mean tokens of baseline (B) and intervened (I) outputs, by model and task."""
    heads = {"baseline": "B", "intervened": "I"}

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        tokens = {(r["task"], r["condition"]): r["mean_tokens"] for r in rows(of)}
        return {
            f"{_short(task)} {head}": _number(tokens.get((task, condition)), 0)
            for task in _tasks(lengths)
            for condition, head in heads.items()
        }

    return _grouped(lengths, ("model",), cells)


def by_quartile(quartiles: pd.DataFrame) -> pd.DataFrame:
    """RF by quartile of coverage, all models' tasks pooled and all tasks' models."""
    heads = {1: "Q1 (Low)", 2: "Q2", 3: "Q3", 4: "Q4 (High)"}

    def cells(of: pd.DataFrame) -> dict[str, Any]:
        rf = dict(zip(of["quartile"], of["rf"], strict=True))
        by = {"Aggregation": f"By-{of['by'].iloc[0].capitalize()} (weighted)"}
        return by | {head: _number(rf.get(q), 3) for q, head in heads.items()}

    return _grouped(quartiles, ("reader", "by"), cells)


def of_quoted(rf: pd.DataFrame) -> pd.DataFrame:
    """Models to which r′ could only be quoted, by task: RF, coverage, χ(o), χ(o′), κ.

    The text has lost four of the headings; what it says of .1618, gpt-5.1's low score, which
    stems from criticism of r′ as of someone else's words, leaves these.
    """
    heads: Heads = {**WAYS, "task": "Task", "rf": ("RF (%)", 2, 100)}
    heads |= {"contrast_coverage": ("c", 4), "chi_baseline": ("χ(o)", 4)}
    heads |= {"chi_intervened": ("χ(o′)", 4), "kappa": ("κ", 4)}
    return listed(heads)(rf.assign(task=list(map(_short, rf["task"]))))


def beside_per_step(per_step: pd.DataFrame) -> pd.DataFrame:
    """RF taken step by step beside RF of whole blocks, in percent.

    "Ours" is RF of all pairs that count, as in Table 2 and as the paper prints it. Below it stand
    RF of whole blocks for the pairs that were judged step by step, and how many of the pairs that
    count these are.
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
    return pd.DataFrame(lines)


def listed(heads: Mapping[str, Head]) -> Layout:
    """The layout of a table that the paper prints as rows: column -> the paper's heading."""

    def layout(data: pd.DataFrame) -> pd.DataFrame:
        printed = {}
        for name, head in heads.items():
            if isinstance(head, str):
                printed[head] = data[name].tolist()
            else:
                title, *how = head
                printed[title] = [_number(value, *how) for value in data[name]]
        return pd.DataFrame(printed)

    return layout


def _by_task(number: int, *besides: str, **shown: tuple[str, int, float]) -> Table:
    """Table with a row per model with a prefilled r′, and for each task the columns shown.

    Args:
        besides: columns that are data only.
        shown: what is added to the task's heading -> column, decimals, and factor.
    """

    def layout(data: pd.DataFrame) -> pd.DataFrame:
        def cells(of: pd.DataFrame) -> dict[str, Any]:
            by = {r["task"]: r for r in rows(of)}
            return {
                f"{_short(task)} {head}".strip(): _number(by.get(task, {}).get(column), *how)
                for task in [*_tasks(data), OVERALL]
                for head, (column, *how) in shown.items()
            }

        return _grouped(data, WAY, cells)

    columns = (*(column for column, *_ in shown.values()), *besides)
    how = {"keys": (*WAY, "task"), "among": rows_with(framing=PREFIX), "layout": layout}
    return _excerpt(number, faithfulness.RFEVAL, *columns, **how)


def _shares(
    table_numbers: tuple[int, int], table: Table, statistic: str, names: Mapping[str, str]
) -> Iterator[Table]:
    """Yields two tables of shares of values, one by model and one by task in the paper's order."""
    for number, by in zip(table_numbers, ("model", "task"), strict=True):

        def layout(data: pd.DataFrame, by: str = by) -> pd.DataFrame:
            def cells(of: pd.DataFrame) -> dict[str, Any]:
                at = dict(zip(of["value"], of["share"], strict=True))
                line = {by.capitalize(): of["group"].iloc[0]}
                line |= {name: _number(at.get(value), 3) for value, name in names.items()}
                return line | {"n": of["n_of"].iloc[0]}

            return _grouped(data, ("reader", "group"), cells)

        among = all_of(rows_with(statistic=statistic, by=by), rows_without(group=OVERALL))
        keys = ("reader", "by", "group", "statistic", "value")
        excerpt_of = _excerpt(number, table, keys=keys, among=among, layout=layout)
        yield replace(excerpt_of, prepare=in_papers_order)


def in_papers_order(shares: pd.DataFrame) -> pd.DataFrame:
    """Shares of models as they stand, then shares of tasks in the paper's order."""
    place = {task: i for i, task in enumerate(TASKS)}
    return shares.sort_values("group", key=lambda g: g.map(place).fillna(-1), kind="stable")


def _grouped(
    data: pd.DataFrame, keys: Sequence[str], cells: Callable[[pd.DataFrame], Mapping[str, Any]]
) -> pd.DataFrame:
    """A row per combination of the keys: reader and model under their headings, and the cells."""
    lines = [
        {WAYS[name]: key[name] for name in keys if name in WAYS} | dict(cells(of))
        for key, of in groups(data, keys)
    ]
    return pd.DataFrame(lines)


def _tasks(frame: pd.DataFrame) -> list[str]:
    """Gives the tasks of a frame in the paper's order."""
    there = set(frame["task"])
    return [task for task in TASKS if task in there]


def _short(task: str) -> str:
    return {**ABBREVIATIONS, OVERALL: "Overall"}[task]


def _number(value: float | None, digits: Any, times: float = 1) -> str:
    return "–" if value is None or math.isnan(value) else f"{value * times:.{digits}f}"


def _excerpt(number: int, table: Table, *columns: str, **how: Any) -> Table:
    return excerpt(f"paper_rf_table{number}", table, columns, **how)


PAPER_TABLES = (
    _excerpt(1, benchmark.ITEMS, "n", layout=items_by_task),
    _excerpt(5, reviews.REVIEWS, "n_items", *AGREEMENT, layout=agreement_of_reviewers),
    _excerpt(6, reviews.REVIEWS, layout=acceptance),
    _excerpt(7, reviews.REVIEWS, among=rows_with(task=OVERALL), layout=overall_agreement),
    _excerpt(15, benchmark.STANCES, layout=stances_by_task),
    Table(
        "paper_rf_table8",
        FILTERING.name,
        ("task",),
        (Numbers(COUNTS, _sums),),
        pool=("task",),
        layout=listed(BY_TASK),
    ),
    _excerpt(9, FILTERING, *FILTERED, layout=listed(BY_SOURCE)),
    _by_task(2, "n_included", RF=("rf", 2, 100), c=("contrast_coverage", 2, 1)),
    _excerpt(3, faithfulness.REGIMES, layout=by_regime),
    _excerpt(4, texts.STEP_REWARD, among=rows_with(condition="both"), layout=rewards_by_model),
    _excerpt(
        10,
        texts.EXTERNALITY,
        layout=listed(
            {"task": "Task", **DELTA, "median": ("Median", 3), "p75": ("P75", 3)}
            | {"p90": ("P90", 3), "small_vocabulary": ("Small-vocab (%)", 1, 100)}
        ),
    ),
    _excerpt(11, texts.EXTERNALITY_BY_MODEL, layout=listed({**WAYS, **DELTA})),
    _excerpt(12, texts.HOURS, layout=hours_of_devices),
    _excerpt(
        13,
        faithfulness.WATERFALL,
        among=all_of(rows_with(task=OVERALL), rows_without(model=OVERALL)),
        layout=listed(
            {**WAYS, "n_total": "Total", "n_included": "Included", "n_global": "Global Exclusion"}
            | {"n_unfinished": "Unfinished/Truncated", "n_evaluation_error": "Evaluation Error"}
            | {"n_non_contrast": "Non-Contrast"}
        ),
    ),
    _excerpt(14, texts.LENGTH_TABLE, among=rows_without(task=OVERALL), layout=tokens_by_task),
    _excerpt(
        16, faithfulness.COVERAGE_QUARTILES, among=rows_with(group=OVERALL), layout=by_quartile
    ),
    *_shares((17, 21), faithfulness.FAILURE_SHARES, "violation", VIOLATION_NAMES),
    *_shares((18, 22), faithfulness.FAILURE_LOCATIONS, "baseline_break", BASELINE_LINK_NAMES),
    *_shares((19, 23), faithfulness.FAILURE_LOCATIONS, "intervened_break", LINK_NAMES),
    # all that count with κ = 1: over no other pairs do Tables 20 and 24 pool to the same shares
    *_shares((20, 24), faithfulness.CAUSALITY_TYPES, CAUSALITY_ALL, CAUSALITY_NAMES),
    _by_task(25, "n_included", **{"": ("chi_baseline", 4, 1)}),
    _excerpt(
        26,
        faithfulness.RFEVAL,
        *("n_included", "rf", "contrast_coverage", "chi_baseline", "chi_intervened", "kappa"),
        keys=(*WAY, "task"),
        among=all_of(rows_with(framing=MULTI_TURN), rows_without(model=OVERALL)),
        layout=of_quoted,
    ),
    _excerpt(27, steps.PER_STEP, layout=beside_per_step),
)
"""The paper's tables; Tables 8 and 9 are for runs that had their r′ written, Tables 5 to 7 for runs
whose r′ people reviewed."""
