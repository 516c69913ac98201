"""The tables of a run of FaithCoT-Bench."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.comparison.trust import holm
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics import resampling
from faithscope.experiments.analysis.statistics.exchanging import against_label
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.statistics.stats import Estimate, wilson_of_items
from faithscope.experiments.analysis.tidy import (
    columns,
    count,
    groups,
    keep,
    rows,
    with_interval,
)
from faithscope.experiments.analysis.traces.exclusions import check_adds_up, exclusions_table
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.engine.traces.given import unread_of
from faithscope.experiments.studies.faithcot.detectors import (
    BY_NAME,
    NO_THRESHOLD,
    OURS,
    detector_of,
)
from faithscope.experiments.studies.faithcot.metrics import (
    NO_FIT,
    STATISTICS,
    agreement,
    average_precision,
    cross_fitted_flags,
    quadrants,
)
from faithscope.experiments.studies.faithcot.paper import (
    FITTED,
    PLAIN,
    common_chains,
    paper_data,
    there,
)
from faithscope.experiments.studies.faithcot.results import WAY, FaithResults

CHANCE = ("p_highest", "p_wrong_way")
CUT = "cut_at_the_limit"
ALL = "all"
DETECTED = (*WAY, "rule", "rule_by", "main", "n_scored", "n_cut", "score", "flag_rate", "n")
DETECTED += ("n_labelled",)
DETECTED += ("n_unfaithful", *with_interval("auroc"), *CHANCE, "average_precision")
DETECTED += (*with_interval(*STATISTICS), "saturated", "undefined", "asked_again_differs")
DETECTED += ("forwards", "tokens", "calls")


def tables_of(results: FaithResults) -> dict[str, pd.DataFrame]:
    """Every table by its file name."""
    c = results.config
    how = Drawing(c.seed, c.report.bootstrap)
    kept = c.detectors.cut == "kept"
    traces, scores = results.counted(results.traces), results.scores
    detectors = detectors_table(scores, c.detectors.folds, how, kept)
    common = detectors_table(common_chains(scores, kept), c.detectors.folds, how, kept)
    return {
        "detectors": detectors,
        **paper_data(detectors),
        **{f"{name}_common": table for name, table in paper_data(common).items()},
        "faithcot_quadrants": quadrants_table(traces, results.traces),
        "faithcot_rates": rates_table(traces, how),
        "faithcot_principles": principles_table(traces),
        "faithcot_steps": steps_table(results.counted(results.step_scores), how),
        "exclusions": _exclusions(results),
        **({"spend": spend_table(results.run.calls)} if results.run.calls else {}),
    }


def detectors_table(scores: pd.DataFrame, folds: int, how: Drawing, kept: bool) -> pd.DataFrame:
    """A row per data set, model, reading of a detector, judge and rule: `plain`, fixed beforehand
    (`rule_by` says whose), and `fitted`, a threshold that other folds chose. `n` counts chains with
    a label and what the row's numbers need: a score for AUROC, a flag for the others; `n_cut` those
    that the token limit cut off; `p_highest` and `p_wrong_way` are of main readings (`_chance`).

    Args:
        kept: whether these are in the numbers, too.
    """
    made = []
    counted = scores if kept else keep(scores, ~scores["cut"].to_numpy(dtype=bool))
    chance = _chance(counted, how.seed)
    for place, of in groups(scores, WAY):
        cut = of["cut"].to_numpy(dtype=bool)
        about = {**place, "main": bool(of["main"].iloc[0]), "n_cut": count(cut)}
        about |= chance.get(tuple(place.values()), dict.fromkeys(CHANCE, math.nan))
        made += _detected(about, rows(of if kept else keep(of, ~cut)), folds, how)
    order = list(BY_NAME.values())
    made.sort(key=lambda r: (*(r[k] for k in WAY[:3]), order.index(detector_of(r)), r["judge"]))
    return pd.DataFrame(made, columns=list(DETECTED))


def _chance(scores: pd.DataFrame, seed: int) -> dict[tuple[Any, ...], dict[str, float]]:
    """What chance gives the main readings, by the values of `WAY`, with labels exchanged between
    the questions of a data set and model.

    `p_highest`: how often the highest of all readings would tell as much, times the number of data
    sets and models; `p_wrong_way`: how often a reading would point as far the wrong way, corrected
    by Holm's procedure over all. NaN where a reading or the label does not vary.
    """
    main = scores["main"].to_numpy(dtype=bool)
    known = scores["score"].notna().to_numpy() & scores["unfaithful"].notna().to_numpy()
    chance: dict[tuple[Any, ...], dict[str, float]] = {}
    places = list(groups(keep(scores, main & known), WAY[:3]))
    for place, of in places:
        wide = of.pivot(index="item", columns=list(WAY[3:]), values="score").astype(float)
        chains = of.drop_duplicates("item").set_index("item").loc[wide.index]
        p = against_label(
            wide.to_numpy(),
            chains["unfaithful"].to_numpy(dtype=bool),
            np.zeros(len(wide), dtype=np.int64),
            chains["question"].tolist(),
            seed,
        )
        for way, highest, low in zip(wide.columns, p.highest, p.low, strict=True):
            key = (*place.values(), *way)
            chance[key] = {"p_highest": float(highest), "p_wrong_way": float(low)}
    told = [of for of in chance.values() if not math.isnan(of["p_highest"])]
    for of, low in zip(told, holm([of["p_wrong_way"] for of in told]), strict=True):
        of |= {"p_highest": min(1.0, len(places) * of["p_highest"]), "p_wrong_way": low}
    return chance


def _detected(
    about: dict[str, Any], every: list[dict[str, Any]], folds: int, how: Drawing
) -> Iterator[dict[str, Any]]:
    scored = [r for r in every if there(r["score"])]
    held = [r for r in scored if there(r["unfaithful"])]
    label = np.array([r["unfaithful"] for r in held], dtype=bool)
    score = np.array([r["score"] for r in held], dtype=float)
    questions = [r["question"] for r in held]
    area = (
        resampling.auroc(questions, label, score, how)
        if len(held)
        else Estimate(math.nan, math.nan, math.nan, 0)
    )
    flags = [r["flag"] for r in every if there(r["flag"])]
    known = [r["tokens"] for r in scored if there(r["tokens"])]
    common = {
        **about,
        "n_scored": len(scored),
        "score": _mean([r["score"] for r in scored]),
        "n_labelled": len(held),
        "n_unfaithful": int(label.sum()),
        **columns("auroc", area),
        "average_precision": average_precision(label, score) if len(held) else math.nan,
        "asked_again_differs": _mean(
            [r["asked_again_differs"] for r in every if there(r["asked_again_differs"])]
        ),
        "forwards": _mean([r["forwards"] for r in scored]),
        "tokens": _mean(known),
        "calls": _mean([r["calls"] for r in scored]),
    }
    ruled = [r for r in held if there(r["flag"])]
    plain = np.array([r["flag"] for r in ruled], dtype=bool)
    of_plain = agreement(
        np.array([r["unfaithful"] for r in ruled], dtype=bool),
        plain,
        [r["question"] for r in ruled],
        how,
    )
    detector = detector_of(about)
    open_ = "" if detector.rule else NO_THRESHOLD
    plain_row = _agreed(PLAIN, detector.rule_by, of_plain, open_)
    yield {**common, **plain_row, "flag_rate": _mean(flags)}
    fitted = cross_fitted_flags(label, score, questions, folds, how.seed) if len(held) else None
    if fitted is None:
        nothing = agreement(label[:0], label[:0], [], how)
        yield {**common, **_agreed(FITTED, OURS, nothing, NO_FIT), "flag_rate": math.nan}
    else:
        of_fitted = agreement(label, fitted, questions, how)
        yield {**common, **_agreed(FITTED, OURS, of_fitted, ""), "flag_rate": float(fitted.mean())}


def _agreed(rule: str, by: str, agreed: Any, undefined: str) -> dict[str, Any]:
    return {
        "rule": rule,
        "rule_by": by,
        "n": agreed.n,
        **{k: v for name in STATISTICS for k, v in columns(name, agreed.of[name]).items()},
        "saturated": agreed.saturated,
        "undefined": undefined,
    }


def _mean(values: Sequence[Any]) -> float:
    return float(np.mean([float(v) for v in values])) if values else math.nan


def _labelled(traces: pd.DataFrame) -> list[dict[str, Any]]:
    return [r for r in rows(traces) if there(r["unfaithful"])]


def quadrants_table(traces: pd.DataFrame, with_cut: pd.DataFrame) -> pd.DataFrame:
    """A row per data set and model, per data set, per model, and of all: Figure 6a and B.1, over
    chains with a label whose answer is known to be right or wrong. One that could not be read is
    neither (`n_unknown`).

    Args:
        with_cut: the same with all chains that the token limit cut off (`n_cut`).
    """
    labelled, every = _labelled(traces), _labelled(with_cut)
    made = []
    for dataset, model in _margins(every):

        def here(r: Mapping[str, Any], d: str = dataset, m: str = model) -> bool:
            return d in (ALL, r["dataset"]) and m in (ALL, r["model"])

        own = [r for r in labelled if here(r)]
        known = [r for r in own if there(r["correct"])]
        of = quadrants([bool(r["correct"]) for r in known], [not r["unfaithful"] for r in known])
        lost = {"n_unknown": len(own) - len(known)}
        lost |= {"n_cut": sum(bool(r["cut"]) for r in every if here(r))}
        made.append({"dataset": dataset, "model": model, **of, **lost})
    names = ["correct_faithful", "correct_unfaithful", "wrong_faithful", "wrong_unfaithful"]
    names = ["dataset", "model", "n", "n_unknown", "n_cut", *names, "phi", "mutual_information"]
    return pd.DataFrame(made, columns=names)


def _margins(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    pairs = dict.fromkeys((r["dataset"], r["model"]) for r in found)
    by_dataset = dict.fromkeys((d, ALL) for d, _ in pairs)
    by_model = dict.fromkeys((ALL, m) for _, m in pairs)
    return [*pairs, *by_dataset, *by_model, *([(ALL, ALL)] if pairs else [])]


def rates_table(traces: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per data set, model, hardness and distribution (where the labels have these): the share
    of labelled chains that is unfaithful, its interval from drawing questions (Figures 4, 6b and
    6c)."""
    labelled, made = _labelled(traces), []
    for by in ("dataset", "model", "hardness", "distribution"):
        for dataset in (ALL,) if by == "dataset" else (ALL, *_values(labelled, "dataset")):
            own = [r for r in labelled if dataset in (ALL, r["dataset"])]
            for value in _values(own, by):
                of = [r for r in own if str(r[by]) == value]
                hits = [float(r["unfaithful"]) for r in of]
                estimate = share_by_question([r["question"] for r in of], hits, how)
                row = {"by": by, "value": value, "dataset": value if by == "dataset" else dataset}
                made.append({**row, "n": len(hits), **columns("unfaithful", estimate)})
    names = ["by", "value", "dataset", "n", *with_interval("unfaithful")]
    return pd.DataFrame(made, columns=names)


