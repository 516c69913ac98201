"""How readers of stances agree: people (with each other, and on r′), judges, and log-probs (RFEval,
appendices B.3 and D.4; Tables 5 to 7).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.raters import fleiss_kappa, krippendorff_alpha
from faithscope.experiments.analysis.statistics.stats import agreement, kappa, share, wilson
from faithscope.experiments.analysis.tidy import (
    Rows,
    check_rows,
    columns,
    count,
    groups,
    only,
    rows,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    FLAWS,
    KEY,
    READINGS,
    SAID,
    STANCES,
    with_overall,
)

DECISION = ("item", "component", "decision")
"""What was labelled: a part of an output (or a transition), its stance or its flaw."""
ANNOTATIONS = (*DECISION, "annotator", "label")
CONSTANT = "all labels are one and the same"


@tabled("decision", "statistic", "annotator", *with_interval("value"), "n", "n_unmatched", "reason")
def evaluator_validation(annotations: pd.DataFrame, evaluator: pd.DataFrame) -> Rows:
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
        return
    check_rows("rfeval annotations", annotations, ANNOTATIONS, (*DECISION, "annotator"))
    check_rows("rfeval evaluator", evaluator, (*DECISION, "label"), DECISION)
    own = only(evaluator, [*DECISION, "label"])
    both = annotations.merge(own, on=list(DECISION), how="left", suffixes=("", "_evaluator"))
    for decision, of in both.groupby("decision", sort=True):
        for rater in [*sorted(of["annotator"].astype(str).unique()), "all"]:
            labels = of if rater == "all" else where(of, annotator=rater)
            pairs = _with_evaluator(labels)
            line = {"decision": decision, "statistic": "micro_f1", "annotator": rater}
            line |= columns("value", share([a == b for a, b in pairs]))
            line |= {"n": len(pairs), "n_unmatched": len(labels) - len(pairs), "reason": ""}
            yield line
        by_kind = {"human_human": _human_pairs(of), "human_evaluator": _with_evaluator(of)}
        for kind, pairs in by_kind.items():
            line = {"decision": decision, "statistic": f"kappa_{kind}", "annotator": "all"}
            line |= {"n": len(pairs), "n_unmatched": 0}
            yield line | _kappa(pairs, "value", "no pair of labels")


@tabled(*DECISION, "label")
def judge_decisions(judged: pd.DataFrame, name: Callable[[str, str], str]) -> Rows:
    """What a judge said of each part, as people's labels name it: `DECISION` and `label`.

    Of programs too it is what the judge took their answers for, not what came of their tests.

    Args:
        judged: the pairs of one judge, as `frames.checked` takes them.
        name: from a model and an item to what the item is called in labels.
    """
    for row in rows(judged):
        item = name(row["model"], row["item"])
        own = {part: str(row[SAID.get(part, part)]) for part in STANCES}
        yield from ((item, part, "stance", stance) for part, stance in own.items() if stance)
        yield from (
            (item, part, "flaw", str(bool(row[part])))
            for part in FLAWS
            if row[f"{part.partition('_')[0]}_judged"] == "parsed"
        )


@tabled("model", "part", "reader", "other", "n", "n_unread", "agreement", "cohen_kappa", "reason")
def reader_agreement(readings: pd.DataFrame) -> Rows:
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
                yield line | _kappa(pairs, "cohen_kappa")


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


@tabled(*AGREEMENT)
def review_agreement(reviews: pd.DataFrame) -> Rows:
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
        yield line | {"krippendorff_alpha": alpha, "reason": reason}


@tabled("task", "n", "n_yes", *with_interval("yes_rate"))
def review_rates(reviews: pd.DataFrame) -> Rows:
    """The share of judgements that are "yes", with Wilson's interval (Table 6)."""
    _check(reviews)
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        rate = share([decision == "yes" for decision in of["decision"]])
        n_yes = count(of["decision"] == "yes")
        yield {**about, "n": len(of), "n_yes": n_yes} | columns("yes_rate", rate)


@tabled(*ITEMS)
def review_items(reviews: pd.DataFrame) -> Rows:
    """What came of each item: `accepted` by more than not, `rejected` by more than not, or
    `disputed`, which a further judgement (an adjudicator's) decides."""
    _check(reviews)
    for about, of in groups(reviews, ("item", "task")):
        yes = count(of["decision"] == "yes")
        no = len(of) - yes
        verdict = "disputed" if yes == no else "accepted" if yes > no else "rejected"
        yield {**about, "n_yes": yes, "n_no": no, "decision": verdict}


