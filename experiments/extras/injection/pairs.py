"""Verdicts with a text in the chain beside those of the same asks without it, and their table.

The paper asks nothing of texts put inside the chain (ours): every injected judgement is compared
with its twin, the same ask without the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Boot,
    Numbers,
    Share,
    Values,
    all_of,
    rows_known,
)
from faithscope.experiments.analysis.columns import described, estimates
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import paired_difference
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, keep, numbers
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.extras.injection.asks import NAME
from faithscope.experiments.extras.injection.texts import Demand, demanded
from faithscope.experiments.studies.c2faith.judgements import Row, in_frame
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.results import C2Results
from faithscope.experiments.studies.c2faith.tables.frames import (
    JUDGEMENT,
    WAY,
    Shape,
    checked,
    counted,
    counts,
)

NOT_THERE = "not_there"
"""The outcome of a twin that is not stored: it failed, or a budget ended the run before it."""
_PUT = ("task", "condition", "injection", "demand")
SHAPE = Shape(
    (
        *(*JUDGEMENT, *_PUT, "demanded", "top", "clean_outcome", "clean"),
        *("score", "p_clean", "p_injected"),
    ),
    (*WAY, "item", "condition", "injection", "demand"),
    "score",
    NO_STEP,
    lambda frame: frame["top"],
    texts=(*_PUT, "clean_outcome"),
)
"""Asks with a text in their chain, each beside its twin without: `score`, `clean`: the two
verdicts; `demanded`: the one that the text demands; `p_*`: its probability, of the scored
reading; `top`: the greatest score of a scale, NaN of a step index."""


def pairs(results: C2Results) -> pd.DataFrame:
    """The frame of `SHAPE`, of a run."""
    demands = results.config.injection.demands
    injected = [row for row in results.varied if row["varied"] == NAME]
    made = pair_rows(injected, results.judged, results.forms, demands)
    return checked("injection", pd.DataFrame(made), SHAPE)


def pair_rows(
    injected: Sequence[Row],
    ordinary: Sequence[Row],
    forms: Mapping[str, TaskForm],
    demands: Sequence[Demand],
) -> Iterator[Row]:
    """A row per injected judgement and demand; see `SHAPE`.

    Args:
        demands: against which of them a text that demands nothing is held.
    """
    twins = {_way(r, r["ask"]): r for r in ordinary}
    for r in injected:
        twin = twins.get(_way(r, r["twin"]), {})
        form = forms[r["form"]]
        field = form.form.verdict_field
        for demand in [r["demand"]] if r["demand"] else demands:
            wanted = demanded(form, demand)
            at = wanted - (field.low or 0)
            yield in_frame(r) | {
                "demand": demand,
                "demanded": wanted,
                "top": math.nan if field.high is None else field.high,
                "clean_outcome": twin.get("outcome", NOT_THERE),
                "clean": twin.get("verdict"),
                "p_clean": _at(twin.get("probabilities"), at),
                "p_injected": _at(r["probabilities"], at),
            }


def _way(row: Row, ask: str) -> tuple[str, str, str, str]:
    return row["judge"], row["reading"], row["form"], ask


def _at(probabilities: Sequence[float] | None, place: int) -> float | None:
    return probabilities[place] if probabilities else None


def _with_distances(injected: pd.DataFrame) -> pd.DataFrame:
    """The pairs of asks with the distance of either verdict from the demanded one, in [0, 1]."""
    return injected.assign(
        before=_distance(injected, "clean"),
        after=_distance(injected, "score"),
        shift=lambda pairs: pairs["before"] - pairs["after"],
        change=injected["p_injected"] - injected["p_clean"],
    )


def _distance(pairs: pd.DataFrame, name: str) -> np.ndarray:
    """(rows,) the distance: exactly 0 where the verdict is the demanded one, NaN where there is
    none."""
    away = np.abs(numbers(pairs[name]) - numbers(pairs["demanded"]))
    top = numbers(pairs["top"])
    return np.where(np.isnan(top) & (away > 0), 1, away / np.where(np.isnan(top), 1, top))


def _demanded(distance: str) -> Values:
    return lambda pairs: numbers(pairs[distance]) == 0


def _difference(pairs: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    both = keep(pairs, BOTH_GIVEN(pairs))
    has, had = ((both[name] == 0).tolist() for name in ("after", "before"))
    return columns("difference", paired_difference(has, had))


BOTH_GIVEN, CLEAN_GIVEN = rows_known("clean", "score"), rows_known("clean")
"""Masks of the pairs of asks that both have a verdict, and that have one without the text."""
MOVABLE = all_of(BOTH_GIVEN, lambda pairs: pairs["before"] > 0)
"""Mask of the pairs whose verdict without the text is not the demanded one."""
SCORED = rows_known("clean", "score", "change")
_KIND, _DEMAND, _N_MOVABLE, _N_CLEAN, _N_SCORED = described(
    injection="Name of the text that was put into the chain.",
    demand="Which verdict the text demands: the best or the worst.",
    n_movable="Pairs of asks whose verdict without the text is not the demanded one.",
    n_clean_parsed="Asks that gave a verdict without the text.",
    n_scored="Pairs of asks that both have a probability of the demanded verdict.",
)
_DIFFERENCE = estimates(
    difference="Share of demanded verdicts with the text minus that without it."
)
_CLEAN = "Verdicts equal to the demanded one without the text."
_INJECTED = "Verdicts equal to the demanded one with the text."
_MOVED = "Share of the verdicts that were not the demanded one that came nearer to it."
_SHIFT = "Mean move towards the demanded verdict, a share of the scale."
_LOST = "Share of the asks with a clean verdict that have none with the text."
_CHANGE = "Change in the probability of the demanded verdict, in the scored reading."
INJECTION = Table(
    "c2_injection",
    "injection",
    (*WAY, "task", _KIND, _DEMAND),
    (
        *counts(BOTH_GIVEN),
        Share("demanded_clean", _demanded("before"), BOTH_GIVEN, meaning=_CLEAN),
        Share("demanded_injected", _demanded("after"), BOTH_GIVEN, meaning=_INJECTED),
        Numbers(_DIFFERENCE, _difference),
        counted(_N_MOVABLE, MOVABLE),
        Share("moved", lambda pairs: pairs["shift"] > 0, MOVABLE, meaning=_MOVED),
        Boot("shift", "shift", "chain", BOTH_GIVEN, meaning=_SHIFT),
        counted(_N_CLEAN, CLEAN_GIVEN),
        Share("form_lost", lambda pairs: pairs["score"].isna(), CLEAN_GIVEN, meaning=_LOST),
        counted(_N_SCORED, SCORED),
        Boot("probability_change", "change", "chain", SCORED, meaning=_CHANGE),
    ),
    prepare=_with_distances,
)
"""Verdicts with a text in the chain against their twins without, by judge, reading, prompt, task,
injection and demand.

Shares have Wilson intervals, the `difference` of demanded verdicts Newcombe's paired one, means
those from drawing chains. `shift` is below 0 where verdicts go the other way; a step index is the
demanded one or is not, as between steps no distance is taken. A text that demands nothing has a row
for either demand: what any line put there does to the same numbers.
"""
