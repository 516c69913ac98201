"""Frames of judged outputs, made by hand or drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.every_table import OBSERVED, frames_of, tables
from faithscope.experiments.studies.rfeval.tables.faithfulness import with_framing
from faithscope.experiments.studies.rfeval.tables.frames import FLAWS, STANCES


def judged(
    baseline: str = "B B B",
    intervened: str = "A A A A",
    flaws: str = "",
    **changes: Any,
) -> dict[str, Any]:
    """A row: `r e a` and `r′ r e a`, "-" for no explanation; flaws as "baseline_re intervened_ea".

    The right answer is B.
    """
    row: dict[str, Any] = {
        "reader": "judge",
        "model": "m",
        "task": "legal_decision",
        "item": "1",
        "excluded": "",
        "baseline_outcome": "complete",
        "intervened_outcome": "complete",
        "baseline_judged": "parsed",
        "intervened_judged": "parsed",
    }
    for name, stance in zip(STANCES, f"{baseline} {intervened}".split(), strict=True):
        row[name] = "" if stance == "-" else stance
    named = {f.replace("_", "_flaw_") for f in flaws.split()}
    assert named <= set(FLAWS)
    row |= {name: name in named for name in FLAWS}
    row |= {f"{c}_right": row[f"{c}_a"] == "B" for c in ("baseline", "intervened")}
    return row | changes


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """The rows, items numbered."""
    return pd.DataFrame([row | {"item": str(i)} for i, row in enumerate(rows)])


def drawn(
    n: int = 400, seed: int = 0, models: tuple[str, ...] = ("m1", "m2", "m3")
) -> pd.DataFrame:
    """Rows of every kind there is, by chance."""
    rng = random.Random(seed)
    rows = []
    for model in models:
        for i in range(n):
            r = [rng.choice(["A", "B", "C", "I don't know"]) for _ in range(7)]
            stances = [r[0], *(s if rng.random() < 0.3 else r[0] for s in r[1:3])]
            forced = [r[3], *(s if rng.random() < 0.4 else r[3] for s in r[4:7])]
            for of, at in ((stances, 1), (forced, 2)):
                if rng.random() < 0.25:
                    of[at] = "-"
            flaws = " ".join(f.replace("_flaw", "") for f in FLAWS if rng.random() < 0.3)
            row = judged("X X X", "X X X X", flaws)
            row |= dict(
                zip(STANCES, ["" if s == "-" else s for s in stances + forced], strict=True)
            )
            kind = rng.random()
            if kind < 0.05:
                row |= {"excluded": "anomalous"}
            elif kind < 0.1:
                row |= {"baseline_outcome": rng.choice(["truncated", "no_answer"])}
                row |= {"baseline_judged": "", **dict.fromkeys(STANCES[:3], "")}
            elif kind < 0.13:
                row |= {"intervened_judged": "unparsed", **dict.fromkeys(STANCES[3:], "")}
            row |= {"model": model, "task": rng.choice(TASKS), "item": str(i)}
            rows.append(row)
    return pd.DataFrame(rows)


def pairs_of(judged: pd.DataFrame, paper_compat: bool = False) -> pd.DataFrame:
    """The frame `pairs` of models into whose reasoning r′ was put."""
    return with_framing(scored(judged, paper_compat), {})


def models_of(regimes: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """The frame `models` of some whose regimes are compared."""
    rows = [(model, "prefix", *of) for model, of in regimes.items()]
    return pd.DataFrame(rows, columns=list(OBSERVED["models"]))


def tables_of(
    judged: pd.DataFrame | None = None, resamples: int = 5, **observed: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Every table of what was observed."""
    given = observed if judged is None else {"judged": judged, **observed}
    return tables(frames_of(given), Bootstrap(0, resamples))
