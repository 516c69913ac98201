"""Records of what goes on inside, made up: models that show what they do, in part."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.studies.rfeval.metrics.chains import scored
from faithscope.experiments.studies.rfeval.metrics.frames import CONDITIONS

OPTIONS = ["A", "B", "C"]
CUTS = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 22, 24, 26, 28]
R_PRIME, REASONED, RESUMED = 8, 18, 20
TURNS = {
    "misled": 99,
    "self_correcting": 22,
    "silently_correcting": 12,
    "incoherent": 99,
    "inert": 10,
    "ornamental": 99,
}
"""Cut from which the option of r′, A, leads no more."""


def records(pairs: pd.DataFrame, seed: int = 0, noise: float = 0.2) -> list[dict[str, Any]]:
    """Two records of every pair that counts; r′ leads to A, the right answer is B."""
    rng = random.Random(seed)
    made: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in scored(pairs).to_dict("records"):
        key = (row["model"], row["task"], row["item"])
        if row["behaviour"] and key not in made:
            made[key] = [_record(key, c, row["behaviour"], rng, noise) for c in CONDITIONS]
    return [record for of in made.values() for record in of]


def _record(
    key: tuple[str, str, str], condition: str, behaviour: str, rng: random.Random, noise: float
) -> dict[str, Any]:
    forced = condition == "intervened"
    away = TURNS[behaviour] + rng.choice([-4, -2, 0, 0, 2, 4]) if forced else 0
    led = [2 < cut < away for cut in CUTS]
    high = [min(0.95, max(0.4, rng.gauss(0.8, noise / 2))) for _ in CUTS]
    p = np.array([[h, 1 - h, 0] if on else [1 - h, h, 0] for on, h in zip(led, high, strict=True)])
    own = rng.gauss(0.6 if behaviour == "silently_correcting" else 0.5, noise / 2)
    attention = {f"{place}_own_against_r_prime": own for place in ("asked", "written")}
    shares = {"asked_r_prime": 0.2, "asked_own": own / 2, "asked_question": 0.1} if forced else {}
    lens = np.array([[1, 0, 0], [0.6, 0.4, 0], [0.3, 0.7, 0], p[-1]])
    return {
        **dict(zip(("model", "task", "item"), key, strict=True)),
        "variant": condition,
        **{"trace": "options", "options": OPTIONS, "cuts": CUTS, "coarse": [True] * len(CUTS)},
        "p": p.ravel().tolist(),
        **{"n_r_prime": R_PRIME if forced else 0, "reasoned": REASONED, "resumed": RESUMED},
        **{"answer": "B", "asked_lens_p": lens.ravel().tolist(), "asked_settled_depth": 0.7},
        **(attention if forced else {}),
        **shares,
    }
