"""List of printed tables: cells, config, price, and whether this machine can carry them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from faithscope.experiments.analysis.published.paper import Paper
from faithscope.experiments.analysis.published.runs import Beside
from faithscope.experiments.analysis.published.sheet import aligned, score
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.needs import Need, needs

SHORT = ("table", "cells", "what it shows, and what this machine lacks for it")
HEADINGS = ("table", "cells", "measured", "config", "GPU hours", "dollars", "here", "what it shows")
Needed = Mapping[tuple[str, tuple[str, ...]], list[Need]]
"""(config, overrides of it) -> what a run of it needs."""
UNKNOWN = "?"
"""Stands for hours or dollars that nothing says; `reproduce TABLE --dry-run` estimates dollars."""


def in_short(tables: Sequence[Beside]) -> list[Sequence[str]]:
    """A row of texts for each table, below their headings."""
    of_configs = _needs_of(tables)
    return [SHORT, *(_short(table, of_configs) for table in tables)]


def counts(papers: Sequence[Paper], tables: Sequence[Beside]) -> list[str]:
    """A line for each paper: how many of its tables can be carried out here and are measured."""
    here = _here(_needs_of(tables))
    return [_count(paper, tables, here) for paper in papers]


def listed(papers: Sequence[Paper], tables: Sequence[Beside]) -> Iterator[str]:
    """Lines on every table of papers with prices, what each config needs, and where prices are
    from.

    Args:
        tables: all tables of these papers, beside the runs that were given (or none).
    """
    of_configs = _needs_of(tables)
    here = _here(of_configs)
    yield from aligned([HEADINGS, *(_row(table, here) for table in tables)])
    for (config, sets), of in of_configs.items():
        of_config = [
            t.name for t in tables if (t.published.config, t.published.sets) == (config, sets)
        ]
        yield ""
        yield f"{config} ({', '.join(of_config)}{'; one run' if of_config[1:] else ''}) needs"
        yield from (f"  {n.what}: {f'LACKING: {n.lacking}' if n.lacking else 'here'}" for n in of)
    sources: dict[str, list[str]] = {}
    for table in tables:
        for name in ("hours", "dollars"):
            if source := getattr(table.published, f"{name}_from"):
                sources.setdefault(f"{name}: {source}", []).append(table.name)
    yield ""
    yield from (f"{', '.join(names)}: {source}" for source, names in sources.items())
    yield ""
    yield from (_count(paper, tables, here) for paper in papers)


def _needs_of(tables: Sequence[Beside]) -> Needed:
    configs = dict.fromkeys((t.published.config, t.published.sets) for t in tables)
    return {
        (config, sets): needs(load_config(config, list(sets), at_hand=False))
        for config, sets in configs
        if config
    }


def _here(needed: Needed) -> set[tuple[str, tuple[str, ...]]]:
    return {key for key, of in needed.items() if not any(need.lacking for need in of)}


def _short(table: Beside, needed: Needed) -> list[str]:
    published, counts = table.published, score([table])
    cells = f"{counts.measured} of {counts.cells}" if counts.measured else str(counts.cells)
    lacks = "(no measure)"
    if published.config:
        of = needed[published.config, published.sets]
        lacking = ", ".join(dict.fromkeys(n.kind for n in of if n.lacking))
        lacks = f"(lacks {lacking})" if lacking else ""
    return [table.name, cells, f"{published.title} {lacks}".rstrip()]


def _row(table: Beside, here: set[tuple[str, tuple[str, ...]]]) -> list[str]:
    published, counts = table.published, score([table])
    if not published.config:
        why = f"{published.title} Not carried out: {published.why_not}"
        return [table.name, str(counts.cells), str(counts.measured), "–", "–", "–", "–", why]
    priced = [UNKNOWN if x is None else f"{x:g}" for x in (published.hours, published.dollars)]
    can = "yes" if (published.config, published.sets) in here else "no"
    numbers = [str(counts.cells), str(counts.measured)]
    return [table.name, *numbers, published.config, *priced, can, published.title]


def _count(paper: Paper, tables: Sequence[Beside], here: set[tuple[str, tuple[str, ...]]]) -> str:
    own = [table for table in tables if table.paper is paper]
    carried = [table.published for table in own if table.published.config]
    able = sum((p.config, p.sets) in here for p in carried)
    measured = sum(score([table]).measured > 0 for table in own)
    return (
        f"{paper.title}: {len(own)} tables, {len(carried)} can be carried out, {able} of them "
        f"here; {measured} measured by the runs given; {'; '.join(score(own).lines)}"
    )
