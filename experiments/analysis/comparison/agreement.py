"""Agreement of measures: on items, within and across models and tasks, and on steps of an item."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy

from faithscope.experiments.analysis.cells import Count, Mean, rows_with
from faithscope.experiments.analysis.columns import Column, by_name
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.scores import LABELS, STEP_NUMBER
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics.multiple import false_discoveries
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.statistics.stats import over
from faithscope.experiments.analysis.tables import Table, computed_table
from faithscope.experiments.analysis.tidy import columns, keep, numbers, rows
from faithscope.experiments.numerals import significant

LEAST_MODELS = 3
"""Minimum number of pairs of model and task for correlating their means."""
CUT = Column("cut", meaning="What makes a verdict of a score: its own rule, else its median.")
AGREEMENT = computed_table("agreement", (
    *("measure", "family", "other"),
    Column("other_family", meaning="The family of the other measure."),
    Column("n", meaning="Traces that both measures have a score of."),
    Column("spearman", "rho", "Spearman's rank correlation.", interval=True),
    Column("within", "rho within", "Correlation of ranks inside each model and task in which both "
           "vary; the interval leaves out 0 where p is at most .05.", interval=True),
    Column("n_within", "models and tasks in which both vary", "Pairs of model and task in which "
           "both measures vary on the traces that have both."),
    Column("p", meaning="p-value of rho within, against measures that are independent inside each "
           "model and task; by exchanging questions."),
    Column("q", meaning="p corrected for the number of pairs that are tested (Benjamini and "
           "Hochberg)."),
    Column("discovered", "beyond chance", "q of rho within is at most the rate of false "
           "discoveries."),
    Column("one_probe", meaning="Both are numbers of one probe, or of one form put to one judge, "
           "and so made of the same forward passes or replies."),
    Column("across", "rho across", "Correlation of the means of models and tasks; from three of "
           "them on."),
    Column("n_settings", "models and tasks", "Pairs of model and task in the comparison: rho "
           "across is of their means."),
    Column("reversed", meaning="rho within is beyond chance, and rho has the opposite sign with an "
           "interval that does not hold 0 (Simpson's paradox)."),
    Column("kappa", "κ", "Cohen's kappa of the two verdicts.", interval=True),
    Column("ac2", "AC2", "Gwet's AC2 of the two verdicts, which does not fall where nearly all say "
           "the same.", interval=True),
    Column("phi", "φ", "Matthews' correlation of the two verdicts."),
    Column("tested_as", meaning="An earlier pair whose measures rank the same traces just as these "
           "do: both pairs are one test, which counts once."),
    CUT,
    Column("other_cut", "cut of the other", "What makes a verdict of the other measure's score: "
           "its own rule, else its median."),
    "reason",
))  # fmt: skip
"""A row per pair of measures, with their correlation over all traces (`spearman`), inside models
and tasks (`within`), and of the means of models and tasks (`across`)."""


def _mean_of_pairs(name: str) -> Mean:
    """Cell: mean of a column of `AGREEMENT` over the pairs of measures of two families."""
    of_pair = by_name(AGREEMENT.columns)[name]
    return Mean(name, name, label=of_pair.label, meaning=f"Mean over pairs: {of_pair.meaning}")


FAMILIES = Table("families", "agreement", ("family", by_name(AGREEMENT.columns)["other_family"]), (
    Count("n_pairs", meaning="Pairs of measures of the two families."),
    *map(_mean_of_pairs, ("spearman", "within", "kappa", "ac2")),
    Count("n_discovered", rows_with(discovered=True), "beyond chance",
          "Pairs whose rho within is beyond chance."),
    Count("n_one_probe", rows_with(discovered=True, one_probe=True), "of these of one probe",
          "Pairs beyond chance that are of one probe."),
    Count("n_reversed", rows_with(reversed=True), "reversed", "Pairs whose rho is reversed."),
))  # fmt: skip
"""A row per pair of families, with the mean agreement over their pairs of measures."""
CHANCE = Column("chance", meaning="What blind choice among the steps gives.")
N_ITEMS = Column("n_items", "items", "Traces that the row is of.")
STEP_AGREEMENT = computed_table("step_agreement", (
    *("measure", "other", N_ITEMS),
    Column("spearman", "rho", "Mean over items of the rank correlation of their steps.",
           interval=True),
    Column("n_tops", "items with one top step each", "Items in which either measure credits one "
           "step more than all others."),
    Column("same_top", "same step on top", "Share of the items with one top step each in which it "
           "is the same step.", interval=True),
    CHANCE,
))  # fmt: skip
"""A row per pair of measures that score steps: how far they credit the same steps of an item.

