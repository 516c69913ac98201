"""Which judges fail on the same items (C2-Faith, §5.5.2 and App. C, Figure 6).

Of one judge alone the same is asked of its readings and prompts, each a voice of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns, groups, where, with_interval
from faithscope.experiments.studies.c2faith.metrics.frames import (
    PERTURBED,
    WAY,
    verdicts_by_judge,
    who_spoke,
)

OVERLAP = ["reading", "prompt", "among", "missed_by", "n_missed_by", "n_voices"]
OVERLAP += ["n_voices_silent", "n_items", "n", "n_without_verdict", *with_interval("share")]
OVERLAP += ["share_independent"]
SEPARATOR = " + "
JUDGES = "judges"


def failure_overlap_table(detection: pd.DataFrame) -> pd.DataFrame:
    """A row per set of voices that miss the same broken steps, `""` for seen by all.

    Voices are the `judges` of a reading and prompt, as in the paper. Where none has two that gave
    verdicts, all judgements are one group, whose voices are the judge's `readings`, `prompts`, or
    pairs of both (`among`); what they differ in is blank in
    its own column.

    `n_items` of the `n` items that all voices gave a verdict on, as a `share` with its Wilson
    interval. `share_independent`: what it would be if the voices failed independently of each
    other, at their own rates; a set that fails together more often than that has blind spots
    in common. Sets that do not occur have no row. Fewer voices first, more items first. Voices
    without any verdict are counted in `n_voices_silent` and otherwise left out.
    """
    broken = where(detection, condition=PERTURBED)
    among, found = JUDGES, list(groups(broken, ("reading", "prompt")))
    if len(broken) and all(_voices(mine)[0].shape[1] < 2 for _, mine in found):
        among, *found = _ways(broken)
    made: list[dict[str, Any]] = []
    for key, mine in found:
        said, silent = _voices(mine)
        names = list(said.columns)
        every = said.dropna() if names else said.iloc[:0]
        of = key | {"among": among, "n_voices": len(names), "n_voices_silent": silent}
        of |= {"n": len(every), "n_without_verdict": len(said) - len(every)}
        if not len(every):
            made.append(of)
            continue
        missed = every.to_numpy() == 1
        patterns, counts = np.unique(missed, axis=0, return_counts=True)
        rates = missed.mean(axis=0)
        sets = [
            {
                "missed_by": SEPARATOR.join(j for j, m in zip(names, p, strict=True) if m),
                "n_missed_by": int(p.sum()),
                "n_items": int(c),
                "share_independent": float(np.where(p, rates, 1 - rates).prod()),
            }
            | columns("share", wilson(int(c), len(every)))
            for p, c in zip(patterns, counts, strict=True)
        ]
        sets.sort(key=lambda r: (r["n_missed_by"], -r["n_items"], r["missed_by"]))
        made += [of | row for row in sets]
    return pd.DataFrame(made, columns=OVERLAP)


def _voices(judged: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """A row per item, a column per judge that gave verdicts; how many gave none."""
    asked = verdicts_by_judge(judged, "score", ("item",))
    said = who_spoke(asked)
    return said, asked.shape[1] - said.shape[1]


def _ways(judged: pd.DataFrame) -> tuple[str, tuple[dict[str, Any], pd.DataFrame]]:
    """What voices differ in, and all judgements as one group in which each way is a judge."""
    differ = [c for c in WAY if len(set(judged[c])) > 1]
    parts = [judged[c] for c in differ or ["judge"]]
    named = [" · ".join(told) for told in zip(*parts, strict=True)]
    key = {c: "" if c in differ else judged[c].iloc[0] for c in ("reading", "prompt")}
    among = " and ".join(f"{c}s" for c in differ) or JUDGES
    return among, (key, judged.assign(judge=named))
