"""Names of models and judges, short enough for a figure and still told apart."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.experiments.analysis.textual import visible

LONGEST = 34


def short(model: str) -> str:
    """A model's name without the organisation or folder before it."""
    return visible(model.rstrip("/").rpartition("/")[2]).replace("\n", " ")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Each without what stands before the last slash, unless two would then be one."""
    unique = list(dict.fromkeys(names))
    last = [short(j) for j in unique]
    whole = [visible(j).replace("\n", " ") for j in unique]
    said = [a if last.count(a) == 1 else b for a, b in zip(last, whole, strict=True)]
    cut = [middle_cut(s) for s in said]
    return dict(zip(unique, cut if len(set(cut)) == len(cut) else said, strict=True))


def middle_cut(name: str, longest: int = LONGEST) -> str:
    """Names of one family differ at either end: what is too long loses its middle."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[: longest - 1 - half]}…{name[-half:]}"
