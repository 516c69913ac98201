"""Table `headline`: the comparison of kinds of evidence that was fixed before any data were seen.

One primary measure stands for each kind (behaviour, log-probs, insides, judges). All others are
exploratory. Every correlation has beside it the reliability of both measures, since two measures
cannot correlate more than they agree with themselves, and the smallest correlation that so many
questions can show.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions, settings
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.trust import LEVEL, holm
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import Estimate, percentiles
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, where
from faithscope.probes.framing import FRAMINGS

KINDS = {
    "behaviour": "behavioural",
    "logit": "logit",
    "internal": "internal",
    "judged": "judged",
}
"""Kind of evidence -> family of its measures."""
POWER = 0.8
"""Chance with which `detectable` is found."""
RANKS = 1.06
"""Variance of Fisher's z of a rank correlation, times n − 3 (Fieller, Hartley and Pearson,
Biometrika 44, 1957)."""
SPLITS = 10
"""Number of random splits of a trace's steps whose correlations are averaged."""
DEFINED = 0.9
"""Least share of bootstrap draws with a disattenuated correlation for an interval of it."""
FRAMING = "{framing}"
"""Stands for `prefix` and `reprompt` in the name of a primary measure."""
RHO = Column("rho", "rho within", "Spearman's correlation of ranks inside each model and task in "
             "which both measures vary, each turned so that more is more faithful.",
             interval=True)  # fmt: skip
HEADLINE = computed_table("headline", (
    Column("one", "kind", "The first kind of evidence."),
    Column("two", "other kind", "The second kind of evidence."),
    Column("framing", meaning="Framing of the measures that edit the reasoning; empty where "
           "neither of the two does: insides are read on the model's own tokens, and a judge is "
           "shown the text."),
    *("measure", "other"),
    Column("n", meaning="Traces that both measures have a score of."),
    Column("n_questions", "questions", "Questions of these traces."),
    RHO,
    Column("p", meaning="p-value against measures that are independent inside each model and "
           "task; by exchanging questions."),
    Column("p_corrected", "p, corrected", "p corrected for the number of rows that are tested "
           "(Holm)."),
    Column("detectable", meaning="Smallest true correlation, of either sign, that the corrected "
           "test finds in 80 % of cases with so many questions (Fisher's z of ranks)."),
    Column("one_probe", meaning="Both measures are made of the same forward passes or replies, "
           "so that they share their noise, too."),
    Column("reliability", meaning="Correlation of the first measure with a repetition of itself.",
           interval=True),
    Column("reliability_by", "by", "How the first measure was repeated; empty where it was not."),
    Column("other_reliability", "reliability of the other", "Correlation of the second measure "
           "with a repetition of itself.", interval=True),
    Column("other_reliability_by", "by", "How the second measure was repeated; empty where it was "
           "not."),
    Column("disattenuated", "rho, disattenuated", "rho divided by the root of the product of both "
           "reliabilities: what rho would be without noise, if the noise of the two is "
           "independent. It may exceed 1.", interval=True),
    Column("reason", meaning="Why there is no correlation, or none without noise."),
))  # fmt: skip
"""A row per pair of kinds and framing, with the correlation of their primary measures."""


@dataclass(frozen=True)
class Primary:
    """The measure that stands for a kind of evidence, as it was named beforehand."""

    names: Sequence[str]
    """Names of the measure without judge and source, in order of preference; `FRAMING` stands for
    each framing."""
    higher_is_faithful: bool

    @property
    def framed(self) -> bool:
        """Whether the measure exists in several framings."""
        return any(FRAMING in name for name in self.names)


@dataclass(frozen=True)
class Reliability:
    """Correlation of a measure with a repetition of itself, and the same in every draw."""

    estimate: Estimate
    draws: np.ndarray
    by: str


@dataclass(frozen=True)
class _Side:
    """A kind of evidence in a framing: its measure, and what the measure was repeated as."""

    kind: str
    measure: str
    again: str
    """Second measurement of the same quantity; empty where there is none."""
    reason: str


def detectable(n_questions: int, n_settings: int, tests: int = 1) -> float:
    """Smallest rank correlation within settings that a two-sided test finds with chance `POWER`.

    Args:
        n_questions: number of independent questions.
        n_settings: number of pairs of model and task inside which ranks are taken.
        tests: number of tests that the level is shared by.
    """
    free = n_questions - n_settings - 2
    if free <= 0:
        return math.nan
    away = norm.ppf(1 - LEVEL / tests / 2) + norm.ppf(POWER)
    return float(np.tanh(away * math.sqrt(RANKS / free)))


