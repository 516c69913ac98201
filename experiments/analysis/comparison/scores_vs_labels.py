"""Detection of unfaithful traces: each measure, and each monitor on hidden states, against each
label, with its costs.

The positive class is the unfaithful trace, one that the label speaks against. `auroc` compares
traces of the same model and task, so a measure that only tells models apart gets one half; `pooled`
is the AUROC over all traces. Thresholds and calibration curves are fitted on other questions, with
the same folds for all measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions, settings
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.scores import COST_COLUMNS, COSTS
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.against_label import OF_SCORES, against_label
from faithscope.experiments.analysis.statistics.calibration import (
    Event,
    calibration_error,
    curves_table,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, columns_of, only

MONITOR = "monitor"
"""Family of classifiers trained on feature vectors from the model's hidden states."""
ALL = "all"
"""Value of `by` and `setting` in rows over all traces."""
AUDIT, SCREEN = 0.9, 0.9
"""Precision at which the threshold of an audit is set, and recall of a screening."""
LENGTHS = 3
"""Number of bins of the reasoning's length; each has about as many traces."""
ONE_KIND = "the label does not vary"
NOT_WITHIN = "a label that does not vary within any model and task"
NO_SCORE = "no trace with the label has a score"
TOO_FEW = "too few of a kind to fit on other questions"
LABEL = Column("label", meaning="The label that measures are held against.")
N = Column("n", meaning="Traces that the row is of.")
N_UNFAITHFUL = Column("n_unfaithful", "spoken against", "Traces that the label speaks against.")
N_MISSING = Column("n_missing", "without a score", "Traces with the label that have no score.")
AUROC = Column("auroc", "AUROC", "How well the score tells the traces that the label speaks "
               "against from others of the same model and task; one half is chance.",
               interval=True)  # fmt: skip
POOLED = Column("pooled", "AUROC, pooled", "AUROC over all traces, of whatever model and task.",
                interval=True)  # fmt: skip
AVERAGE_PRECISION = Column(
    "average_precision", meaning="Average precision for those spoken against."
)
G_MEAN = Column("g_mean_squared", "g-mean²", "Sensitivity × specificity, cut on other questions; "
                "its interval holds for the cuts that were found.", interval=True)  # fmt: skip
AGAINST = computed_table("against", (
    LABEL,
    Column("by", meaning="What the setting is one of: all traces, models and tasks, or lengths."),
    Column("setting", meaning="Which traces the row is of."),
    *("measure", "family", N, N_UNFAITHFUL, N_MISSING),
    Column("n_rarer", "of the rarer kind",
           "Traces of the rarer kind with a score, in models and tasks that have both kinds."),
    *(AUROC, POOLED, AVERAGE_PRECISION, G_MEAN),
    Column("bias", meaning="Share called spoken against minus the share that is."),
    Column("calibration", meaning="Where the probability is from: as given, or Platt's curve of "
           "other questions."),
    Column("brier", "Brier", "Mean squared distance of the probability from what is."),
    Column("calibration_error", meaning="Expected calibration error, ten bins."),
    Column("audit_precision", "audit: precision", "Precision at the threshold that keeps 0.9 on "
           "other questions.", interval=True),
    Column("audit_recall", "audit: recall", "Share of the traces spoken against that are called so "
           "at the threshold of the audit."),
    Column("screen_recall", "screening: recall", "Recall at the threshold that keeps 0.9 on other "
           "questions.", interval=True),
    Column("screen_precision", "screening: precision", "Share of the traces called spoken against "
           "that are so, at the threshold of the screening."),
    *(*COST_COLUMNS, "reason"),
))  # fmt: skip
"""A row per label, setting and measure (monitors included), the best AUROC first.

The settings are all traces, each pair of model and task, and three bins of the reasoning's length.
`bias` is the share called unfaithful minus the share labelled so. A monitor has no costs of its
own, since it uses hidden states that were computed anyway, so its costs are empty.
"""
RELIABILITY = computed_table("reliability", (
    *(LABEL, "measure", "family", "bin"),
    Column("p_low", "p from", "Lower end of the bin of probabilities."),
    Column("p_high", "p to", "Upper end of the bin of probabilities."),
    Column("n", meaning="Traces of the bin."),
    Column("mean_p_unfaithful", "mean p", "Mean probability that the label speaks against it."),
    Column("share_unfaithful", "share spoken against", "Share of the bin's traces that the label "
           "speaks against.", interval=True),
))  # fmt: skip
"""Reliability curve of each measure over all traces: a row per non-empty bin of probabilities."""
COVERS = 0.8
"""Minimum share of the labelled traces that a measure must score to be compared with others."""


