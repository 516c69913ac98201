"""Made-up judgements: judges of a given sensitivity, on chains that exist nowhere."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, make_tables
from faithscope.experiments.studies.c2faith.tables.frames import Frames

NAMES = (
    "openai/gpt-4.1",
    "azure/deepseek-ai/DeepSeek-V3.1-a-very-long-deployment-name-of-a-research-group-2025-09-22",
    "openai/o4-mini",
    "anthropic/claude-sonnet-4-5",
    "vllm/Qwen/Qwen2.5-Coder-0.5B-Instruct",
    "smollm2-135m",
)
HITS = (0.83, 0.95, 0.92, 0.7, 0.55, 0.5)
FALSE_ALARMS = (0.11, 0.30, 0.10, 0.2, 0.5, 0.5)
MUTE = "judge that never answers"
LEVELS = (0.1, 0.3, 0.5, 0.7)
EDIT_TYPES = ("numeric_swap", "operator_swap", "minor_rewrite", "moderate_rewrite", "major_rewrite")


def table_of(table: Table, frames: Frames, how: Bootstrap | None = None) -> pd.DataFrame:
    """The table that a specification makes of several frames."""
    return make_tables([table], vars(frames), how)[table.name]


def of_steps(
    rng: np.random.Generator, said: int, target: int, steps: int, reading: str, quiet: bool
) -> dict[str, object]:
    """Probabilities of -1 and every step, of which the one said is the likeliest."""
    if reading != "scored" or quiet:
        return {"p_target": math.nan, "probabilities": None}
    p = rng.dirichlet(np.ones(steps + 1))
    p[said + 1] += rng.uniform(0.2, 2) + p.max()
    p /= p.sum()
    return {"p_target": p[target + 1], "probabilities": p.tolist()}


def of_scores(
    rng: np.random.Generator, score: float, reading: str, quiet: bool
) -> dict[str, object]:
    """Probabilities of the scores 0 to 4, of which the one given is the likeliest."""
    if reading != "scored" or quiet:
        return {"expected": math.nan, "probabilities": None}
    p = np.exp(-np.abs(np.arange(5) - score) / rng.uniform(0.4, 1.5))
    p /= p.sum()
    return {"expected": float(p @ np.arange(5)), "probabilities": p.tolist()}


def middle(steps: int) -> int:
    """Number of steps in the middle region, which may be replaced or left out."""
    return int(0.9 * steps) - math.ceil(0.3 * steps) + 1


def made_up(
    judges: int, chains: int = 60, *, mute: bool = False, prompts: int = 1, reference: bool = True
) -> Frames:
    """Frames of so many judges; the last two read both ways, one more says nothing if `mute`."""
    rng = np.random.default_rng(7)
    steps = rng.integers(8, 20, size=chains)
    target = np.array([int(rng.integers(math.ceil(0.3 * n), int(0.9 * n))) for n in steps])
    detection, localisation, coverage = [], [], []
    for j, name in enumerate([*NAMES[:judges], *([MUTE] if mute else [])]):
        silent = name == MUTE
        readings = ("generated", "scored") if j >= 4 or judges == 1 else ("generated",)
        for reading in readings:
            for p in range(prompts):
                way = {"judge": name, "reading": reading}
                for c in range(chains):
                    quiet = silent or rng.random() < 0.03
                    common = {"chain": f"chain{c}", "outcome": "refused" if quiet else "parsed"}
                    for condition in ("perturbed", "control"):
                        rate = (HITS if condition == "perturbed" else FALSE_ALARMS)[j % 6]
                        rate = min(1.0, rate * (1 - 0.1 * p))
                        flagged = rng.random() < rate
                        p_flag = rng.beta(4, 2) if flagged else rng.beta(2, 4)
                        detection.append(
                            way
                            | common
                            | {"prompt": "c2_detection" + ("_strict" if p else "")}
                            | {"item": f"item{c}", "condition": condition}
                            | {"score": math.nan if quiet else float(p_flag < 0.5)}
                            | {"p_flag": p_flag if reading == "scored" and not quiet else math.nan}
                        )
                        named = int(target[c] + rng.choice([-3, -1, 0, 0, 0, 0, 0, 0, 1]))
                        said = min(max(named, 0), steps[c] - 1) if flagged else -1
                        localisation.append(
                            way
                            | common
                            | {"prompt": "c2_localisation" + ("_strict" if p else "")}
                            | {"item": f"item{c}", "condition": condition, "n_steps": steps[c]}
                            | {"target": target[c], "predicted": math.nan if quiet else said}
                            | {"n_middle": middle(steps[c])}
                            | {"final_score": math.nan if quiet else float(said < 0)}
                            | of_steps(rng, said, target[c], steps[c], reading, quiet)
                        )
                    for level in LEVELS:
                        of_middle = middle(steps[c])
                        removed = math.ceil(level * of_middle)
                        truth = round(4 * (1 - removed / of_middle * 0.8))
                        score = float(np.clip(truth + rng.choice([0, 0, 1, 1, 2]), 0, 4))
                        coverage.append(
                            way
                            | common
                            | {"prompt": "c2_coverage" + ("_strict" if p else "")}
                            | {"item": f"chain{c}:{level}", "scale": "0-4", "level": level}
                            | {"n_middle": of_middle, "n_removed": removed}
                            | {"score": math.nan if quiet else score}
                            | of_scores(rng, score, reading, quiet)
                            | {"reference": float(truth) if reference else math.nan}
                            | {"reference_judge": "openai/gpt-4.1" if reference else ""}
                        )
    features = pd.DataFrame(
        {
            "item": [f"item{c}" for c in range(chains)],
            "chain": [f"chain{c}" for c in range(chains)],
            "target": target,
            "n_steps": steps,
            "relative_position": target / steps,
            "edit_type": rng.choice(EDIT_TYPES[:4], size=chains),
            "edit_similarity": rng.uniform(0.5, 1, size=chains),
            "math_symbol_density": rng.uniform(0, 0.5, size=chains),
            "n_words": rng.integers(3, 30, size=chains),
            "n_chars": rng.integers(20, 150, size=chains),
            "method": rng.choice(["rule:numeric", "rule:operator", "llm"], size=chains),
            "wrong_alone": rng.random(chains) < 0.2,
        }
    )
    internals, places = [], []
    for signal, lift in (("surprisal jump", 1.0), ("graded necessity", 0.3), ("answer tracing", 0)):
        for c in range(chains):
            for condition in ("perturbed", "control"):
                of = {"model": "smollm2-135m", "signal": signal, "item": f"item{c}"}
                of |= {"chain": f"chain{c}", "condition": condition}
                at = {"score": rng.normal() + lift * (condition == "perturbed")}
                internals.append(of | at)
                guess = rng.integers(steps[c]) if rng.random() > lift / 2 else target[c]
                places.append(
                    of
                    | {"target": target[c], "predicted": int(guess), "n_steps": steps[c]}
                    | {"n_candidates": steps[c] - 1, "n_middle": middle(steps[c])}
                )
    return Frames(
        detection=pd.DataFrame(detection),
        localisation=pd.DataFrame(localisation),
        coverage=pd.DataFrame(coverage),
        features=features,
        internals=pd.DataFrame(internals),
        internals_localisation=pd.DataFrame(places),
    )