Labels of steps that are numbers (`label_NAME`) are compared as measures are.
"""
HITS = computed_table("step_hits", (
    Column("label", meaning="The label that measures are held against."),
    *("measure", "family", N_ITEMS),
    Column("hit", "labelled step named", "Share of the items in which the labelled step is the one "
           "that the measure names; of k equal ones, 1 / k.", interval=True),
    CHANCE,
))  # fmt: skip
"""A row per step label and measure: how often the measure names the one labelled step.

A measure names the step with the most credit where the label speaks for the step, and the step with
the least credit where the label speaks against it.
"""
IN_ORDER = "change along the order of the items"
DECIMALS = 6
"""Number of decimals to which scores are rounded before they are compared; the rest is float
noise."""


def verdicts(joined: Joined) -> tuple[pd.DataFrame, dict[str, str]]:
    """Verdict of every measure on every trace: 1 for faithful, 0 for unfaithful, NaN for no score.

    Scores are turned so that more is more faithful. A trace is called faithful if its score reaches
    the measure's own rule. A measure without a rule is cut at its median over all traces: faithful
    is above the median, or at it where no score is above. No label is looked at.

    Returns:
        (traces, measures) verdicts; and measure -> its cut in words.
    """
    wide, cuts = joined.oriented, {}
    called = pd.DataFrame(np.nan, index=wide.index, columns=list(joined.measures.index))
    for measure in rows(joined.measures.reset_index()):
        name, sign = measure["measure"], 1 if measure["higher_is_faithful"] else -1
        score = numbers(wide[name]).round(DECIMALS)
        known = score[~np.isnan(score)]
        if not math.isnan(measure["rule"]):
            cut, words, strict = measure["rule"] * sign, "its rule", False
        else:
            cut = float(np.median(known)) if len(known) else math.nan
            words, strict = "its median", bool((known > cut).any())
        above = score > cut if strict else score >= cut
        called[name] = np.where(np.isnan(score), np.nan, above.astype(float))
        comparison = {1: (">", "≥"), -1: ("<", "≤")}[sign][0 if strict else 1]
        cuts[name] = (
            words if math.isnan(cut) else f"{words}: {comparison} {significant(cut * sign, 4)}"
        )
    return called, cuts


def questions(joined: Joined) -> np.ndarray:
    """The bootstrap cluster of every trace: the group of its question (`Joined.units`)."""
    return joined.units


def settings(joined: Joined) -> np.ndarray:
    """The setting of every trace: `MODEL on TASK`."""
    return (joined.traces["model"].astype(str) + " on " + joined.traces["task"]).to_numpy(dtype=str)


def agreement_table(joined: Joined, how: Bootstrap, rate: float) -> pd.DataFrame:
    """The table `AGREEMENT` of a comparison.

    Args:
        rate: accepted rate of false discoveries, for the column `discovered`.
    """
    names = list(joined.measures.index)
    values = joined.oriented[names].round(DECIMALS).to_numpy(dtype=float)
    clusters, strata = questions(joined), settings(joined)
    called, cuts = verdicts(joined)
    n = pairs_of.counts(values)
    rho = pairs_of.spearman(values, clusters, how)
    inside = pairs_of.within(values, strata, clusters, how.seed)
    ranks = pairs_of.same_ranks(values, strata)
    drifts = pairs_of.drifting(values, strata, clusters)
    of_verdicts = pairs_of.chance_corrected(called.to_numpy(dtype=float), clusters, how)
    across = _across(pd.DataFrame(values, columns=names), strata)
    table, tests = [], {}
    for i, j in itertools.combinations(range(len(names)), 2):
        one, other = (joined.measures.loc[names[k]] for k in (i, j))
        row: dict[str, Any] = {"measure": names[i], "family": one["family"], "other": names[j]}
        row |= {"other_family": other["family"], "n": int(n[i, j])}
        origins = [(of["probe"], of["judge"]) for of in (one, other)]
        row |= {"one_probe": bool(origins[0][0]) and origins[0] == origins[1]}
        row |= {"cut": cuts[names[i]], "other_cut": cuts[names[j]]}
        for name, pairs in {"spearman": rho, "within": inside, **of_verdicts}.items():
            row |= {name: pairs.value[i, j]}
            row |= {f"{name}_low": pairs.low[i, j], f"{name}_high": pairs.high[i, j]}
        row |= {"n_within": int(inside.strata[i, j]), "p": inside.p[i, j]}
        test, own = frozenset((ranks[i], ranks[j])), f"{names[i]}|{names[j]}"
        known = not math.isnan(row["p"])
        row["tested_as"] = tests.setdefault(test, own) if known else ""
        row["tested_as"] = "" if row["tested_as"] == own else row["tested_as"]
        row |= {"across": across[0][i, j], "n_settings": across[1]}
        few = row["n"] < pairs_of.FEWEST
        row["reason"] = "fewer than 5 traces have both" if few else ""
        if not few and math.isnan(row["spearman"]):
            row["reason"] = "one of them does not vary"
        elif drifts[i] and drifts[j]:
            # what they share may be the order alone
            row |= {"p": math.nan, "reason": f"both {IN_ORDER}"}
        table.append(row)
    frame = AGREEMENT.filled(table)
    known = frame["p"].notna().to_numpy()
    own = frame["measure"] + "|" + frame["other"]
    of_tests = frame["tested_as"].where(frame["tested_as"] != "", own)
    q = np.full(len(frame), np.nan)
    q[known] = false_discoveries(numbers(frame["p"])[known].tolist(), of_tests[known].tolist())
    discovered = q <= rate
    off_zero = (frame["spearman_low"] > 0) | (frame["spearman_high"] < 0)
    turned = frame["spearman"] * frame["within"] < 0
    return frame.assign(q=q, discovered=discovered, reversed=discovered & off_zero & turned)


def _across(values: pd.DataFrame, strata: np.ndarray) -> tuple[np.ndarray, int]:
    names = np.unique(strata)
    means_of = pd.DataFrame({name: keep(values, strata == name).mean() for name in names}).T
    if len(names) < LEAST_MODELS:
        return np.full((values.shape[1],) * 2, np.nan), len(names)
    return means_of.corr("spearman", min_periods=LEAST_MODELS).to_numpy(), len(names)


def clustered(agreement: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Measures in clustered order, and the matrix of their correlations in that order.

    The order is that of an average linkage on 1 − rho; an unknown rho (NaN) counts as 0.
    """
    names = list(dict.fromkeys([*agreement["measure"], *agreement["other"]]))
    at = {name: i for i, name in enumerate(names)}
    rho = np.full((len(names),) * 2, np.nan)
    np.fill_diagonal(rho, 1.0)
    for one, other, value in zip(
        agreement["measure"], agreement["other"], agreement["spearman"], strict=True
    ):
        rho[at[one], at[other]] = rho[at[other], at[one]] = value
    order = clusters_of(rho)
    return [names[i] for i in order], rho[np.ix_(order, order)]


