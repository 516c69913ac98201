"""Command `faithscope reproduce`: the printed tables of papers beside one's own numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faithscope.experiments.cli.run import Overrides, carry_out
from faithscope.experiments.console import DONE, FAILED_ITEMS, in_columns, say, to_output, wrapped
from faithscope.interp.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from faithscope.experiments.analysis.published.paper import Paper
    from faithscope.experiments.analysis.published.runs import Beside, Runs

commands = typer.Typer(rich_markup_mode=None)
LIST, ALL = "list", "all"


@commands.command()
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="PAPER.TABLE|list|all",
            help="A printed table, e.g. slrc.table4; or list, for all tables; or all, with --from.",
        ),
    ],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PAPER|RUN", help="With list: one paper. With --from: further runs."
        ),
    ] = None,
    overrides: Overrides = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Take the first N items (of each task)."),
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Read finished runs and measure nothing: run folders, or a folder of them.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; read no weights.")
    ] = False,
    whole: Annotated[
        bool,
        typer.Option("--long", help="With list: prices, and what each config needs, in full."),
    ] = False,
) -> int:
    """Put a paper's printed table beside your own numbers.

    It runs the config of the paper, or resumes its run, and prints each cell as paper | yours
    [range] verdict, and below every setting in which the run differs from the paper's config. The
    table is also written into the folder `reproduced` of the run. The last line printed is the run
    folder; with --from, the file that was written.
    """
    from faithscope.experiments.analysis.published.runs import Runs, paper_of, papers, run_folders

    extra = list(more or [])
    if what == LIST:
        _refuse(LIST, {"--set": overrides, "--limit": limit, "--dry-run": dry_run})
        chosen = [paper_of(name) for name in ([] if runs else extra)] or list(papers().values())
        read = Runs(run_folders([*runs, *extra] if runs else []))
        return _list(chosen, read, whole)
    _refuse(what, {"--long": whole})
    if extra and not runs:
        raise UserError(f"reproduce {what}: {extra[0]!r} is one thing too many; runs follow --from")
    if what == ALL:
        _refuse(ALL, {"--set": overrides, "--limit": limit, "--dry-run": dry_run})
        if not runs:
            raise UserError("reproduce all: reads finished runs; name them: --from runs")
        return _all(Runs(run_folders([*runs, *extra])), Path(runs[0]))
    paper, name = _named(what)
    if runs:
        _refuse(f"{what} --from", {"--set": overrides, "--limit": limit, "--dry-run": dry_run})
        return _one(paper, name, Runs(run_folders([*runs, *extra])), Path(runs[0]))
    published = paper.table(name)
    if not published.config:
        say(f"{what}: nothing to run: {published.why_not}")
        return _one(paper, name, Runs([]), None)
    limited = [f"{published.limit}={limit}"] if limit is not None else []
    values = [*published.sets, *limited, *(overrides or [])]
    shown: list[int] = []

    def show(run_dir: Path) -> None:
        shown.append(_one(paper, name, Runs([run_dir]), run_dir, last=False))

    presets = [*published.sets, *limited]
    code = carry_out(published.config, values, dry_run=dry_run, presets=presets, then=show)
    return code or max(shown, default=DONE)


def _named(what: str) -> tuple[Paper, str]:
    """The paper and the table's name in `PAPER.TABLE`.

    Raises:
        UserError: there is no such paper or table; lists those that there are.
    """
    from faithscope.experiments.analysis.published.runs import papers

    known = {f"{p.name}.{t.name}": (p, t.name) for p in papers().values() for t in p.tables}
    if what in known:
        return known[what]
    guess = did_you_mean(what, [*known, LIST, ALL])
    there = f"; there are {', '.join(known)}"
    raise UserError(f"reproduce: no table {what!r}{guess or there}")


def _refuse(what: str, options: dict[str, object]) -> None:
    """Refuse options that would have no effect."""
    for option, value in options.items():
        if value:
            raise UserError(f"reproduce {what}: {option} has no effect; leave it out")


def _beside(paper: Paper, names: Iterable[str], runs: Runs) -> list[Beside]:
    from faithscope.experiments.analysis.published import read_cells
    from faithscope.experiments.analysis.published.runs import compared

    cells = read_cells(paper.cells)
    return [compared(paper, paper.table(name), cells, runs) for name in names]


def _left(tables: Iterable[Beside], runs: Runs) -> list[str]:
    """A line for each folder that is not compared with any of the tables."""
    return [*runs.unread(), *sorted(runs.others(table.published for table in tables))]


def _one(paper: Paper, name: str, runs: Runs, out: Path | None, last: bool = True) -> int:
    """Print one table and write its files; returns the exit code.

    Args:
        out: folder in which the folder of the files is made; None writes none.
        last: whether the written file is the last line printed.
    """
    from faithscope.experiments.analysis.published import page, sheet
    from faithscope.experiments.engine.outputs import REPRODUCED

    (table,) = _beside(paper, [name], runs)
    left = _left([table], runs)
    for line in left:
        say(f"passed over: {line}")
    to_output("\n".join(sheet.printed(table)))
    if out is not None:
        path = sheet.write_files(table, out / REPRODUCED)
        page.write_page([table], path.with_suffix(".html"), runs.folders, left)
        if last:
            to_output(path)
    if table.has_numbers:
        return DONE
    say(f"{table.name}: no number of ours stands in this table; the lines above say why")
    return FAILED_ITEMS


def _all(runs: Runs, out: Path) -> int:
    """Write every table of every paper and one page of all; returns the exit code."""
    from faithscope.experiments.analysis.published import page, sheet
    from faithscope.experiments.analysis.published.runs import papers
    from faithscope.experiments.engine.outputs import REPRODUCED

    every = list(papers().values())
    tables = [
        table for paper in every for table in _beside(paper, (t.name for t in paper.tables), runs)
    ]
    for table in tables:
        sheet.write_files(table, out / REPRODUCED)
    for paper in every:
        of_paper = [table for table in tables if table.paper is paper]
        to_output(f"{paper.title}: {'; '.join(sheet.score(of_paper).lines)}")
    left = _left(tables, runs)
    for line in left:
        say(f"passed over: {line}")
    to_output(page.write_page(tables, out / REPRODUCED / "report.html", runs.folders, left))
    return DONE if any(table.has_numbers for table in tables) else FAILED_ITEMS


def _list(chosen: Sequence[Paper], runs: Runs, whole: bool) -> int:
    from faithscope.experiments.analysis.published.listing import counts, in_short, listed

    tables = [
        table for paper in chosen for table in _beside(paper, (t.name for t in paper.tables), runs)
    ]
    for line in _left(tables, runs):
        say(f"passed over: {line}")
    if whole:
        to_output("\n".join(listed(chosen, tables)))
    else:
        to_output(in_columns(in_short(tables)) + "\n")
        for line in counts(chosen, tables):
            to_output(wrapped(line, file=sys.stdout))
        say("--long says hours, dollars, and what each config needs and how to get it")
    return DONE
