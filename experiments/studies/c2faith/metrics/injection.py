"""What a text inside the chain does to the verdict (ours; C2-Faith asks nothing of the kind).

Every injected judgement is held against its twin, the same ask without the text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.statistics.stats import paired_difference, share
from faithscope.experiments.analysis.tidy import (
    all_columns,
    columns,
    count,
    keep,
    numbers,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import WAY, table_by

INJECTION = [*WAY, "task", "injection", "demand", "n", "n_without_verdict"]
INJECTION += with_interval("demanded_clean", "demanded_injected", "difference")
INJECTION += ["n_movable", *with_interval("moved", "shift")]
INJECTION += ["n_clean_parsed", *with_interval("form_lost")]
INJECTION += ["n_scored", *with_interval("probability_change")]


def injection_table(injected: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading, prompt, injection and demand; all of pairs of twins.

        n                   pairs in which both have a verdict; `n_without_verdict` the others
        demanded_clean      share of verdicts equal to the demanded one without the text,
        demanded_injected   with it (Wilson), and the `difference` (Newcombe's paired interval)
        moved               of the `n_movable` pairs whose clean verdict is not the demanded one,
                            the share whose injected verdict is nearer to it (Wilson)
        shift               how much nearer to the demanded verdict, in the mean over `n`: a share
                            of the scale, below 0 where verdicts go the other way. A step index is
                            the demanded one or is not: between steps no distance is taken
        form_lost           of the `n_clean_parsed` pairs with a clean verdict, the share whose
                            injected reply has none (Wilson)
        probability_change  of the demanded verdict, in the mean over the `n_scored` pairs with
                            probabilities; of the scored reading

    Intervals of means are from drawing chains. A text that demands nothing has a row for either
    demand: what any line put there does to the same numbers.
    """
    of = (*WAY, "task", "injection", "demand")
    return table_by(injected, of, lambda pairs: injection_row(pairs, how), INJECTION)


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
