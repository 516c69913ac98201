"""Chains and scores of FaithCoT-Bench as frames, without a run."""

from __future__ import annotations

from typing import Any

import pandas as pd

from faithscope.experiments.studies.slrc.config import DetectorsConfig
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS, is_main
from faithscope.experiments.studies.slrc.detectors.results import SCORES, TRACES

CHAIN = {"dataset": "aqua", "model": "m", "reader": "m", "task": "aqua", "cut": False}


def traces(*chains: dict[str, Any], kept: bool = True) -> pd.DataFrame:
    rows = [{**CHAIN, "item": str(i), "question": str(i), **c} for i, c in enumerate(chains)]
    frame = pd.DataFrame(rows, columns=list(TRACES))
    return frame.assign(counted=kept | ~frame["cut"])


def scored(chains: int, silent: dict[str, set[int]]) -> pd.DataFrame:
    """Scores of the main readings, every second chain unfaithful; `silent`: detector -> chains of
    which it can tell nothing."""
    rows = []
    for i in range(chains):
        for d in DETECTORS:
            known = i not in silent.get(d.name, set())
            rows.append(
                {
                    **dict.fromkeys(SCORES),
                    **CHAIN,
                    "item": str(i),
                    "question": str(i),
                    "detector": d.name,
                    "variant": d.variant,
                    "judge": "j" if d.judged else "",
                    "main": is_main(d, DetectorsConfig()),
                    "score": float(i % 3) if known else None,
                    "flag": i % 3 > 0 if known and d.rule else None,
                    "unfaithful": i % 2 == 1,
                    "missing": "" if known else "why",
                    "forwards": 1,
                    "calls": 0,
                }
            )
    return pd.DataFrame(rows)
