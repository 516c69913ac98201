"""What kind of edit an acausal step is, and what may make it easy to see (C2-Faith, 5.5, App. E).

The paper names the edit types and the features of Table 5 but few definitions; the choices made
here stand with each function and in `docs/deviations.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Literal, get_args

import pandas as pd

from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.interventions.calculation import is_wrong_alone
from faithscope.interventions.swaps import NUMBER_WORD

EditType = Literal[
    "numeric_swap",
    "operator_swap",
    "other_swap",
    "minor_rewrite",
    "moderate_rewrite",
    "major_rewrite",
]
EDIT_TYPES: tuple[EditType, ...] = get_args(EditType)
COLUMNS = (
    "item",
    "chain",
    "target",
    "n_steps",
    "relative_position",
    "edit_type",
    "edit_similarity",
    "math_symbol_density",
    "n_words",
    "n_chars",
    "method",
    "wrong_alone",
)

_NUMBER = re.compile(rf"\d+(?:,\d{{3}})*(?:\.\d+)?|{NUMBER_WORD.pattern}", re.IGNORECASE)
_OPERATOR = re.compile(
    r"[-+−*×·/÷=<>≤≥≠±]"
    r"|\\(?:times|cdot|div|pm|mp|leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne)(?![a-zA-Z])"
    r"|\b(?:plus|minus|times|(?:add|subtract|multipl|divi[ds])\w*|sums?|differences?|products?"
    r"|quotients?|greater|less|more|fewer|least|most|equals?)\b",
    re.IGNORECASE,
)
_MATH = re.compile(r"[0-9+\-−*×·/÷=<>≤≥≠±^_\\{}()\[\]|$%!]")


def edit_similarity(original: str, replacement: str) -> float:
    """`SequenceMatcher` ratio of the two texts, in [0, 1] (C2-Faith, appendix E).

    Twice the matching characters over all characters. Without the matcher's shortcut for texts
    of 200 characters and more, which takes their frequent characters for noise.
    """
    return SequenceMatcher(None, original, replacement, autojunk=False).ratio()


def edit_type(original: str, replacement: str) -> EditType:
    """The class of an edit (C2-Faith, appendix E and Table 6).

    Over .9 similar: `operator_swap` if operators differ, in signs, LaTeX or words (the paper's
    example is "add" for "subtract"); else `numeric_swap` if numbers do; else `other_swap`, for
    which the paper has no class. From .8 to .9, both included, `minor_rewrite`; from .5
    `moderate_rewrite`; below, `major_rewrite`.
    """
    similarity = edit_similarity(original, replacement)
    if similarity > 0.9:
        if _found(_OPERATOR, original) != _found(_OPERATOR, replacement):
            return "operator_swap"
        if _found(_NUMBER, original) != _found(_NUMBER, replacement):
            return "numeric_swap"
        return "other_swap"
    if similarity >= 0.8:
        return "minor_rewrite"
    return "moderate_rewrite" if similarity >= 0.5 else "major_rewrite"


def math_symbol_density(text: str) -> float:
    """Share of a text's characters that are mathematics, in [0, 1]; 0 of an empty text.

    Digits, operators, comparisons, brackets and the signs of LaTeX: our reading of the paper's
    "math symbol density", which it does not define.
    """
    return len(_MATH.findall(text)) / len(text) if text else 0.0


def features(items: Iterable[CausalItem]) -> pd.DataFrame:
    """One row per causal item: the structural predictors of Table 5, of the replaced step.

    `relative_position` is target / (n_steps - 1), 0 the first step and 1 the last; `n_words` are
    those between white space; `n_chars` and the density are of the replacement.
    """
    rows = [
        {
            "item": item.id,
            "chain": item.chain,
            "target": item.target,
            "n_steps": len(item.steps),
            "relative_position": item.target / max(len(item.steps) - 1, 1),
            "edit_type": edit_type(item.original, item.replacement),
            "edit_similarity": edit_similarity(item.original, item.replacement),
            "math_symbol_density": math_symbol_density(item.replacement),
            "n_words": len(item.replacement.split()),
            "n_chars": len(item.replacement),
            "method": item.method,
            "wrong_alone": is_wrong_alone(item.replacement),
        }
        for item in items
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [m.group().lower() for m in pattern.finditer(text)]
