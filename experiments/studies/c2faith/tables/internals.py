"""Judges on a broken step, beside signals inside a model for the same step.

A judge and a signal are asked the same two things of the same items: is this step broken, told
by AUROC over perturbed and control items, and which step is, told by exact matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Lines, all_of
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.statistics.against_label import against_label
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, ratios
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import (
    all_columns,
    columns_of,
    count,
    groups,
    keep,
    numbers,
)
from faithscope.experiments.studies.c2faith.tables.frames import (
    COUNTS,
    ON_BROKEN,
    ON_INTACT,
)
from faithscope.experiments.studies.c2faith.tables.localisation import (
    BLINDLY,
    EXACT,
    PLACED,
    STEP_NAMED,
    blindly,
)

JUDGE, INTERNALS = "judge", "internals"


def _asked(
    detection: pd.DataFrame,
    localisation: pd.DataFrame,
    internals: pd.DataFrame,
    internals_localisation: pd.DataFrame,
) -> pd.DataFrame:
    """Rows of judges, under the first of their prompts, and of signals inside models, in the same
    columns; `asked` says whether a step was to be told or to be found."""
    judged = {"judge": "name", "reading": "signal"}
    parts = [
        _suspicion(_first_prompt(detection)).rename(columns=judged).assign(asked="told"),
        # a judge may name any step of the chain
        _first_prompt(localisation)
        .rename(columns=judged)
        .assign(asked="found", n_candidates=localisation["n_steps"]),
        *(
            frame.rename(columns={"model": "name"}).assign(asked=asked, prompt="")
            for asked, frame in (("told", internals), ("found", internals_localisation))
        ),
    ]
    kinds = (JUDGE, JUDGE, INTERNALS, INTERNALS)
    return pd.concat([part.assign(kind=kind) for part, kind in zip(parts, kinds, strict=True)])


def _first_prompt(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of every judge and reading under the first of its prompts."""
    first = frame.groupby(["judge", "reading"], sort=False)["prompt"].transform("first")
    return keep(frame, frame["prompt"] == first)


def _suspicion(judged: pd.DataFrame) -> pd.DataFrame:
    suspect = judged["p_flag"].where(judged["p_flag"].notna(), 1 - judged["score"])
    return judged.assign(score=suspect.where(judged["score"].notna()))


def _by_auroc(of_kind: pd.DataFrame, how: Bootstrap) -> list[dict[str, Any]]:
    """A row per judge and reading, or per model and signal; the greatest AUROC first, rows without
    an AUROC last."""
    table_rows = [key | _row(asked, how) for key, asked in groups(of_kind, ("name", "signal"))]
    return sorted(table_rows, key=_place)


def _row(asked: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    told, found = (keep(asked, asked["asked"] == what) for what in ("told", "found"))
    row: dict[str, Any] = {"prompt": " and ".join(filter(None, dict.fromkeys(asked["prompt"])))}
    row |= _told(told, how) if len(told) else {}
    return row | (_found(found, how) if len(found) else {})


def _place(row: Mapping[str, Any]) -> float:
    value = row.get("auroc", math.nan)
    return math.inf if math.isnan(value) else -value


def _told(scored: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    score, chains = numbers(scored["score"]), how.units(scored, "chain")
    estimates = against_label(("auroc",), ON_BROKEN(scored), chains, how, score=score)
    n = estimates["auroc"].n
    return {"n": n, "n_without_verdict": len(scored) - n} | columns_of(estimates)


def _found(placed: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    p, c = (all_of(of, PLACED)(placed) for of in (ON_BROKEN, ON_INTACT))
    hit = STEP_NAMED(placed) & (placed["predicted"] == placed["target"]).to_numpy()
    of = {"exact": (hit & p, p), "exact_control": (hit & c, c)}
    estimates = ratios(how.units(placed, "chain"), of, how=how)
    return all_columns(estimates, of) | {
        "n_chains": count(p),
        "n_chains_without_verdict": count(ON_BROKEN(placed)) - count(p),
        "exact_chance": blindly(numbers(placed["n_candidates"])[p]),
        "exact_chance_middle": blindly(numbers(placed["n_middle"])[p]),
    }


_KIND = described(kind="Whether the row is of a judge or of the insides of a model.")
_NUMBERS = (
    *described(
        name="The judge, or the model that was looked into.",
        signal="A judge's reading, or what is read inside the model.",
    ),
    *(SHARED["prompt"], *COUNTS),
    *estimates(auroc=("AUROC", "Perturbed against control items, by verdict or signal.")),
    *described(
        n_chains="Perturbed chains with a verdict, or with a step named by the signal.",
        n_chains_without_verdict="Perturbed chains without a verdict.",
    ),
    *(EXACT, *BLINDLY),
)
AGAINST = Table(
    "c2_judge_against_internals",
    ("detection", "localisation", "internals", "internals_localisation"),
    _KIND,
    prepare=_asked,
    lines=[Lines(_NUMBERS, _by_auroc)],
)
"""Judges in each reading beside signals inside models, on the same items.

`signal` is a judge's reading. AUROC ranks the `n` perturbed and control items by a judge's
probability that the step is broken, or by its verdict where there is none (then AUROC =
(1 + net discrimination) / 2), and by the signal as it is. `exact` is the share of the
`n_chains` perturbed chains in which the step named is the broken one, `exact_control` the
share of control chains in which that same step is named without being broken.
`exact_chance` is that of a blind choice among all steps that could be named, which for
`answer_tracing`, `necessity` and `information_flow` are all but the last; `exact_chance_middle`
is that of a blind choice in the region that targets are drawn from. Judges may name no step, a
signal always names one. A judge is shown under the first prompt of each task.
"""
