"""Agreement of readers of stances: people, judges, and log-probs (RFEval, appendix D.4; Table
7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Lines
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import agreement, kappa, share, wilson
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import check_rows, columns, count, keep, only, rows, where
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.frames import (
    FLAWS,
    KEY,
    READER,
    READINGS,
    REASON,
    SAID,
    STANCES,
)

DECISION = ("item", "component", "decision")
"""Key of a labelled decision: the item, a part of its output (or a transition, or r′), and whether
its stance, its flaw or its validity was labelled."""
ANNOTATIONS = (*DECISION, "annotator", "label")
VALID = "valid"
"""Kind of decision on whether an r′ meets the criteria of the paper's validation, which no judge of
outputs takes (`tables.reviews`)."""
CONSTANT = "all labels are one and the same"


def beside_the_evaluator(annotations: pd.DataFrame, evaluator: pd.DataFrame) -> pd.DataFrame:
    """People's labels of outputs beside the evaluator's of the same decision (`label_evaluator`,
    NaN if none).

    Args:
        annotations: `ANNOTATIONS`, a row per label that a person gave.
        evaluator: `DECISION` and `label`, a row per decision.

    Raises:
        ValueError: a column is missing, or a decision is labelled twice by one.
    """
    if annotations.empty:
        return annotations
    check_rows("rfeval annotations", annotations, ANNOTATIONS, (*DECISION, "annotator"))
    check_rows("rfeval evaluator", evaluator, (*DECISION, "label"), DECISION)
    annotations = keep(annotations, annotations["decision"] != VALID)
    own = only(evaluator, [*DECISION, "label"])
    both = annotations.merge(own, on=list(DECISION), how="left", suffixes=("", "_evaluator"))
    return both.sort_values("decision", kind="stable")


def _evaluated(of: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for rater in [*sorted(of["annotator"].astype(str).unique()), "all"]:
        labels = of if rater == "all" else where(of, annotator=rater)
        pairs = _with_evaluator(labels)
        line = {"statistic": "micro_f1", "annotator": rater, "n": len(pairs), "reason": ""}
        line |= columns("value", share([a == b for a, b in pairs]))
        yield line | {"n_unmatched": len(labels) - len(pairs)}
    by_kind = {"human_human": _human_pairs(of), "human_evaluator": _with_evaluator(of)}
    for kind, pairs in by_kind.items():
        line = {"statistic": f"kappa_{kind}", "annotator": "all", "n": len(pairs), "n_unmatched": 0}
        yield line | _kappa(pairs, "value", "no pair of labels")


EVALUATOR_COLUMNS = (
    Column("statistic", meaning="Which statistic it is."),
    Column("annotator", meaning="The person who labelled; `all` for all together."),
    Column("value", meaning="The statistic.", interval=True),
    Column("n", meaning="Pairs of labels that the statistic is of."),
    Column(
        "n_unmatched",
        "without a label of the judge",
        "Labels of people on decisions that the judge has no label of.",
    ),
    REASON,
)
EVALUATOR = Table(
    "rf_evaluator",
    ("annotations", "evaluator"),
    (Column("decision", meaning="What was labelled: a stance or a flaw."),),
    lines=[Lines(EVALUATOR_COLUMNS, _evaluated)],
    prepare=beside_the_evaluator,
)
"""Micro-F1 of the evaluator against people, and Cohen's κ among people and with it (D.4).

