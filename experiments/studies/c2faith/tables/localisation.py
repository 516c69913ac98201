"""Localisation: the step that a judge says is broken (C2-Faith, §4.2 and §5.2, Table 2, Figures 5
and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Lines, Numbers, all_of, rows_known, rows_without
from faithscope.experiments.analysis.columns import described, estimates
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, ratios
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import all_columns, columns, count, keep, numbers
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.studies.c2faith.tables.detection import NET
from faithscope.experiments.studies.c2faith.tables.frames import (
    CONTROLS,
    COUNTS,
    ON_BROKEN,
    ON_INTACT,
    WAY,
    counted,
    counts,
    mean_or_nan,
)

WITHIN_MOST = 10
"""The greatest distance, in steps, of the curve of Figure 7."""
PLACED = rows_known("predicted")
"""Mask of the judgements with a verdict, a step or none."""
STEP_NAMED = all_of(PLACED, rows_without(predicted=NO_STEP))
"""Mask of the judgements that name a step."""
TOLD_TWICE = rows_known("predicted", "final_score")
"""Mask of the replies that have both an index and a final score."""
EXACT, SIGNED = estimates(
    exact="Perturbed chains whose named step is the replaced one.",
    signed_error=("", "Named − target: below 0 is early.", "steps"),
)
BLINDLY = (
    *described(
        exact_chance=(
            "exact, named blindly",
            "What naming any step blindly gives: the mean of 1 / number of steps.",
        ),
        exact_chance_middle=(
            "exact, blindly in the middle region",
            "What naming blindly one of the steps that targets are drawn from gives.",
        ),
    ),
    *estimates(
        exact_control=(
            "exact, control",
            "Control chains whose step named is the one that is broken in the perturbed twin.",
        ),
    ),
)
"""Columns of choices without insight, with which exact matches are compared."""
_RATES = (
    EXACT,
    *estimates(
        detection=("detected", "Perturbed chains with a step named at all."),
        fpr=("false alarms", "Control chains with a step named."),
    ),
    NET,
    *estimates(
        mae_all=("MAE, all", "Mean |named − target|; none named counts as place −1.", "steps"),
        mae_detected=("MAE, detected", "Mean |named − target| where a step was named.", "steps"),
        within_1=("within 1", "Named within one step of the target, where one was named."),
        within_2=("within 2", "Named within two steps of the target, where one was named."),
    ),
    SIGNED,
    *estimates(
        early="Named too early, of chains in which a step was named.",
        late="Named too late, of chains in which a step was named.",
        gap="Detection minus exact (§5.4.2).",
    ),
    *BLINDLY,
    *described(
        mean_p_target=("probability of the target", "Mean over chains, in the scored reading."),
        n_final_score=(
            "with index and final score",
            "Replies on perturbed and control chains that have both a step index and a final "
            "score.",
        ),
    ),
    *estimates(
        contradicts=(
            "index and final score contradict",
            "Replies with both that name a step and score the chain as sound, or name none and "
            "score it as broken.",
        ),
        detection_final_score=(
            "detection, by the final score",
            "Perturbed chains that the final score calls broken, of replies with both.",
        ),
        fpr_final_score=(
            "false alarms, by the final score",
            "Control chains that the final score calls broken, of replies with both.",
        ),
    ),
)


def _rates(judged: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    p, c = (all_of(of, PLACED)(judged) for of in (ON_BROKEN, ON_INTACT))
    names, twice = STEP_NAMED(judged), TOLD_TWICE(judged)
    called_broken = twice & (numbers(judged["final_score"]) == 0)
    error = (judged["predicted"] - judged["target"]).fillna(0).to_numpy()
    detected = p & names
    estimates = ratios(
        how.units(judged, "chain"),
        {
            "exact": (p & (error == 0), p),
            "detection": (detected, p),
            "fpr": (c & names, c),
            "mae_all": (np.abs(error) * p, p),
            "mae_detected": (np.abs(error) * detected, detected),
            "within_1": (detected & (np.abs(error) <= 1), detected),
            "within_2": (detected & (np.abs(error) <= 2), detected),
            "signed_error": (error * detected, detected),
            "early": (detected & (error < 0), detected),
            "late": (detected & (error > 0), detected),
            "exact_control": (c & (error == 0), c),
            "contradicts": (twice & (names != called_broken), twice),
            "detection_final_score": (p & called_broken, p & twice),
            "fpr_final_score": (c & called_broken, c & twice),
        },
        minus={"net": ("detection", "fpr"), "gap": ("detection", "exact")},
        how=how,
    )
    of_target = numbers(judged["p_target"])[p]
    return all_columns(estimates, estimates) | {
        "exact_chance": blindly(numbers(judged["n_steps"])[p]),
        "exact_chance_middle": blindly(numbers(judged["n_middle"])[p]),
        "mean_p_target": mean_or_nan(of_target[~np.isnan(of_target)]),
        "n_final_score": count(twice),
    }


def blindly(choices: np.ndarray) -> float:
    """Share of items in which a blind choice is the right one; 0 where there is none to make."""
    return mean_or_nan(np.divide(1.0, choices, out=np.zeros(len(choices)), where=choices != 0))


_N_DETECTED, *_ = described(
    n_detected=("chains with a step named", "Perturbed chains in which the judge names a step.")
)
LOCALISATION = Table(
    "c2_localisation",
    "localisation",
    WAY,
    (
        *counts(PLACED, ON_BROKEN),
        *counts(PLACED, ON_INTACT, CONTROLS),
        counted(_N_DETECTED, all_of(ON_BROKEN, STEP_NAMED)),
        Numbers(_RATES, _rates),
    ),
)
"""Localisation by each judge, reading and prompt (Table 2).