def clusters_of(rho: np.ndarray) -> list[int]:
    """Indices in the order of an average linkage on 1 − rho, which puts measures that agree next to
    each other."""
    if len(rho) < 3:
        return list(range(len(rho)))
    distance = 1 - np.nan_to_num(rho)
    np.fill_diagonal(distance, 0)
    pairs = scipy.spatial.distance.squareform(distance, checks=False)
    tree = scipy.cluster.hierarchy.linkage(pairs, "average", optimal_ordering=True)
    return scipy.cluster.hierarchy.leaves_list(tree).tolist()


def step_agreement_table(joined: Joined, how: Bootstrap) -> pd.DataFrame:
    """The table `STEP_AGREEMENT` of a comparison."""
    family = joined.steps["family"]
    steps = joined.steps.loc[~family.isin(LABELS) | (family == STEP_NUMBER)]
    names = sorted(set(steps["measure"]))
    sign = np.where(steps["higher_is_faithful"].astype(bool), 1.0, -1.0)
    steps = steps.assign(value=(steps["value"].astype(float) * sign).round(DECIMALS))
    place = {key: i for i, key in enumerate(joined.index)}
    rho, same, chance = (np.full((len(names),) * 2 + (len(place),), np.nan) for _ in range(3))
    for key, of_item in steps.groupby(list(KEY), sort=False):
        wide = of_item.pivot(index="measure", columns="step", values="value")
        at = np.searchsorted(names, wide.index)
        for i, j, block in _compared(wide.to_numpy(dtype=float)):
            for into, of in zip((rho, same, chance), block, strict=True):
                into[np.ix_(at[i], at[j], [place[key]])] = of[:, :, None]
                into[np.ix_(at[j], at[i], [place[key]])] = of.T[:, :, None]
    clusters = questions(joined)
    table = []
    for i, j in itertools.combinations(range(len(names)), 2):
        of = {"rho": rho[i, j], "same": same[i, j]}
        n, tops = (int((~np.isnan(x)).sum()) for x in of.values())
        if np.isnan(chance[i, j]).all():
            continue
        estimates = means(clusters, of, how=how)
        row = {"measure": names[i], "other": names[j], "n_items": n, "n_tops": tops}
        row |= columns("spearman", estimates["rho"]) | columns("same_top", estimates["same"])
        ranked = chance[i, j][~np.isnan(same[i, j])]
        table.append(row | {"chance": float(ranked.mean()) if len(ranked) else math.nan})
    return STEP_AGREEMENT.filled(table)


