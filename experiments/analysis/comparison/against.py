"""Each measure, and each monitor inside the model, held against a label, and what it costs.

The kind that is looked for is the unfaithful trace: the label that speaks for a trace is 0 of it.
Thresholds and curves are fitted on other questions, on folds that are the same for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, brier_score_loss

from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions, settings
from faithscope.experiments.analysis.comparison.joined import KEY, Joined
from faithscope.experiments.analysis.comparison.scores import COSTS
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.calibration import (
    Event,
    calibration_error,
    curves_table,
)
from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns, only, with_interval

MONITOR = "monitor"
"""The family of classifiers that were trained on what was read inside the model."""
ALL = "all"
AUDIT, SCREEN = 0.9, 0.9
"""The precision that an audit keeps, and the recall that a screening keeps."""
LENGTHS = 3
"""Bins of the reasoning's length, equally full."""
ONE_KIND = "the label does not vary"
NO_SCORE = "no trace with the label has a score"
TOO_FEW = "too few of a kind to fit on other questions"
AGAINST = ["label", "by", "setting", "measure", "family", "n", "n_unfaithful", "n_missing"]
AGAINST += [*with_interval("auroc"), "average_precision", "g_mean_squared", "bias"]
AGAINST += ["calibration", "brier", "calibration_error", *with_interval("audit_precision")]
AGAINST += ["audit_recall", *with_interval("screen_recall"), "screen_precision", *COSTS]
AGAINST += ["reason"]
TRUST = ["label", "measure", "family", "n", "n_unfaithful", *with_interval("auroc", "behind")]
TRUST += ["as_good", *COSTS, "reason"]
FRONT = ["label", "measure", "family", "auroc", "cost", "value", "on_front", "reason"]
COVERS = 0.8
"""Share of the traces with the label that a measure must have scored to be set against others."""
TOO_SPARSE = f"scores of less than {COVERS:.0%} of the traces with the label".replace("%", " %")
TOO_FEW_OF_KIND = f"scores of fewer than {detection.LEAST_OF_KIND} traces of a kind"


@dataclass(frozen=True)
class Target:
    """One label, the traces that have it, and the folds that everything fitted to it shares."""

    label: str
    rows: np.ndarray
    """Places of the traces."""
    unfaithful: np.ndarray
    clusters: np.ndarray
    settings: np.ndarray
    fold: np.ndarray | None
    scores: Mapping[str, np.ndarray]
    """Measure or monitor -> how unfaithful it calls each trace; NaN for none."""
    families: Mapping[str, str]
    probabilities: Mapping[str, float]
    """Measures that are probabilities -> what is added to their scores to have that of the
    unfaithful kind."""

    def measures(self, *families: str) -> list[str]:
        """Those that are no monitors, of some families or of all."""
        of = families or tuple(set(self.families.values()) - {MONITOR})
        return [name for name, family in self.families.items() if family in of]

    def matrix(self, names: list[str]) -> np.ndarray:
        """(traces, names) scores."""
        return np.stack([self.scores[name] for name in names], axis=1)


def targets(joined: Joined, n_folds: int, seed: int) -> list[Target]:
    """Every label with two values, and what is held against it.

    A label that takes other values than 1 and 0 is none to tell kinds apart by, and is left out
    here.
    """
    found = []
    where, strata = questions(joined), settings(joined)
    for label in joined.labels.index:
        value = joined.wide()[label].to_numpy(dtype=float)
        known = np.flatnonzero(~np.isnan(value))
        if not len(known) or set(value[known]) - {0.0, 1.0}:
            continue
        # one kind alone is counted, and nothing can be told of it
        higher = bool(joined.labels.loc[label, "higher_is_faithful"])
        unfaithful = value[known] == (0.0 if higher else 1.0)
        fold = detection.folds(unfaithful, where[known], n_folds, seed)
        names = [str(name) for name in joined.measures.index]
        scores = {
            n: -joined.oriented[n].to_numpy(dtype=float)[known].round(DECIMALS) for n in names
        }
        families = dict(joined.measures["family"])
        if fold is not None:
            for name, p in _monitors(joined, known, unfaithful, where[known], fold):
                scores[name], families[name] = p, MONITOR
        likely = joined.measures.loc[joined.measures["probability"].astype(bool)]
        found.append(
            Target(
                *(str(label), known, unfaithful, where[known], strata[known], fold),
                scores,
                {str(k): str(v) for k, v in families.items()},
                {str(m): float(up) for m, up in likely["higher_is_faithful"].items()},
            )
        )
    return found


