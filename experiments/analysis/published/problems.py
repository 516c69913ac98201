"""Check of a paper's specification against its file of cells, for the tests of every paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faithscope.experiments.analysis.published.cells import Cell, read_cells
from faithscope.experiments.analysis.published.deviations import paper_config
from faithscope.experiments.analysis.published.paper import Paper, Published
from faithscope.interp.errors import UserError


def problems(paper: Paper) -> list[str]:
    """A line for everything in which the specification and the cells do not fit each other; empty
    where they do."""
    cells = read_cells(paper.cells)
    specified = [table.name for table in paper.tables]
    printed = list(dict.fromkeys(cell.table for cell in cells))
    return [
        *(line for table in paper.tables for line in _of_table(paper, table, cells)),
        *(f"{name}: has cells, and no specification" for name in printed if name not in specified),
        *(f"{name}: is specified twice" for name in set(specified) if specified.count(name) > 1),
    ]


def _of_table(paper: Paper, table: Published, cells: Sequence[Cell]) -> Iterator[str]:
    of_table = [cell for cell in cells if cell.table == table.name]
    if table.config:
        try:
            paper_config(table)
        except UserError as error:
            yield f"{table.name}: {error}"
    if not of_table:
        yield f"{table.name}: no cell is of this table"
        return
    if not table.why_not:
        keys = dict.fromkeys(key for cell in of_table for key in cell.keys)
        yield from (
            f"{table.name}: key {key!r} is not in Published.keys"
            for key in keys
            if key not in table.keys
        )
        yield from (
            f"{table.name}: no column of ours for heading {heading!r}"
            for heading in dict.fromkeys(cell.column for cell in of_table)
            if heading not in table.columns and heading not in table.no_counterpart
        )
        printed = {name for cell in of_table for name in (cell.column, *cell.keys.values())}
        yield from (
            f"{table.name}: without: no cell has {name!r}"
            for name in table.no_counterpart
            if name not in printed
        )
    headings = {cell.column for cell in of_table}
    for heading in table.columns:
        if heading not in headings:
            yield f"{table.name}: no cell has heading {heading!r}"
    for key in {**paper.names, **table.names}:
        known = {**paper.names.get(key, {}), **table.names.get(key, {})}
        for name in dict.fromkeys(cell.keys[key] for cell in of_table if key in cell.keys):
            if name not in known and not table.why_without([name]):
                yield f"{table.name}: {key} {name!r} has no entry in names"
