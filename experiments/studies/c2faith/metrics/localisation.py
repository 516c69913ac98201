"""Where the broken step is said to be (C2-Faith, §4.2 and §5.2, Table 2, Figures 5 and 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, ratios
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import (
    Rows,
    all_columns,
    columns,
    groups,
    keep,
    numbers,
    rows_by,
    tabled,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    CONTROL,
    NO_STEP,
    PERTURBED,
    WAY,
    mean_or_nan,
)

WITHIN = 10
"""The greatest distance, in steps, of the curve of Figure 7."""
_ESTIMATES = ("exact", "detection", "fpr", "net", "mae_all", "mae_detected", "within_1")
_ESTIMATES += ("within_2", "signed_error", "early", "late", "gap")
LOCALISATION = [*WAY, "n", "n_without_verdict", "n_control", "n_control_without_verdict"]
LOCALISATION += ["n_detected", *with_interval(*_ESTIMATES), "exact_chance", "exact_chance_middle"]
LOCALISATION += [*with_interval("exact_control"), "mean_p_target"]
_TOLD_TWICE = ("contradicts", "detection_final_score", "fpr_final_score")
LOCALISATION += ["n_final_score", *with_interval(*_TOLD_TWICE)]


@tabled(*LOCALISATION)
def localisation_table(localisation: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading and prompt; `columns` says what each number is.

    -1, no step named, is taken for a place in `mae_all`, as the paper does; `mae_detected`,
    `within_1`, `within_2`, `signed_error`, `early` and `late` are of the chains in which a step was
    named. Whether replies contradict themselves is of the `n_final_score` replies, of perturbed
    and control chains, that have both an index and a final score. Intervals are from drawing
    chains.
    """
    return rows_by(localisation, WAY, lambda judged: localisation_row(judged, how))


def localisation_row(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    """The numbers of one judge, reading and prompt."""
    perturbed = (judged["condition"] == PERTURBED).to_numpy()
    control = (judged["condition"] == CONTROL).to_numpy()
    with_verdict = judged["predicted"].notna().to_numpy()
    predicted, target = numbers(judged["predicted"]), numbers(judged["target"])
    p, c = perturbed & with_verdict, control & with_verdict
    found_one = with_verdict & (predicted != NO_STEP)
    final_score = numbers(judged["final_score"])
    twice = with_verdict & ~np.isnan(final_score)
    called_broken = twice & (final_score == 0)
    error = np.where(with_verdict, predicted - target, 0.0)
    detected = p & found_one
    estimates = ratios(
        judged["chain"].to_numpy(),
        {
            "exact": (p & (error == 0), p),
            "detection": (detected, p),
            "fpr": (c & found_one, c),
            "mae_all": (np.abs(error) * p, p),
            "mae_detected": (np.abs(error) * detected, detected),
            "within_1": (detected & (np.abs(error) <= 1), detected),
            "within_2": (detected & (np.abs(error) <= 2), detected),
            "signed_error": (error * detected, detected),
            "early": (detected & (error < 0), detected),
            "late": (detected & (error > 0), detected),
            "exact_control": (c & (error == 0), c),
            "contradicts": (twice & (found_one != called_broken), twice),
            "detection_final_score": (p & called_broken, p & twice),
            "fpr_final_score": (c & called_broken, c & twice),
        },
        minus={"net": ("detection", "fpr"), "gap": ("detection", "exact")},
        how=how,
    )
    row: dict[str, Any] = {
        "n": int(p.sum()),
        "n_without_verdict": int((perturbed & ~with_verdict).sum()),
        "n_control": int(c.sum()),
        "n_control_without_verdict": int((control & ~with_verdict).sum()),
        "n_detected": int(detected.sum()),
    }
    row["n_final_score"] = int(twice.sum())
    row |= all_columns(estimates, estimates)
    row["exact_chance"] = blindly(numbers(judged["n_steps"])[p])
    row["exact_chance_middle"] = blindly(numbers(judged["n_middle"])[p])
    of_target = numbers(judged["p_target"])[p]
    return row | {"mean_p_target": mean_or_nan(of_target[~np.isnan(of_target)])}


def blindly(choices: np.ndarray) -> float:
    """Share of items in which a blind choice is the right one; 0 where there is none to make."""
    return mean_or_nan(np.divide(1.0, choices, out=np.zeros(len(choices)), where=choices != 0))


@tabled(*WAY, "signed_error", "n", "n_without_verdict", "share")
def signed_error_table(localisation: pd.DataFrame) -> Rows:
    """Figure 5: how many steps early (below 0) or late, over chains in which a step was named."""
    for key, judged in groups(localisation, WAY):
        error, without = _errors(judged)
        values, counts = np.unique(error, return_counts=True)
        yield from (
            key
            | {"signed_error": int(v), "n": len(error), "n_without_verdict": without}
            | {"share": c / len(error)}
            for v, c in zip(values, counts, strict=True)
        )
        if not len(error):
            yield key | {"n": 0, "n_without_verdict": without}


@tabled(*WAY, "k", "n", "n_without_verdict", *with_interval("within"))
def within_table(localisation: pd.DataFrame) -> Rows:
    """Figure 7: share named within k steps of the target, of chains in which a step was named.

    k goes to the last distance that occurs under any way of judging, at most `WITHIN`; Wilson
    intervals.
    """
    of_way = [(key, *_errors(judged)) for key, judged in groups(localisation, WAY)]
    far = max((int(np.abs(e).max()) for _, e, _ in of_way if len(e)), default=0)
    for key, error, without in of_way:
        for k in range(min(far, WITHIN) + 1):
            near = wilson(int((np.abs(error) <= k).sum()), len(error))
            counts = {"k": k, "n": len(error), "n_without_verdict": without}
            yield key | counts | columns("within", near)


def _errors(judged: pd.DataFrame) -> tuple[np.ndarray, int]:
    """Signed errors of the detected perturbed chains, and how many chains have no verdict."""
    perturbed = keep(judged, judged["condition"] == PERTURBED)
    predicted = numbers(perturbed["predicted"])
    detected = ~np.isnan(predicted) & (predicted != NO_STEP)
    error = (predicted - numbers(perturbed["target"]))[detected]
    return error, int(np.isnan(predicted).sum())
