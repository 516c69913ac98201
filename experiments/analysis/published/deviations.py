"""Deviations of a run's config from what a paper states, key by key.

A paper states some of its settings and leaves others open (`Paper.states`, `Paper.leaves_open`);
what a shipped config has beyond that is our choice. Only a stated setting can be deviated from. A
key that a paper leaves open, and one that decides nothing, is named and costs nothing. A key that
nobody has declared speaks against a run; `undeclared` finds such keys for the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from faithscope.experiments.analysis.published.paper import Paper, Published, Stated
from faithscope.experiments.config.load import load_config

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
    "items_at_once": _SPEED,
    "gpu_hour": "a price, which only a dry run reads",
    "tracking": "where progress is reported",
    "spend": "a budget, which can only leave cases out",
    "report.bootstrap": "another number of resamples for the same interval",
    "report.parameters": "sizes of models for tables about size",
    "report.traces": "how many chains the page shows",
    "report.judgements": "how many judgements the page shows",
    "report.figure_width": "the width of figures",
    "report.comparison": "sections of the page that are of no paper",
}
"""Pattern of config keys (or sections) that leave a number what it is -> what they change."""
SILENT = (
    *("*.attempts", "*.base_url", "*.extra_body", "*.max_model_len", "*.dtype", "*.revision"),
    *(
        "*.marks",
        *(f"traces.{key}" for key in ("gold_is", "columns", "options", "edits")),
        "generation.samples",
        "*.structured",
        "*.thinking",
        "*.reasoning_effort",
        "*.reasoning_tokens",
    ),
    *("*.max_tokens", "*.max_new_tokens", "*.answer_tokens", "*.top_p", "*.length_normalise"),
    *(
        "*.group",
        "data.group.*",
        "*.probes",
        "cues",
        "sycophancy.cues",
        *("spans", "spans.*", "*.spans", "*.spans.*", "attention.queries"),
        "data.split",
        *("programs", "programs.*"),
        "report.cut",
        "report.least_label_mass",
        "api.steps_from",
    ),
)
"""Patterns of config keys that a paper leaves open where `Paper.states` does not name them."""
OPEN = "the paper does not say"
"""Effect of a deviation in a key that the paper leaves open."""


@dataclass(frozen=True)
class Deviation:
    """A config key in which a run differs from a paper, or from its shipped config."""

    key: str
    paper: Any
    """Value in the shipped config of the paper."""
    run: Any
    decides: bool
    """Whether it decides what a number is, so that no cell of the run is comparable."""
    effect: str
    """What the deviation does to a cell, in words."""
    pools: bool = False
    """Whether every cell of the table pools over the list that differs."""
    states: str = ""
    """What the paper states, in words, with the section; empty where it leaves the key open."""

    @property
    def line(self) -> str:
        """The deviation as one line of text."""
        lists = isinstance(self.paper, list) and isinstance(self.run, list)
        if lists and not self.decides and self.effect != OPEN:
            kept = sum(entry in self.run for entry in self.paper)
            own = [entry for entry in self.run if entry not in self.paper]
            more = f" and {', '.join(map(str, own))}" if own else ""
            return f"{self.key}: {kept} of the paper's {len(self.paper)}{more} ({self.effect})"
        if self.states:
            return f"{self.key}: {self.states}; this run: {_shown(self.run)} ({self.effect})"
        shipped = f"this run: {_shown(self.run)}, the shipped config: {_shown(self.paper)}"
        if self.effect == OPEN:
            return f"{self.key}: {OPEN}; {shipped}"
        return f"{self.key}: {shipped} ({self.effect})"


def paper_config(published: Published) -> dict[str, Any]:
    """The resolved config of the paper for a table: the shipped one with the table's own settings,
    whose models need not be on this machine."""
    config = load_config(published.config, list(published.sets), at_hand=False)
    return config.model_dump(mode="json")


def deviations(
    paper: Paper, published: Published, ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> list[Deviation]:
    """The keys in which a run differs from what the paper states or from its shipped config, those
    that decide first.

    Args:
        ours: resolved config of the run.
        theirs: resolved config of the paper (`paper_config`).
    """
    unread = (*paper.independent_of, *published.independent_of, "name", "out")
    here, there = dict(leaves(ours)), dict(leaves(theirs))
    found = [
        _deviation(paper, published, key, there.get(key), here.get(key))
        for key in {**there, **here}
        if not _matches(key, unread)
    ]
    return sorted(filter(None, found), key=lambda deviation: not deviation.decides)


def _deviation(
    paper: Paper, published: Published, key: str, theirs: Any, ours: Any
) -> Deviation | None:
    """The deviation in one key; None where the run has what the paper states, or leaves open and
    has in its shipped config."""
    stated = paper.stated(key, published)
    if paper.same(theirs, ours):
        if stated is None or not stated.stand_in or stated.holds(ours):
            return None
        return _as_stated(stated, key, theirs, ours, stated.stand_in)
    harmless = next((why for of, why in HARMLESS.items() if _matches(key, (of,))), None)
    if isinstance(theirs, list) and isinstance(ours, list):
        ours = [next((a for a in theirs if paper.same(a, b)), b) for b in ours]
    if key in published.pooled_over:
        return Deviation(key, theirs, ours, True, "every cell pools over this list", pools=True)
    if key in paper.row_keys:
        return Deviation(key, theirs, ours, False, "each entry has rows of its own")
    if stated:
        return None if stated.holds(ours) else _as_stated(stated, key, theirs, ours)
    if harmless:
        return Deviation(key, theirs, ours, False, harmless)
    if _matches(key, (*paper.leaves_open, *SILENT)):
        return Deviation(key, theirs, ours, False, OPEN)
    return Deviation(key, theirs, ours, True, "not known to be open in the paper, so it counts")


def _as_stated(stated: Stated, key: str, theirs: Any, ours: Any, stand_in: str = "") -> Deviation:
    says = stated.says or _shown(theirs)
    effect = stand_in or "decides what the number is"
    states = f"the paper ({stated.section}): {says}"
    return Deviation(key, theirs, ours, not stand_in, effect, states=states)


def undeclared(paper: Paper) -> list[str]:
    """Config keys of a paper's shipped configs that may decide a table's numbers and that are
    neither stated nor left open, and declarations that fit no key of theirs: a line each."""
    lines, used = [], set()
    for published in (table for table in paper.tables if table.config and not table.why_not):
        unread = (*paper.independent_of, *published.independent_of)
        for key, _ in leaves(paper_config(published)):
            used |= {of for of in paper.leaves_open if _matches(key, (of,))}
            used |= {s.key for s in paper.states if _matches(key, (s.key,))}
            known = (*unread, *paper.row_keys, *HARMLESS, *paper.leaves_open, *SILENT)
            known += ("name", "out", "benchmark", *published.pooled_over)
            if not _matches(key, known) and paper.stated(key, published) is None:
                lines.append(f"{published.name}: {key} is neither stated nor left open")
    declared = [*paper.leaves_open, *(s.key for s in paper.states)]
    return [
        *lines,
        *(f"{of}: no shipped config has such a key" for of in declared if of not in used),
    ]


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything in a config that is no section with keys."""
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _matches(key: str, patterns: Iterable[str]) -> bool:
    """Whether a dotted key is, or lies below, what one of the patterns names."""
    of = (pattern.removesuffix(".") for pattern in patterns)
    return any(fnmatchcase(key, p) or fnmatchcase(key, f"{p}.*") for p in of)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return "null" if value is None else str(value)
