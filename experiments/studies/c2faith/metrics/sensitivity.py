"""How far a figure hangs on how it was asked: prompt, scale, reading (C2-Faith, §7), a text inside.

The paper has one prompt and one scale per task and says itself that this limits what can be
said of a judge. It asks nothing of texts put inside the chain (ours): every injected judgement is
held against its twin, the same ask without the text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.statistics.stats import paired_difference, share
from faithscope.experiments.analysis.tidy import (
    Rows,
    all_columns,
    columns,
    count,
    groups,
    keep,
    numbers,
    renamed,
    rows,
    rows_by,
    tabled,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import WAY, verdicts_by_judge

MEASURES = {
    "detection": ("detection", "fpr", "net", "auroc"),
    "localisation": ("exact", "detection", "fpr", "net", "signed_error"),
    "coverage": ("mean_share", "inflation", "spearman", "spearman_kept"),
}
VARIANTS = ["task", "judge", "over", "reading", "prompt", "scale", "measure", "variant"]
VARIANTS += [*with_interval("value"), "n", "n_without_verdict"]
PROMPTS = ["task", "judge", "over", "reading", "prompt", "scale", "measure", "n_variants"]
PROMPTS += ["lowest", "lowest_at", "highest", "highest_at", "range"]
SAME_JUDGE = ["task", "judge", "over", "reading", "prompt", "scale", "condition", "first", "second"]
SAME_JUDGE += ["agreement", "kappa", "n", "n_without_verdict"]
_VARIED: dict[str, tuple[str, ...]] = {
    "detection": ("prompt", "reading"),
    "localisation": ("prompt", "reading"),
    "coverage": ("prompt", "reading", "scale"),
}


@tabled(*VARIANTS)
def variants_table(tables: Mapping[str, pd.DataFrame]) -> Rows:
    """Each figure of a judge under every prompt, reading and scale, as `prompts_table` has them.

    A row per `variant` of what is varied (`over`), with the figure's interval.

    Args:
        tables: `detection`, `localisation`, and `coverage` over all levels, as tables.
    """
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
                for measure in MEASURES[task]:
                    for r in rows(judged):
                        counts = {name: r[name] for name in ("n", "n_without_verdict")}
                        at = {"measure": measure, "variant": r[over]}
                        yield of | at | renamed(r, measure, "value") | counts


def prompts_table(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The range of each figure of a judge over its prompts, readings and scales.

    `over` says what is varied; what is held is named, what is varied is empty. A scale brings
    its own prompt: over scales, the first prompt of each. `range` = highest - lowest, NaN where
    fewer than two variants have the figure.

    Args:
        tables: as of `variants_table`.
    """
    fixed = ("task", "judge", "over", "reading", "prompt", "scale", "measure")
    table_rows = [key | _range(variants) for key, variants in groups(variants_table(tables), fixed)]
    return pd.DataFrame(table_rows, columns=PROMPTS)


def _range(variants: pd.DataFrame) -> dict[str, Any]:
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


@tabled(*SAME_JUDGE)
def prompt_agreement_table(frames: Mapping[str, pd.DataFrame]) -> Rows:
    """One judge asked twice: agreement on the same items between two prompts or readings.

    `agreement` is the share of the `n` items with both verdicts on which they are the same,
    `kappa` Cohen's. Of detection and localisation both conditions apart.
    """
    for task, frame in frames.items():
        judged = frame
        if task == "coverage":
            judged = frame.assign(condition="").drop_duplicates(
                subset=["judge", "reading", "prompt", "item", "scale", "level"]
            )
        else:
            judged = frame.assign(scale="", level=0.0)
        value = "predicted" if task == "localisation" else "score"
        for over in ("prompt", "reading"):
            fixed = ["judge", "scale", "condition", "reading" if over == "prompt" else "prompt"]
            for key, of_key in groups(judged, fixed):
                of = {"task": task, "over": over, "reading": "", "prompt": ""} | key
                yield from (of | row for row in _pairs(of_key, over, value))


def _pairs(judged: pd.DataFrame, over: str, value: str) -> Sequence[dict[str, Any]]:
    verdicts = verdicts_by_judge(judged.assign(judge=judged[over]), value, ("item", "level"))
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


INJECTION = [*WAY, "task", "injection", "demand", "n", "n_without_verdict"]
INJECTION += with_interval("demanded_clean", "demanded_injected", "difference")
INJECTION += ["n_movable", *with_interval("moved", "shift")]
INJECTION += ["n_clean_parsed", *with_interval("form_lost")]
INJECTION += ["n_scored", *with_interval("probability_change")]


@tabled(*INJECTION)
def injection_table(injected: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading, prompt, injection and demand; all of pairs of twins.

    `columns` says what each number is. Shares have Wilson intervals, the `difference` of demanded
    verdicts Newcombe's paired one, means those from drawing chains. `shift` is below 0 where
    verdicts go the other way; a step index is the demanded one or is not, as between steps no
    distance is taken. A text that demands nothing has a row for either demand: what any line put
    there does to the same numbers.
    """
    of = (*WAY, "task", "injection", "demand")
    return rows_by(injected, of, lambda pairs: injection_row(pairs, how))


def injection_row(pairs: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    """The numbers of one judge, reading, prompt, injection and demand."""
    clean_parsed, parsed = pairs["clean"].notna(), pairs["score"].notna()
    both = keep(pairs, clean_parsed & parsed)
    before, after = (_distance(both, name) for name in ("clean", "score"))
    had, has = (before == 0).tolist(), (after == 0).tolist()
    scored = keep(both, both["p_clean"].notna() & both["p_injected"].notna())
    change = numbers(scored["p_injected"]) - numbers(scored["p_clean"])
    row: dict[str, Any] = {"n": len(both), "n_without_verdict": len(pairs) - len(both)}
    row |= columns("demanded_clean", share(had)) | columns("demanded_injected", share(has))
    row |= columns("difference", paired_difference(has, had))
    row |= {"n_movable": count(before > 0)}
    row |= columns("moved", share((after < before)[before > 0].tolist()))
    row |= _mean("shift", both, before - after, how)
    row |= {"n_clean_parsed": count(clean_parsed)}
    row |= columns("form_lost", share((~parsed[clean_parsed]).tolist()))
    return row | {"n_scored": len(scored)} | _mean("probability_change", scored, change, how)


def _distance(pairs: pd.DataFrame, name: str) -> np.ndarray:
    """From the demanded verdict, in [0, 1]; exactly 0 where it is that."""
    away = np.abs(numbers(pairs[name]) - numbers(pairs["demanded"]))
    top = numbers(pairs["top"])
    return np.where(np.isnan(top), away > 0, away / np.where(np.isnan(top), 1, top))


def _mean(name: str, pairs: pd.DataFrame, values: np.ndarray, how: Drawing) -> dict[str, float]:
    mean = means(pairs["chain"].to_numpy(), {name: values}, how=how)
    return all_columns(mean, mean)
