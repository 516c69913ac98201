"""Signs inside a model that tell two kinds of pairs apart, among pairs that are comparable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu, norm

from faithscope.experiments.analysis.cells import Lines
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate, wilson
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, keep, numbers
from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    COMPARED,
    FREE_SIGNALS,
    LENS_SIGNALS,
    TRACE_SIGNALS,
)
from faithscope.experiments.studies.rfeval.metrics.frames import READER, REASON

_ATTENTION = (
    *(f"{d}{region}" for d in ("", "density_") for region in COMPARED),
    "own_against_r_prime",
)
FAMILIES: dict[str, tuple[str, ...]] = {
    "trace": (*TRACE_SIGNALS, "baseline_p_final", "baseline_confidence", *FREE_SIGNALS),
    "attention": tuple(f"{place}_{x}" for place in ("asked", "written") for x in _ATTENTION),
    "lens": (
        *(*LENS_SIGNALS, "asked_settled_depth", "asked_option_settled_depth"),
        "written_settled_depth",
    ),
}
"""What a signal is read from -> the signals. `baseline_p_final` is the probability that the model's
own reasoning, without r′, leaves the option of r′, `baseline_confidence` that of its top option."""
SIGNALS = tuple(name for names in FAMILIES.values() for name in names)
FAMILY = {signal: family for family, names in FAMILIES.items() for signal in names}
OPEN = ("self_correcting", "inert")
"""Behaviours that reject r′ in so many words. `inert` is one: its chain holds though reasoning and
answer are as without r′, which they can be only where a flaw in r′ was named."""


class Contrast(NamedTuple):
    """Two kinds of pairs, and the signals that may tell them apart."""

    column: str
    positive: tuple[Any, ...]
    negative: tuple[Any, ...]
    signals: tuple[str, ...]


FOLLOWING = ("r_prime_effect", "led_share", "asked_own_against_r_prime", "lens_suppressed")
"""Signals of following r′: what it adds to the probability of its option, whether this option leads
while the model writes, where the model looks when it answers, and whether an earlier layer has the
option of r′."""
BEFORE = ("p_before", "baseline_confidence")
"""Signals without r′: how likely its option is, and how sure the model is of its own."""
CONTRASTS = {
    "silent_vs_self_correcting": Contrast(
        "behaviour", ("silently_correcting",), ("self_correcting",), (*FOLLOWING, "turn_own")
    ),
    "silent_vs_open": Contrast(
        "behaviour", ("silently_correcting",), OPEN, (*FOLLOWING, "turn_own")
    ),
    "misled_vs_corrected": Contrast(
        "behaviour",
        ("misled",),
        ("silently_correcting", *OPEN),
        (*BEFORE, "r_prime_effect", "asked_own_against_r_prime", "lens_suppressed"),
    ),
    "broken_vs_consistent": Contrast("intervened_chi", (0.0,), (1.0,), FOLLOWING),
    "inert_vs_influenced": Contrast("kappa", (0.0,), (1.0,), (*BEFORE, *FOLLOWING)),
    "unfaithful_vs_faithful": Contrast("rf", (0.0,), (1.0,), FOLLOWING),
}
"""Kinds of pairs to be told apart, with their signals. Signals are chosen by what they mean before
any is computed; none is searched for. `misled_vs_corrected` has no signal of the end of the trace,
which would tell the two apart nearly by construction, for the answer follows the text."""


def auroc_within(
    clusters: np.ndarray,
    strata: np.ndarray,
    positive: Bool[np.ndarray, " rows"],
    score: Float[np.ndarray, " rows"],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Area under the ROC curve over pairs of rows of one stratum, ties counting half.

    The areas of the strata weighted by their pairs of a positive and a negative row; with one
    stratum, the plain area. Its variance is DeLong's (1988) with the components of a cluster added
    up first (Obuchowski 1997), the interval normal in log-odds. Where every pair agrees there is no
    variance to go by: then the interval is Wilson's, of as many trials as the rarer kind has
    clusters. Where no pair differs there is none either: the area is .5, its bounds NaN.

    Args:
        clusters: (rows,) rows of one are not independent: those of one item.
        strata: (rows,) pairs are of rows that are equal here.

    Returns:
        NaN where no stratum has rows of both kinds; `n` is the number of rows.
    """
    won, pairs = np.zeros(len(score)), np.zeros(len(score))
    for stratum in np.unique(strata):
        high, low = (np.flatnonzero((strata == stratum) & k) for k in (positive, ~positive))
        if len(high) and len(low):
            won[high] = _beaten(score[high], score[low])
            won[low] = _beaten(-score[low], -score[high])
            pairs[high], pairs[low] = len(low), len(high)
    whole = pairs.sum() / 2
    if not whole:
        return Estimate(math.nan, math.nan, math.nan, len(score))
    area = float(won.sum() / 2 / whole)
    distinct, codes = np.unique(clusters, return_inverse=True)
    if area in (0.0, 1.0):
        fewest = min(len(np.unique(codes[(pairs > 0) & k])) for k in (positive, ~positive))
        bounds = wilson(round(area * fewest), fewest, confidence)
        return Estimate(area, bounds.low, bounds.high, len(score))
    moved = np.bincount(codes, weights=(won - area * pairs) / whole)
    spread = math.sqrt(float((moved**2).sum()) * len(distinct) / max(1, len(distinct) - 1))
    if not spread:
        return Estimate(area, math.nan, math.nan, len(score))
    reach = float(norm.ppf(0.5 + confidence / 2)) * spread / (area * (1 - area))
    low, high = (float(expit(logit(area) + side * reach)) for side in (-1, 1))
    return Estimate(area, low, high, len(score))


