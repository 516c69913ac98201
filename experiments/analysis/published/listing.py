"""List of printed tables: cells, config, price, and whether this machine can carry them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faithscope.experiments.analysis.published.paper import Paper
from faithscope.experiments.analysis.published.runs import Beside
from faithscope.experiments.analysis.published.sheet import aligned, score
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.models.needs import Need, needs

HEADINGS = ("table", "cells", "measured", "config", "GPU hours", "dollars", "here", "what it shows")
UNKNOWN = "?"
"""Stands for hours or dollars that nothing says; `reproduce TABLE --dry-run` estimates dollars."""


def listed(papers: Sequence[Paper], tables: Sequence[Beside]) -> Iterator[str]:
    """Lines on every table of papers: first the tables, then what each config needs, then counts.

    Args:
        tables: all tables of these papers, beside the runs that were given (or none).
    """
    of_configs: dict[tuple[str, tuple[str, ...]], list[Need]] = {}
    for table in tables:
        config, sets = table.published.config, table.published.sets
        if config and (config, sets) not in of_configs:
            loaded = load_config(config, list(sets), at_hand=False)
            of_configs[config, sets] = needs(loaded)
    here = {key for key, of in of_configs.items() if not any(need.lacking for need in of)}
    yield from aligned([HEADINGS, *(_row(table, here) for table in tables)])
    for (config, sets), of in of_configs.items():
        of_config = [
            t.name for t in tables if (t.published.config, t.published.sets) == (config, sets)
        ]
        yield ""
        yield f"{config} ({', '.join(of_config)}{'; one run' if of_config[1:] else ''}) needs"
        yield from (f"  {n.what}: {f'LACKING: {n.lacking}' if n.lacking else 'here'}" for n in of)
    for table in tables:
        for name in ("hours", "dollars"):
            if source := getattr(table.published, f"{name}_from"):
                yield f"{table.name}: {name}: {source}"
    yield ""
    yield from (_count(paper, tables, here) for paper in papers)


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
