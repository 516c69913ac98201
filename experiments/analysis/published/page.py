"""Page of printed tables beside runs: first how many cells were measured, then all tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from faithscope.experiments.analysis.html import Cell, HtmlTable, markup
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Fold,
    Grid,
    Page,
    Paragraph,
    Section,
    rendered,
)
from faithscope.experiments.analysis.published.comparison import (
    OUTSIDE,
    RULE,
    WITHIN,
)
from faithscope.experiments.analysis.published.layout import in_layout, ours_text
from faithscope.experiments.analysis.published.runs import Beside
from faithscope.experiments.analysis.published.sheet import (
    CASES,
    UNMEASURED,
    cases,
    doubts,
    is_printed,
    notes,
    published_text,
    range_text,
    score,
)
from faithscope.experiments.files import make_folder, write_atomically

LEAD = (
    "Printed numbers of papers with the numbers of these runs beside them. Every printed number is "
    "listed, also those that no run measured. "
)


def write_page(
    tables: Sequence[Beside], path: Path, folders: Sequence[Path] = (), left: Sequence[str] = ()
) -> Path:
    """Write the page of printed tables and return its path.

    Args:
        folders: the run folders that were read.
        left: a line for each folder that was not compared, with the reason.
    """
    of_papers: dict[str, list[Beside]] = {}
    for table in tables:
        of_papers.setdefault(table.paper.title, []).append(table)
    total = score(tables)
    reading = {run.run for table in tables for run in table.runs}
    account = [
        *total.lines,
        f"{_counted(of_papers)}; {len(reading)} of {len(folders)} runs have a number for them",
    ]
    sections = [
        Section("summary", "What was measured", text=RULE, blocks=_summary(of_papers)),
        Section("runs", "Runs", blocks=_runs(tables, folders, left)),
        *(
            Section(of[0].paper.name, title, short=title, blocks=[b for t in of for b in _table(t)])
            for title, of in of_papers.items()
        ),
    ]
    name = tables[0].name if len(tables) == 1 else "Published numbers and ours"
    page = Page(path.parent, "are the papers' numbers measured again?", LEAD, sections, {}, {}, {})
    write_atomically(make_folder(path.parent) / path.name, rendered(page, name, account))
    return path


def _counted(of_papers: Mapping[str, Sequence[Beside]]) -> str:
    tables = [table for of in of_papers.values() for table in of]
    if len(tables) == 1:
        return f"{tables[0].name}: {tables[0].published.title.removesuffix('.')}"
    papers = f"{len(of_papers)} {'paper' if len(of_papers) == 1 else 'papers'}"
    return f"{len(tables)} tables of {papers}"


def _summary(of_papers: Mapping[str, Sequence[Beside]]) -> list[Block]:
    """The counts of cells by paper."""
    heading = ["paper", "tables", "cells", "measured", "within", "wide", "outside"]
    heading += ["not comparable", *UNMEASURED]
    every = [table for of in of_papers.values() for table in of]
    lines = [*of_papers.items(), *([("all", every)] if len(of_papers) > 1 else [])]
    body = []
    for title, of in lines:
        counts = score(of)
        numbers = [len(of), counts.cells, counts.measured, counts.within, counts.wide]
        numbers += [counts.outside, counts.incomparable]
        numbers += [counts.reasons.get(reason, 0) for reason in UNMEASURED]
        name = title if title == "all" else of[0].paper.name
        body.append([Cell(name, name), *(Cell(f"{n:,}", str(n)) for n in numbers)])
    return [
        Grid(HtmlTable(heading, [False, *[True] * (len(heading) - 1)], body), "Cells by paper"),
        Paragraph(
            "Wide: within by a range that also meets half or more of the other printed numbers "
            "under the same heading, so that it tells little. Pooled over others: our number pools "
            "over other models or tasks than the paper's, so that nothing is measured of the cell. "
            "A measured cell is not comparable where its run deviates, where the printed number is "
            f"doubtful, or where ours is another quantity. {CASES}",
            "quiet",
        ),
    ]


def _runs(tables: Sequence[Beside], folders: Sequence[Path], left: Sequence[str]) -> list[Block]:
    """Blocks on the runs: how much each measured, and which were passed over."""
    tallies = dict.fromkeys(line for table in tables for line in table.tallies)
    there = {run.run for table in tables for run in table.runs}
    idle = [f"{folder}: has no number for any table" for folder in folders]
    idle = [line for line in idle if line.rpartition(": ")[0] not in there]
    known = {line.partition(": ")[0] for line in left}
    idle = [line for line in idle if line.rpartition(": ")[0] not in known]
    lines = [*tallies, *left, *idle]
    return [Bullets(lines)] if lines else ["No run was given: every number of ours is missing."]


def _table(table: Beside) -> Iterator[Block]:
    """One printed table with everything to be known of it, folded away if nothing is measured."""
    counts = score([table])
    head = (
        f"{table.published.name}: {table.published.title} {counts.measured:,} of {counts.cells:,}"
    )
    frame = in_layout(table.published, table.cells, _cell)
    lines = frame.to_numpy().tolist()
    words = [all(isinstance(row[i], str) for row in lines) for i in range(len(frame.columns))]
    body = [[x if isinstance(x, Cell) else Cell(x, x) for x in row] for row in lines]
    grid = HtmlTable(
        [str(name) for name in frame.columns],
        [not word for word in words],
        body,
        css="sortable printed",
    )
    file = f"{table.name.replace('.', '_')}.csv, .md, .tex"
    yield Fold(
        f"{head} measured",
        [
            Grid(grid, table.published.title),
            Bullets([line for line in notes(table) if line not in (RULE, CASES)]),
            Paragraph(f"A row per cell, and this table: {file}", "quiet"),
        ],
        "printed",
        open=table.has_numbers,
    )


def _cell(line: Mapping[str, Any]) -> Cell:
    """A cell: the printed number, below it ours with range, verdict and cases."""
    printed, ours = published_text(line), ours_text(line)
    if ours == "–":
        return Cell(markup("{} <span class='tag'>not measured</span>", printed), printed)
    spread = range_text(line)
    number = markup("{} │ <b>{}</b>{}", printed, ours, f" [{spread}]" if spread else "")
    return Cell(markup("{} {}", number, _word(line)), ours, cases(line).removeprefix(", "))


def _word(line: Mapping[str, Any]) -> Markup:
    if not is_printed(line):
        return markup("<span class='tag'>{}</span>", "not in the paper")
    if line["verdict"] in (WITHIN, OUTSIDE):
        words = doubts(line)
        css = "bad" if line["verdict"] == OUTSIDE else "few" if words else "good"
        said = ", ".join([line["verdict"], *words])
        return markup("<span class='word {}'>{}</span>", css, said)
    return markup("<span class='tag' title='{}'>{}</span>", line["why"], line["reason"])
