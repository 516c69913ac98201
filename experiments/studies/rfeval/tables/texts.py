"""Lengths of outputs, and how much of r′ is not in the problem's words (RFEval, appendix B.6;
Tables 10 to 12 and 14).

The text has lost the formula of the externality penalty Δ, which compares the content words of the
question (with those of the options) with the content words of r′. Δ is taken as 1 − their Jaccard
index: two empty texts overlap whole and one empty text not at all, whichever of the two it is, as
the paper has it. It does not give Table 10 on the released rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Count, Lines, Mask, Mean, Numbers, one_row
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, pooled
from faithscope.experiments.analysis.tidy import check_rows, columns, keep, numbers, only
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.faithfulness import RF
from faithscope.experiments.studies.rfeval.tables.frames import CONDITION, KEY, READER, included

_STOP = (
    "a an the and or but if then else for to in on at by with of from as is are was were be been "
    "being this that these those it its itself we you they he she them his her their our us i me "
    "my mine your yours ours theirs so not no yes do does did can could should would may might "
    "must will shall"
)
STOP = frozenset(_STOP.split())
"""The paper's list of stop words."""
_TAG = re.compile(r"</?[a-z][a-z0-9_]*>")
_WORD = re.compile(r"[a-z0-9]+")
TOP = 50
"""Words of the context that the TF-IDF variant adds; the paper's number is lost."""
FEW = 5
"""Content words below which a text has a small vocabulary; the paper's number is lost."""
Words = frozenset[str]
DELTAS = ("task", "item", "context", "delta", "n_question", "n_r_prime", "threshold")


def content_words(text: str) -> Words:
    """Words of a text in lower case, without tags like <think> and without the stop list."""
    return frozenset(_words(text))


def _words(text: str) -> list[str]:
    return [w for w in _WORD.findall(_TAG.sub(" ", text.lower())) if w not in STOP]


def externality(question: Words, r_prime: Words) -> float:
    """Δ of two sets of words, 1 − their Jaccard index: 0 where both are empty, 1 where one is."""
    whole = question | r_prime
    return 1 - len(question & r_prime) / len(whole) if whole else 0.0


def externality_of_items(
    items: pd.DataFrame, threshold: float | None = None, top: int = TOP
) -> pd.DataFrame:
    """Externality Δ of every item (`DELTAS`), without and with the context's words.

    Args:
        items: `task`, `item`, `question`, `options` (one text), `context`, `r_prime`.
        threshold: the Δ that parts low from high; None is kept as NaN, and the median is taken.
        top: of the words of an item's context, those with the highest TF-IDF are added under
            `context` = `tfidf`, the documents being all contexts of the task; ties by the word.
    """
    deltas: list[dict[str, Any]] = []
    for task, of in items.groupby("task", sort=False) if len(items) else ():
        added = _top_words(of["context"].fillna("").tolist(), top)
        for row, more in zip(of.to_dict("records"), added, strict=True):
            asked = content_words(f"{row['question']} {row['options'] or ''}")
            r_prime = content_words(row["r_prime"])
            for context, words in (("none", asked), ("tfidf", asked | more)):
                if context == "tfidf" and not more:
                    continue
                about = {"task": task, "item": row["item"], "context": context}
                about |= {"delta": externality(words, r_prime), "threshold": threshold}
                deltas.append(about | {"n_question": len(words), "n_r_prime": len(r_prime)})
    return pd.DataFrame(deltas, columns=list(DELTAS)).astype({"threshold": float})


def _top_words(contexts: Sequence[str], top: int) -> list[Words]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(_words(text) for text in contexts):
        return [frozenset()] * len(contexts)
    vectorizer = TfidfVectorizer(analyzer=cast(Any, _words))
    weights = vectorizer.fit_transform(contexts).toarray()
    names = np.array(vectorizer.get_feature_names_out())
    top_words = []
    for row in weights:
        order = np.lexsort((names, -row))[:top]
        top_words.append(frozenset(str(names[i]) for i in order if row[i] > 0))
    return top_words


CONTEXT = Column(
    "context", meaning="Whether words of the context count as the question's (tfidf) or not (none)."
)
DELTA_CELLS = (
    Count("n", meaning="Items of the row."),
    Mean("mean", "delta", meaning="Mean of the externality Δ over items."),
    Mean(
        "std",
        "delta",
        label="standard deviation",
        meaning="Sample standard deviation of the externality Δ over items.",
        statistic="std",
    ),
)
QUANTILES = (
    Column("median", meaning="Median of the externality Δ over items."),
    Column("p75", "75th percentile", "75th percentile of the externality Δ over items."),
    Column("p90", "90th percentile", "90th percentile of the externality Δ over items."),
)