def _monitors(
    joined: Joined,
    known: np.ndarray,
    unfaithful: np.ndarray,
    clusters: np.ndarray,
    fold: np.ndarray,
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields each monitor with the probabilities that it gives traces it was not trained on."""
    for name, table in joined.features.items():
        features = table.reindex(joined.index).to_numpy(dtype=float)[known]
        there = ~np.isnan(features).any(axis=1)
        parts = [there & (fold != i) for i in np.unique(fold)]
        if any(len(set(unfaithful[part])) < 2 for part in parts):
            continue
        p = np.full(len(known), np.nan)
        p[there] = detection.cross_fitted(
            *(features[there], unfaithful[there], clusters[there], fold[there]), detection.logistic
        )
        yield f"monitor: {name}", p


def against_tables(
    joined: Joined, of_labels: list[Target], how: Drawing
) -> dict[str, pd.DataFrame]:
    """`against`: a row per label, setting and measure, monitors among them; the best AUROC first.
    `reliability`: the reliability curve of each over all traces, a row per bin that holds some.

    Settings are all traces, those of each model and task, and three bins of the reasoning's length.
    `bias` is the share called unfaithful minus the share that is. A monitor costs nothing beside
    what it reads, so that its costs are missing.
    """
    table, events = [], []
    for target in of_labels:
        costs = _costs(joined, target)
        for by, setting, members in _settings(joined, target):
            for name in target.scores:
                row = {"label": target.label, "by": by, "setting": setting, "measure": name}
                row |= {"family": target.families[name]}
                held, event = _held(target, name, members, how)
                table.append(row | held | costs.get(name, {}))
                if by == ALL and event is not None:
                    about = {k: row[k] for k in ("label", "measure", "family")}
                    events.append(replace(event, about=about))
    frame = pd.DataFrame(table, columns=AGAINST)
    order = ["label", "by", "setting", "auroc"]
    first = {ALL: 0}
    frame = frame.sort_values(
        order,
        ascending=[True, True, True, False],
        kind="stable",
        key=lambda c: c.map(lambda x: (first.get(x, 1), x)) if c.name in ("by", "setting") else c,
    )
    about = ["label", "measure", "family"]
    curves = curves_table(events, about, "p_unfaithful", "unfaithful")
    return {"against": frame.reset_index(drop=True), "reliability": curves}


def _settings(joined: Joined, target: Target) -> Iterator[tuple[str, str, np.ndarray]]:
    yield ALL, ALL, np.ones(len(target.rows), dtype=bool)
    names = sorted(set(target.settings))
    if len(names) > 1:
        yield from (("setting", name, target.settings == name) for name in names)
    length = joined.traces["n_tokens"].to_numpy(dtype=float)[target.rows]
    if np.isnan(length).all():
        length = joined.traces["n_steps"].to_numpy(dtype=float)[target.rows]
    known = length[~np.isnan(length)]
    ends = np.unique(np.quantile(known, np.linspace(0, 1, LENGTHS + 1))) if len(known) else known
    if len(ends) > 2:
        # the last bin holds its end
        place = np.clip(np.searchsorted(ends, length, side="right") - 1, 0, len(ends) - 2)
        for i in range(len(ends) - 1):
            title = f"length {ends[i]:.0f} to {ends[i + 1]:.0f}"
            yield "length", title, (place == i) & ~np.isnan(length)


def _held(
    target: Target, name: str, members: np.ndarray, how: Drawing
) -> tuple[dict[str, Any], Event | None]:
    score = target.scores[name]
    here = members & ~np.isnan(score)
    kind, s, clusters = target.unfaithful[here], score[here], target.clusters[here]
    row: dict[str, Any] = {"n": len(kind), "n_unfaithful": int(kind.sum())}
    row |= {"n_missing": int(members.sum() - here.sum())}
    if len(set(kind)) < 2:
        return row | {"reason": ONE_KIND if len(kind) else NO_SCORE}, None
    row |= columns("auroc", auroc(clusters, kind, s, how))
    row |= {"average_precision": float(average_precision_score(kind, s)), "reason": ""}
    whole = ~np.isnan(score)
    if target.fold is None or len(set(target.unfaithful[whole])) < 2:
        return row | {"reason": TOO_FEW}, None
    # what is fitted is fitted on all settings, and held against this one
    fitted = (target.unfaithful[whole], score[whole], target.fold[whole])
    within = here[whole]
    if any(len(set(fitted[0][fitted[2] != i])) < 2 for i in np.unique(fitted[2])):
        return row | {"reason": TOO_FEW}, None
    called = detection.called_by(*fitted, detection.best_threshold)
    if called is not None:
        row["g_mean_squared"] = detection.g_mean_squared(kind, called[within])
        row["bias"] = float(called[within].mean() - kind.mean())
    words, p = _probability(target, name, fitted, target.clusters[whole])
    event = Event({}, clusters, kind, np.clip(p[within], 0, 1))
    row |= {"calibration": words, "brier": float(brier_score_loss(kind, event.p))}
    row |= {"calibration_error": calibration_error(kind, event.p)}
    return row | dict(_points(fitted, within)), event


def _probability(
    target: Target, name: str, fitted: tuple[np.ndarray, ...], clusters: np.ndarray
) -> tuple[str, np.ndarray]:
    """The probability of the unfaithful kind, and where it is from."""
    kind, score, fold = fitted
    if name in target.probabilities:
        return "as given", target.probabilities[name] + score
    if target.families[name] == MONITOR:
        return "as given", score
    p = detection.cross_fitted(score[:, None], kind, clusters, fold, detection.platt)
    return "Platt, on other questions", p


def _points(fitted: tuple[np.ndarray, ...], within: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yields the two operating points; nothing of one that the other folds do not reach."""
    for name, kept in (("audit", {"precision": AUDIT}), ("screen", {"recall": SCREEN})):
        cut = partial(detection.threshold_for, **kept)
        kind, score, fold = fitted
        called = detection.called_by(kind, score, fold, cut)
        if called is None:
            continue
        hits, n_called, n_kind = detection.precision_and_recall(fitted[0][within], called[within])
        precision, recall = wilson(hits, n_called), wilson(hits, n_kind)
        if name == "audit":
            yield from columns("audit_precision", precision).items()
            yield "audit_recall", recall.value
        else:
            yield from columns("screen_recall", recall).items()
            yield "screen_precision", precision.value


def _costs(joined: Joined, target: Target) -> dict[str, dict[str, float]]:
    """Measure -> its mean costs of the traces that have them."""
    here = joined.traces.iloc[target.rows]
    keys = pd.MultiIndex.from_frame(only(here, KEY))
    found: dict[str, dict[str, float]] = {}
    for cost in COSTS:
        mean = joined.wide(cost).reindex(keys).mean().to_dict()
        for name in joined.measures.index:
            found.setdefault(str(name), {})[cost] = float(mean[name])
    return found


def _why_not(row: Mapping[str, Any]) -> str:
    """Why a row of `against` is not set against others; empty where it is."""
    if row["n"] < COVERS * (row["n"] + row["n_missing"]):
        return TOO_SPARSE
    fewest = min(row["n_unfaithful"], row["n"] - row["n_unfaithful"])
    return TOO_FEW_OF_KIND if fewest < detection.LEAST_OF_KIND else ""


def front_table(against: pd.DataFrame) -> pd.DataFrame:
    """A row per label, measure and cost that is known: whether no cheaper measure is as good.

    A measure with too few scores is never on the front, and `reason` says why.
    """
    table = []
    whole = against.loc[(against["by"] == ALL) & against["auroc"].notna()]
    for label, of_label in whole.groupby("label", sort=False):
        for cost in COSTS:
            known = of_label.loc[of_label[cost].notna()].sort_values(
                [cost, "auroc"], ascending=[True, False], kind="stable"
            )
            best = -math.inf
            for row in known.to_dict("records"):
                reason = _why_not(row)
                on_front = not reason and row["auroc"] > best
                best = max(best, row["auroc"]) if not reason else best
                about = {"label": label, "cost": cost, "value": row[cost], "on_front": on_front}
                about |= {k: row[k] for k in ("measure", "family", "auroc")}
                table.append(about | {"reason": reason})
    return pd.DataFrame(table, columns=FRONT)


def trust_table(against: pd.DataFrame, of_labels: list[Target], how: Drawing) -> pd.DataFrame:
    """A row per label and measure, the best first, of equals the one that asks the model least:
    how far it is behind the best, and its costs. Those with too few scores come last, and `reason`
    says why they are compared with none.

    `behind`: the best AUROC minus the measure's on the traces that have both, in the same draws;
    `as_good` where its interval holds 0, so that the two cannot be told apart here; empty where
    there is no interval. The best of a measure is a measure, that of a monitor, which was trained
    on the label, a monitor.
    """
    table = []
    whole = against.loc[(against["by"] == ALL) & against["auroc"].notna()]
    for target in of_labels:
        of_label = whole.loc[whole["label"] == target.label].round({"auroc": DECIMALS})
        order, ascending = ["auroc", *COSTS], [False, *(True for _ in COSTS)]
        ordered = of_label.sort_values(order, ascending=ascending, kind="stable")
        rows = [row | {"reason": _why_not(row)} for row in ordered.to_dict("records")]
        best: dict[bool, np.ndarray] = {}
        for row in sorted(rows, key=lambda row: row["reason"] != ""):
            line: dict[str, Any] = {name: row[name] for name in TRUST if name in row}
            line |= {"as_good": None}
            if not row["reason"]:
                own = target.scores[row["measure"]]
                first = best.setdefault(row["family"] == MONITOR, own)
                both = ~np.isnan(first) & ~np.isnan(own)
                of = (target.clusters[both], target.unfaithful[both], first[both])
                behind = auroc(*of, how, minus=own[both])
                line |= columns("behind", behind)
                line |= {"as_good": None if math.isnan(behind.low) else bool(behind.low <= 0)}
            table.append(line)
    return pd.DataFrame(table, columns=TRUST)