def headline_table(
    joined: Joined, primaries: Mapping[str, Primary], how: Bootstrap
) -> pd.DataFrame:
    """The table `HEADLINE` of a comparison.

    Args:
        primaries: kind of evidence -> its primary measure.
    """
    strata, clusters = settings(joined), questions(joined)
    table, values = [], joined.oriented.round(DECIMALS)
    for one, two in itertools.combinations(KINDS, 2):
        framed = primaries[one].framed or primaries[two].framed
        for framing in FRAMINGS if framed else ("",):
            sides = [_side(joined, kind, primaries[kind], framing) for kind in (one, two)]
            row: dict[str, Any] = {"one": one, "two": two, "framing": framing}
            row |= {"measure": sides[0].measure, "other": sides[1].measure, "n": 0}
            row |= {"n_questions": 0}
            row |= {"reason": "; ".join(dict.fromkeys(s.reason for s in sides if s.reason))}
            if not row["reason"]:
                row |= _correlated(joined, values, sides, strata, clusters, how)
            table.append(row)
    tested = [row for row in table if not math.isnan(row.get("p", math.nan))]
    corrected = holm([row["p"] for row in tested])
    for row, p in zip(tested, corrected, strict=True):
        n_settings = row.pop("n_settings")
        row |= {"p_corrected": p}
        row |= {"detectable": detectable(row["n_questions"], n_settings, len(tested))}
    return HEADLINE.filled(table)


def _side(joined: Joined, kind: str, primary: Primary, framing: str) -> _Side:
    names = [name.replace(FRAMING, framing) for name in primary.names]
    first = [str(m) for name in names for m in joined.measures.index if _is(str(m), name)]
    if not first:
        return _Side(kind, names[0], "", f"no run has the measure {' or '.join(names)}")
    of = joined.measures.loc[first[0]]
    if of["family"] != KINDS[kind]:
        wrong = f"{first[0]} is a measure of the family {of['family']}, not of {KINDS[kind]}"
        return _Side(kind, first[0], "", wrong)
    if bool(of["higher_is_faithful"]) != primary.higher_is_faithful:
        says = "faithful" if of["higher_is_faithful"] else "unfaithful"
        wrong = f"more of {first[0]} says {says}, and the opposite was said beforehand"
        return _Side(kind, first[0], "", wrong)
    return _Side(kind, first[0], "".join(first[1:2]), "")


def _is(measure: str, name: str) -> bool:
    """Whether a measure has a name, whatever judge or run stands behind it."""
    return measure == name or measure.startswith((f"{name} (", f"{name} ["))


def _correlated(
    joined: Joined,
    values: pd.DataFrame,
    sides: Sequence[_Side],
    strata: np.ndarray,
    clusters: np.ndarray,
    how: Bootstrap,
) -> dict[str, Any]:
    names = [side.measure for side in sides]
    pair = values[names].to_numpy(dtype=float)
    both = ~np.isnan(pair).any(axis=1)
    row: dict[str, Any] = {"n": int(both.sum()), "n_questions": len(set(clusters[both]))}
    made_of = [tuple(joined.measures.loc[name, ["probe", "judge"]]) for name in names]
    row |= {"one_probe": made_of[0] == made_of[1]}
    whole, draws = pairs_of.within_drawn(pair, strata, clusters, how)
    rho = whole[0, 1]
    reliabilities = [_reliability(joined, values, s, strata, clusters, how) for s in sides]
    for name, of in zip(("", "other_"), reliabilities, strict=True):
        row |= columns(f"{name}reliability", of.estimate) | {f"{name}reliability_by": of.by}
    if math.isnan(rho):
        flat = [n for n, x in zip(names, pair.T, strict=True) if len(set(x[both])) < 2]
        few = f"fewer than {pairs_of.FEWEST} traces have both"
        vary = f"{' and '.join(flat) or 'one of the two'} does not vary within a model and task"
        return row | {"reason": few if both.sum() < pairs_of.FEWEST else vary}
    row |= columns("rho", _estimate(rho, draws[:, 0, 1], row["n"], row["n_questions"]))
    p = pairs_of.exchanged(pair, strata, clusters, how.seed)[0, 1]
    row |= {"p": p, "n_settings": len(set(strata[both]))}
    unknown = [n for n, of in zip(names, reliabilities, strict=True) if not of.estimate.low > 0]
    if unknown:
        unsure = f"no reliability above 0 is known of {' and '.join(unknown)}"
        return row | {"reason": unsure}
    product = np.prod([of.estimate.value for of in reliabilities])
    with np.errstate(invalid="ignore"):
        noise = [np.where(of.draws > 0, of.draws, np.nan) for of in reliabilities]
        drawn = draws[:, 0, 1] / np.sqrt(noise[0] * noise[1])
    drawn = drawn if np.mean(~np.isnan(drawn)) >= DEFINED else np.array([])
    return row | columns(
        "disattenuated", _estimate(rho / math.sqrt(product), drawn, row["n"], row["n_questions"])
    )


