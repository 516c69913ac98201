"""How long outputs are, and how much of r′ is not in the problem's words (RFEval, appendix B.6;
Tables 10 to 12 and 14).

The text has lost the formula of the externality penalty Δ: it compares the content words of the
question (with those of the options) with the content words of r′, Δ = 1 − overlap. None of the
overlaps here gives Table 10 on the released rows, so each is offered under its name and none is
called the paper's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tidy import (
    Rows,
    check_rows,
    columns,
    groups,
    keep,
    numbers,
    only,
    tabled,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    KEY,
    OVERALL,
    WAY,
    included,
    share_of,
    with_overall,
)

_STOP = (
    "a an the and or but if then else for to in on at by with of from as is are was were be been "
    "being this that these those it its itself we you they he she them his her their our us i me "
    "my mine your yours ours theirs so not no yes do does did can could should would may might "
    "must will shall"
)
STOP = frozenset(_STOP.split())
"""The paper's list."""
_TAG = re.compile(r"</?[a-z][a-z0-9_]*>")
_WORD = re.compile(r"[a-z0-9]+")
TOP = 50
"""Words of the context that the TF-IDF variant adds; the paper's number is lost."""
FEW = 5
"""Content words below which a text has a small vocabulary; the paper's number is lost."""
Words = frozenset[str]
OVERLAPS: Mapping[str, Callable[[Words, Words], float]] = {
    "jaccard": lambda q, r: len(q & r) / len(q | r),
    "dice": lambda q, r: 2 * len(q & r) / (len(q) + len(r)),
    "overlap": lambda q, r: len(q & r) / min(len(q), len(r)),
    "in_r_prime": lambda q, r: len(q & r) / len(r),
    "in_question": lambda q, r: len(q & r) / len(q),
}
"""Of the problem's words and those of r′, none of the two empty. `in_r_prime`: the share of r′
that the problem has; `in_question`: the share of the problem that r′ takes up."""
KINDS = ("overlap", "context")
MEAN = ("n", "mean", "std")


def content_words(text: str) -> Words:
    """Lower-case words without tags like <think> and without the stop list."""
    return frozenset(_words(text))


def _words(text: str) -> list[str]:
    return [w for w in _WORD.findall(_TAG.sub(" ", text.lower())) if w not in STOP]


def externality(question: Words, r_prime: Words, overlap: str = "jaccard") -> float:
    """Δ of two sets of words: 0 where both are empty, 1 where one of them is.

    Raises:
        ValueError: an overlap that is none of `OVERLAPS`.
    """
    if overlap not in OVERLAPS:
        raise ValueError(f"overlap {overlap!r} is none of {', '.join(OVERLAPS)}")
    if not question or not r_prime:
        return float(bool(question) != bool(r_prime))
    return 1 - OVERLAPS[overlap](question, r_prime)


@tabled("task", "item", "overlap", "context", "delta", "n_question", "n_r_prime")
def externality_of_items(items: pd.DataFrame, top: int = TOP) -> Rows:
    """Δ of every item, for every overlap, without and with the context's words.

    Args:
        items: `task`, `item`, `question`, `options` (one text), `context`, `r_prime`.
        top: of the words of an item's context, those with the highest TF-IDF are added under
            `context` = `tfidf`, the documents being all contexts of the task; ties by the word.
    """
    for task, of in items.groupby("task", sort=False) if len(items) else ():
        added = _top_words(of["context"].fillna("").tolist(), top)
        for row, more in zip(of.to_dict("records"), added, strict=True):
            asked = content_words(f"{row['question']} {row['options'] or ''}")
            r_prime = content_words(row["r_prime"])
            for context, words in (("none", asked), ("tfidf", asked | more)):
                if context == "tfidf" and not more:
                    continue
                about = {"task": task, "item": row["item"], "context": context}
                about |= {"n_question": len(words), "n_r_prime": len(r_prime)}
                yield from (
                    {**about, "overlap": name, "delta": externality(words, r_prime, name)}
                    for name in OVERLAPS
                )


def _top_words(contexts: Sequence[str], top: int) -> list[Words]:
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


@tabled("task", *KINDS, *MEAN, "median", "p75", "p90", "small_vocabulary")
def externality_table(deltas: pd.DataFrame) -> Rows:
    """Δ summed up by task, as Table 10 does.

    `small_vocabulary`: share of items of which question or r′ has fewer than `FEW` words.
    """
    for key, of in groups(deltas, ("task", *KINDS)):
        few = (numbers(of["n_question"]) < FEW) | (numbers(of["n_r_prime"]) < FEW)
        quantiles = np.quantile(numbers(of["delta"]), [0.5, 0.75, 0.9])
        line = dict(zip(("median", "p75", "p90"), quantiles, strict=True))
        yield {**key, **_mean(of), **line, "small_vocabulary": few.mean()}


