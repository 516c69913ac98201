"""The tables of a run of FaithCoT-Bench."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable, percent
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics import resampling
from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.statistics.stats import Estimate, mean_of_items, wilson
from faithscope.experiments.analysis.tidy import columns, groups, rows, with_interval
from faithscope.experiments.analysis.traces.exclusions import check_adds_up, exclusions_table
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.engine.traces.given import unread_of
from faithscope.experiments.studies.faithcot.detectors import BY_NAME, NO_THRESHOLD, detector_of
from faithscope.experiments.studies.faithcot.metrics import (
    NO_FIT,
    STATISTICS,
    agreement,
    average_precision,
    cross_fitted_flags,
    quadrants,
)
from faithscope.experiments.studies.faithcot.results import WAY, FaithResults

PLAIN, FITTED = "plain", "fitted"
ALL = "all"
DETECTED = (*WAY, "rule", "main", "n_scored", "score", "flag_rate", "n", "n_labelled")
DETECTED += ("n_unfaithful", *with_interval("auroc"), "average_precision")
DETECTED += (*with_interval(*STATISTICS), "saturated", "undefined", "asked_again_differs")
DETECTED += ("forwards", "tokens", "calls")


def tables_of(results: FaithResults) -> dict[str, pd.DataFrame]:
    """Every table by its file name."""
    c = results.config
    how = Drawing(c.seed, c.report.bootstrap)
    traces = results.traces
    detectors = detectors_table(results.scores, c.detectors.folds, how)
    return {
        "detectors": detectors,
        **paper_data(detectors),
        "faithcot_quadrants": quadrants_table(traces),
        "faithcot_rates": rates_table(traces),
        "faithcot_principles": principles_table(traces),
        "faithcot_steps": steps_table(results.step_scores, how),
        "exclusions": _exclusions(results),
        **({"spend": spend_table(results.run.calls)} if results.run.calls else {}),
    }


def detectors_table(scores: pd.DataFrame, folds: int, how: Drawing) -> pd.DataFrame:
    """A row per data set, model, reading of a detector, judge and rule: `plain`, the paper's where
    it has one, and `fitted`, a threshold that other folds chose. `n` counts chains with a label and
    what the row's numbers need: a score for AUROC, a flag for the others."""
    made = []
    for place, of in groups(scores, WAY):
        made += _detected(place, of, folds, how)
    order = list(BY_NAME.values())
    made.sort(key=lambda r: (*(r[k] for k in WAY[:3]), order.index(detector_of(r)), r["judge"]))
    return pd.DataFrame(made, columns=list(DETECTED))


def _detected(
    place: dict[str, Any], of: pd.DataFrame, folds: int, how: Drawing
) -> Iterator[dict[str, Any]]:
    every = rows(of)
    scored = [r for r in every if _there(r["score"])]
    held = [r for r in scored if _there(r["unfaithful"])]
    label = np.array([r["unfaithful"] for r in held], dtype=bool)
    score = np.array([r["score"] for r in held], dtype=float)
    questions = [r["question"] for r in held]
    area = (
        resampling.auroc(questions, label, score, how)
        if len(held)
        else Estimate(math.nan, math.nan, math.nan, 0)
    )
    flags = [r["flag"] for r in every if _there(r["flag"])]
    known = [r["tokens"] for r in scored if _there(r["tokens"])]
    common = {
        **place,
        "main": bool(every[0]["main"]),
        "n_scored": len(scored),
        "score": _mean([r["score"] for r in scored]),
        "n_labelled": len(held),
        "n_unfaithful": int(label.sum()),
        **columns("auroc", area),
        "average_precision": average_precision(label, score) if len(held) else math.nan,
        "asked_again_differs": _mean(
            [r["asked_again_differs"] for r in every if _there(r["asked_again_differs"])]
        ),
        "forwards": _mean([r["forwards"] for r in scored]),
        "tokens": _mean(known),
        "calls": _mean([r["calls"] for r in scored]),
    }
    ruled = [r for r in held if _there(r["flag"])]
    plain = np.array([r["flag"] for r in ruled], dtype=bool)
    of_plain = agreement(
        np.array([r["unfaithful"] for r in ruled], dtype=bool),
        plain,
        [r["question"] for r in ruled],
        how,
    )
    open_ = "" if detector_of(place).rule else NO_THRESHOLD
    yield {**common, **_agreed(PLAIN, of_plain, open_), "flag_rate": _mean(flags)}
    fitted = cross_fitted_flags(label, score, questions, folds, how.seed) if len(held) else None
    if fitted is None:
        nothing = agreement(label[:0], label[:0], [], how)
        yield {**common, **_agreed(FITTED, nothing, NO_FIT), "flag_rate": math.nan}
    else:
        of_fitted = agreement(label, fitted, questions, how)
        yield {**common, **_agreed(FITTED, of_fitted, ""), "flag_rate": float(fitted.mean())}