def rank_sum_p(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided p-value of the Mann-Whitney test; NaN where a side is empty or nothing varies."""
    if not len(one) or not len(other) or not np.ptp(np.concatenate([one, other])):
        return math.nan
    return float(mannwhitneyu(one, other, alternative="two-sided").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction, the same as statsmodels' `multipletests`, which collects the interpreter's
    garbage at every call and so takes minutes for thousands of calls."""
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(adjusted, 1)
    return corrected.tolist()


def _beaten(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Counts for each score how many of the others it exceeds; a tie counts half."""
    ranked = np.sort(others)
    below, upto = (np.searchsorted(ranked, scores, side=side) for side in ("left", "right"))
    return (below + upto) / 2


def _sign(members: pd.DataFrame, positive: np.ndarray, signal: str) -> dict[str, Any]:
    known = members[signal].notna().to_numpy()
    score, items, strata = (numbers(members.loc[known, x]) for x in (signal, "_item", "_stratum"))
    truth = positive[known]
    everywhere = auroc_within(items, np.zeros(len(score)), truth, score)
    within = auroc_within(items, strata, truth, score)
    reason = ""
    if not truth.any():
        reason = "no_values" if positive.any() else "no_positive"
    elif truth.all():
        reason = "no_negative" if positive.all() else "no_values"
    elif not np.ptp(score):
        reason = "no_variation"
    elif math.isnan(within.value):
        reason = "no_pairs_within"
    several = len(np.unique(items)) < len(items)
    line: dict[str, Any] = {"n_positive": int(truth.sum()), "n_negative": int((~truth).sum())}
    line |= columns("auroc", everywhere) | columns("auroc_within", within)
    line["p"] = math.nan if several else rank_sum_p(score[truth], score[~truth])
    return line | {"p_holm": math.nan, "reason": reason}


def with_strata(inside: pd.DataFrame) -> pd.DataFrame:
    """The pairs with a number for their model and task, and one for their item."""
    strata = inside.groupby(["model", "task"], sort=False).ngroup()
    return inside.assign(_stratum=strata, _item=pd.factorize(inside["item"])[0])


def _signs(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for name, contrast in CONTRASTS.items():
        kinds = (*contrast.positive, *contrast.negative)
        members = keep(pairs, pairs[contrast.column].isin(kinds))
        positive = members[contrast.column].isin(contrast.positive).to_numpy()
        signs: list[dict[str, Any]] = [
            {"contrast": name, "family": FAMILY[signal], "signal": signal}
            | _sign(members, positive, signal)
            for signal in contrast.signals
        ]
        tested = [sign for sign in signs if not math.isnan(sign["p"])]
        for sign, p in zip(tested, holm([s["p"] for s in tested]), strict=True):
            sign["p_holm"] = p
        yield from signs


SIGNAL = (
    Column("family", meaning="What the signal is read off: the trace, attention or the lens."),
    Column("signal", meaning="What was read inside the model."),
)
SIGNS_COLUMNS = (
    Column("contrast", meaning="Which two kinds of pairs the signal is to tell apart."),
    *SIGNAL,
    Column("n_positive", meaning="Pairs of the positive kind that have the signal."),
    Column("n_negative", meaning="Pairs of the negative kind that have the signal."),
    Column(
        "auroc",
        "AUROC over all pairs",
        "How well the signal tells the positive kind from the negative, pairs of all "
        "models and tasks; one half is chance.",
        interval=True,
    ),
    Column(
        "auroc_within",
        "AUROC within model and task",
        "How well the signal tells the two kinds apart among pairs of one model and task.",
        interval=True,
    ),
    Column("p", meaning="p-value of the Mann-Whitney test."),
    Column("p_holm", "p, corrected (Holm)", "p corrected over the signals of the contrast."),
    REASON,
)
SIGNS = Table(
    "rf_inside_signs",
    "inside",
    (READER, "model"),
    lines=[Lines(SIGNS_COLUMNS, _signs)],
    prepare=with_strata,
    pool=("model",),
)
"""Separation of two kinds of pairs (`CONTRASTS`) by each declared signal alone.

`auroc` over 0.5: the positive kind has the greater values, below: the smaller. `auroc_within`
compares pairs of one model and task only: kinds that are frequent in different tasks differ in
all that differs between tasks. Intervals: `auroc_within`, by item. `p` is two-sided, NaN where
several models have the same items; `p_holm` is corrected over the signals of a contrast. `reason`
says why there is no number: `no_positive`, `no_negative`, `no_values` of either, `no_variation`,
`no_pairs_within`.
"""
