"""Our rows for printed tables of the RFEval paper whose shape is another, or which pool."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published.paper import Selection, Tables
from faithscope.experiments.analysis.tables import OVERALL, pooled
from faithscope.experiments.analysis.tidy import groups, keep, numbers, only, rows, summed, where
from faithscope.experiments.config.api import same_model
from faithscope.experiments.studies.rfeval.items import LETTERS, TASKS
from faithscope.experiments.studies.rfeval.paper_names import OVERALL_METRICS
from faithscope.experiments.studies.rfeval.tables import faithfulness
from faithscope.experiments.studies.rfeval.tables.benchmark import STANCES_BETWEEN
from faithscope.experiments.studies.rfeval.tables.filtering import COUNTS
from faithscope.experiments.studies.rfeval.tables.reviews import CONSTANT

JUDGE = "api:openai/o3-2025-04-16"
EXCLUDED = ("Qwen/Qwen3-8B", "paper_review")
"""The model and the task that the paper excludes from all that it pools (appendix C.4)."""
NORMAL = 1.959964
"""97.5 % point of the normal distribution, for 95 % intervals of means."""


def as_in_paper(models: Collection[str] | None = None, **way: str) -> Selection:
    """Selection of our rows by the paper's judge (or the first reader, where a run has another
    judge), without those that pool over other models or tasks than the paper's, or over other
    exclusions.

    Args:
        models: our names of the models that the paper pools; None where
            `Published.pooled_over` has them.
        way: values of further columns that the paper's rows have.
    """

    def mask(frame: pd.DataFrame, tables: Tables) -> np.ndarray:
        readers = list(dict.fromkeys(frame["reader"])) if "reader" in frame else []
        judges = [name for name in readers if same_model(name, JUDGE)]
        reader = {"reader": (judges or readers)[0]} if readers else {}
        # a table without one of these keys pools over it
        of = frame.assign(**{key: OVERALL for key in ("model", "task") if key not in frame})
        return rows_with(**way, **reader)(frame) & _pools_alike(of, tables, models)

    return mask


def _pools_alike(frame: pd.DataFrame, tables: Tables, models: Collection[str] | None) -> np.ndarray:
    """Mask of the rows whose `model` and `task` pool over what the paper pools over."""
    waterfall = tables[faithfulness.WATERFALL.name]
    cells = keep(waterfall, (waterfall["model"] != OVERALL) & (waterfall["task"] != OVERALL))
    pairs = zip(cells["model"], cells["task"], strict=True)
    to_exclude = np.array([pair == EXCLUDED for pair in pairs], dtype=bool)
    odd = keep(cells, (cells["n_global"] == cells["n_total"]) != to_exclude)
    whole = {key["model"] for key, of in groups(cells, ["model"]) if {*of["task"]} == {*TASKS}}
    whole -= {*odd["model"]}
    there = {*cells["model"]}

    def alike(model: str, task: str) -> bool:
        if model != OVERALL:
            return task != OVERALL or model in whole
        pooled = whole >= there if task == OVERALL else task not in {*odd["task"]}
        return pooled and (models is None or there == {*models})

    return np.array(list(map(alike, frame["model"], frame["task"])), dtype=bool)


def of_group(statistic: str, by: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Maps a table of shares to those of the values of a statistic, by model or by task."""

    def shares(table: pd.DataFrame) -> pd.DataFrame:
        of = where(table, statistic=statistic, by=by)
        return of.assign(**{by: of["group"]})

    return shares


def items_by_task(items: pd.DataFrame) -> pd.DataFrame:
    """Items of each task and of all, with the sources of a task and the items of each."""
    whole, parts = where(items, source=OVERALL), keep(items, items["source"] != OVERALL)
    sources = {
        key["task"]: ", ".join(f"{row['source']} ({row['n']})" for row in rows(of))
        for key, of in groups(parts, ["task"])
        if key["task"] != OVERALL
    }
    return whole.assign(sources=[sources.get(task) for task in whole["task"]])


