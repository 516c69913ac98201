"""How far judges agree beyond chance, and which fail on the same items (C2-Faith, §5.5.2, App. C,
Figure 6).

Items on which the judges of a panel differ are told by no number of one judge. Of one judge alone
the same is asked of its readings and prompts, each a voice of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.raters import (
    CONSTANT,
    Level,
    fleiss_kappa,
    krippendorff_alpha,
    quadratic_kappa,
)
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    groups,
    only,
    rows,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.detection import ALONE
from faithscope.experiments.studies.c2faith.metrics.frames import (
    BOTH,
    PERTURBED,
    WAY,
    verdicts_by_judge,
    who_spoke,
)

AGREEMENT = ["task", "condition", "scale", "reading", "prompt", "statistic", "judge", "other"]
AGREEMENT += ["n_judges", "value", "n", "n_without_verdict", "reason"]
NO_ITEM = "no item that all judged"


@tabled(*AGREEMENT)
def agreement_table(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> Rows:
    """Agreement of judges on the same items, reading and prompt, a row per statistic.

    Of every two judges: `agreement` (share of items), `cohen_kappa`, and of coverage scores
    `quadratic_kappa` too. Of all together: `fleiss_kappa`, and `krippendorff_alpha`, nominal of
    verdicts and steps, ordinal of scores. Kappas take the `n` items that all in question gave a
    verdict on, alpha every item with two verdicts; a judge without any verdict is not among
    them. NaN where chance alone gives full agreement.
    """
    for task, frame, value in (
        ("detection", detection, "score"),
        ("localisation", localisation, "predicted"),
    ):
        for condition, of_condition in _conditions(frame):
            for key, judged in groups(of_condition, ("reading", "prompt")):
                of = {"task": task, "condition": condition, "scale": ""} | key
                yield from (
                    of | row for row in _rows(judged, value, ("item", "condition"), "nominal")
                )
    for key, judged in groups(coverage, ("scale", "reading", "prompt", "reference_judge")):
        reference = key.pop("reference_judge")
        if reference != coverage["reference_judge"].iloc[0]:
            continue  # the same verdicts again, beside another reference
        of = {"task": "coverage", "condition": ""} | key
        yield from (of | row for row in _rows(judged, "score", ("item", "level"), "ordinal"))


def _conditions(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    apart = [(str(c), frame.loc[frame["condition"] == c]) for c in frame["condition"].unique()]
    return [(BOTH, frame), *apart] if len(apart) > 1 else apart


def _rows(
    judged: pd.DataFrame, value: str, keys: Sequence[str], level: Level
) -> Iterator[dict[str, Any]]:
    verdicts = verdicts_by_judge(judged, value, keys)
    judges = list(verdicts.columns)
    if len(judges) < 2:
        alone = {"statistic": "", "judge": judges[0], "n_judges": 1, "reason": ALONE}
        yield alone | {"n": 0, "n_without_verdict": int(verdicts.isna().sum().sum())}
        return

    def row(name: str, at: float, of: pd.DataFrame, n_judges: int, reason: str) -> dict[str, Any]:
        counts = {"n": len(of), "n_without_verdict": len(verdicts) - len(of)}
        return {"statistic": name, "value": at, "n_judges": n_judges, "reason": reason} | counts

    def why_not(at: float, of: pd.DataFrame) -> str:
        return NO_ITEM if not len(of) else CONSTANT if math.isnan(at) else ""

    pairwise: dict[str, Callable[..., float]]
    pairwise = {"agreement": stats.agreement, "cohen_kappa": stats.kappa}
    if level == "ordinal":
        pairwise["quadratic_kappa"] = quadratic_kappa
    for judge, other in itertools.combinations(judges, 2):
        both = only(verdicts, [judge, other]).dropna()
        for name, statistic in pairwise.items():
            at = statistic(both[judge].tolist(), both[other].tolist())
            line = row(name, at, both, 2, why_not(at, both))
            yield {"judge": judge, "other": other} | line
    spoke = who_spoke(verdicts)
    every = spoke.dropna() if spoke.shape[1] > 1 else spoke.head(0)
    kappa = fleiss_kappa(every.to_numpy())
    pairable = verdicts.loc[verdicts.notna().sum(axis=1) >= 2]
    alpha, reason = krippendorff_alpha(pairable.to_numpy(), level)
    of_all = {"judge": "", "other": ""}
    yield of_all | row("fleiss_kappa", kappa, every, spoke.shape[1], why_not(kappa, every))
    yield of_all | row("krippendorff_alpha", alpha, pairable, spoke.shape[1], reason)


OVERLAP = ["reading", "prompt", "among", "missed_by", "n_missed_by", "n_voices"]
OVERLAP += ["n_voices_silent", "n_items", "n", "n_without_verdict", *with_interval("share")]
OVERLAP += ["share_independent"]
SEPARATOR = " + "
JUDGES = "judges"


@tabled(*OVERLAP)
def failure_overlap_table(detection: pd.DataFrame) -> Rows:
    """A row per set of voices that miss the same broken steps, `""` for seen by all.

    Voices are the `judges` of a reading and prompt, as in the paper. Where none has two that gave
    verdicts, all judgements are one group, whose voices are the judge's `readings`, `prompts`, or
    pairs of both (`among`); what they differ in is blank in
    its own column.

    `n_items` of the `n` items that all voices gave a verdict on, as a `share` with its Wilson
    interval. `share_independent`: what it would be if the voices failed independently of each
    other, at their own rates; a set that fails together more often than that has blind spots
    in common. Sets that do not occur have no row. Fewer voices first, more items first. Voices
    without any verdict are counted in `n_voices_silent` and otherwise left out.
    """
    broken = where(detection, condition=PERTURBED)
    among, parts = JUDGES, list(groups(broken, ("reading", "prompt")))
    if len(broken) and all(_voices(judged)[0].shape[1] < 2 for _, judged in parts):
        among, *parts = _ways(broken)
    for key, judged in parts:
        verdicts, silent = _voices(judged)
        names = list(verdicts.columns)
        every = verdicts.dropna() if names else verdicts.iloc[:0]
        of = key | {"among": among, "n_voices": len(names), "n_voices_silent": silent}
        of |= {"n": len(every), "n_without_verdict": len(verdicts) - len(every)}
        if not len(every):
            yield of
            continue
        missed = every.to_numpy() == 1
        patterns, counts = np.unique(missed, axis=0, return_counts=True)
        rates = missed.mean(axis=0)
        sets = [
            {
                "missed_by": SEPARATOR.join(j for j, m in zip(names, p, strict=True) if m),
                "n_missed_by": int(p.sum()),
                "n_items": int(c),
                "share_independent": float(np.where(p, rates, 1 - rates).prod()),
            }
            | columns("share", wilson(int(c), len(every)))
            for p, c in zip(patterns, counts, strict=True)
        ]
        sets.sort(key=lambda r: (r["n_missed_by"], -r["n_items"], r["missed_by"]))
        yield from (of | row for row in sets)


def _voices(judged: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """A row per item, a column per judge that gave verdicts; how many gave none."""
    asked = verdicts_by_judge(judged, "score", ("item",))
    verdicts = who_spoke(asked)
    return verdicts, asked.shape[1] - verdicts.shape[1]


def _ways(judged: pd.DataFrame) -> tuple[str, tuple[dict[str, Any], pd.DataFrame]]:
    """What voices differ in, and all judgements as one group in which each way is a judge."""
    differ = [c for c in WAY if len(set(judged[c])) > 1]
    parts = [judged[c] for c in differ or ["judge"]]
    named = [" · ".join(names) for names in zip(*parts, strict=True)]
    key = {c: "" if c in differ else judged[c].iloc[0] for c in ("reading", "prompt")}
    among = " and ".join(f"{c}s" for c in differ) or JUDGES
    return among, (key, judged.assign(judge=named))


MISSED = ["reading", "prompt", "item", "chain", "n_judges", "edit_type", "method"]
MISSED += ["relative_position"]


@tabled(*MISSED)
def missed_by_all_table(detection: pd.DataFrame, features: pd.DataFrame) -> Rows:
    """The perturbed items that every judge of a reading and prompt passes as following.

    Items that some judge gave no verdict on are not among them; a judge without any verdict is
    left out, and not counted in `n_judges`.
    """
    about = {r["item"]: r for r in rows(features)}
    for key, judged in groups(where(detection, condition=PERTURBED), ("reading", "prompt")):
        verdicts = who_spoke(verdicts_by_judge(judged, "score", ("item",)))
        missed = set(verdicts.index[(verdicts == 1).all(axis=1)]) if verdicts.shape[1] else set()
        for row in rows(where(judged, item=missed).drop_duplicates(subset="item")):
            of_item = about.get(row["item"], {})
            known = {c: of_item.get(c) for c in ("edit_type", "method", "relative_position")}
            what = {"item": row["item"], "chain": row["chain"], "n_judges": verdicts.shape[1]}
            yield key | what | known
