"""Our rows for printed tables of the RFEval paper whose shape is another, or which pool.

The paper has one reader of stances, o3. Of a run with several readers its rows are taken, or else
those of the first reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.published.paper import Tables
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.analysis.tidy import groups, keep, numbers, only, summed, where
from faithscope.experiments.studies.rfeval import printed as paper
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics import benchmark, faithfulness, steps, texts
from faithscope.experiments.studies.rfeval.metrics.filtering import COUNTS, FILTERING
from faithscope.experiments.studies.rfeval.metrics.reviews import CONSTANT, REVIEWS

Rows = Callable[[Tables], pd.DataFrame | None]
"""Function from all tables of a run to our rows for a printed table; None where there are none."""
JUDGE = "api:openai/o3"
EXCLUDED = ("Qwen/Qwen3-8B", "paper_review")
"""The model and the task that the paper excludes from all that it pools (appendix C.4)."""
NORMAL = 1.959964
"""97.5 % point of the normal distribution, for 95 % intervals of means."""


def in_papers_way(
    frame: pd.DataFrame, tables: Tables, models: Collection[str] | None = None
) -> pd.DataFrame:
    """The rows by the paper's judge (or the first reader, where a run has another judge), without
    rows that pool over other models or tasks than the paper's, or over other exclusions.

    Args:
        frame: rows with `model` and `task`, `OVERALL` where pooled.
        models: our names of the models that the paper pools; None where `Published.pools` has them.
    """
    if "reader" in frame:
        readers = list(dict.fromkeys(frame["reader"]))
        frame = where(frame, reader=JUDGE if JUDGE in readers else readers[0])
    waterfall = tables[faithfulness.WATERFALL.name]
    cells = keep(waterfall, (waterfall["model"] != OVERALL) & (waterfall["task"] != OVERALL))
    pairs = zip(cells["model"], cells["task"], strict=True)
    to_exclude = np.array([pair == EXCLUDED for pair in pairs], dtype=bool)
    odd = keep(cells, (cells["n_global"] == cells["n_total"]) != to_exclude)
    whole = {key["model"] for key, of in groups(cells, ["model"]) if {*of["task"]} == {*TASKS}}
    whole -= {*odd["model"]}
    there = {*cells["model"]}

    def as_in_paper(model: str, task: str) -> bool:
        if model != OVERALL:
            return task != OVERALL or model in whole
        pooled = whole >= there if task == OVERALL else task not in {*odd["task"]}
        return pooled and (models is None or there == {*models})

    return keep(frame, list(map(as_in_paper, frame["model"], frame["task"])))


def of_paper(table: Table, models: Collection[str] | None = None, **pooled: str) -> Rows:
    """Our rows as the paper counts them (`in_papers_way`).

    Args:
        pooled: key that the table lacks because all its rows pool over it -> `OVERALL`.
    """

    def rows(tables: Tables) -> pd.DataFrame | None:
        frame = tables.get(table.name)
        if frame is None or frame.empty:
            return None
        return in_papers_way(frame.assign(**pooled), tables, models)

    return rows


def shares(table: Table, statistic: str, by: str) -> Rows:
    """Our shares of values by model or by task."""
    other = {"model": "task", "task": "model"}[by]

    def rows(tables: Tables) -> pd.DataFrame | None:
        frame = tables.get(table.name)
        if frame is None or frame.empty:
            return None
        of = where(frame, statistic=statistic, by=by)
        return in_papers_way(of.assign(**{by: of["group"], other: OVERALL}), tables)

    return rows


def by_quartile(tables: Tables) -> pd.DataFrame | None:
    """RF by quartile of coverage under the paper's names of its rows, a column per quartile."""
    frame = of_paper(faithfulness.COVERAGE_QUARTILES, model=OVERALL, task=OVERALL)(tables)
    if frame is None:
        return None
    of = where(frame, group=OVERALL)
    lines = []
    for key, rows in groups(of, ["by"]):
        line = {"row": f"By-{str(key['by']).capitalize()} (weighted)"}
        for row in rows.to_dict("records"):
            name = f"q{row['quartile']}"
            line |= {f"{name}{x.removeprefix('rf')}": row[x] for x in ("rf", "rf_low", "rf_high")}
            line |= {f"{name}_n": row["n_included"]}
        lines.append(line)
    return pd.DataFrame(lines)


def token_lengths(tables: Tables) -> pd.DataFrame | None:
    """Mean tokens of outputs with a normal 95 % interval."""
    frame = of_paper(texts.LENGTH_TABLE)(tables)
    if frame is None:
        return None
    half = NORMAL * numbers(frame["sd_tokens"]) / np.sqrt(numbers(frame["n"]))
    low, high = frame["mean_tokens"] - half, frame["mean_tokens"] + half
    return frame.assign(mean_tokens_low=low, mean_tokens_high=high)


def beside_steps(tables: Tables) -> pd.DataFrame | None:
    """RF step by step, and RF of whole blocks, under the paper's names of the two metrics."""
    frame = of_paper(steps.PER_STEP)(tables)
    if frame is None:
        return None
    metrics = {"Per-Step": ("rf_per_step", "n"), "Ours": ("rf_included", "n_included")}
    parts = []
    for metric, (rf, n) in metrics.items():
        names = {rf: "rf", f"{rf}_low": "rf_low", f"{rf}_high": "rf_high", n: "n"}
        own = only(frame, ["model", "task", *names]).rename(columns=names)
        parts.append(own.assign(metric=metric))
    return pd.concat(parts, ignore_index=True)


def agreement(tables: Tables) -> pd.DataFrame | None:
    """Agreement of reviewers, with the paper's word for a statistic where all verdicts are one."""
    frame = tables.get(REVIEWS.name)
    if frame is None:
        return None
    alike = frame["reason"] == CONSTANT
    names = ("fleiss_kappa", "krippendorff_alpha")
    return frame.assign(**{name: frame[name].astype(object).mask(alike, "NaN") for name in names})


def overall_agreement(tables: Tables) -> pd.DataFrame | None:
    """The statistics of all reviews together, one a row."""
    frame = tables.get(REVIEWS.name)
    if frame is None or frame.empty:
        return None
    row = where(frame, task=OVERALL).iloc[0]
    values = [row[name] for name in paper.OVERALL_METRICS]
    metrics = [*paper.OVERALL_METRICS.values()]
    return pd.DataFrame({"metric": metrics, "value": values}).assign(n=row["n"])


def by_source(tables: Tables) -> pd.DataFrame | None:
    """Counts of r′ that validation accepts and removes, by task and source without its version."""
    frame = tables.get(FILTERING.name)
    if frame is None or frame.empty:
        return None
    named = frame.assign(source=[one_source(source) for source in frame["source"]])
    return summed(named.to_dict("records"), ("task", "source"), [c.name for c in COUNTS])


def stance_words(tables: Tables) -> pd.DataFrame | None:
    """The stances of each task as the paper prints them."""
    frame = tables.get(benchmark.STANCES.name)
    if frame is None or frame.empty:
        return None
    names = {"Task": "task", "Primary Stance Set": "stances"}
    words = paper.stances_by_task(frame).rename(columns=names)
    return words.merge(summed(frame.to_dict("records"), ("task",)), on="task")


def one_source(source: str) -> str:
    """Name of a source data set without its version, and with one kind of separator."""
    return re.sub(r"_v\d+$", "", source.replace("/", "_"))
