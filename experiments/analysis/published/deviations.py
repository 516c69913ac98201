"""Deviations of a run's config from the shipped config of a paper, key by key.

A key decides what a number is, and makes its cells incomparable, unless `HARMLESS` or the
specification of the table says otherwise: a key that nobody thought of speaks against a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from faithscope.experiments.analysis.published.paper import Paper, Published
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.folder import differences

_SPEED = "only decides how fast the run goes"
_CASES = "another number of cases, the first ones: our interval and n carry it"
HARMLESS: Mapping[str, str] = {
    "seed": "another random draw of the same kind",
    "seeds": "other random draws of the same kind",
    "limit": _CASES,
    "*.limit": _CASES,
    "data.path": "a copy of the data here, which nothing checks against the paper's",
    "*.batch_size": _SPEED,
    "*.max_connections": _SPEED,
    "*.max_retries": _SPEED,
    "*.timeout": _SPEED,
    "*.cache": _SPEED,
    "*.in_flight": _SPEED,
    "*.endpoints": _SPEED,
    "*.served_as": _SPEED,
    "*.tensor_parallel_size": _SPEED,
    "*.device": _SPEED,
    "*.device_map": _SPEED,
    "*.backend": "other software that writes with the same weights and settings",
    "token_budget": _SPEED,
    "spend": "a budget, which can only leave cases out",
    "report.bootstrap": "another number of resamples for the same interval",
    "report.parameters": "sizes of models for tables about size",
}
"""Pattern of config keys (or sections) that leave a number what it is -> what they change."""


@dataclass(frozen=True)
class Deviation:
    """A config key in which a run differs from the paper's config."""

    key: str
    paper: Any
    run: Any
    decides: bool
    """Whether it decides what a number is, so that no cell of the run is comparable."""
    effect: str
    """What the deviation does to a cell, in words."""
    pools: bool = False
    """Whether every cell of the table pools over the list that differs."""

    @property
    def line(self) -> str:
        """The deviation as one line of text."""
        if isinstance(self.paper, list) and isinstance(self.run, list) and not self.decides:
            kept = sum(entry in self.run for entry in self.paper)
            own = [entry for entry in self.run if entry not in self.paper]
            more = f" and {', '.join(map(str, own))}" if own else ""
            return f"{self.key}: {kept} of the paper's {len(self.paper)}{more} ({self.effect})"
        return f"{self.key}: paper: {_shown(self.paper)}, run: {_shown(self.run)} ({self.effect})"


def paper_config(published: Published) -> dict[str, Any]:
    """The resolved config of the paper for a table: the shipped one with the table's own settings,
    whose models need not be on this machine."""
    config = load_config(published.config, list(published.sets), at_hand=False)
    return config.model_dump(mode="json")


def deviations(
    paper: Paper, published: Published, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> list[Deviation]:
    """The keys in which a run differs from the paper's config, those that decide first.

    Args:
        ours: resolved config of the run.
        theirs: resolved config of the paper (`paper_config`).
    """
    unread = (*paper.independent_of, *published.independent_of)
    found = [
        _deviation(paper, published, key, there, here)
        for key, there, here in differences(dict(theirs), dict(ours), ("name", "out"))
        if not _matches(key, unread)
    ]
    return sorted(found, key=lambda deviation: not deviation.decides)


def _deviation(paper: Paper, published: Published, key: str, theirs: Any, ours: Any) -> Deviation:
    if key in published.pooled_over:
        return Deviation(key, theirs, ours, True, "every cell pools over this list", pools=True)
    if key in paper.row_keys:
        return Deviation(key, theirs, ours, False, "each entry has rows of its own")
    harmless = next((why for of, why in HARMLESS.items() if _matches(key, (of,))), None)
    return Deviation(key, theirs, ours, harmless is None, harmless or "decides what the number is")


def _matches(key: str, patterns: Iterable[str]) -> bool:
    """Whether a dotted key is, or lies below, what one of the patterns names."""
    of = (pattern.removesuffix(".") for pattern in patterns)
    return any(fnmatchcase(key, p) or fnmatchcase(key, f"{p}.*") for p in of)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return "null" if value is None else str(value)