-1, no step named, is taken for a place in `mae_all`, as the paper does; `mae_detected`,
`within_1`, `within_2`, `signed_error`, `early` and `late` are of the chains in which a step was
named. Intervals are from drawing chains.
"""


def _error_shares(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    error, counts = _errors(judged)
    values, times = np.unique(error, return_counts=True)
    for value, n in zip(values, times, strict=True):
        yield counts | {"signed_error": int(value), "share": n / len(error)}
    if not len(error):
        yield counts


_SHARE = described(share="Share of the chains that have this error.")
SIGNED_ERROR = Table(
    "c2_signed_error",
    "localisation",
    WAY,
    lines=[Lines((replace(SIGNED, interval=False), *COUNTS, *_SHARE), _error_shares)],
)
"""Shares of chains by how many steps early (below 0) or late the named step is (Figure 5)."""


def _with_farthest(localisation: pd.DataFrame) -> pd.DataFrame:
    error, _ = _errors(localisation)
    return localisation.assign(farthest=int(np.abs(error).max()) if len(error) else 0)


def _shares_within(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    error, counts = _errors(judged)
    for k in range(min(judged["farthest"].iloc[0], WITHIN_MOST) + 1):
        near = wilson(count(np.abs(error) <= k), len(error))
        yield {"k": k} | counts | columns("within", near)


_K = described(k="Distance from the target, in steps.")
_WITHIN = estimates(within="Share named within k steps of the target, where one was named.")
WITHIN = Table(
    "c2_within",
    "localisation",
    WAY,
    prepare=_with_farthest,
    lines=[Lines((*_K, *COUNTS, *_WITHIN), _shares_within)],
)
"""Share named within k steps of the target, of chains in which a step was named (Figure 7).

k goes to the last distance that occurs under any way of judging, at most `WITHIN_MOST`; Wilson
intervals.
"""


def _errors(judged: pd.DataFrame) -> tuple[np.ndarray, dict[str, int]]:
    """Signed errors of the perturbed chains with a step named; how many chains those are, and how
    many have no verdict."""
    named = keep(judged, all_of(ON_BROKEN, STEP_NAMED)(judged))
    error = numbers(named["predicted"]) - numbers(named["target"])
    silent = count(ON_BROKEN(judged) & ~PLACED(judged))
    return error, {"n": len(error), "n_without_verdict": silent}
