"""What people say of r′ and of outputs, and how readers of stances agree with them and each other
(RFEval, appendices B.3 and D.4; Tables 5 to 7).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.raters import fleiss_kappa, krippendorff_alpha
from faithscope.experiments.analysis.statistics.stats import agreement, kappa, share
from faithscope.experiments.analysis.tidy import (
    check_rows,
    columns,
    count,
    groups,
    only,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.frames import READINGS, STANCES, with_overall

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


REVIEWS = ("item", "task", "reviewer", "decision")
"""A row per decision of a person: `decision` is "yes" or "no"."""
AGREEMENT = ["task", "n_items", "n_double", "n_judgements", "percent_agreement", "pabak"]
AGREEMENT += ["fleiss_kappa", "krippendorff_alpha", "reason"]
ITEMS = ["item", "task", "n_yes", "n_no", "decision"]
RATES = ["task", "n", "n_yes", *with_interval("yes_rate")]


def review_agreement(reviews: pd.DataFrame) -> pd.DataFrame:
    """How far reviewers agree, a row per task and over all.

    `percent_agreement` is the share of item pairs of judgements that are equal; `pabak` = 2p − 1,
    what is left of it where chance gives one half (two categories). Of items with two judgements
    or more; Fleiss' κ of those with exactly two. With one answer everywhere, κ and α say nothing
    and are NaN, with the `reason`.

    Raises:
        ValueError: a column is missing, a decision is neither yes nor no, or a reviewer decided
            an item twice.
    """
    _check(reviews)
    lines = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        by_item = [(x["decision"] == "yes").astype(float).tolist() for _, x in of.groupby("item")]
        several = [yes for yes in by_item if len(yes) > 1]
        equal = [a == b for yes in several for a, b in itertools.combinations(yes, 2)]
        agreed = sum(equal) / len(equal) if equal else math.nan
        line = {**about, "n_items": len(by_item), "n_double": len(several)}
        line |= {"n_judgements": len(of), "percent_agreement": agreed, "pabak": 2 * agreed - 1}
        two = [yes for yes in several if len(yes) == 2]
        line["fleiss_kappa"] = fleiss_kappa(np.array(two)) if two else math.nan
        padded = np.array(list(itertools.zip_longest(*by_item, fillvalue=math.nan))).T
        alpha, reason = krippendorff_alpha(padded, "nominal")
        lines.append(line | {"krippendorff_alpha": alpha, "reason": reason})
    return pd.DataFrame(lines, columns=AGREEMENT)


def review_rates(reviews: pd.DataFrame) -> pd.DataFrame:
    """The share of judgements that are "yes", with Wilson's interval (Table 6)."""
    _check(reviews)
    lines = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        rate = share([decision == "yes" for decision in of["decision"]])
        n_yes = count(of["decision"] == "yes")
        lines.append({**about, "n": len(of), "n_yes": n_yes} | columns("yes_rate", rate))
    return pd.DataFrame(lines, columns=RATES)


def review_items(reviews: pd.DataFrame) -> pd.DataFrame:
    """What came of each item: `accepted` by more than not, `rejected` by more than not, or
    `disputed`, which a further judgement (an adjudicator's) decides."""
    _check(reviews)
    lines = []
    for about, of in groups(reviews, ("item", "task")):
        yes = count(of["decision"] == "yes")
        no = len(of) - yes
        verdict = "disputed" if yes == no else "accepted" if yes > no else "rejected"
        lines.append({**about, "n_yes": yes, "n_no": no, "decision": verdict})
    return pd.DataFrame(lines, columns=ITEMS)


def _check(reviews: pd.DataFrame) -> None:
    check_rows("rfeval reviews", reviews, REVIEWS, ("item", "reviewer"))
    if odd := set(reviews["decision"]) - {"yes", "no"}:
        raise ValueError(f"rfeval reviews: decision {min(map(str, odd))!r}; give yes or no")