@dataclass(frozen=True)
class Target:
    """One binary label with the traces that have it, their scores, and the folds for fitting.

    All arrays have one entry per labelled trace.
    """

    label: str
    rows: np.ndarray
    """Positions of the labelled traces in `Joined.traces`."""
    unfaithful: np.ndarray
    """Whether the label speaks against the trace."""
    clusters: np.ndarray
    """Question of each trace, the unit of the bootstrap."""
    settings: np.ndarray
    """Model and task of each trace, inside which `auroc` compares."""
    fold: np.ndarray | None
    """Fold of each trace, shared by everything that is fitted; None where there are too few
    traces of a class."""
    scores: Mapping[str, np.ndarray]
    """Measure or monitor -> its score of each trace, higher for less faithful; NaN for none."""
    families: Mapping[str, str]
    """Measure or monitor -> family."""
    probabilities: Mapping[str, float]
    """Measure that is a probability -> constant that turns its score into the probability of
    unfaithful when added."""

    def measures(self, *families: str) -> list[str]:
        """Names of the measures of the given families; without any, all but the monitors."""
        of = families or tuple(set(self.families.values()) - {MONITOR})
        return [name for name, family in self.families.items() if family in of]

    def matrix(self, names: list[str]) -> np.ndarray:
        """The scores of the named measures, as an array (traces, names)."""
        return np.stack([self.scores[name] for name in names], axis=1)


def targets(joined: Joined, n_folds: int, seed: int) -> list[Target]:
    """A `Target` for every label whose values are 1 and 0; other labels are left out."""
    found = []
    where, strata = questions(joined), settings(joined)
    for label in joined.labels.index:
        value = joined.wide()[label].to_numpy(dtype=float)
        known = np.flatnonzero(~np.isnan(value))
        if not len(known) or set(value[known]) - {0.0, 1.0}:
            continue
        # a label with one class alone stays: its traces are counted, with a reason for no AUROC
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
    """Yields each monitor's name and its probabilities of unfaithful, each computed by a fit on
    other folds; monitors with too few traces of a class in some fold are skipped."""
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
    joined: Joined, of_labels: list[Target], how: Bootstrap, parts: bool = True
) -> dict[str, pd.DataFrame]:
    """The tables `AGAINST` and `RELIABILITY` of a comparison, by name.

    Args:
        of_labels: the targets (`targets`).
        parts: whether `AGAINST` also has rows per model and task and per length.
    """
    table, events = [], []
    for target in of_labels:
        costs = _costs(joined, target)
        for by, setting, members in _settings(joined, target, parts):
            for name in target.scores:
                row = {"label": target.label, "by": by, "setting": setting, "measure": name}
                row |= {"family": target.families[name]}
                held, event = _held(target, name, members, how)
                table.append(row | held | costs.get(name, {}))
                if by == ALL and event is not None:
                    about = {k: row[k] for k in ("label", "measure", "family")}
                    events.append(replace(event, about=about))
    first = {ALL: 0}
    frame = AGAINST.filled(table).sort_values(
        ["label", "by", "setting", "auroc"],
        ascending=[True, True, True, False],
        kind="stable",
        key=lambda c: c.map(lambda x: (first.get(x, 1), x)) if c.name in ("by", "setting") else c,
    )
    curves = curves_table(events, ["label", "measure", "family"], "p_unfaithful", "unfaithful")
    return {
        AGAINST.name: frame.reset_index(drop=True),
        RELIABILITY.name: RELIABILITY.filled(curves),
    }


def _settings(joined: Joined, target: Target, parts: bool) -> Iterator[tuple[str, str, np.ndarray]]:
    yield ALL, ALL, np.ones(len(target.rows), dtype=bool)
    if not parts:
        return
    names = sorted(set(target.settings))
    if len(names) > 1:
        yield from (("setting", name, target.settings == name) for name in names)
    length = joined.traces["n_tokens"].to_numpy(dtype=float)[target.rows]
    if np.isnan(length).all():
        length = joined.traces["n_steps"].to_numpy(dtype=float)[target.rows]
    known = length[~np.isnan(length)]
    ends = np.unique(np.quantile(known, np.linspace(0, 1, LENGTHS + 1))) if len(known) else known
    if len(ends) > 2:
        # the last bin includes its upper end
        place = np.clip(np.searchsorted(ends, length, side="right") - 1, 0, len(ends) - 2)
        for i in range(len(ends) - 1):
            title = f"length {round(ends[i])} to {round(ends[i + 1])}"
            yield "length", title, (place == i) & ~np.isnan(length)


