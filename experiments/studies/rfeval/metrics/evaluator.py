"""How well a reader of stances agrees with people, and readers with each other (RFEval, D.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.stats import agreement, kappa, share
from faithscope.experiments.analysis.tidy import (
    check_rows,
    columns,
    groups,
    only,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.frames import READINGS, STANCES

DECISION = ("item", "component", "decision")
"""What was labelled: a part of an output (or a transition), its stance or its flaw."""
ANNOTATIONS = (*DECISION, "annotator", "label")
VALIDATION = ["decision", "statistic", "annotator", *with_interval("value"), "n", "n_unmatched"]
VALIDATION += ["reason"]
READERS = ["model", "part", "reader", "other", "n", "n_unread", "agreement", "cohen_kappa"]
READERS += ["reason"]
CONSTANT = "all labels are one and the same"


def evaluator_validation(annotations: pd.DataFrame, evaluator: pd.DataFrame) -> pd.DataFrame:
    """Micro-F1 of the evaluator against people, and Cohen's κ among people and with it.

    `micro_f1`: against each annotator, and pooled over all labels ("all"); with one label a
    decision it is the share of equal labels, with Wilson's interval. `kappa_human_human`: over all
    unordered pairs of annotators of a decision, taken as one list of label pairs (the earlier
    name first); `kappa_human_evaluator`: each person's label with the evaluator's.

    Args:
        annotations: `ANNOTATIONS`, a row per label that a person gave.
        evaluator: `DECISION` and `label`, a row per decision.

    Raises:
        ValueError: a column is missing, or a decision is labelled twice by one.
    """
    if annotations.empty:
        return pd.DataFrame(columns=VALIDATION)
    check_rows("rfeval annotations", annotations, ANNOTATIONS, (*DECISION, "annotator"))
    check_rows("rfeval evaluator", evaluator, (*DECISION, "label"), DECISION)
    own = only(evaluator, [*DECISION, "label"])
    both = annotations.merge(own, on=list(DECISION), how="left", suffixes=("", "_evaluator"))
    lines: list[dict[str, Any]] = []
    for decision, of in both.groupby("decision", sort=True):
        for rater in [*sorted(of["annotator"].astype(str).unique()), "all"]:
            labels = of if rater == "all" else where(of, annotator=rater)
            pairs = _with_evaluator(labels)
            line = {"decision": decision, "statistic": "micro_f1", "annotator": rater}
            line |= columns("value", share([a == b for a, b in pairs]))
            line |= {"n": len(pairs), "n_unmatched": len(labels) - len(pairs), "reason": ""}
            lines.append(line)
        by_kind = {"human_human": _human_pairs(of), "human_evaluator": _with_evaluator(of)}
        for kind, pairs in by_kind.items():
            line = {"decision": decision, "statistic": f"kappa_{kind}", "annotator": "all"}
            line |= {"n": len(pairs), "n_unmatched": 0}
            lines.append(line | _kappa(pairs, "value", "no pair of labels"))
    return pd.DataFrame(lines, columns=VALIDATION)


def reader_agreement(readings: pd.DataFrame) -> pd.DataFrame:
    """Every two readers of the same outputs, part by part and over all parts.

    Args:
        readings: `frames.READINGS`, of several readers, some of which may have read a few parts
            only (the answers, say).

    Returns:
        `part`: a column of stances, or `all`; `n`: parts that both have read, `n_unread`: those
        that one of the two has. Pairs of readers that share no part are left out.

    Raises:
        ValueError: a column is missing, or one reader read a part twice.
    """
    check_rows("rfeval readings", readings, READINGS, READINGS[:-1])
    lines = []
    for about, of in groups(readings, ("model",)):
        wide = of.pivot(index=["part", "task", "item"], columns="reader", values="stance")
        for one, other in itertools.combinations(map(str, wide.columns), 2):
            stances = only(wide, [one, other]).dropna(how="all")
            shared = set(stances.dropna().index.get_level_values("part"))
            for part in [*(p for p in STANCES if p in shared), *(["all"] if shared else [])]:
                here = stances if part == "all" else stances.xs(part, level="part")
                pairs = list(here.dropna().itertuples(index=False, name=None))
                line = {**about, "part": part, "reader": one, "other": other, "n": len(pairs)}
                line |= {"n_unread": len(here) - len(pairs)}
                line |= {"agreement": agreement(*zip(*pairs, strict=True))}
                lines.append(line | _kappa(pairs, "cohen_kappa"))
    return pd.DataFrame(lines, columns=READERS)


def _kappa(pairs: Sequence[tuple], name: str, none: str = "") -> dict[str, Any]:
    """Cohen's κ of pairs of labels, and why it is NaN."""
    value = kappa(*zip(*pairs, strict=True)) if pairs else math.nan
    reason = "" if not math.isnan(value) else CONSTANT if pairs else none
    return {name: value, "reason": reason}


def _with_evaluator(labels: pd.DataFrame) -> list[tuple]:
    both = only(labels, ["label", "label_evaluator"]).dropna(subset=["label_evaluator"])
    return list(both.itertuples(index=False, name=None))


def _human_pairs(of: pd.DataFrame) -> list[tuple]:
    pairs = []
    for _, labels in of.sort_values("annotator").groupby(list(DECISION), sort=True):
        pairs += itertools.combinations(labels["label"].tolist(), 2)
    return pairs