def _agreed(rule: str, agreed: Any, undefined: str) -> dict[str, Any]:
    return {
        "rule": rule,
        "n": agreed.n,
        **{k: v for name in STATISTICS for k, v in columns(name, agreed.of[name]).items()},
        "saturated": agreed.saturated,
        "undefined": undefined,
    }


def _there(value: Any) -> bool:
    return value is not None and value == value


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean([float(v) for v in values])) if values else math.nan


def _labelled(traces: pd.DataFrame) -> list[dict[str, Any]]:
    return [r for r in rows(traces) if _there(r["unfaithful"])]


def quadrants_table(traces: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, per data set, per model, and of all: Figure 6a and B.1, over
    chains with a label whose answer is known to be right or wrong."""
    known = [r for r in _labelled(traces) if _there(r["correct"])]
    made = []
    for dataset, model in _margins(known):
        own = [r for r in known if dataset in (ALL, r["dataset"]) and model in (ALL, r["model"])]
        of = quadrants([bool(r["correct"]) for r in own], [not r["unfaithful"] for r in own])
        made.append({"dataset": dataset, "model": model, **of})
    names = ["correct_faithful", "correct_unfaithful", "wrong_faithful", "wrong_unfaithful"]
    names = ["dataset", "model", "n", *names, "phi", "mutual_information"]
    return pd.DataFrame(made, columns=names)


def _margins(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    pairs = dict.fromkeys((r["dataset"], r["model"]) for r in found)
    by_dataset = dict.fromkeys((d, ALL) for d, _ in pairs)
    by_model = dict.fromkeys((ALL, m) for _, m in pairs)
    return [*pairs, *by_dataset, *by_model, *([(ALL, ALL)] if pairs else [])]


def rates_table(traces: pd.DataFrame) -> pd.DataFrame:
    """A row per data set, model, hardness and distribution (where the labels have these): the share
    of labelled chains that is unfaithful, with Wilson's interval (Figures 4, 6b and 6c)."""
    labelled, made = _labelled(traces), []
    for by in ("dataset", "model", "hardness", "distribution"):
        for dataset in (ALL,) if by == "dataset" else (ALL, *_values(labelled, "dataset")):
            own = [r for r in labelled if dataset in (ALL, r["dataset"])]
            for value in _values(own, by):
                hits = [bool(r["unfaithful"]) for r in own if str(r[by]) == value]
                estimate = wilson(sum(hits), len(hits))
                row = {"by": by, "value": value, "dataset": value if by == "dataset" else dataset}
                made.append({**row, "n": len(hits), **columns("unfaithful", estimate)})
    names = ["by", "value", "dataset", "n", *with_interval("unfaithful")]
    return pd.DataFrame(made, columns=names)


def _values(found: Sequence[Mapping[str, Any]], by: str) -> list[Any]:
    return sorted({str(r[by]) for r in found if _there(r[by])})


def principles_table(traces: pd.DataFrame) -> pd.DataFrame:
    """A row per principle: how many unfaithful chains it is named of, its share of all that name
    any, and of those that name one of its category (Figures 5 and 8)."""
    named = [r["principles"] for r in _labelled(traces) if r["unfaithful"] and r["principles"]]
    of = {p.id: p.category for p in PRINCIPLES}
    made = []
    for p in PRINCIPLES if named else ():
        n = sum(p.id in ids for ids in named)
        beside = sum(any(of[i] == p.category for i in ids) for ids in named)
        made.append(
            {
                "principle": p.id,
                "category": p.category,
                "name": p.name,
                "also": p.also,
                "n": n,
                "share": n / len(named),
                "share_of_category": n / beside if beside else math.nan,
            }
        )
    names = ["principle", "category", "name", "also", "n", "share", "share_of_category"]
    return pd.DataFrame(made, columns=names)


def steps_table(step_scores: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per data set, model, step measure and judge: how often the step that it finds most
    suspicious is one that annotators name, of ties the share that is; and what naming any step
    blindly would give."""
    by = ("dataset", "model", "reader", "measure", "judge")
    made = []
    for place, of in groups(step_scores, by):
        hits, blind = [], []
        for _, chain in groups(of, ["item"]):
            scores = chain["score"].to_numpy(dtype=float)
            labelled = chain["labelled"].to_numpy(dtype=bool)
            hits.append(float(labelled[scores == scores.max()].mean()))
            blind.append(float(labelled.mean()))
        hit = mean_of_items(hits, seed=how.seed, resamples=how.resamples)
        made.append({**place, "n": len(hits), **columns("hit_rate", hit), "chance": _mean(blind)})
    return pd.DataFrame(made, columns=[*by, "n", *with_interval("hit_rate"), "chance"])


def _exclusions(results: FaithResults) -> pd.DataFrame:
    """Where every chain went: trace and probes as of any run, then labels, and each detector."""
    found: list[Record] = [r for of in results.records.values() for rs in of.values() for r in rs]
    made = rows(exclusions_table(found, results.run.failures, unread=unread_of(results.run.path)))
    for (reader, task), of in _by_task(results).items():
        where = {"model": reader, "task": task}
        fates = [r["unlabelled"] or "included" for r in of]
        made += _waterfall(where, "label", fates)
        twice = sum(bool(r["disagree"]) for r in of)
        made += _waterfall(
            where, "label.sources", ["disagree"] * twice + ["included"] * (len(of) - twice)
        )
    for place, of in groups(results.scores, ["reader", "task", *WAY[3:]]):
        parts = (f"detector.{place['detector']}", place["variant"], place["judge"])
        where = {"model": place["reader"], "task": place["task"]}
        fates = ["included" if _there(r["score"]) else r["missing"] for r in rows(of)]
        made += _waterfall(where, ".".join(filter(None, parts)), fates)
    table = pd.DataFrame(made, columns=["model", "task", "stage", "reason", "n"])
    check_adds_up(table)
    return table


def _by_task(results: FaithResults) -> dict[tuple[str, str], list[dict[str, Any]]]:
    of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(results.traces):
        of.setdefault((row["reader"], row["task"]), []).append(row)
    return of


def _waterfall(where: Mapping[str, str], stage: str, fates: Sequence[str]) -> list[dict[str, Any]]:
    reasons = {reason: fates.count(reason) for reason in sorted(set(fates) - {"included"})}
    counts = {"total": len(fates), **reasons, "included": fates.count("included")}
    return [{**where, "stage": stage, "reason": reason, "n": n} for reason, n in counts.items()]


PAPER = {
    "faithcot_paper": {"kappa": "κ", "accuracy": "Acc", "f1": "F1"},
    "faithcot_f1": {"f1": "F1"},
}
"""Table -> its statistics and the paper's headings of them: Tables 2 and 3, and Table 1."""
_LINE = ("dataset", "label", "judge")


def paper_data(detectors: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The numbers of the paper's tables."""
    named = [{**r, "label": detector_of(r).label} for r in shown(detectors)]
    about = [*_LINE, "model", "reader", "rule", "n"]
    return {t: pd.DataFrame(named, columns=[*about, *stats]) for t, stats in PAPER.items()}


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """These in the paper's layout: a row per detector, columns per model, in percent."""
    return [_wide(name, tables[name], stats) for name, stats in PAPER.items()]


def shown(detectors: pd.DataFrame) -> list[dict[str, Any]]:
    """Each detector's own reading, by its plain rule, or where it has none by the fitted one."""
    own = [r for r in rows(detectors) if r["main"]]
    return [r for r in own if r["rule"] == (PLAIN if detector_of(r).rule else FITTED)]


def chains_of(row: Mapping[str, Any]) -> str:
    """Which model's chains a row is of, and who read them where that is another."""
    model = row["model"].rpartition("/")[2]
    reader = row["reader"].rpartition("/")[2]
    return model if row["reader"] == row["model"] else f"{model} read by {reader}"


def _wide(name: str, data: pd.DataFrame, statistics: Mapping[str, str]) -> PaperTable:
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for r in rows(data):
        line = lines.setdefault(tuple(r[k] for k in _LINE), {})
        line |= {f"{chains_of(r)} {short}": percent(r[s]) for s, short in statistics.items()}
    heads = dict.fromkeys(k for line in lines.values() for k in line)
    body = [
        dict(zip(("Dataset", "Detector", "Judge"), key, strict=True))
        | {head: line.get(head, "—") for head in heads}
        for key, line in lines.items()
    ]
    printed = pd.DataFrame(body, columns=["Dataset", "Detector", "Judge", *heads])
    return PaperTable(name, data, printed)
