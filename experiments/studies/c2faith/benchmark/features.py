"""Features of an acausal step: the kind of its edit, and what may make it easy to see (C2-Faith,
5.5, App. E).

The paper names the edit types and the features of Table 5 but few definitions; the choices made
here stand with each function and in `faithscope docs papers/c2faith`.
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
    "too_long",
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


_COMPARED = 2000
"""Characters of each text that are compared: the matcher takes quadratic time."""


def edit_similarity(original: str, replacement: str) -> float:
    """`SequenceMatcher` ratio of the two texts, in [0, 1] (C2-Faith, appendix E).

    Twice the matching characters over all characters. Without the matcher's shortcut for texts
    of 200 characters and more, which takes their frequent characters for noise. In texts with more
    than 2,000 characters the common beginning and end match, and what is between them is compared
    up to 2,000 characters.
    """
    n = len(original) + len(replacement)
    first, second = _apart(original, replacement)
    common = (n - len(first) - len(second)) // 2
    matcher = SequenceMatcher(None, first[:_COMPARED], second[:_COMPARED], autojunk=False)
    matching = common + sum(block.size for block in matcher.get_matching_blocks())
    return 2 * matching / n if n else 1.0


def _apart(original: str, replacement: str) -> tuple[str, str]:
    """Both texts; if one is long, only what stands between their common beginning and end."""
    if max(len(original), len(replacement)) <= _COMPARED:
        return original, replacement
    start = _in_common(original, replacement)
    first, second = original[start:], replacement[start:]
    end = _in_common(first[::-1], second[::-1])
    return first[: len(first) - end], second[: len(second) - end]


def _in_common(one: str, other: str) -> int:
    """Counts the characters that two texts have in common at their beginning."""
    differ = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def edit_type(original: str, replacement: str) -> EditType:
    """The class of an edit (C2-Faith, appendix E and Table 6).

    Over .9 similar: `operator_swap` if operators differ, in signs, LaTeX or words (the paper's
    example is "add" for "subtract"); else `numeric_swap` if numbers do; else `other_swap`, for
    which the paper has no class. From .8 to .9, both included, `minor_rewrite`; from .5
    `moderate_rewrite`; below, `major_rewrite`. `too_long` where more than 2,000 characters differ.
    """
    return _type_of(original, replacement, edit_similarity(original, replacement))


def _type_of(original: str, replacement: str, similarity: float) -> EditType:
    if max(map(len, _apart(original, replacement))) > _COMPARED:
        return "too_long"
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
    items = list(items)
    similarities = [edit_similarity(item.original, item.replacement) for item in items]
    rows = [
        {
            "item": item.id,
            "chain": item.chain,
            "target": item.target,
            "n_steps": len(item.steps),
            "relative_position": item.target / max(len(item.steps) - 1, 1),
            "edit_type": _type_of(item.original, item.replacement, similarity),
            "edit_similarity": similarity,
            "math_symbol_density": math_symbol_density(item.replacement),
            "n_words": len(item.replacement.split()),
            "n_chars": len(item.replacement),
            "method": item.method,
            "wrong_alone": is_wrong_alone(item.replacement),
        }
        for item, similarity in zip(items, similarities, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return [m.group().lower() for m in pattern.finditer(text)]
