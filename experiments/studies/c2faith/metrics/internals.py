"""What a judge says of a broken step, beside what a model's insides say of it.

A judge and a signal are asked the same two things of the same items: is this step broken, told
by AUROC over perturbed and control items, and which step is, told by exact matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc, ratios
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    distinct,
    keep,
    numbers,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    CONTROL,
    NO_STEP,
    PERTURBED,
    Frames,
)
from faithscope.experiments.studies.c2faith.metrics.localisation import blindly

JUDGE, INTERNALS = "judge", "internals"
AGAINST = ["kind", "name", "signal", "prompt", "n", "n_without_verdict", *with_interval("auroc")]
AGAINST += ["n_chains", "n_chains_without_verdict", *with_interval("exact")]
AGAINST += ["exact_chance", "exact_chance_middle", *with_interval("exact_control")]


@tabled(*AGAINST)
def against_table(frames: Frames, how: Drawing) -> Rows:
    """A row per judge and reading, and per model and signal; the best AUROC of a kind first.

    `signal` is a judge's reading. AUROC ranks the `n` perturbed and control items by a judge's
    probability that the step is broken, or by its verdict where there is none (then AUROC =
    (1 + net discrimination) / 2), and by the signal as it is. `exact` is the share of the
    `n_chains` perturbed chains in which the step named is the broken one, `exact_control` the
    share of control chains in which that same step is named without being broken;
    Of two blind choices `exact_chance` is that among all steps that could be named, which for
    `answer_tracing`, `necessity` and `information_flow` are all but the last, and
    `exact_chance_middle` that of who knows where targets are drawn from. Judges may name no step,
    a signal always names one. Of a judge with several prompts, a task's first.
    """
    judged = (_suspicion(_first_prompt(frames.detection)), _first_prompt(frames.localisation))
    inside = (frames.internals, frames.internals_localisation)
    for kind, own, of_kind in (
        (JUDGE, {"judge": "name", "reading": "signal"}, judged),
        (INTERNALS, {"model": "name"}, inside),
    ):
        detection, localisation = (frame.rename(columns=own) for frame in of_kind)
        table_rows = [
            {"kind": kind, **key} | _row(where(detection, **key), where(localisation, **key), how)
            for key in distinct(pd.concat([detection, localisation]), "name", "signal")
        ]
        yield from sorted(table_rows, key=_place)


def _first_prompt(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of every judge and reading under the first of its prompts."""
    first = frame.groupby(["judge", "reading"], sort=False)["prompt"].transform("first")
    return keep(frame, frame["prompt"] == first)


def _suspicion(judged: pd.DataFrame) -> pd.DataFrame:
    suspect = judged["p_flag"].where(judged["p_flag"].notna(), 1 - judged["score"])
    return judged.assign(score=suspect.where(judged["score"].notna()))


def _row(scored: pd.DataFrame, placed: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    asked = [frame["prompt"] for frame in (scored, placed) if "prompt" in frame]
    prompts = dict.fromkeys(prompt for of_frame in asked for prompt in of_frame)
    row: dict[str, Any] = {"prompt": " and ".join(prompts)}
    row |= _detected(scored, how) if len(scored) else {}
    return row | (_located(placed, how) if len(placed) else {})


def _place(row: Mapping[str, Any]) -> float:
    """The greatest AUROC first, rows without one last."""
    value = row.get("auroc", math.nan)
    return math.inf if math.isnan(value) else -value


def _detected(scored: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    with_score = keep(scored, scored["score"].notna())
    positive = (with_score["condition"] == PERTURBED).to_numpy()
    estimate = auroc(with_score["chain"].to_numpy(), positive, numbers(with_score["score"]), how)
    counts = {"n": len(with_score), "n_without_verdict": len(scored) - len(with_score)}
    return counts | columns("auroc", estimate)


def _located(placed: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    named = placed["predicted"].notna().to_numpy()
    hit = numbers(placed["predicted"]) == numbers(placed["target"])
    hit &= numbers(placed["predicted"]) != NO_STEP
    p, c = ((placed["condition"] == x).to_numpy() & named for x in (PERTURBED, CONTROL))
    of = {"exact": (hit & p, p), "exact_control": (hit & c, c)}
    estimates = ratios(placed["chain"].to_numpy(), of, how=how)
    # a judge may name any step of the chain
    choices = placed["n_candidates"] if "n_candidates" in placed else placed["n_steps"]
    without = int((placed["condition"] == PERTURBED).sum() - p.sum())
    row: dict[str, Any] = {"n_chains": int(p.sum()), "n_chains_without_verdict": without}
    row["exact_chance"] = blindly(numbers(choices)[p])
    row["exact_chance_middle"] = blindly(numbers(placed["n_middle"])[p])
    return (
        row
        | columns("exact", estimates["exact"])
        | columns("exact_control", estimates["exact_control"])
    )
