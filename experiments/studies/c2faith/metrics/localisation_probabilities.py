"""What a judge's probabilities of every step say of where the broken one is (ours).

The paper has judges name a step and no more, and asks for calibrated ones (C2-Faith, §7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.resampling import Drawing, auroc, ratios
from faithscope.experiments.analysis.tidy import columns, where, with_interval
from faithscope.experiments.studies.c2faith.metrics.frames import (
    CONTROL,
    NO_STEP,
    PERTURBED,
    WAY,
    groups,
    numbers,
)
from faithscope.experiments.studies.c2faith.metrics.reliability import (
    calibration_error,
    curve,
    curve_columns,
    log_loss,
    stacked,
    with_probabilities,
)

BOTH = "both"
CONDITIONS = {PERTURBED: {PERTURBED}, CONTROL: {CONTROL}, BOTH: {PERTURBED, CONTROL}}
_MEANS = ("right", "confidence", "overconfidence", "p_truth", "log_loss", "brier")
PROBABILITIES = [*WAY, "condition", "n", "n_without_verdict", *with_interval(*_MEANS)]
PROBABILITIES += ["p_truth_uniform", "log_loss_uniform", "brier_uniform", "ece"]
PROBABILITIES += with_interval("auroc_right", "auroc_broken")
CALIBRATION = [*WAY, "condition", "n_without_verdict", *curve_columns("confidence", "right")]


def localisation_probabilities_table(localisation: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading, prompt and condition: perturbed, control, and both together.

        right           share of chains in which the verdict is the truth: the replaced step, or
                        -1 of an intact chain
        confidence      mean probability of the verdict given, the likeliest
        overconfidence  confidence - right, of the same draws of chains
        ece             calibration error of the confidence, 10 bins
        auroc_right     whether confidence tells right verdicts from wrong ones
        p_truth         mean probability of the truth; `log_loss`, its mean -ln, in nats;
                        `brier`, the squared distance of all probabilities from the truth, 0 to 2
        ..._uniform     the same of a judge to which -1 and every step are equally likely
        auroc_broken    of 1 - P(-1), perturbed against intact chains; of both together

    Probabilities are shares of -1 and the steps of the chain. Intervals are from drawing chains.
    """
    made = []
    for key, judged in scored(localisation):
        mine = with_probabilities(judged)
        counts = {"n": len(mine), "n_without_verdict": len(judged) - len(mine)}
        made.append(key | counts | (_numbers(mine, how) if len(mine) else {}))
    return pd.DataFrame(made, columns=PROBABILITIES)


def localisation_calibration_table(localisation: pd.DataFrame) -> pd.DataFrame:
    """Reliability of the verdict's own probability: a row per bin that holds chains.

    `share_right` against `mean_confidence`, by condition and of both. Half of the chains are
    broken, by construction. Where no verdict came there is one row, of n = 0.
    """
    made = []
    for key, judged in scored(localisation):
        mine = with_probabilities(judged)
        without = {"n_without_verdict": len(judged) - len(mine)}
        right, confidence, _ = outcomes(mine)
        of_bins = curve(right, confidence, "confidence", "right") or [{"n": 0}]
        made += [key | without | of_bin for of_bin in of_bins]
    return pd.DataFrame(made, columns=CALIBRATION)


def scored(localisation: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Every way of judging that gives probabilities, by condition."""
    for key, judged in groups(localisation, WAY):
        if key["reading"] == "scored" or len(with_probabilities(judged)):
            for condition, values in CONDITIONS.items():
                yield key | {"condition": condition}, where(judged, condition=values)


def outcomes(judged: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows,) whether the verdict is the truth, and the probabilities of either."""
    broken = (judged["condition"] == PERTURBED).to_numpy()
    said = numbers(judged["predicted"]).astype(int)
    truth = np.where(broken, numbers(judged["target"]), NO_STEP).astype(int)
    p, each = stacked(judged["probabilities"]), np.arange(len(judged))
    # the first probability is that of -1
    return said == truth, p[each, said - NO_STEP], p[each, truth - NO_STEP]


def _numbers(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    right, confidence, p_truth = outcomes(judged)
    p = stacked(judged["probabilities"])
    chains, every = judged["chain"].to_numpy(), np.ones(len(judged), dtype=bool)
    values = {
        "right": right,
        "confidence": confidence,
        "p_truth": p_truth,
        "log_loss": log_loss(p_truth),
        # sum over verdicts of (p - [is true])^2
        "brier": (p**2).sum(axis=1) - 2 * p_truth + 1,
    }
    found = ratios(
        chains,
        {name: (value, every) for name, value in values.items()},
        minus={"overconfidence": ("confidence", "right")},
        how=how,
    )
    row: dict[str, Any] = {}
    for name in _MEANS:
        row |= columns(name, found[name])
    verdicts = numbers(judged["n_steps"]) + 1
    row |= {
        "p_truth_uniform": float((1 / verdicts).mean()),
        "log_loss_uniform": float(np.log(verdicts).mean()),
        "brier_uniform": float((1 - 1 / verdicts).mean()),
        "ece": calibration_error(right, confidence),
    }
    row |= columns("auroc_right", auroc(chains, right, confidence, how))
    broken = (judged["condition"] == PERTURBED).to_numpy()
    if broken.all() or not broken.any():
        return row | dict.fromkeys(with_interval("auroc_broken"), math.nan)
    return row | columns("auroc_broken", auroc(chains, broken, 1 - p[:, 0], how))
