"""Names of models as tables and figures show them, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct
from faithscope.experiments.data.planted.plants import PLANTS


def planted_variant(model: str) -> str | None:
    """The variant in a planted model's name (`faithful` in `planted:faithful`); None for others."""
    scheme, _, name = model.rpartition(":")
    return name if scheme == "planted" and name in PLANTS else None


def model_order(model: str) -> tuple[int, str]:
    """Sort key of models: planted ones first, the faithful one before its decorative twin."""
    variant = planted_variant(model)
    return (list(PLANTS).index(variant) if variant else len(PLANTS), model)


class VerdictWord(NamedTuple):
    """A verdict in words, with its rule: first screens, their notes and `docs` are made of it."""

    text: str
    when: str
    """When it is said, after "if"."""
    css: str
    """Class in the style sheet."""


def finding(
    n: int, of: int, what: str, says: str = "", lost: Mapping[str, int] | None = None
) -> str:
    """First line of a page: how many units of the study count, why others do not, and the finding.

    Args:
        of: number of all units.
        what: the units with their verb, such as "pairs count".
        says: what the counted units show, as sentences.
        lost: reason in words -> number of units that do not count for it.
    """
    why = ", ".join(f"{k:,} {reason}" for reason, k in (lost or {}).items() if k)
    return f"{n:,} of {of:,} {what}{f': {why}' if why else ''}. {says}".strip()


def by_verdict(said: Iterable[tuple[str, str]], most: int = 3) -> str:
    """A sentence per verdict, with the names of what it is said of.

    Args:
        said: (verdict in words, name).
        most: most names in a sentence; of more it gives their number.
    """
    of: dict[str, list[str]] = {}
    for words, name in said:
        of.setdefault(words, []).append(name)
    n = sum(map(len, of.values()))
    return " ".join(
        f"{words}: {', '.join(names) if len(names) <= most else f'{len(names)} of {n}'}."
        for words, names in of.items()
    )


LONGEST = 34


def short(model: str) -> str:
    """A model's name without the organisation or folder before it."""
    return visible(model.rstrip("/").rpartition("/")[2]).replace("\n", " ")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Name -> its part after the last slash, or the whole name if two names would become equal."""
    unique = list(dict.fromkeys(names))
    last = [short(j) for j in unique]
    whole = [visible(j).replace("\n", " ") for j in unique]
    names_shown = [a if last.count(a) == 1 else b for a, b in zip(last, whole, strict=True)]
    cut = [middle_cut(s) for s in names_shown]
    return dict(zip(unique, cut if len(set(cut)) == len(cut) else names_shown, strict=True))


def middle_cut(name: str, longest: int = LONGEST) -> str:
    """Cuts the middle out of a name longer than `longest`, since names of one family differ at
    either end."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[: longest - 1 - half]}…{name[-half:]}"


def pairs_of(table: pd.DataFrame) -> list[tuple[str, str]]:
    """(model, task) pairs of a table, in the order in which tables and figures list models."""
    pairs = [(r["model"], r["task"]) for r in distinct(table, "model", "task")]
    return sorted(pairs, key=lambda pair: (model_order(pair[0]), pair[1]))


def pair_names(pairs: Sequence[tuple[str, str]], between: str = " · ") -> list[str]:
    """Display names of (model, task) pairs; titles of narrow panels put a new line `between`."""
    return [f"{middle_cut(short(model), 30)}{between}{visible(task)}" for model, task in pairs]