def by_quartile(quartiles: pd.DataFrame) -> pd.DataFrame:
    """RF by quartile of coverage under the paper's names of its rows, a column per quartile."""
    lines = []
    for key, of in groups(where(quartiles, group=OVERALL), ["reader", "by"]):
        line = key | {"row": f"By-{str(key['by']).capitalize()} (weighted)"}
        for row in rows(of):
            name = f"q{row['quartile']}"
            line |= {f"{name}{x.removeprefix('rf')}": row[x] for x in ("rf", "rf_low", "rf_high")}
            line |= {f"{name}_n": row["n_included"]}
        lines.append(line)
    return pd.DataFrame(lines)


def token_lengths(lengths: pd.DataFrame) -> pd.DataFrame:
    """Mean tokens of outputs with a normal 95 % interval."""
    half = NORMAL * numbers(lengths["sd_tokens"]) / np.sqrt(numbers(lengths["n"]))
    low, high = lengths["mean_tokens"] - half, lengths["mean_tokens"] + half
    return lengths.assign(mean_tokens_low=low, mean_tokens_high=high)


def beside_steps(per_step: pd.DataFrame) -> pd.DataFrame:
    """RF step by step, and RF of whole blocks, under the paper's names of the two metrics.

    "Ours" is RF of all pairs that count, as in Table 2 and as the paper prints it; a third metric
    has RF of whole blocks for the pairs that were judged step by step.
    """
    metrics = {"Per-Step": ("rf_per_step", "n"), "Ours": ("rf_included", "n_included")}
    metrics |= {"Ours, the same pairs": ("rf", "n")}
    parts = []
    for metric, (rf, n) in metrics.items():
        names = {rf: "rf", f"{rf}_low": "rf_low", f"{rf}_high": "rf_high", n: "n"}
        own = only(per_step, ["reader", "model", "task", *names]).rename(columns=names)
        parts.append(own.assign(metric=metric))
    return pd.concat(parts, ignore_index=True)


def agreement(reviews: pd.DataFrame) -> pd.DataFrame:
    """Agreement of reviewers, with the paper's word for a statistic where all verdicts are one."""
    alike = reviews["reason"] == CONSTANT
    names = ("fleiss_kappa", "krippendorff_alpha")
    return reviews.assign(
        **{name: reviews[name].astype(object).mask(alike, "NaN") for name in names}
    )


def overall_agreement(reviews: pd.DataFrame) -> pd.DataFrame:
    """The statistics of all reviews together, one a row."""
    row = where(reviews, task=OVERALL).iloc[0]
    values = [row[name] for name in OVERALL_METRICS]
    metrics = [*OVERALL_METRICS.values()]
    return pd.DataFrame({"metric": metrics, "value": values}).assign(n=row["n"])


def by_source(filtering: pd.DataFrame) -> pd.DataFrame:
    """Counts of r′ that validation accepts and removes, by task and source without its version."""
    named = filtering.assign(source=[one_source(source) for source in filtering["source"]])
    return summed(named.to_dict("records"), ("task", "source"), [c.name for c in COUNTS])


def by_task(filtering: pd.DataFrame) -> pd.DataFrame:
    """Counts of r′ that validation accepts and removes, by task and of all."""
    return summed(rows(pooled(filtering, "task")), ("task",), [c.name for c in COUNTS])


def stance_words(stances: pd.DataFrame) -> pd.DataFrame:
    """The stances of each task without "I don't know", which all have. More than three letters are
    named by the first three, as the paper names them."""
    lines = []
    for key, of in groups(stances, ["task"]):
        primary = [stances.split(STANCES_BETWEEN)[:-1] for stances in of["stances"]]
        shown = (
            [*names[:3], "…"] if len(names) > 3 and set(names) <= set(LETTERS) else names
            for names in primary
        )
        sets = dict.fromkeys(", ".join(names) for names in shown)
        lines.append(key | {"stances": " or ".join(sets), "n": len(of)})
    return pd.DataFrame(lines)


def one_source(source: str) -> str:
    """Name of a source data set without its version, and with one kind of separator."""
    return re.sub(r"_v\d+$", "", source.replace("/", "_"))
