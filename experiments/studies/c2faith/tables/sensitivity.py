"""Dependence of measures on prompt, scale and reading (C2-Faith, §7).

The paper has one prompt and one scale per task and says itself that this limits what can be
said of a judge.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import (
    Kept,
    Lines,
    Numbers,
)
from faithscope.experiments.analysis.columns import described, estimates
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import groups, renamed, rows
from faithscope.experiments.studies.c2faith.tables.frames import (
    CONDITION,
    COUNTS,
    SCALE,
    verdicts_by_judge,
)

MEASURES = {
    "detection": ("detection", "fpr", "net", "auroc"),
    "localisation": ("exact", "detection", "fpr", "net", "signed_error"),
    "coverage": ("mean_share", "inflation", "spearman", "spearman_kept"),
}
OVER, _VARIANT = described(
    over="What is varied: prompt, reading or scale.",
    variant="The prompt, reading or scale that the value is of.",
)
HELD = ("task", "judge", OVER, "reading", "prompt", SCALE)
"""Keys of tables of variants: a setting has its name where it is held, and "" where it is
varied."""
_VARIED: dict[str, tuple[str, ...]] = {
    "detection": ("prompt", "reading"),
    "localisation": ("prompt", "reading"),
    "coverage": ("prompt", "reading", "scale"),
}


def _variants(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """Every measure of a judge beside the setting that is varied, from the tables of the three
    tasks.

    A scale brings its own prompt: over scales, the first prompt of each.
    """
    tables = {"detection": detection, "localisation": localisation, "coverage": coverage}
    variants = []
    for task, table in tables.items():
        of_task = table if "scale" in table else table.assign(scale="")
        # of two references the first: the judge's own scores are the same
        of_task = of_task.drop_duplicates(subset=["judge", "reading", "prompt", "scale"])
        for over in _VARIED[task]:
            fixed = [n for n in ("judge", "reading", "prompt", "scale") if n != over]
            of_over = of_task
            if over == "scale":
                fixed.remove("prompt")
                of_over = of_task.drop_duplicates(subset=["judge", "reading", "scale"])
            for key, judged in groups(of_over, fixed):
                of = {"task": task, "over": over, "prompt": "", "reading": "", "scale": ""} | key
                variants += [
                    of
                    | {"measure": measure, "variant": r[over]}
                    | renamed(r, measure, "value")
                    | {name: r[name] for name in ("n", "n_without_verdict")}
                    for measure in MEASURES[task]
                    for r in rows(judged)
                ]
    return pd.DataFrame(variants)


_VALUE = estimates(value="The measure named in the row.")
VARIANTS = Table(
    "c2_prompt_variants",
    ("c2_detection", "c2_localisation", "c2_coverage_pooled"),
    (*HELD, "measure", _VARIANT),
    (Kept((*_VALUE, *COUNTS)),),
    prepare=_variants,
)
"""Each measure of a judge under every prompt, reading and scale; coverage over all levels."""


def _range(variants: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    known = rows(variants.dropna(subset=["value"]))
    if len(known) < 2:
        return {"n_variants": len(known)}
    low, high = (of(known, key=lambda r: r["value"]) for of in (min, max))
    return {
        "n_variants": len(known),
        "lowest": low["value"],
        "lowest_at": low["variant"],
        "highest": high["value"],
        "highest_at": high["variant"],
        "range": high["value"] - low["value"],
    }


_RANGE = described(
    n_variants="Variants that have the measure.",
    lowest="The lowest value of the measure.",
    lowest_at="The variant that has the lowest value.",
    highest="The highest value of the measure.",
    highest_at="The variant that has the highest value.",
    range="The highest value of the measure minus the lowest.",
)
PROMPTS = Table("c2_prompts", "c2_prompt_variants", (*HELD, "measure"), (Numbers(_RANGE, _range),))
"""The range of each measure of a judge over its prompts, readings and scales.

`range` = highest - lowest, NaN where fewer than two variants have the measure.
"""


def _asked_twice(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """The judgements of each task with what may be varied in `variant` and the verdict in `score`,
    once over prompts and once over readings; coverage scores beside any reference once."""
    once = ["judge", "reading", "prompt", "item", "scale", "level"]
    tasks = {
        "detection": detection.assign(scale="", level=0.0),
        "localisation": localisation.assign(scale="", level=0.0, score=localisation["predicted"]),
        "coverage": coverage.assign(condition="").drop_duplicates(subset=once),
    }
    return pd.concat(
        judged.assign(**{"task": task, "over": over, "variant": judged[over], over: ""})
        for task, judged in tasks.items()
        for over in ("prompt", "reading")
    )


def _pairs(judged: pd.DataFrame, how: Bootstrap) -> list[dict[str, Any]]:
    raters = judged.assign(judge=judged["variant"])
    verdicts = verdicts_by_judge(raters, "score", ("item", "level"))
    pairs = []
    for first, second in itertools.combinations(verdicts.columns, 2):
        both = verdicts[[first, second]].dropna()
        left, right = both[first].tolist(), both[second].tolist()
        pairs.append(
            {"first": first, "second": second, "agreement": stats.agreement(left, right)}
            | {"kappa": stats.kappa(left, right) if left else math.nan, "n": len(both)}
            | {"n_without_verdict": len(verdicts) - len(both)}
        )
    return pairs


_TWO = described(
    first="The first of the two prompts or readings.",
    second="The second of the two prompts or readings.",
    agreement="Share of the items on which both verdicts are the same.",
    kappa="Cohen's kappa of the two verdicts on the same items.",
)
PROMPT_AGREEMENT = Table(
    "c2_prompt_agreement",
    ("detection", "localisation", "coverage"),
    (*HELD, CONDITION),
    prepare=_asked_twice,
    lines=[Lines((*_TWO, *COUNTS), _pairs)],
)
"""One judge asked twice: agreement on the same items between two prompts or readings.

`n` items have both verdicts. Detection and localisation have a row per condition.
"""
