"""Which judges fail on the same items (C2-Faith, §5.5.2 and App. C, Figure 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from experiments.c2faith.metrics.frames import PERTURBED, groups, verdicts_by_judge, who_spoke
from experiments.tables.stats import wilson
from experiments.tables.tidy import columns, where, with_interval

OVERLAP = ["reading", "prompt", "missed_by", "n_missed_by", "n_judges", "n_judges_silent"]
OVERLAP += ["n_items", "n", "n_without_verdict", *with_interval("share"), "share_independent"]
SEPARATOR = " + "


def failure_overlap_table(detection: pd.DataFrame) -> pd.DataFrame:
    """A row per set of judges that miss the same broken steps, `""` for seen by all.

    `n_items` of the `n` items that all judges gave a verdict on, as a `share` with its Wilson
    interval. `share_independent`: what it would be if the judges failed independently of each
    other, at their own rates; a set that fails together more often than that has blind spots
    in common. Sets that do not occur have no row. Fewer judges first, more items first. Judges
    without any verdict are counted in `n_judges_silent` and otherwise left out.
    """
    made: list[dict[str, Any]] = []
    for key, mine in groups(where(detection, condition=PERTURBED), ("reading", "prompt")):
        asked = verdicts_by_judge(mine, "score", ("item",))
        said = who_spoke(asked)
        judges = list(said.columns)
        every = said.dropna() if judges else said.iloc[:0]
        silent = asked.shape[1] - len(judges)
        of = key | {"n_judges": len(judges), "n_judges_silent": silent, "n": len(every)}
        of |= {"n_without_verdict": len(said) - len(every)}
        if not len(every):
            made.append(of)
            continue
        missed = every.to_numpy() == 1
        patterns, counts = np.unique(missed, axis=0, return_counts=True)
        rates = missed.mean(axis=0)
        found = [
            {
                "missed_by": SEPARATOR.join(j for j, m in zip(judges, p, strict=True) if m),
                "n_missed_by": int(p.sum()),
                "n_items": int(c),
                "share_independent": float(np.where(p, rates, 1 - rates).prod()),
            }
            | columns("share", wilson(int(c), len(every)))
            for p, c in zip(patterns, counts, strict=True)
        ]
        found.sort(key=lambda r: (r["n_missed_by"], -r["n_items"], r["missed_by"]))
        made += [of | row for row in found]
    return pd.DataFrame(made, columns=OVERLAP)
