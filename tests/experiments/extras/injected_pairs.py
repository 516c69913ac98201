"""Judgements of chains with a text put into them, made up for tests."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from faithscope.experiments.extras.injection.pairs import SHAPE
from faithscope.experiments.studies.c2faith.tables.frames import checked


def frame(*pairs: tuple[float, float, float], task: str = "detection", **also: Any) -> pd.DataFrame:
    """(demanded, clean, injected) a pair; NaN for no verdict."""
    top = {"detection": 1.0, "coverage": 4.0, "localisation": math.nan}[task]
    made = [
        {"judge": "j", "reading": "generated", "prompt": f"c2_{task}", "item": f"i{k}"}
        | {"chain": f"c{k}", "task": task, "injection": "command"}
        | {"condition": "" if task == "coverage" else "perturbed"}
        | {"demand": "best", "demanded": wanted, "top": top, "clean": clean, "score": score}
        | {"outcome": "unparsed" if math.isnan(score) else "parsed"}
        | {"clean_outcome": "unparsed" if math.isnan(clean) else "parsed"}
        | {"p_clean": math.nan, "p_injected": math.nan}
        | also
        for k, (wanted, clean, score) in enumerate(pairs)
    ]
    return checked("injection", pd.DataFrame(made), SHAPE)
