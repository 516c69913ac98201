"""Table `headline`: the comparison of kinds of evidence that was fixed before any data were seen.

One primary measure stands for each kind (behaviour, log-probabilities, internals, judges). All
others are exploratory. Every correlation has beside it the smallest correlation that so many
questions can show and, where a measure was taken twice (by a second run, judge or reading), its
reliability, since two measures cannot correlate more than they agree with themselves.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import (
    DECIMALS,
    IN_ORDER,
    questions,
    settings,
)
from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.comparison.trust import LEVEL
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics.multiple import holm
from faithscope.experiments.analysis.statistics.stats import NOTHING, ROUNDING, Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, only
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
FRAMING = "{framing}"
"""Stands for `prefix` and `reprompt` in the name of a primary measure."""
RHO = Column("rho", "rho within", "Spearman's correlation of ranks inside each model and task in "
             "which both measures vary, each turned so that more is more faithful. The interval "
             "leaves out 0 where p, uncorrected, is at most .05.", interval=True)  # fmt: skip
HEADLINE = computed_table("headline", (
    Column("one", "kind", "The first kind of evidence."),
    Column("two", "other kind", "The second kind of evidence."),
    Column("framing", meaning="Framing of the measures that edit the reasoning; empty where "
           "neither of the two does: internals are read on the model's own tokens, and a judge is "
           "shown the text."),
    *("measure", "other"),
    Column("n", meaning="Traces that both measures have a score of."),
    Column("n_questions", "questions", "Questions of these traces."),
    RHO,
    Column("p", meaning="p-value against measures that are independent inside each model and "
           "task; by exchanging questions."),
    Column("p_corrected", "p, corrected", "p corrected for the number of tests (Holm)."),
    Column("tested_as", meaning="An earlier row whose measures rank the same traces just as these "
           "do: both rows are one test, which counts once."),
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
           "independent. It may exceed 1. The interval holds all that the three intervals allow.",
           interval=True),
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
    """Correlation of a measure with a repetition of itself; NaN where it was not repeated, or
    where one of the two does not vary."""

    estimate: Estimate
    by: str
    """How it was repeated; empty where it was not."""

    @property
    def exact(self) -> bool:
        """Whether the repetition ranks the traces just as the measure does."""
        return self.estimate.value >= 1 - ROUNDING


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
    away = scipy.stats.norm.ppf(1 - LEVEL / tests / 2) + scipy.stats.norm.ppf(POWER)
    return float(np.tanh(away * math.sqrt(RANKS / free)))


def headline_table(joined: Joined, primaries: Mapping[str, Primary], seed: int) -> pd.DataFrame:
    """The table `HEADLINE` of a comparison.

    Args:
        primaries: kind of evidence -> its primary measure.
    """
    strata, clusters = settings(joined), questions(joined)
    values = joined.oriented.round(DECIMALS)
    repeated: dict[_Side, Reliability] = {}
    table: list[dict[str, Any]] = []
    tests: dict[Hashable, dict[str, Any]] = {}
    for one, two in itertools.combinations(KINDS, 2):
        framed = primaries[one].framed or primaries[two].framed
        for framing in FRAMINGS if framed else ("",):
            sides = [_side(joined, kind, primaries[kind], framing) for kind in (one, two)]
            row: dict[str, Any] = {"one": one, "two": two, "framing": framing}
            row |= {"measure": sides[0].measure, "other": sides[1].measure, "n": 0}
            row |= {"n_questions": 0, "tested_as": ""}
            row |= {"reason": "; ".join(dict.fromkeys(s.reason for s in sides if s.reason))}
            if not row["reason"]:
                names = [side.measure for side in sides]
                for side in sides:
                    if side not in repeated:
                        of = (joined, values, side, strata, clusters, seed)
                        repeated[side] = _reliability(*of)
                reliabilities = [repeated[side] for side in sides]
                row |= _correlated(joined, values, names, reliabilities, strata, clusters, seed)
                first = tests.setdefault(_test(only(values, names), strata), row)
                if first is not row and "p" in first:
                    # drawn with other exchanges: the same test has one result
                    row |= {of: first[of] for of in ("rho", "rho_low", "rho_high", "p")}
                    row |= {"tested_as": named(first)}
            table.append(row)
    tested = [row for row in table if not math.isnan(row.get("p", math.nan))]
    same = [row["tested_as"] or named(row) for row in tested]
    corrected = holm([row["p"] for row in tested], same)
    for row, p in zip(tested, corrected, strict=True):
        row |= {"p_corrected": p}
        n_settings = row.pop("n_settings")
        row |= {"detectable": detectable(row["n_questions"], n_settings, len(set(same)))}
    return HEADLINE.filled(table)


def named(row: Mapping[str, Any]) -> str:
    """Name of a row of `HEADLINE` as it stands in the column `tested_as`."""
    return ", ".join(filter(None, (row["one"], row["two"], row["framing"])))


def _test(pair: pd.DataFrame, strata: np.ndarray) -> Hashable:
    """A key that is equal for pairs of measures whose correlation within strata is the same
    test."""
    both = pair.notna().all(axis=1).to_numpy()
    ranks = pairs_of.same_ranks(pair.to_numpy(dtype=float)[both], strata[both])
    return both.tobytes(), frozenset(ranks)


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
    names: Sequence[str],
    reliabilities: Sequence[Reliability],
    strata: np.ndarray,
    clusters: np.ndarray,
    seed: int,
) -> dict[str, Any]:
    pair = values[names].to_numpy(dtype=float)
    both = ~np.isnan(pair).any(axis=1)
    row: dict[str, Any] = {"n": int(both.sum()), "n_questions": len(set(clusters[both]))}
    made_of = [tuple(joined.measures.loc[name, ["probe", "judge"]]) for name in names]
    row |= {"one_probe": bool(made_of[0][0]) and made_of[0] == made_of[1]}
    rho, p = _within(pair, strata, clusters, seed)
    for name, of in zip(("", "other_"), reliabilities, strict=True):
        row |= columns(f"{name}reliability", of.estimate) | {f"{name}reliability_by": of.by}
    if math.isnan(rho.value):
        flat = [n for n, x in zip(names, pair.T, strict=True) if len(set(x[both])) < 2]
        few = f"fewer than {pairs_of.FEWEST} traces have both"
        vary = f"{' and '.join(flat) or 'one of the two'} does not vary within a model and task"
        return row | {"reason": few if both.sum() < pairs_of.FEWEST else vary}
    row |= columns("rho", rho)
    if pairs_of.drifting(pair[both], strata[both], clusters[both]).all():
        return row | {"reason": f"both measures {IN_ORDER}, which may be all that they share"}
    row |= {"p": p, "n_settings": len(set(strata[both]))}
    if not all(of.by for of in reliabilities):
        return row
    for name, of in zip(names, reliabilities, strict=True):
        if of.exact or not of.estimate.low > 0:
            why = "repeats itself exactly" if of.exact else "is not shown to agree with itself"
            return row | {"reason": f"{name} {why}"}
    return row | columns("disattenuated", _disattenuated(rho, reliabilities))


def _disattenuated(rho: Estimate, reliabilities: Sequence[Reliability]) -> Estimate:
    """A correlation over the root of two reliabilities, which leaves out 0 where it does."""
    value, low, high = (
        np.prod([getattr(of.estimate, end) for of in reliabilities]) ** -0.5
        for end in ("value", "low", "high")
    )
    ends = [end * by for end in (rho.low, rho.high) for by in (low, high)]
    return Estimate(rho.value * value, min(ends), max(ends), rho.n)


def _within(
    pair: np.ndarray, strata: np.ndarray, clusters: np.ndarray, seed: int
) -> tuple[Estimate, float]:
    """The correlation of two measures within strata, and its p-value."""
    of = pairs_of.within(pair, strata, clusters, seed)
    value, low, high, p = (float(x[0, 1]) for x in (of.value, of.low, of.high, of.p))
    return Estimate(value, low, high, int((~np.isnan(pair)).all(axis=1).sum())), p


def _reliability(
    joined: Joined,
    values: pd.DataFrame,
    side: _Side,
    strata: np.ndarray,
    clusters: np.ndarray,
    seed: int,
) -> Reliability:
    """Reliability of a measure: its correlation with a second measurement."""
    if not side.again:
        return Reliability(NOTHING, "")
    pair = values[[side.measure, side.again]].to_numpy(dtype=float)
    estimate, _ = _within(pair, strata, clusters, seed)
    judges = joined.measures.loc[[side.measure, side.again], "judge"]
    bare = {re.sub(r" [(\[].*", "", name) for name in (side.measure, side.again)}
    by = "second run" if len(bare) == 1 else "other reading"
    by = "second judge" if len(set(judges)) > 1 else by
    flat = ", one of which does not vary" if math.isnan(estimate.value) else ""
    return Reliability(estimate, f"{by}: {side.again}{flat}")