def _estimate(value: float, draws: np.ndarray, n: int, n_questions: int) -> Estimate:
    return Estimate(float(value), *percentiles(draws, n_questions), n)


def _unknown(n: int) -> Estimate:
    return Estimate(math.nan, math.nan, math.nan, n)


def _reliability(
    joined: Joined,
    values: pd.DataFrame,
    side: _Side,
    strata: np.ndarray,
    clusters: np.ndarray,
    how: Bootstrap,
) -> Reliability:
    """Reliability of a measure: its correlation with a second measurement, else that of halves of
    its steps; NaN where there is neither."""
    if side.again:
        pair = values[[side.measure, side.again]].to_numpy(dtype=float)
        whole, draws = pairs_of.within_drawn(pair, strata, clusters, how)
        judges = joined.measures.loc[[side.measure, side.again], "judge"]
        bare = {re.sub(r" [(\[].*", "", name) for name in (side.measure, side.again)}
        by = "second run" if len(bare) == 1 else "other reading"
        by = "second judge" if len(set(judges)) > 1 else by
        n = int((~np.isnan(pair)).all(axis=1).sum())
        return _reliability_of(
            *(whole[0, 1], draws[:, 0, 1], n, len(set(clusters))), f"{by}: {side.again}"
        )
    halves = _halves(joined, side.measure, how.seed)
    if halves is None:
        return Reliability(_unknown(0), np.full(how.resamples, math.nan), "")
    whole, draws = pairs_of.within_drawn(halves, strata, clusters, how)
    pairs = np.arange(SPLITS) * 2
    r, drawn = whole[pairs, pairs + 1].mean(), draws[:, pairs, pairs + 1].mean(axis=1)
    n = int((~np.isnan(halves)).all(axis=1).sum())
    of = (float(_of_whole(r)), _of_whole(drawn), n, len(set(clusters)))
    return _reliability_of(*of, "halves of the steps")


def _of_whole(halves: Any) -> np.ndarray:
    """Reliability of a measure from the correlation of its halves (Spearman and Brown). A negative
    correlation stays as it is: halves that deny each other are no repetition."""
    return np.where(np.asarray(halves) > 0, 2 * halves / (1 + np.abs(halves)), halves)


def _reliability_of(
    value: float, draws: np.ndarray, n: int, n_questions: int, by: str
) -> Reliability:
    if math.isnan(value):
        return Reliability(_unknown(n), draws, f"{by}, which do not vary")
    return Reliability(_estimate(value, draws, n, n_questions), draws, by)


def _halves(joined: Joined, measure: str, seed: int) -> np.ndarray | None:
    """(traces, 2 × `SPLITS`) mean credit of two random halves of a trace's steps, split by split;
    NaN for a trace of one step. None for a measure without credits of steps."""
    steps = where(joined.steps, measure=measure)
    if steps.empty:
        return None
    rng = np.random.default_rng(seed)
    credits = {key: of["value"].to_numpy(dtype=float) for key, of in steps.groupby(list(KEY))}
    halves = np.full((len(joined.index), 2 * SPLITS), np.nan)
    for i, key in enumerate(joined.index):
        of_trace = credits.get(key, np.array([]))
        if len(of_trace) < 2:
            continue
        for split in range(SPLITS):
            order = rng.permutation(of_trace)
            halves[i, 2 * split : 2 * split + 2] = [order[0::2].mean(), order[1::2].mean()]
    return None if np.isnan(halves).all() else halves.round(DECIMALS)