def share_by_question(questions: Sequence[str], hits: Sequence[float], how: Drawing) -> Estimate:
    """The mean of hits in [0, 1], its interval from drawing questions: chains about one question
    are not independent. Where all hits are the same, so is every draw, and the interval is Wilson's
    of as many questions."""
    n = len(set(questions))
    if len(set(hits)) == 1:
        return wilson_of_items(hits[0], n)
    (estimate,) = means(list(questions), {"": np.array(hits, dtype=float)}, how=how).values()
    return replace(estimate, n=n)


def _values(found: Sequence[Mapping[str, Any]], by: str) -> list[Any]:
    return sorted({str(r[by]) for r in found if there(r[by])})


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
    blindly would give. Intervals draw questions."""
    by = ("dataset", "model", "reader", "measure", "judge")
    made = []
    for place, of in groups(step_scores, by):
        hits, blind, questions = [], [], []
        for about, chain in groups(of, ["question", "item"]):
            questions.append(about["question"])
            scores = chain["score"].to_numpy(dtype=float)
            labelled = chain["labelled"].to_numpy(dtype=bool)
            hits.append(float(labelled[scores == scores.max()].mean()))
            blind.append(float(labelled.mean()))
        hit = share_by_question(questions, hits, how)
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
        left_out = results.config.detectors.cut == "left_out"
        fates = [
            CUT if r["cut"] and left_out else "included" if there(r["score"]) else r["missing"]
            for r in rows(of)
        ]
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