def _quantiles(rows: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    values = np.quantile(numbers(rows["delta"]), [0.5, 0.75, 0.9])
    return dict(zip((column.name for column in QUANTILES), values, strict=True))


EXTERNALITY = Table(
    "rf_externality",
    "externality",
    ("task", CONTEXT),
    (
        *DELTA_CELLS,
        Numbers(QUANTILES, _quantiles),
        Mean(
            "small_vocabulary",
            lambda items: items[["n_question", "n_r_prime"]].min(axis=1) < FEW,
            label="few words",
            meaning="Share of items of which question or r′ has fewer than five content words.",
        ),
    ),
)
"""Externality Δ by task (Table 10)."""


def of_well_formed(deltas: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Δ of each pair whose outputs are both well-formed."""
    whole = keep(pairs, ~pairs["exclusion"].isin(["global", "unfinished"]))
    return whole[list(KEY)].merge(deltas, on=["task", "item"])


EXTERNALITY_BY_MODEL = Table(
    "rf_externality_by_model",
    ("externality", "pairs"),
    (READER, "model", CONTEXT),
    DELTA_CELLS,
    prepare=of_well_formed,
)
"""Externality Δ over the items for which both outputs of a model are well-formed (Table 11).

Δ is a matter of the items alone: models differ by what is left out, and so does `n`, where the
paper prints 7,186 for all, with means that differ all the same.
"""


def with_thresholds(deltas: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs that count, by task and over all tasks, with Δ and the threshold of Δ.

    A threshold that is not given is the median of the task's items, over all tasks of all items.
    """
    every = pooled(deltas, "task")
    by = ["task", "context"]
    medians = every.groupby(by, as_index=False).agg(median=("delta", "median"))
    counting = included(pairs)[[*KEY, "rf"]].assign(exclusion="")
    whole = pooled(counting.merge(deltas, on=["task", "item"]), "task").merge(medians, on=by)
    return whole.assign(threshold=whole["threshold"].fillna(whole["median"]))


STRATUM_CELLS = (
    Count("n", meaning="Pairs that count in the stratum."),
    Mean("mean_delta", "delta", meaning="Mean externality Δ of the pairs."),
    RF,
)


def _strata(rows: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    low = rows["delta"] <= rows["threshold"]
    for stratum, of in (("low", keep(rows, low)), ("high", keep(rows, ~low))):
        line: dict[str, Any] = {"threshold": rows["threshold"].iloc[0], "stratum": stratum}
        yield line | one_row(STRATUM_CELLS, of, how)


BY_EXTERNALITY_COLUMNS = (
    Column("threshold", meaning="The externality Δ that parts low from high."),
    Column("stratum", meaning="Whether Δ is up to the threshold (low) or above it (high)."),
    *(column for cell in STRATUM_CELLS for column in cell.columns),
)
BY_EXTERNALITY = Table(
    "rf_by_externality",
    ("externality", "pairs"),
    (READER, "model", "task", CONTEXT),
    lines=[Lines(BY_EXTERNALITY_COLUMNS, _strata)],
    prepare=with_thresholds,
)
"""RF of the pairs that count, with Δ up to a threshold and above it (B.6, "Usage").

A stratum without a pair has a row with n = 0. Over all tasks the strata differ in their tasks too,
whose Δ lie far apart (Table 10); within a task they do not.
"""


LENGTHS = ("model", "task", "item", "condition", "tokens", "seconds", "elapsed", "devices")
"""A row per output: tokens generated (reasoning, explanation and answer; without r′); `seconds`
from when it was asked for until it ended, where outputs in flight together overlap; `elapsed`,
seconds since the output before it ended, which add up to the worker's time; and how many
accelerators wrote it. NaN where not known."""


def _outputs_once(lengths: pd.DataFrame) -> pd.DataFrame:
    check_rows("rfeval lengths", lengths, LENGTHS, LENGTHS[:4])
    return lengths


LENGTH_TABLE = Table(
    "rf_lengths",
    "lengths",
    ("model", "task", CONDITION),
    (
        Count("n", meaning="Outputs, those that were cut off as well."),
        Mean("mean_tokens", "tokens", meaning="Mean tokens of an output."),
        Mean("median_tokens", "tokens", meaning="Median tokens of an output.", statistic="median"),
        Mean(
            "sd_tokens",
            "tokens",
            label="standard deviation of tokens",
            meaning="Sample standard deviation of the tokens of an output.",
            statistic="std",
        ),
        Mean(
            "total_tokens",
            "tokens",
            label="tokens in all",
            meaning="Tokens of all outputs.",
            statistic="sum",
        ),
        Mean(
            "mean_seconds",
            "seconds",
            label="seconds, mean",
            meaning="Seconds from asking for an output until its end, mean over outputs; those in "
            "flight together overlap.",
        ),
    ),
    prepare=_outputs_once,
    pool=("task",),
)
"""Tokens and seconds of outputs by model, task and condition, and over all tasks (Table 14)."""


REWARDS = ("model", "task", "item", "condition", "reward")
_STEP = re.compile(r"(Step \d+:|^\d+\.|\n-|\n\*|First,|Second,|Next,|Finally,)")
_ENOUGH = 3


def step_reward(text: str) -> float:
    """Reward of a text for looking like steps, as Open-R1's trainer gives it
    (`reasoning_steps_reward` of huggingface/open-r1): marks of steps, three of which are enough for
    1."""
    return min(1.0, len(_STEP.findall(text)) / _ENOUGH)


def rewards_of_judged(rewards: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The reward of every judged output with its χ, by condition and for both conditions."""
    of_outputs = [
        only(pairs, ["reader", "model", "item"]).assign(condition=c, chi=pairs[f"{c}_chi"])
        for c in CONDITIONS
    ]
    judged = pd.concat(of_outputs).dropna(subset=["chi"])
    outputs = judged.merge(rewards, on=["model", "item", "condition"])
    return pd.concat([outputs, outputs.assign(condition="both")])


REWARD = Column(
    "reward",
    "reward for steps",
    "Open-R1’s: marks of steps, three are enough for 1.",
    interval=True,
)


def _mean_reward(rows: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    values = rows["reward"].tolist()
    of = {"units": how.units(rows), "seed": how.seed, "resamples": how.resamples}
    mean = stats.mean_of_items(values, **of)
    return columns("reward", mean)


STEP_REWARD = Table(
    "rf_step_reward",
    ("rewards", "pairs"),
    (
        READER,
        "model",
        CONDITION,
        Column("chi", "χ", "Whether the output is consistent, as the reader reads it."),
    ),
    (Numbers((REWARD,), _mean_reward), Count("n", meaning="Judged outputs.")),
    prepare=rewards_of_judged,
    pool=("model",),
)
"""The mean of `step_reward` over outputs that are consistent (χ = 1) and over those that are not
(RFEval, §5.1, Table 4): of all judged outputs, by reader, model and condition.

The paper does not say which outputs its numbers are of: `both` pools the two conditions.
"""


TIMED: Mask = lambda outputs: outputs["elapsed"].notna()  # noqa: E731
"""Mask of the outputs whose time is known."""


def _hours(rows: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    timed = keep(rows, TIMED(rows))
    if timed.empty:
        return {}
    hours, devices = numbers(timed["elapsed"]) / 3600, numbers(timed["devices"])
    totals = {"hours": hours.sum(), "device_hours": (hours * devices).sum()}
    return totals | {"devices": devices.max()}


HOURS = Table(
    "rf_hours",
    "lengths",
    ("model",),
    (
        Count("n", meaning="Outputs."),
        Count("n_timed", TIMED, "of known time", "Outputs whose time is known: hours are of them."),
        Numbers(
            (
                Column("hours", meaning="Hours of generation, of the outputs whose time is known."),
                Column("devices", "accelerators", "Most that wrote an output; empty if unknown."),
                Column("device_hours", "hours of accelerators", "Hours of all accelerators."),
            ),
            _hours,
        ),
    ),
)
"""Hours of generation, and these times the accelerators at work, a row per model (Table 12).

Hours add up over workers: of two that ran side by side, both count, as their devices do. Loading
weights is not in them. Devices are not known of servers and services, and a CPU has none.
"""
TABLES = (EXTERNALITY, EXTERNALITY_BY_MODEL, BY_EXTERNALITY, LENGTH_TABLE, STEP_REWARD, HOURS)