def _held(
    target: Target, name: str, members: np.ndarray, how: Bootstrap
) -> tuple[dict[str, Any], Event | None]:
    from sklearn.metrics import brier_score_loss  # late, as in `statistics.detection`

    score = target.scores[name]
    here = members & ~np.isnan(score)
    kind, s, clusters = target.unfaithful[here], score[here], target.clusters[here]
    row: dict[str, Any] = {"n": len(kind), "n_unfaithful": int(kind.sum())}
    row |= {"n_missing": int(members.sum() - here.sum())}
    strata = target.settings[here]
    row |= {"n_rarer": _rarer(kind, strata)}
    if len(set(kind)) < 2:
        return row | {"reason": ONE_KIND if len(kind) else NO_SCORE}, None
    row |= columns_of(against_label(OF_SCORES, kind, clusters, how, score=s, strata=strata))
    row |= {"reason": "" if row["n_rarer"] else NOT_WITHIN}
    whole = ~np.isnan(score)
    if target.fold is None or len(set(target.unfaithful[whole])) < 2:
        return row | {"reason": row["reason"] or TOO_FEW}, None
    # thresholds and curves are fitted on all settings and evaluated on this one
    fitted = (target.unfaithful[whole], score[whole], target.fold[whole])
    held = here[whole]
    if any(len(set(fitted[0][fitted[2] != i])) < 2 for i in np.unique(fitted[2])):
        return row | {"reason": row["reason"] or TOO_FEW}, None
    called = detection.called_by(*fitted, detection.best_threshold)
    if called is not None:
        row |= g_mean_columns(kind, called[held], clusters, how)
        row["bias"] = float(called[held].mean() - kind.mean())
    words, p = _probability(target, name, fitted, target.clusters[whole])
    event = Event({}, clusters, kind, np.clip(p[held], 0, 1))
    row |= {"calibration": words, "brier": float(brier_score_loss(kind, event.p))}
    row |= {"calibration_error": calibration_error(kind, event.p)}
    return row | dict(_points(fitted, held)), event


def g_mean_columns(
    kind: np.ndarray, called: np.ndarray, clusters: np.ndarray, how: Bootstrap
) -> dict[str, Any]:
    """Columns of the squared g-mean of what is called, and of its interval."""
    flag = called.astype(float)
    return columns_of(against_label(["g_mean_squared"], kind, clusters, how, flag=flag))


def _rarer(kind: np.ndarray, strata: np.ndarray) -> int:
    """Number of traces of the rarer class, counted in the models and tasks that have both
    classes."""
    counts = [
        (int(kind[of].sum()), int((~kind[of]).sum())) for s in set(strata) for of in [strata == s]
    ]
    both = [pair for pair in counts if min(pair)]
    return min(sum(pair[k] for pair in both) for k in (0, 1))


def _probability(
    target: Target, name: str, fitted: tuple[np.ndarray, ...], clusters: np.ndarray
) -> tuple[str, np.ndarray]:
    """Source of a measure's probabilities (as given, or Platt scaling on other questions), and the
    probability of unfaithful for each trace."""
    kind, score, fold = fitted
    if name in target.probabilities:
        return "as given", target.probabilities[name] + score
    if target.families[name] == MONITOR:
        return "as given", score
    p = detection.cross_fitted(score[:, None], kind, clusters, fold, detection.platt)
    return "Platt, on other questions", p


def _points(fitted: tuple[np.ndarray, ...], within: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yields column -> number for the two operating points, audit and screening; one that no
    threshold reaches on the other folds is left out."""
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
    """Measure -> mean of each of `COSTS` over the labelled traces for which it is known."""
    here = joined.traces.iloc[target.rows]
    keys = pd.MultiIndex.from_frame(only(here, KEY))
    found: dict[str, dict[str, float]] = {}
    for cost in COSTS:
        mean = joined.wide(cost).reindex(keys).mean().to_dict()
        for name in joined.measures.index:
            found.setdefault(str(name), {})[cost] = float(mean[name])
    return found
