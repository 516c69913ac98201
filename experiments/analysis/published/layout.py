"""Numbers laid out as a paper prints them: beside its cells, and of a run alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.html import html_table
from faithscope.experiments.analysis.page import Fold, Grid
from faithscope.experiments.analysis.published.cells import Cell, read_cells
from faithscope.experiments.analysis.published.comparison import (
    SUBJECTS,
    is_missing,
    numbers_of,
    plain,
    rows_for,
)
from faithscope.experiments.analysis.published.paper import Ours, Paper, Published, Tables
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import keep, rows
from faithscope.experiments.numerals import decimal

ABSENT = "–"
"""What stands where there is no number."""


class PaperTable(NamedTuple):
    """The numbers of a run for one printed table of a paper."""

    name: str
    """Name of its files: `paper_slrc_table1`."""
    title: str
    """One line that says what the paper shows there."""
    data: pd.DataFrame
    """A row per number: our key columns, the paper's `heading`, `value` with its interval (`low`,
    `high`) in the units of our tables (shares are fractions of 1), and the number of cases `n`."""
    printed: pd.DataFrame
    """The cells as text, in the paper's layout, units and decimals."""


def in_layout(
    published: Published, lines: pd.DataFrame, say: Callable[[Mapping[str, Any]], Any]
) -> pd.DataFrame:
    """Lines of a printed table as the paper lays them out, in their order.

    Args:
        lines: one line per cell: the keys by their printed names, the heading in `column`, and
            what `say` needs.
        say: maps a line to what stands in its cell.
    """
    before = lines.columns[: lines.columns.get_loc("column")]
    known = [str(name) for name in before if name != "table"]
    apart = [key for key in known if not published.keys.get(key, key)]
    across = [key for key in published.across if key in known]
    keys = [key for key in known if key not in (*across, *apart)]
    several = len(set(lines["column"])) > 1
    headings: dict[tuple[str, ...], dict[str, None]] = {}
    laid_out: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in rows(lines):
        names = {key: "" if is_missing(line[key]) else str(line[key]) for key in known}
        above = tuple(names[key] for key in across if names[key])
        column = [line["column"]] if several or not above else []
        heading = " ".join([*above, *column, *(names[key] for key in apart if names[key])])
        headings.setdefault(above, {})[heading] = None
        place = {key: names[key] for key in keys}
        laid_out.setdefault(tuple(place.values()), dict(place))[heading] = say(line)
    every = dict.fromkeys(h for of_above in headings.values() for h in of_above)
    return pd.DataFrame(list(laid_out.values()), columns=[*keys, *every]).fillna("")


def printed_tables(paper: Paper, tables: Tables, suffix: str = "") -> list[PaperTable]:
    """The printed tables of a paper for which a run has numbers, filled with these alone.

    Rows and headings stand in the paper's order; models, tasks and other values that the paper does
    not have follow. The paper's way of measuring is one of `Paper.ways`; a run may have several,
    which have rows of their own.

    Args:
        tables: tables of the run by name.
        suffix: is added to the names.
    """
    cells = read_cells(paper.cells)
    made = (_printed(paper, published, cells, tables, suffix) for published in paper.tables)
    return [table for table in made if table is not None]


def folds(printed: Iterable[PaperTable]) -> list[Fold]:
    """The printed tables for a page, each folded away under its title."""
    return [
        Fold(t.title, [Grid(html_table(t.printed, {}, t.name), f"{t.name}: {t.title}")])
        for t in printed
    ]


def ours_text(line: Mapping[str, Any]) -> str:
    """Our number with one decimal more than a whole printed one; a dash without one."""
    value = line["ours"]
    if is_missing(value):
        return ABSENT
    return str(value) if isinstance(value, str) else with_unit(value, line, decimals_of(line))


def with_unit(value: float, line: Mapping[str, Any], decimals: int) -> str:
    """A number with its unit, if that is percent or points."""
    unit = {"%": "%", "pp": "pp"}.get(line["unit"], "")
    return f"{decimal(value, decimals)}{unit}"


def decimals_of(line: Mapping[str, Any]) -> int:
    """Number of decimals of our number at a printed one."""
    return 0 if line["unit"] == "n" else max(1, int(line["decimals"]))


