"""What a judge says of a broken step, beside what a model's insides say of it.

A judge and a signal are asked the same two things of the same items: is this step broken, told
by AUROC over perturbed and control items, and which step is, told by exact matches.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc, ratios
from faithscope.experiments.analysis.tidy import columns, groups, keep, numbers, with_interval
from faithscope.experiments.studies.c2faith.metrics.frames import (
    CONTROL,
    NO_STEP,
    PERTURBED,
    WAY,
    Frames,
)
from faithscope.experiments.studies.c2faith.metrics.localisation import blindly

JUDGE, INTERNALS = "judge", "internals"
AGAINST = ["kind", "name", "signal", "prompt", "n", "n_without_verdict", *with_interval("auroc")]
AGAINST += ["n_chains", "n_chains_without_verdict", *with_interval("exact")]
AGAINST += ["exact_chance", "exact_chance_middle", *with_interval("exact_control")]


def against_table(frames: Frames, how: Drawing) -> pd.DataFrame:
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
    judges = _rows(
        JUDGE,
        ("judge", "reading"),
        {key: _suspicion(judged) for key, judged in _first_prompt(frames.detection)},
        dict(_first_prompt(frames.localisation)),
        how,
    )
    of_model = ("model", "signal")
    signals = _rows(
        INTERNALS,
        of_model,
        {tuple(key.values()): judged for key, judged in groups(frames.internals, of_model)},
        {
            tuple(key.values()): judged
            for key, judged in groups(frames.internals_localisation, of_model)
        },
        how,
    )
    return pd.DataFrame([*judges, *signals], columns=AGAINST)


def _first_prompt(frame: pd.DataFrame) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    """(judge, reading) -> its rows under the first of its prompts."""
    first: dict[tuple[str, ...], pd.DataFrame] = {}
    for key, judged in groups(frame, WAY):
        first.setdefault((key["judge"], key["reading"]), judged)
    return list(first.items())


def _suspicion(judged: pd.DataFrame) -> pd.DataFrame:
    suspect = judged["p_flag"].where(judged["p_flag"].notna(), 1 - judged["score"])
    return judged.assign(score=suspect.where(judged["score"].notna()))


def _rows(
    kind: str,
    names: tuple[str, str],
    detection: dict[tuple[str, ...], pd.DataFrame],
    localisation: dict[tuple[str, ...], pd.DataFrame],
    how: Drawing,
) -> list[dict[str, Any]]:
    table_rows = []
    for key in dict.fromkeys([*detection, *localisation]):
        row: dict[str, Any] = {"kind": kind, "name": key[0], "signal": key[1], "prompt": ""}
        frames = [f[key] for f in (detection, localisation) if key in f]
        if kind == JUDGE:
            row["prompt"] = " and ".join(dict.fromkeys(str(f["prompt"].iloc[0]) for f in frames))
        if key in detection:
            row |= _detected(detection[key], how)
        if key in localisation:
            row |= _located(localisation[key], how)
        table_rows.append(row)
    return sorted(table_rows, key=lambda r: -_or_least(r.get("auroc", math.nan)))


def _or_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value


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