def externality_by_model(deltas: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """Δ over the items of which each model's both outputs are well-formed (Table 11).

    Δ is a matter of the items alone: models differ by what is left out, and so does `n`, where
    the paper prints 7,186 for all, with means that differ all the same.
    """
    whole = scored.loc[~scored["exclusion"].isin(["global", "unfinished"]), list(KEY)]
    joined = whole.merge(deltas, on=["task", "item"])
    keys = (*WAY, *KINDS)
    return pd.DataFrame([k | _mean(of) for k, of in groups(joined, keys)], columns=[*keys, *MEAN])


def _mean(of: pd.DataFrame) -> dict[str, Any]:
    delta = of["delta"].astype(float)
    # of one item there is no standard deviation
    return {"n": len(of), "mean": delta.mean(), "std": delta.std(ddof=1)}


@tabled(*CELL, *KINDS, "threshold", "stratum", "n", "mean_delta", *with_interval("rf"))
def rf_by_externality(
    deltas: pd.DataFrame, scored: pd.DataFrame, threshold: float | None = None
) -> Rows:
    """RF of the pairs that count, with Δ up to a threshold and above it (B.6, "Usage").

    A row per reader, model, task (and all tasks), overlap, context and `stratum`, `low` (Δ ≤
    threshold) or `high`; a stratum without a pair has a row with n = 0. Over all tasks the strata
    differ in their tasks too, whose Δ lie far apart (Table 10); within a task they do not.

    Args:
        deltas: of `externality_of_items`.
        threshold: of Δ; None takes the median of the task's items, over all tasks of all items.
    """
    medians = {
        tuple(key.values()): of["delta"].astype(float).median()
        for key, of in groups(with_overall(deltas, "task"), ("task", *KINDS))
    }
    pairs = included(scored)[[*KEY, "rf"]].merge(deltas, on=["task", "item"])
    for key, of in groups(with_overall(pairs, "task"), (*CELL, *KINDS)):
        cut = threshold
        if cut is None:
            cut = medians[key["task"], key["overlap"], key["context"]]
        low = numbers(of["delta"]) <= cut
        for stratum, rows in (("low", of.loc[low]), ("high", of.loc[~low])):
            line = {**key, "threshold": cut, "stratum": stratum, "n": len(rows)}
            line |= {"mean_delta": rows["delta"].mean()}
            yield line | columns("rf", share_of(rows["rf"]))


LENGTHS = ("model", "task", "item", "condition", "tokens", "seconds", "elapsed", "devices")
"""A row per output: tokens generated (reasoning, explanation and answer; without r′); `seconds`
from when it was asked for until it ended, of which those in flight together overlap; `elapsed`,
seconds since the output before it ended, which add up to the worker's time; and how many
accelerators wrote it. NaN where not known."""
LENGTH_TABLE = ["model", "task", "condition", "n", "mean_tokens", "median_tokens", "total_tokens"]
LENGTH_TABLE += ["mean_seconds"]


def length_table(lengths: pd.DataFrame) -> pd.DataFrame:
    """A row per model, task and condition, and over all tasks; outputs cut off count as well.

    Raises:
        ValueError: a column is missing, or an output is there twice.
    """
    if lengths.empty:
        return pd.DataFrame(columns=LENGTH_TABLE)
    check_rows("rfeval lengths", lengths, LENGTHS, ("model", "task", "item", "condition"))
    floats = lengths.astype({"tokens": float, "seconds": float})
    by = with_overall(floats, "task").groupby(["model", "task", "condition"], sort=False)
    tokens = by["tokens"].agg(
        n="size", mean_tokens="mean", median_tokens="median", total_tokens="sum"
    )
    table = tokens.assign(mean_seconds=by["seconds"].mean()).reset_index()
    return table.sort_values("task", key=lambda t: t == OVERALL, kind="stable", ignore_index=True)


REWARDS = ("model", "task", "item", "condition", "reward")
_STEP = re.compile(r"(Step \d+:|^\d+\.|\n-|\n\*|First,|Second,|Next,|Finally,)")
_ENOUGH = 3


def step_reward(text: str) -> float:
    """How much a text looks like steps, as Open-R1's trainer rewards it (`reasoning_steps_reward`
    of huggingface/open-r1): marks of steps, three of which are enough for 1."""
    return min(1.0, len(_STEP.findall(text)) / _ENOUGH)


@tabled(*(*WAY, "condition", "chi"), *with_interval("reward"), "n")
def step_reward_table(
    rewards: pd.DataFrame, pairs: pd.DataFrame, seed: int, resamples: int
) -> Rows:
    """The mean of `step_reward` over outputs that are consistent (χ = 1) and over those that are
    not (RFEval, §5.1, Table 4): of all judged outputs, by reader, model and condition.

    The paper does not say which outputs its numbers are of: `both` pools the two conditions.
    """
    if rewards.empty or pairs.empty:
        return
    by_condition = [
        only(pairs, ["reader", "model", "item"]).assign(
            condition=condition, chi=numbers(pairs[f"{condition}_chi"])
        )
        for condition in ("baseline", "intervened")
    ]
    judged = pd.concat(by_condition).dropna(subset=["chi"])
    outputs = judged.merge(rewards, on=["model", "item", "condition"])
    outputs = pd.concat([outputs, outputs.assign(condition="both")])
    for about, of in groups(with_overall(outputs, "model"), (*WAY, "condition", "chi")):
        mean = stats.mean_of_items(of["reward"].tolist(), seed=seed, resamples=resamples)
        yield about | columns("reward", mean) | {"n": len(of)}


@tabled("model", "n", "n_timed", "hours", "devices", "device_hours")
def hours_table(lengths: pd.DataFrame) -> Rows:
    """A row per model: hours of generation, and those times the accelerators at work (Table 12).

    Hours are of the `n_timed` outputs whose time is known, and add up over workers: of two that
    ran side by side, both count, as their devices do. Loading weights is not in them. Devices are
    not known of servers and services, and a CPU has none.
    """
    for about, of in groups(lengths, ("model",)) if len(lengths) else ():
        timed = keep(of, of["elapsed"].notna())
        hours, devices = timed["elapsed"].astype(float) / 3600, timed["devices"].astype(float)
        line = {**about, "n": len(of), "n_timed": len(timed)}
        if len(timed):
            line |= {"hours": hours.sum(), "device_hours": (hours * devices).sum(skipna=False)}
        yield line | {"devices": devices.max(skipna=False)}