def _printed(
    paper: Paper, published: Published, cells: Sequence[Cell], tables: Tables, suffix: str
) -> PaperTable | None:
    """A printed table with the numbers of a run; None where the run has none."""
    frame = rows_for(published, tables)
    frame = frame if frame.empty else keep(frame, published.own(frame))
    of_table = [cell for cell in cells if cell.table == published.name]
    keys = {key: column for key, column in published.keys.items() if column}
    ways = [
        way
        for way, of_paper in paper.ways.items()
        if way in frame and not rows_with(**{way: of_paper})(frame).all()
    ]
    names = {key: _names(paper, published, key, of_table) for key in keys}
    # whose number it is, where the paper tells subjects apart by something else (Table 3 of RFEval)
    whose = [x for x in SUBJECTS if x in frame and x not in keys.values()]
    lines: list[dict[str, Any]] = []
    for heading, ours in _headings(published, of_table, frame).items():
        for row in rows(keep(frame, ours.among(frame))) if len(frame) else ():
            named = {k: names[k].get(plain(row[c]), str(row[c])) for k, c in keys.items()}
            cell = _cell_like(of_table, heading, ours, named, row.get(ours.column))
            numbers = numbers_of(published, cell, ours, row)
            said = ours_text({"unit": cell.unit, "decimals": cell.decimals, **numbers})
            exact = {"value": row.get(ours.column), "n": numbers["n"]}
            exact |= {end: row.get(f"{ours.column}_{end}") for end in ("low", "high")}
            ours_keys = {column: row[column] for column in (*keys.values(), *ways, *whose)}
            named |= {way: str(row[way]) for way in ways}
            by = ", ".join(str(row[subject]) for subject in whose)
            exact = {**ours_keys, "heading": heading, **exact}
            lines.append({**named, "column": heading, "said": said, "by": by, "exact": exact})
    # numbers of cases alone make no table of a paper
    of_paper = [line for line in lines if line["column"] in (published.columns or published.also)]
    if all(line["said"] == ABSENT for line in of_paper):
        return None
    order = {
        key: sorted(
            dict.fromkeys([*(c.keys.get(key, "") for c in of_table), *(x[key] for x in lines)]),
            # what pools all others stands last
            key=lambda name: name == names[key].get(OVERALL),
        )
        for key in keys
    }
    grid = _whole_grid(published, lines, order)
    printed = in_layout(published, pd.DataFrame(grid).drop(columns="there"), itemgetter("said"))
    printed = printed.rename(
        columns={key: column.replace("_", " ") for key, column in keys.items()}
    )
    exact = [x["exact"] for place in grid for x in place["there"] if x["said"] != ABSENT]
    columns = [*keys.values(), *ways, *whose, "heading", "value", "low", "high", "n"]
    data = pd.DataFrame(exact, columns=columns).astype({"n": "Int64"}).drop_duplicates()
    name = f"paper_{paper.name}_{published.name}{suffix}"
    return PaperTable(name, published.title, data, printed)


def _headings(
    published: Published, of_table: Sequence[Cell], frame: pd.DataFrame
) -> dict[str, Ours]:
    """The headings of a run's own table: the paper's, those of `Published.also`, and the number of
    cases where it is in no heading yet and the same for the whole row."""
    paper = {c.column: ours for c in of_table if (ours := published.ours(c.column))}
    every = paper | dict(published.also)
    counted = {ours.column for ours in every.values()}
    if not published.across and published.n in frame and published.n not in counted:
        every |= {"n": Ours(published.n, unit="n")}
    return every


def _names(
    paper: Paper, published: Published, key: str, of_table: Sequence[Cell]
) -> dict[str, str]:
    """Our value of a key, as `plain` text -> its printed name: the first in this table, or else in
    the paper."""
    in_table = [cell.keys[key] for cell in of_table if key in cell.keys]
    names: dict[str, str] = {}
    for printed in (*in_table, *published.names.get(key, {}), *paper.names.get(key, {})):
        for ours in paper.name_of(published, key, printed):
            names.setdefault(plain(ours), printed)
    return names


def _cell_like(
    of_table: Sequence[Cell], heading: str, ours: Ours, named: Mapping[str, str], value: Any
) -> Cell:
    """The printed cell under a heading whose keys agree most with these, as far as their first
    letters (`Cov. ρ @50%` with `Cov. ρ @70%`): it has the unit and the decimals of our number. A
    word of ours is like a printed word, where there is any."""
    under = [cell for cell in of_table if cell.column == heading]
    alike = [cell for cell in under if (cell.unit == "word") == isinstance(value, str)]
    under = alike or under
    if not under:
        return Cell("", {}, heading, None, ours.unit, ours.decimals, None, "", "")

    def likeness(cell: Cell) -> tuple[int, int]:
        pairs = [(named.get(key, ""), name) for key, name in cell.keys.items()]
        return sum(a == b for a, b in pairs), sum(len(_common_start(a, b)) for a, b in pairs)

    return max(under, key=likeness)


def _common_start(one: str, other: str) -> str:
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(letter for letter, _ in alike)


def _whole_grid(
    published: Published, lines: Sequence[dict[str, Any]], order: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """A line for every row and every heading of a table, each in the paper's order; where several
    numbers stand at one place, all are said.

    Args:
        order: key -> its printed names in the order of the paper.
    """
    keys = [key for key in lines[0] if key not in ("said", "by", "exact")]
    rank = {
        key: {
            name: i
            for i, name in enumerate(dict.fromkeys([*order.get(key, ()), *(x[key] for x in lines)]))
        }
        for key in keys
    }
    over = [*(key for key in published.across if key in keys), "column"]
    down = [key for key in keys if key not in over]

    def places(names: Sequence[str]) -> list[tuple[str, ...]]:
        found = dict.fromkeys(tuple(line[key] for key in names) for line in lines)
        return sorted(found, key=lambda p: [rank[k][n] for k, n in zip(names, p, strict=True)])

    at: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        at.setdefault(tuple(line[key] for key in (*down, *over)), []).append(line)
    grid = []
    for row in places(down):
        for heading in places(over):
            named = dict(zip((*down, *over), (*row, *heading), strict=True))
            there = at.get((*row, *heading), [{"said": ABSENT, "by": ""}])
            several = len({line["by"] for line in there}) > 1
            texts = (f"{x['said']} ({x['by']})" if several else x["said"] for x in there)
            said = "; ".join(dict.fromkeys(texts))
            grid.append({key: named[key] for key in keys} | {"said": said, "there": there})
    return grid
