"""Statistics of detectors against labels: cross-fitted flags, chance levels of the highest AUROC,
and the association of faithfulness with correctness (FaithCoT-Bench, sections 3.3 and 4.1, appendix
B.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from faithscope.experiments.analysis.cells import all_of, rows_known, rows_with
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.agreement import same_ranks
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.multiple import holm
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, Clusters, means
from faithscope.experiments.analysis.statistics.stats import Estimate, wilson_of_items
from faithscope.experiments.analysis.tidy import groups, keep, numbers, only, rows
from faithscope.experiments.studies.slrc.detectors.findings import NO_THRESHOLD
from faithscope.experiments.studies.slrc.detectors.readings import BY_NAME, OURS, detector_of
from faithscope.experiments.studies.slrc.detectors.results import WAY

NO_FIT = "too few chains of a class for folds"
PLAIN, FITTED = "plain", "fitted"
"""Names of the two rules for flags: fixed beforehand, or a threshold fitted on other folds."""
LEAST_COVERED = 0.5
"""Minimum share of a group's labelled chains that a detector must score to be in the tables of
common chains; a choice of ours."""
CHANCE = ("p_highest", "p_wrong_way")
COUNTED = rows_with(counted=True)
SCORED = all_of(COUNTED, rows_known("score"))
HELD = all_of(SCORED, rows_known("unfaithful"))
"""Selects the counted chains that have both a score and a label."""


def by_rule(scores: pd.DataFrame, folds: int, kept: bool, seed: int) -> pd.DataFrame:
    """Every row of `FaithResults.scores` under each of the two rules, in the order of the table of
    detectors.

    Args:
        kept: whether chains that the token limit cut off are counted (column `counted`).

    Returns:
        The columns of `scores` with `flag` by the rule (1, 0, or NaN for none), and more: `rule`,
        its source (`rule_by`), why it gives no flags (`undefined`), `counted`, and `CHANCE`.
    """
    frame = scores.reset_index(drop=True)
    frame = frame.assign(counted=kept | ~frame["cut"].to_numpy(dtype=bool))
    chance = _chance(keep(frame, frame["counted"].to_numpy()), seed)
    nothing = dict.fromkeys(CHANCE, math.nan)
    of_rows = [chance.get(tuple(r.values()), nothing) for r in rows(only(frame, WAY))]
    frame = frame.assign(**{name: [of[name] for of in of_rows] for name in CHANCE})
    fitted, no_fit = np.full(len(frame), np.nan), np.full(len(frame), NO_FIT, dtype=object)
    for _, of in groups(frame, WAY):
        held = keep(of, HELD(of))
        label, score = held["unfaithful"].to_numpy(dtype=bool), numbers(held["score"])
        flags = cross_fitted_flags(label, score, held["question"].to_numpy(), folds, seed)
        if flags is not None:
            fitted[held.index], no_fit[of.index] = flags, ""
    detectors = [detector_of(r) for r in rows(frame)]
    plain = frame.assign(
        rule=PLAIN,
        rule_by=[d.rule_by for d in detectors],
        undefined=["" if d.rule else NO_THRESHOLD for d in detectors],
        flag=numbers(frame["flag"]),
    )
    by_fit = frame.assign(rule=FITTED, rule_by=OURS, undefined=no_fit, flag=fitted)
    order = list(BY_NAME.values())
    whole = pd.concat([plain, by_fit]).assign(_order=2 * [order.index(d) for d in detectors])
    return whole.sort_values([*WAY[:3], "_order", "judge"], kind="stable", ignore_index=True)


def _chance(scores: pd.DataFrame, seed: int) -> dict[tuple[Any, ...], dict[str, float]]:
    """Permutation p-values of the main readings, by the values of `WAY`; labels are exchanged
    between the questions of a data set and model.

    `p_highest`: how often the highest AUROC of all readings is at least this one, times the number
    of data sets and models; `p_wrong_way`: how often this reading points at least as far the wrong
    way, corrected by Holm's procedure over all. NaN where a reading or the label does not vary.
    """
    chance: dict[tuple[Any, ...], dict[str, float]] = {}
    tests: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    places = list(groups(keep(scores, HELD(scores) & rows_with(main=True)(scores)), WAY[:3]))
    for place, of in places:
        wide = of.pivot(index="item", columns=list(WAY[3:]), values="score").astype(float)
        alone = np.zeros(len(wide), dtype=np.int64)
        chains = of.drop_duplicates("item").set_index("item").loc[wide.index]
        p = exchange_test(
            wide.to_numpy(),
            chains["unfaithful"].to_numpy(dtype=bool),
            alone,
            chains["question"].tolist(),
            seed,
        )
        ranks = same_ranks(wide.to_numpy(), alone)
        for way, highest, low, own in zip(wide.columns, p.highest, p.low, ranks, strict=True):
            key = (*place.values(), *way)
            tests[key] = (*place.values(), own)
            chance[key] = {"p_highest": float(highest), "p_wrong_way": float(low)}
    told = {key: of for key, of in chance.items() if not math.isnan(of["p_highest"])}
    lows = holm([of["p_wrong_way"] for of in told.values()], [tests[key] for key in told])
    for of, low in zip(told.values(), lows, strict=True):
        of |= {"p_highest": min(1.0, len(places) * of["p_highest"]), "p_wrong_way": low}
    return chance


def cross_fitted_flags(
    label: Bool[np.ndarray, " chains"],
    score: Float[np.ndarray, " chains"],
    questions: Clusters,
    folds: int,
    seed: int,
) -> Bool[np.ndarray, " chains"] | None:
    """Flags by thresholds fitted on the other folds, with questions kept together; None where a
    class has too few chains for folds (`detection.folds`).

    The threshold is the score with the greatest sensitivity plus specificity; of several, the
    highest.
    """
    fold = detection.folds(label, questions, folds, seed)
    return None if fold is None else detection.called_by(label, score, fold, _most_informed)


def _most_informed(label: np.ndarray, score: np.ndarray) -> float:
    from sklearn.metrics import roc_curve

    false, true, thresholds = roc_curve(label, score, drop_intermediate=False)
    return float(thresholds[int(np.argmax(true - false))])


def share_by_question(
    questions: Clusters, hits: Float[np.ndarray, " n"], how: Bootstrap
) -> Estimate:
    """Mean of values in [0, 1] with an interval from resampling questions, since chains about one
    question are not independent. If all values are equal, Wilson's interval for that many questions
    is used."""
    n = len(set(questions))
    if len(set(hits)) == 1:
        return wilson_of_items(float(hits[0]), n)
    (estimate,) = means(questions, {"": np.asarray(hits, dtype=float)}, how=how).values()
    return replace(estimate, n=n)


def association(a: int, b: int, c: int, d: int) -> dict[str, float]:
    """φ and mutual information in bits of the counts [[a, b], [c, d]] (the paper's .057 is in
    bits); both NaN where a row or column is empty."""
    n, margins = a + b + c + d, (a + b) * (c + d) * (a + c) * (b + d)
    if not margins:
        return {"phi": math.nan, "mutual_information": math.nan}
    cells = ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    bits = math.fsum(x / n * math.log2(x * n / (row * column)) for x, row, column in cells if x)
    return {"phi": (a * d - b * c) / math.sqrt(margins), "mutual_information": bits}


def common_chains(scores: pd.DataFrame, kept: bool) -> pd.DataFrame:
    """Scores, in each detector's main reading, of the labelled chains that every detector of a data
    set, model and reader can decide: with a flag, or a score where there is no plain rule.
    Detectors that decide fewer than `LEAST_COVERED` of the labelled chains are left out, so that no
    single one empties the table.

    Args:
        kept: whether chains that the token limit cut off are counted; if not, their rows stay, so
            that a table can report their number.
    """
    main = keep(scores, scores["main"].astype(bool) & scores["unfaithful"].notna())
    common = []
    for _, of in groups(main, WAY[:3]):
        counted = [r for r in rows(of) if kept or not r["cut"]]
        told: dict[tuple[str, ...], set[tuple[str, str]]] = {}
        for r in counted:
            chains = told.setdefault(_detector(r), set())
            if there(r["flag"]) or (there(r["score"]) and not detector_of(r).rule):
                chains.add(_chain(r))
        least = LEAST_COVERED * len({_chain(r) for r in counted})
        told = {detector: chains for detector, chains in told.items() if len(chains) >= least}
        of_all = set.intersection(*told.values()) if told else set()
        mask = [
            _detector(r) in told and (_chain(r) in of_all or (not kept and bool(r["cut"])))
            for r in rows(of)
        ]
        common.append(keep(of, mask))
    return pd.concat(common) if common else main


def _detector(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[k] for k in WAY[3:])


def _chain(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["task"], row["item"]


def there(value: Any) -> bool:
    """Whether a cell of a frame holds a value (neither None nor NaN)."""
    return value is not None and value == value


def main_readings(detectors: pd.DataFrame) -> np.ndarray:
    """Mask of the rows of table `detectors` of each detector's main reading, by its plain rule, or
    by the fitted one where it has none."""
    return np.array([bool(r["main"]) and by_own_rule(r) for r in rows(detectors)], dtype=bool)


def by_own_rule(row: Mapping[str, Any]) -> bool:
    """Whether a row's flags follow the plain rule, or where there is none the fitted one."""
    return row["rule"] == (PLAIN if detector_of(row).rule else FITTED)
