"""Judgements of three judges on 450 chains that give every number that C2-Faith prints.

The counts follow from the printed shares (372 of 450 is 82.7 %), from Figure 6 and from each other;
where the paper leaves them open, they are one choice of many.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from faithscope.experiments.studies.c2faith.tables.frames import Frames

N = 450
GPT = "api:openai/gpt-4.1"
DEEPSEEK = "api:together/deepseek-ai/DeepSeek-V3.1"
O4 = "api:openai/o4-mini"
JUDGES = (GPT, DEEPSEEK, O4)
MISSED = (
    ((), 359),
    ((GPT,), 40),
    ((DEEPSEEK,), 4),
    ((O4,), 4),
    ((GPT, O4), 23),
    ((GPT, DEEPSEEK), 11),
    ((DEEPSEEK, O4), 5),
    (JUDGES, 4),
)
"""Judges that pass a replaced step, and number of such steps (Figure 6; 4 that all pass is one
choice of ten)."""
FALSE_ALARMS = {GPT: 51, DEEPSEEK: 133, O4: 47}
"""Steps as they were that a judge flags; of GPT-4.1 one of 450 has no verdict."""
FLAGGED_CHAINS = {GPT: 247, DEEPSEEK: 222, O4: 182}
"""Unperturbed chains in which a judge names a step."""
UNDETECTED = {GPT: (0, 48, 421), DEEPSEEK: (48, 52, 372), O4: (100, 26, 188)}
"""First chain in which a judge names no step, number of such chains, and sum of the places of their
targets, counted from 1."""
ERRORS = {
    # errors of size 0, -1, -2; number and sum of those beyond, to the left and to the right
    GPT: (259, 34, 14, (76, -473), (19, 205)),
    DEEPSEEK: (251, 52, 20, (45, -284), (30, 201)),
    O4: (306, 16, 13, (80, -532), (9, 66)),
}
# fmt: off
SCORES = {
    0.1: {
        GPT: [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 6, 8, 15], [0, 0, 7, 5, 3],
              [0, 1, 4, 188, 211]],
        DEEPSEEK: [[0, 0, 0, 0, 2], [0, 0, 0, 0, 2], [0, 1, 0, 6, 8], [0, 0, 1, 2, 0],
                   [0, 0, 16, 194, 218]],
        O4: [[0, 0, 0, 0, 1], [0, 0, 10, 7, 0], [0, 1, 0, 0, 21], [0, 0, 4, 8, 0],
             [0, 0, 3, 187, 208]],
    },
    0.3: {
        GPT: [[0, 0, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 22, 21, 0], [0, 0, 5, 0, 22],
              [0, 59, 72, 21, 226]],
        DEEPSEEK: [[0, 0, 1, 0, 1], [0, 1, 3, 1, 0], [0, 0, 7, 0, 10], [0, 0, 3, 2, 2],
                   [0, 58, 87, 39, 235]],
        O4: [[0, 1, 0, 0, 0], [0, 11, 2, 1, 6], [0, 28, 0, 0, 5], [0, 0, 0, 0, 36],
             [0, 19, 99, 41, 201]],
    },
    0.5: {
        GPT: [[4, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 44, 55, 0, 0], [0, 3, 1, 16, 40],
              [34, 62, 0, 93, 98]],
        DEEPSEEK: [[4, 0, 0, 0, 0], [0, 0, 3, 0, 7], [9, 1, 35, 0, 0], [0, 0, 0, 0, 13],
                   [25, 108, 18, 109, 118]],
        O4: [[5, 0, 0, 0, 0], [22, 0, 0, 0, 0], [0, 19, 56, 0, 26], [0, 0, 0, 35, 10],
             [11, 90, 0, 74, 102]],
    },
    0.7: {
        GPT: [[0, 0, 0, 0, 0], [11, 2, 0, 0, 0], [6, 35, 119, 18, 0], [0, 0, 0, 67, 10],
              [64, 0, 0, 65, 53]],
        DEEPSEEK: [[6, 0, 0, 0, 0], [0, 0, 36, 0, 0], [0, 0, 55, 17, 0], [0, 2, 17, 22, 0],
                   [75, 35, 10, 111, 63]],
        O4: [[1, 0, 0, 0, 0], [20, 29, 0, 0, 0], [0, 8, 119, 0, 16], [0, 0, 0, 29, 26],
             [60, 0, 0, 121, 21]],
    },
}
# fmt: on
"""Level -> judge -> chains by score (rows, 0 to 4) and reference (columns), found by integer
programming from mean, σ, reference mean, bias, MAE, inflation and ρ, and for DeepSeek at 10 % from
the share of the highest score."""
EDITS = {
    "numeric_swap": (121, 9),
    "operator_swap": (111, 6),
    "minor_rewrite": (147, 14),
    "moderate_rewrite": (30, 7),
    "major_rewrite": (5, 0),
}
"""Type of edit -> steps that o4-mini flags and passes (Table 6)."""
FEATURES = {
    "math_symbol_density": (0.235, 0.139),
    "edit_similarity": (0.918, 0.885),
    "relative_position": (0.563, 0.491),
    "n_words": (11.9, 11.8),
    "n_steps": (14.4, 14.8),
    "n_chars": (65.1, 62.6),
}
"""Feature -> its value in steps that o4-mini flags and passes (Table 5)."""
LENGTH, MIDDLE = 30, 18


def spread(count: int, total: int) -> list[int]:
    """So many whole numbers with that sum, as equal as can be."""
    least, more = divmod(total, count)
    return [least + 1] * more + [least] * (count - more)


def printed_frames(**flagged: int) -> Frames:
    """The frames of a run.

    Args:
        flagged: `gpt_4_1=300`: replaced steps that GPT-4.1 flags, in place of the printed number.
    """
    return Frames(
        detection=pd.DataFrame(_detection(flagged.get("gpt_4_1", N))),
        localisation=pd.DataFrame(_localisation()),
        coverage=pd.DataFrame(_coverage()),
        features=_features(),
    )


def _missed() -> list[tuple[str, ...]]:
    return [judges for judges, count in MISSED for _ in range(count)]


def _row(judge: str, form: str, chain: int, verdict: float, name: str) -> dict[str, Any]:
    return {
        **{"judge": judge, "reading": "generated", "prompt": form},
        **{"item": f"item{chain}", "chain": f"chain{chain}", name: verdict},
        "outcome": "refused" if math.isnan(verdict) else "parsed",
    }


def _detection(most: int) -> list[dict[str, Any]]:
    rows = []
    for judge in JUDGES:
        for chain, missed in enumerate(_missed()):
            passes = judge in missed or (judge == GPT and chain >= most)
            alarm = chain < FALSE_ALARMS[judge]
            control = math.nan if (judge, chain) == (GPT, N - 1) else float(not alarm)
            for condition, score in (("perturbed", float(passes)), ("control", control)):
                row = _row(judge, "c2_detection", chain, score, "score")
                rows.append(row | {"condition": condition, "p_flag": math.nan})
    return rows


def _targets() -> list[int]:
    targets = [7] * N
    for first, count, total in UNDETECTED.values():
        targets[first : first + count] = [place - 1 for place in spread(count, total)]
    return targets


def _localisation() -> list[dict[str, Any]]:
    rows, targets = [], _targets()
    for judge in JUDGES:
        first, count, _ = UNDETECTED[judge]
        exact, one, two, left, right = ERRORS[judge]
        errors = [0] * exact + [-1] * one + [-2] * two + spread(*left) + spread(*right)
        # chains in which another judge names no step are exact here, so that their targets are free
        detected = [c for c in range(N) if not first <= c < first + count]
        named = {c: targets[c] + error for c, error in zip(detected, errors, strict=True)}
        for chain in range(N):
            alarm = 3.0 if chain < FLAGGED_CHAINS[judge] else -1.0
            for condition, said in (("perturbed", float(named.get(chain, -1))), ("control", alarm)):
                rows.append(
                    _row(judge, "c2_localisation", chain, said, "predicted")
                    | {"condition": condition, "n_steps": LENGTH, "n_middle": MIDDLE}
                    | {"target": targets[chain], "p_target": math.nan, "final_score": math.nan}
                )
    return rows


def _coverage() -> list[dict[str, Any]]:
    rows = []
    for level, of_judges in SCORES.items():
        for judge, joint in of_judges.items():
            pairs = [
                (float(score), reference)
                for reference in range(5)
                for score in range(5)
                for _ in range(joint[score][reference])
            ]
            if len(pairs) < N:  # the judgement that is missing in the paper
                at = next(i for i, (_, reference) in enumerate(pairs) if reference == 2)
                pairs.insert(at, (math.nan, 2))
            for chain, (score, reference) in enumerate(pairs):
                row = _row(judge, "c2_coverage", chain, score, "score")
                removed = {"n_middle": MIDDLE, "n_removed": math.ceil(level * MIDDLE)}
                row |= {"item": f"chain{chain}:{level}", "scale": "0-4", "level": level, **removed}
                row |= {"expected": math.nan, "reference": float(reference)}
                rows.append(row | {"reference_judge": GPT})
    return rows


def _features() -> pd.DataFrame:
    missed = [O4 in judges for judges in _missed()]
    kinds = [[k for k, counts in EDITS.items() for _ in range(counts[side])] for side in (0, 1)]
    rows = []
    for chain, wrong in enumerate(missed):
        values = {name: of[wrong] for name, of in FEATURES.items()}
        rows.append(
            {"item": f"item{chain}", "chain": f"chain{chain}", "target": 7, **values}
            | {"edit_type": kinds[wrong].pop(), "method": "llm", "wrong_alone": False}
        )
    return pd.DataFrame(rows)