def _compared(
    values: np.ndarray,
) -> Iterator[tuple[list[int], list[int], tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Compares measures on the steps of one item, in blocks of measures that score the same steps.

    Args:
        values: (measures, steps) credits, NaN where a measure has none.

    Yields:
        Rows of the first block; rows of the second block; and three (first, second) matrices: rank
        correlation, whether both have the same single top step, and the chance of that.
    """
    there = ~np.isnan(values)
    patterns: dict[bytes, list[int]] = defaultdict(list)
    for i, of in enumerate(there):
        patterns[of.tobytes()].append(i)
    for one, other in itertools.combinations_with_replacement(patterns.values(), 2):
        both = there[one[0]] & there[other[0]]
        if (k := int(both.sum())) < 2:
            continue
        sides = [values[np.ix_(side, both)] for side in (one, other)]
        ranks = [scipy.stats.rankdata(side, axis=1) - (k + 1) / 2 for side in sides]
        spread = np.sqrt(np.outer(*((r * r).sum(axis=1) for r in ranks)))
        top = [np.where((s == s.max(1, keepdims=True)).sum(1) == 1, s.argmax(1), -1) for s in sides]
        same = np.equal.outer(top[0], top[1]).astype(float)
        same[np.logical_or.outer(top[0] < 0, top[1] < 0)] = np.nan
        yield one, other, (over(ranks[0] @ ranks[1].T, spread), same, np.full(same.shape, 1 / k))


def step_hits_table(joined: Joined, how: Bootstrap) -> pd.DataFrame:
    """The table `HITS` of a comparison."""
    found: dict[tuple[str, str, str], list[tuple[str, float, float]]] = defaultdict(list)
    question = dict(zip(joined.index, questions(joined), strict=True))
    is_label = joined.steps["family"] == "label"
    labelled = joined.steps.loc[is_label & (joined.steps["value"] == 1)]
    one = labelled.drop_duplicates([*KEY, "measure"], keep=False)
    truth: dict[tuple[str, ...], list[tuple[str, int, bool]]] = defaultdict(list)
    for row in one.to_dict("records"):
        key = tuple(row[k] for k in KEY)
        truth[key].append((row["measure"], row["step"], bool(row["higher_is_faithful"])))
    of_measures = joined.steps.loc[~joined.steps["family"].isin(LABELS)]
    for (*key, measure), of_item in of_measures.groupby([*KEY, "measure"], sort=True):
        place = tuple(map(str, key))
        higher = bool(of_item["higher_is_faithful"].to_numpy()[0])
        value = of_item["value"].to_numpy(dtype=float).round(DECIMALS) * (1 if higher else -1)
        step = of_item["step"].to_numpy()
        for label, at, speaks_for in truth.get(place, ()):
            top = step[value == (value.max() if speaks_for else value.min())]
            hit = float(at in top) / len(top)
            about = (label, str(measure), str(of_item["family"].iloc[0]))
            found[about].append((question[place], hit, float(at in step) / len(step)))
    table = []
    for about, of in sorted(found.items()):
        clusters, hit, chance = (np.array(column) for column in zip(*of, strict=True))
        estimate = means(clusters, {"hit": hit}, how=how)["hit"]
        row = dict(zip(HITS.header[:3], about, strict=True)) | {"n_items": len(of)}
        table.append(row | columns("hit", estimate) | {"chance": float(chance.mean())})
    return HITS.filled(table)
