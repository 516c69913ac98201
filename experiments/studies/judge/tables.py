"""The tables of a run of judges on given chains, from rows of verdicts; no disk."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.raters import gwet_ac2, saturated
from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc, means
from faithscope.experiments.analysis.statistics.stats import kappa, mean_of_items, share
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.verdicts import (
    NO_STEP,
    UNCERTAIN,
    Row,
    first_wrong,
    wrong,
)

WAY = ("judge", "reading", "form")
FORMS = [*WAY, "dataset", "model", "n", "n_without_verdict", "n_uncertain"]
FORMS += [*with_interval("flagged"), *with_interval("mean_score")]
STEPS = [*WAY, "step", "n", "n_without_verdict", *with_interval("flagged")]
AGREEMENT = [*WAY, "level", "label", "n", *with_interval("auroc"), *with_interval("accuracy")]
AGREEMENT += ["kappa", "ac2", "saturated", "labelled_wrong", "flagged"]
AGREEMENT += ["n_without_verdict", "n_without_label"]
LOCALISATION = [*WAY, "label", "n_wrong", "n_sound", "n_left_out"]
LOCALISATION += [*with_interval("exact"), *with_interval("none_named"), "f1"]
EXCLUSIONS = [*WAY, "reason", "n"]
CUT = "cut_at_the_limit"


def forms_table(verdicts: Sequence[Row], how: Drawing) -> pd.DataFrame:
    """Per form, data set and writer: how many chains got a verdict, how many of them were flagged,
    and how bad they are on average."""
    rows = []
    for key, same in _by(verdicts, (*WAY, "dataset", "model")):
        flags = [r["flag"] for r in same if r["flag"] is not None]
        scores = mean_of_items((r["score"] for r in same), seed=how.seed, resamples=how.resamples)
        unclear = sum(r["outcome"] == UNCERTAIN for r in same)
        without = sum(r["flag"] is None and r["score"] is None for r in same) - unclear
        counts = {"n": len(same), "n_without_verdict": without, "n_uncertain": unclear}
        rows.append(key | counts | columns("flagged", share(flags)) | columns("mean_score", scores))
    return pd.DataFrame(rows, columns=FORMS)


def steps_table(steps: Sequence[Row]) -> pd.DataFrame:
    """Per step, from 0: how many chains have it, and how often it was flagged."""
    rows = []
    for key, same in _by(steps, (*WAY, "step")):
        flags = [r["flag"] for r in same if r["flag"] is not None]
        without = {"n": len(same), "n_without_verdict": len(same) - len(flags)}
        rows.append(key | without | columns("flagged", share(flags)))
    return pd.DataFrame(rows, columns=STEPS).sort_values([*WAY, "step"], kind="stable")


def agreement_table(
    verdicts: Sequence[Row],
    steps: Sequence[Row],
    chains: Mapping[str, JudgedChain],
    good: Sequence[str],
    how: Drawing,
) -> pd.DataFrame:
    """How far judges and labels agree, of chains and of steps; a row per label that says yes or no.

    A pair counts that has both a flag and a label; AUROC is of the score, and intervals draw
    chains. A judge that names one step says nothing of those after it: which steps are compared
    hangs on what it says, a step that it names is always the last of them, and no AUROC of its
    steps is given (`localisation_table` has its hits).
    """
    rows = []
    of_one = {r["form"] for r in verdicts if r["task"] == "localisation"}
    for level, said in (("chain", verdicts), ("step", steps)):
        for key, same in _by(said, WAY):
            for name in _labels(same, level, chains):
                truth = [_label(r, name, level, chains, good) for r in same]
                if any(x is not None for x in truth):
                    row = _agreement(same, truth, how)
                    if level == "step" and key["form"] in of_one:
                        row = {name: x for name, x in row.items() if not name.startswith("auroc")}
                    rows.append(key | {"level": level, "label": name} | row)
    return pd.DataFrame(rows, columns=AGREEMENT)


def _labels(same: Sequence[Row], level: str, chains: Mapping[str, JudgedChain]) -> list[str]:
    of = (chains[r["item"]] for r in same)
    named = (c.labels if level == "chain" else c.step_labels for c in of)
    return list(dict.fromkeys(name for labels in named for name in labels))


def _label(
    row: Row, name: str, level: str, chains: Mapping[str, JudgedChain], good: Sequence[str]
) -> bool | None:
    chain = chains[row["item"]]
    if level == "chain":
        return wrong(name, chain.labels.get(name), good)
    of_steps = chain.step_labels.get(name)
    return None if of_steps is None else wrong(name, of_steps[row["step"]], good)


def _agreement(same: Sequence[Row], truth: Sequence[bool | None], how: Drawing) -> dict[str, Any]:
    labelled = [(r, t) for r, t in zip(same, truth, strict=True) if t is not None]
    both = [(r, t) for r, t in labelled if r["flag"] is not None]
    scored = [(r, t) for r, t in labelled if r["score"] is not None]
    said, right = [r["flag"] for r, _ in both], [t for _, t in both]
    row: dict[str, Any] = {
        "n": len(both) or len(scored),
        "n_without_verdict": len(labelled) - (len(both) or len(scored)),
        "n_without_label": len(same) - len(labelled),
        "labelled_wrong": sum(t for _, t in labelled) / len(labelled),
        "flagged": sum(said) / len(said) if said else math.nan,
        "kappa": kappa(said, right),
        "ac2": gwet_ac2(said, right, (False, True)),
        "saturated": saturated(said, right) if said else None,
    }
    if both:
        hit = np.array([float(r["flag"] == t) for r, t in both])
        items = [r["item"] for r, _ in both]
        row |= columns("accuracy", means(items, {"accuracy": hit}, how=how)["accuracy"])
    if scored:
        items = np.array([r["item"] for r, _ in scored])
        is_wrong = np.array([t for _, t in scored], dtype=bool)
        scores = np.array([r["score"] for r, _ in scored], dtype=float)
        row |= columns("auroc", auroc(items, is_wrong, scores, how))
    return row


def localisation_table(
    verdicts: Sequence[Row], chains: Mapping[str, JudgedChain], good: Sequence[str]
) -> pd.DataFrame:
    """Whether judges find the first wrong step that the labels of steps name.

    `f1` is the harmonic mean of `exact` (of chains with a wrong step, those where it is the one
    named) and `none_named` (of those without, those where none is), as ProcessBench has it (arXiv
    2412.06559, section 4.1).
    """
    rows = []
    for key, same in _by(verdicts, WAY):
        told = [r for r in same if r["first"] is not None]
        names = _labels(same, "step", chains) if told else []
        for name in names:
            have = [r for r in same if name in chains[r["item"]].step_labels]
            truth = {r["item"]: first_wrong(chains[r["item"]], name, good) for r in have}
            known = [r for r in have if truth[r["item"]] is not None and r["first"] is not None]
            if not known:
                continue
            hits = [(truth[r["item"]], r["first"] == truth[r["item"]]) for r in known]
            exact = share([hit for at, hit in hits if at != NO_STEP])
            none = share([hit for at, hit in hits if at == NO_STEP])
            total = exact.value + none.value
            f1 = 2 * exact.value * none.value / total if total else total
            counts = {"n_wrong": exact.n, "n_sound": none.n, "n_left_out": len(have) - len(known)}
            row = columns("exact", exact) | columns("none_named", none) | {"f1": f1}
            rows.append(key | {"label": name} | counts | row)
    return pd.DataFrame(rows, columns=LOCALISATION)


def with_cut(table: pd.DataFrame, verdicts: Sequence[Row]) -> pd.DataFrame:
    """The table with `n_cut`: of each row's judge, form and reading (and data set and writer, where
    these tell rows apart) the chains that a token limit cut off."""
    by = [name for name in (*WAY, "dataset", "model") if name in table.columns]
    cut = Counter(tuple(r[name] for name in by) for r in verdicts if r["cut"])
    keys = table[by].itertuples(index=False, name=None)
    return table.assign(n_cut=[cut[tuple(key)] for key in keys])


def exclusions_table(verdicts: Sequence[Row], kept: bool) -> pd.DataFrame:
    """Where every chain went, per judge, form and reading: all, why there is no verdict, the rest.

    Args:
        kept: whether chains that a token limit cut off are in the tables.

    Raises:
        ValueError: they do not add up.
    """
    rows = []
    for key, same in _by(verdicts, WAY):
        # a chain with some verdicts counts by what is known of it
        cut = [r for r in same if r["cut"] and not kept]
        rest = [r for r in same if kept or not r["cut"]]
        left = Counter(r["outcome"] for r in rest if r["flag"] is None and r["score"] is None)
        left += Counter({CUT: len(cut)})
        included = sum(r["flag"] is not None or r["score"] is not None for r in rest)
        if included + sum(left.values()) != len(same):
            raise ValueError(f"{key}: {len(same)} chains, but {included} and {dict(left)}")
        counts = [("total", len(same)), *sorted(left.items()), ("included", included)]
        rows += [key | {"reason": reason, "n": n} for reason, n in counts]
    return pd.DataFrame(rows, columns=EXCLUSIONS)


def _by(rows: Sequence[Row], names: Sequence[str]) -> Iterator[tuple[dict[str, Any], list[Row]]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    for values, same in groups.items():
        yield dict(zip(names, values, strict=True)), same