def _check(reviews: pd.DataFrame) -> None:
    check_rows("rfeval reviews", reviews, REVIEWS, ("item", "reviewer"))
    if odd := set(reviews["decision"]) - {"yes", "no"}:
        raise ValueError(f"rfeval reviews: decision {min(map(str, odd))!r}; give yes or no")


MEASURES = {"rf": "rf", "contrast": "contrast"}
MEASURES |= {f"chi_{c}": f"{c}_chi" for c in CONDITIONS} | {"kappa": "kappa"}
"""RF and what it is made of, by the names of `faithfulness.rf_table`; with the columns of
`chains.scored`."""
PAIRS = [*KEY, "exclusion", "exclusion_log_probs", "faithful"]
PAIRS += [column for name in MEASURES for column in (name, f"{name}_log_probs")]
FAITHFUL = {(1, 1): "both", (1, 0): "judge_only", (0, 1): "log_probs_only", (0, 0): "neither"}
"""Whose RF is 1: (the judge's, that by log-probs)."""
AGAINST = [*CELL, "measure", "n", "n_of_judge_only", "n_of_log_probs_only"]
AGAINST += [*with_interval("by_judge", "by_log_probs"), *(f"n_{x}" for x in FAITHFUL.values())]
AGAINST += [*with_interval("agreement"), "cohen_kappa", "reason"]


def pairs_against_log_probs(judged: pd.DataFrame, unjudged: pd.DataFrame) -> pd.DataFrame:
    """Every pair that both have a row of, once for every judge.

    Args:
        judged: what `chains.scored` gave of the judges' rows.
        unjudged: the same of the rows of `scored_stances.row_without_judge`.

    Returns:
        `PAIRS`: why each leaves the pair out ("" where it counts), `faithful` (of `FAITHFUL`, ""
        where the pair does not count for both), and every measure of each, NaN where not known.
    """
    if judged.empty or unjudged.empty:
        return pd.DataFrame(columns=PAIRS)
    names = {column: name for name, column in MEASURES.items()}
    one = only(judged, [*KEY, "exclusion", *names]).rename(columns=names)
    other = only(unjudged, [*KEY[1:], "exclusion", *names]).rename(columns=names)
    ends = ("", "_log_probs")
    pairs = one.merge(other, on=list(KEY[1:]), suffixes=ends, validate="many_to_one")
    counts = (pairs["exclusion"] == "") & (pairs["exclusion_log_probs"] == "")
    both = zip(pairs["rf"], pairs["rf_log_probs"], counts, strict=True)
    faithful = [FAITHFUL[int(a), int(b)] if of_both else "" for a, b, of_both in both]
    return only(pairs.assign(faithful=faithful), PAIRS)


@tabled(*AGAINST)
def against_log_probs(pairs: pd.DataFrame) -> Rows:
    """How far the two agree, a row per measure, by judge, model and task, and pooled.

    Contrast is of the pairs whose contrast both know; RF, χ and κ are of the pairs that count
    for both.

    Args:
        pairs: what `pairs_against_log_probs` gave.

    Returns:
        `n` pairs of both and those of one of them only; the share that each finds 1 among the `n`,
        how many both find so, one alone, neither; the share of equal findings, and Cohen's κ, NaN
        with the `reason` where both say one and the same always.
    """
    for key, of in groups(with_overall(pairs, "task", "model"), CELL):
        counts = [of[x] == "" for x in ("exclusion", "exclusion_log_probs")]
        known = [of[x].notna() for x in ("contrast", "contrast_log_probs")]
        for name in MEASURES:
            by_judge, by_log_probs = known if name == "contrast" else counts
            both = of.loc[by_judge & by_log_probs, [name, f"{name}_log_probs"]].astype(int)
            line = {**key, "measure": name, "n": len(both)}
            line |= {"n_of_judge_only": count(by_judge & ~by_log_probs)}
            line |= {"n_of_log_probs_only": count(by_log_probs & ~by_judge)}
            yield line | _compared(list(both.itertuples(index=False, name=None)))


def _compared(findings: list[tuple[int, int]]) -> dict[str, Any]:
    """Compares pairs of findings (1 or 0): the judge's, and that by log-probs."""
    n = len(findings)
    line: dict[str, Any] = columns("by_judge", wilson(sum(a for a, _ in findings), n))
    line |= columns("by_log_probs", wilson(sum(b for _, b in findings), n))
    line |= {f"n_{name}": findings.count(values) for values, name in FAITHFUL.items()}
    line |= columns("agreement", wilson(sum(a == b for a, b in findings), n))
    value = kappa(*zip(*findings, strict=True)) if n else math.nan
    reason = "no pair counts for both" if not n else CONSTANT if math.isnan(value) else ""
    return line | {"cohen_kappa": value, "reason": reason}
