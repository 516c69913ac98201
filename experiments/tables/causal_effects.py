"""Graded effects of single steps over items: graded necessity, NLDD, TTS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.tables.outcomes import Record, of_probe, share_within_floor
from faithscope.experiments.tables.stats import Estimate
from faithscope.experiments.tables.tidy import columns, mean, present, with_interval
from faithscope.probes.causal_effects import STEP_MEASURES

POSITION_BINS = 5
_FLIPPED = ("removed", "corrupted")
MEDIANS = ("nldd", "nldd_own")
"""A lead that was all but a tie is divided by: means of these follow a few items."""


def causal_effects_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items of their steps' means, with bootstrap intervals; see the probe.

    Log-odds are in nats; NLDD is a fraction (1: the whole lead is lost), unbounded on either
    side, so its median over items is here too; all else is in [0, 1]. `n_corruptible` counts
    the steps in which there is something to corrupt, `n_tts` those that have an earlier one
    with it besides, `n_gold` the items with a right answer among their options.
    `…_flips_within_floor`: share of the flips by no more than their item's noise floor.
    """
    found = []
    for (model, task), same in of_probe(records, "causal_effects"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        for name in STEP_MEASURES:
            values = [r[f"mean_{name}"] for r in same]
            row |= columns(name, stats.mean_of_items(values, seed=seed, resamples=resamples))
        for name in MEDIANS:
            values = present(r[f"mean_{name}"] for r in same)
            row |= columns(f"{name}_median", _median(values, seed, resamples))
        for kind in _FLIPPED:
            row[f"{kind}_flips_within_floor"] = share_within_floor(same, f"{kind}_")
        row |= mass_columns(same, seed=seed, resamples=resamples)
        row["n_steps"] = sum(r["n_steps"] for r in same)
        row["n_corruptible"] = sum(r["corrupt_excluded"].count(None) for r in same)
        row["n_tts"] = sum(r["tts_excluded"].count(None) for r in same)
        row["n_gold"] = sum(r["lead"] is not None for r in same)
        found.append(row)
    medians = [f"{name}_median" for name in MEDIANS]
    counts = ["n_steps", "n_corruptible", "n_tts", "n_gold"]
    counts += [f"{kind}_flips_within_floor" for kind in _FLIPPED]
    names = ["model", "task", "n", *with_interval(*STEP_MEASURES, *medians), *counts]
    names += MASS_COLUMNS
    return pd.DataFrame(found, columns=names)


def causal_effects_by_step_table(
    records: Iterable[Record], seed: int, resamples: int
) -> pd.DataFrame:
    """As `causal_effects_table`, by the relative place of the step.

    Step i of T stands at (i - 1/2) / T; `position` is the middle of the fifth it falls in. An
    item counts once in a fifth, with the mean of its steps there.
    """
    found = []
    for (model, task), same in of_probe(records, "causal_effects"):
        for at in range(POSITION_BINS):
            here = [(r, places) for r in same if (places := _places(r["n_steps"], at))]
            if not here:
                continue
            row: dict[str, Any] = {"model": model, "task": task}
            row |= {"position": (at + 0.5) / POSITION_BINS, "n": len(here)}
            row["n_steps"] = sum(len(places) for _, places in here)
            for name in STEP_MEASURES:
                values = [mean(present(r[name][i] for i in places)) for r, places in here]
                row |= columns(name, stats.mean_of_items(values, seed=seed, resamples=resamples))
            found.append(row)
    names = ["model", "task", "position", "n", "n_steps", *with_interval(*STEP_MEASURES)]
    return pd.DataFrame(found, columns=names)


def _places(n_steps: int, at: int) -> list[int]:
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * POSITION_BINS) == at]


def _median(values: Sequence[float], seed: int, resamples: int) -> Estimate:
    kept = np.array(values, dtype=float)[:, None]
    found = stats.bootstrapped(
        kept, lambda drawn: np.median(drawn, axis=0), seed=seed, resamples=resamples
    )
    return found[0] if found else stats.NOTHING
