"""Names of columns of pairs: which chain of a pair a column is of, and what of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from faithscope.experiments.data.tasks.sources.rows import folded, is_filled

Condition = Literal["uncued", "cued", "forward", "reversed"]
CONDITION = ("cued", "reversed")
"""Columns that say of the one chain of a row whether it is the cued, or the reversed, one."""
SHARED: Mapping[str, tuple[str, ...]] = {
    "cue": ("cue", "cue_text", "hint", "hint_text", "bias_text"),
    "cue_name": ("cue_name", "cue_type", "cue_kind", "hint_name", "hint_type", "hint_kind"),
    "cue_place": ("cue_place", "cue_position", "hint_place", "hint_position"),
    "cue_above": ("cue_prepended", "hint_prepended", "cue_first", "hint_first"),
    "cue_target": (
        *("cue_target", "cue_label", "cue_answer", "cue_letter", "cued_option", "hint_target"),
        *("hint_label", "hint_answer", "hint_letter", "hinted_label", "hinted_option"),
    ),
    "cue_mention": ("cue_mention", "mention"),
    "gold": ("answer_label", "gold_label", "correct_label", "correct_letter", "gold_letter"),
    "label_acknowledged": ("acknowledged", "acknowledges_cue", "acknowledges_hint"),
    "label_verbalised": ("verbalised", "verbalized", "mentions_hint", "mentions_cue"),
    "label_unfaithful": ("unfaithful",),
    "label_faithful": ("faithful",),
}
"""A reader's column -> names that studies give it; one that `rows` knows stays as it is."""
_CONDITIONS: Mapping[str, frozenset[str]] = {
    "uncued": frozenset(
        ["uncued", "clean", "plain", "baseline", "unhinted", "unbiased", "original", "neutral"]
    ),
    "cued": frozenset(["cued", "hinted", "biased"]),
    "reversed": frozenset(["reversed", "reverse", "swapped", "flipped"]),
}
_PARTS: Mapping[str, frozenset[str]] = {
    "reasoning": frozenset(["reasoning", "cot", "thinking", "thought", "chain", "rationale"]),
    "answer": frozenset(["answer", "pred", "prediction"]),
    "prompt": frozenset(["prompt", "message"]),
    "question": frozenset(["question"]),
    "gold": frozenset(["gold"]),
    "finish": frozenset(["finish"]),
}
_FILLING = frozenset(["hint", "cue", "bias", "of", "text", "model", "the", "a"])
"""Words that a column's name may hold besides."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NAMES = {folded(name): ours for ours, names in SHARED.items() for name in names}


@lru_cache(maxsize=4096)
def column_of(name: str) -> tuple[str, str]:
    """The chain that a column is of, "" for both, and what it holds, "" if it is none of these:
    `hinted_cot` is ("cued", "reasoning")."""
    if ours := _NAMES.get(folded(name)):
        return "", ours
    words = {word.lower() for word in _WORD.findall(name)}
    if words & {"hint", "cue", "bias"}:
        words = {{"with": "cued", "without": "uncued", "no": "uncued"}.get(w, w) for w in words}
    conditions = [c for c, known in _CONDITIONS.items() if words & known]
    parts = [p for p, known in _PARTS.items() if words & known]
    known = {w for c in conditions for w in _CONDITIONS[c]} | {w for p in parts for w in _PARTS[p]}
    if len(conditions) != 1 or len(parts) != 1 or words - known - _FILLING:
        return "", ""
    return conditions[0], parts[0]


def is_of_pairs(row: Mapping[str, Any]) -> bool:
    """Whether a row is one of a file of pairs: it holds both chains, or says which it holds."""
    return bool(second_of(row)) or any(is_filled(row[n]) for n in row if folded(n) in CONDITION)


def second_of(row: Mapping[str, Any]) -> str:
    """Which chain a row holds besides the plain one (`cued`, `reversed`); "" if none."""
    have = {column_of(str(name)) for name, value in row.items() if is_filled(value)}
    return next((c for c in ("cued", "reversed") if (c, "reasoning") in have), "")