`micro_f1`: against each annotator, and pooled over all labels ("all"); with one label a
decision it is the share of equal labels, with Wilson's interval. `kappa_human_human`: over all
unordered pairs of annotators of a decision, taken as one list of label pairs (the earlier
name first); `kappa_human_evaluator`: each person's label with the evaluator's.
"""


def judge_decisions(judged: pd.DataFrame, name: Callable[[str, str], str]) -> pd.DataFrame:
    """A judge's decisions on each part, named as people's labels are: `DECISION` and `label`.

    For programs too it is the judge's reading of the answer, not the outcome of the tests.

    Args:
        judged: the pairs of one judge, as `frames.checked` takes them.
        name: from a model and an item to what the item is called in labels.
    """
    decisions: list[tuple[str, ...]] = []
    for row in rows(judged):
        item = name(row["model"], row["item"])
        own = {part: str(row[SAID.get(part, part)]) for part in STANCES}
        decisions += ((item, part, "stance", stance) for part, stance in own.items() if stance)
        decisions += (
            (item, part, "flaw", str(bool(row[part])))
            for part in FLAWS
            if row[f"{part.partition('_')[0]}_judged"] == "parsed"
        )
    return pd.DataFrame(decisions, columns=[*DECISION, "label"])


def _readings_once(readings: pd.DataFrame) -> pd.DataFrame:
    check_rows("rfeval readings", readings, READINGS, READINGS[:-1])
    return readings


def _agreements(readings: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    wide = readings.pivot(index=["part", "task", "item"], columns="reader", values="stance")
    for one, other in itertools.combinations(map(str, wide.columns), 2):
        stances = only(wide, [one, other]).dropna(how="all")
        shared = set(stances.dropna().index.get_level_values("part"))
        for part in [*(p for p in STANCES if p in shared), *(["all"] if shared else [])]:
            here = stances if part == "all" else stances.xs(part, level="part")
            pairs = list(here.dropna().itertuples(index=False, name=None))
            line = {"part": part, "reader": one, "other": other, "n": len(pairs)}
            line |= {"n_unread": len(here) - len(pairs)}
            line |= {"agreement": agreement(*zip(*pairs, strict=True))}
            yield line | _kappa(pairs, "cohen_kappa")


COHEN_KAPPA = Column("cohen_kappa", "Cohen’s κ", "Agreement beyond what chance gives.")
READERS_COLUMNS = (
    Column("part", meaning="The part of the output; `all` for all parts."),
    READER,
    SHARED["other"],
    Column("n", meaning="Parts that both have read."),
    Column("n_unread", "read by one of them", "Parts that only one of the two reads."),
    Column("agreement", meaning="Share of the stances that are the same."),
    COHEN_KAPPA,
    REASON,
)
READERS = Table(
    "rf_readers",
    "readings",
    ("model",),
    lines=[Lines(READERS_COLUMNS, _agreements)],
    prepare=_readings_once,
)
"""Every two readers of the same outputs, part by part and over all parts.

Some may have read a few parts only (the answers, say). Pairs of readers that share no part are left
out.
"""


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


MEASURES = {"rf": "rf", "contrast": "contrast"}
"""RF and its factors, by the names of the table `rfeval` -> columns of `chains.scored`."""
MEASURES |= {f"chi_{c}": f"{c}_chi" for c in CONDITIONS} | {"kappa": "kappa"}
PAIRS = [*KEY, "exclusion", "exclusion_log_probs", "faithful"]
PAIRS += [column for name in MEASURES for column in (name, f"{name}_log_probs")]
FAITHFUL = {(1, 1): "both", (1, 0): "judge_only", (0, 1): "log_probs_only", (0, 0): "neither"}
"""RF (0 or 1) by the judge and by log-probs -> name of the agreement cell."""
FOUND_BY = ("both", "the judge alone", "log-probs alone", "neither")
ONE = "Share of the pairs in which the measure is 1"


def pairs_against_log_probs(judged: pd.DataFrame, unjudged: pd.DataFrame) -> pd.DataFrame:
    """Every pair that a judge and log-probs both score, once for every judge.

    Args:
        judged: what `chains.scored` gave of the judges' rows.
        unjudged: what `chains.scored` gave of the rows of `scored_stances.row_without_judge`.

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


def _against(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    counts = [pairs[x] == "" for x in ("exclusion", "exclusion_log_probs")]
    known = [pairs[x].notna() for x in ("contrast", "contrast_log_probs")]
    for name in MEASURES:
        by_judge, by_log_probs = known if name == "contrast" else counts
        both = pairs.loc[by_judge & by_log_probs, [name, f"{name}_log_probs"]].astype(int)
        line = {"measure": name, "n": len(both)}
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
    return line | _kappa(findings, "cohen_kappa", "no pair counts for both")


AGAINST_COLUMNS = (
    SHARED["measure"],
    Column("n", meaning="Pairs in the measure by both."),
    *(
        Column(
            f"n_of_{reader}_only",
            f"count {who} only",
            f"Pairs in the measure {who} only: in no other number of the row.",
        )
        for reader, who in (("judge", "for the judge"), ("log_probs", "by log-probs"))
    ),
    *(
        Column(f"by_{reader}", f"1 by {who}", f"{ONE} by {who}.", interval=True)
        for reader, who in (("judge", "the judge"), ("log_probs", "log-probs"))
    ),
    *(
        Column(f"n_{found}", f"by {who}", f"Pairs in which the measure is 1 by {who}.")
        for found, who in zip(FAITHFUL.values(), FOUND_BY, strict=True)
    ),
    Column("agreement", "", "Share of the findings that are the same.", interval=True),
    COHEN_KAPPA,
    REASON,
)
AGAINST = Table(
    "rf_judge_against_log_probs",
    "against",
    (READER, "model", "task"),
    lines=[Lines(AGAINST_COLUMNS, _against)],
    pool=("task", "model"),
)
"""Agreement of judge and log-probs, a row per measure, by judge, model and task, and pooled.

Contrast is of the pairs whose contrast both know; RF, χ and κ are of the pairs that count
for both.
"""
TABLES = (EVALUATOR, READERS, AGAINST)
