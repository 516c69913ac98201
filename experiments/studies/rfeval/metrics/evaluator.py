"""How well a reader of stances agrees with people, and readers with each other (RFEval, D.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
from sklearn.metrics import f1_score

from faithscope.experiments.analysis.stats import NOTHING, Estimate, agreement, kappa, wilson
from faithscope.experiments.analysis.tidy import check_rows, columns, groups, only, with_interval
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

    `micro_f1`: against each annotator, and pooled over all labels ("all", with Wilson's
    interval); with one label a decision it equals accuracy. `kappa_human_human`: over all
    unordered pairs of annotators of a decision, taken as one list of label pairs (the earlier
    name first); `kappa_human_evaluator`: each person's label with the evaluator's.

    Args:
        annotations: `ANNOTATIONS`, a row per label that a person gave.
        evaluator: `DECISION` and `label`, a row per decision.

    Raises:
        ValueError: a column is missing, or a decision is labelled twice by one.
    """
    check_rows("rfeval annotations", annotations, ANNOTATIONS, (*DECISION, "annotator"))
    check_rows("rfeval evaluator", evaluator, (*DECISION, "label"), DECISION)
    both = annotations.merge(
        evaluator[[*DECISION, "label"]], on=list(DECISION), how="left", suffixes=("", "_evaluator")
    )
    made = []
    for decision, of in both.groupby("decision", sort=True):
        matched = of.dropna(subset=["label_evaluator"])
        raters = sorted(of["annotator"].astype(str).unique())
        for rater in [*raters, "all"]:
            mine = matched if rater == "all" else matched.loc[matched["annotator"] == rater]
            theirs = of if rater == "all" else of.loc[of["annotator"] == rater]
            made.append(
                {"decision": decision, "statistic": "micro_f1", "annotator": rater}
                | columns("value", micro_f1(mine["label"], mine["label_evaluator"]))
                | {"n": len(mine), "n_unmatched": len(theirs) - len(mine), "reason": ""}
            )
        for name, pairs in (
            ("kappa_human_human", _human_pairs(of)),
            (
                "kappa_human_evaluator",
                list(zip(matched["label"], matched["label_evaluator"], strict=True)),
            ),
        ):
            value = kappa([p[0] for p in pairs], [p[1] for p in pairs])
            reason = "" if not math.isnan(value) else CONSTANT if pairs else "no pair of labels"
            row = {"decision": decision, "statistic": name, "annotator": "all", "value": value}
            made.append(row | {"n": len(pairs), "n_unmatched": 0, "reason": reason})
    return pd.DataFrame(made, columns=VALIDATION)


def micro_f1(truth: Iterable[Any], said: Iterable[Any]) -> Estimate:
    """Micro-averaged F1 with Wilson's interval, which it has as the share of equal labels."""
    truth, said = list(map(str, truth)), list(map(str, said))
    if not truth:
        return NOTHING
    value = float(f1_score(truth, said, average="micro"))
    share = wilson(sum(a == b for a, b in zip(truth, said, strict=True)), len(truth))
    return Estimate(value, share.low, share.high, len(truth))


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
    made = []
    for about, of in groups(readings, ("model",)):
        wide = of.pivot(index=["part", "task", "item"], columns="reader", values="stance")
        for one, other in itertools.combinations(map(str, wide.columns), 2):
            said = only(wide, [one, other]).dropna(how="all")
            if said.dropna().empty:
                continue
            there = set(said.dropna().index.get_level_values("part"))
            for part in [*(p for p in STANCES if p in there), "all"]:
                here = said if part == "all" else said.xs(part, level="part")
                kept = here.dropna()
                left, right = kept[one].tolist(), kept[other].tolist()
                value = kappa(left, right)
                row = {**about, "part": part, "reader": one, "other": other}
                row |= {"n": len(kept), "n_unread": len(here) - len(kept)}
                row |= {"agreement": agreement(left, right), "cohen_kappa": value}
                made.append(row | {"reason": CONSTANT if math.isnan(value) else ""})
    return pd.DataFrame(made, columns=READERS)


def _human_pairs(of: pd.DataFrame) -> list[tuple[Any, Any]]:
    pairs = []
    for _, labels in of.sort_values("annotator").groupby(list(DECISION), sort=True):
        pairs += itertools.combinations(labels["label"].tolist(), 2)
    return pairs
