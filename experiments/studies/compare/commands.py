"""`faithscope compare` and `view`: they make a comparison, and explore it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import say_tally, to_output

compare = typer.Typer(rich_markup_mode=None)
view = typer.Typer(rich_markup_mode=None)


@compare.command("compare")
def _compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders of any study.")],
    into: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="The folder that the comparison is written to; one that holds another is refused.",
        ),
    ] = "runs/compare",
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Labels of traces: CSV or JSONL with the column item (dataset, task and model "
            "where they tell items apart), every other column a label of 1, 0 or nothing.",
        ),
    ] = None,
    same: Annotated[
        str,
        typer.Option(
            metavar="ids|text|question",
            help="What has to be the same of two traces for their scores to stand in one row.",
        ),
    ] = "text",
) -> int:
    """Hold the measures of runs against each other, trace by trace.

    Prints the folder of the comparison. `faithscope run compare` makes the runs, too.
    """
    from faithscope.experiments.engine.tallies.tally import tally_of_run
    from faithscope.experiments.studies.compare.api import compare as compare_runs

    folder = compare_runs(runs, into, labels=labels, same=same).path
    code = say_tally(tally_of_run(folder))
    to_output(folder)
    return code


@view.command("view")
def _view(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a comparison.")],
) -> int:
    """Explore a comparison trace by trace.

    The page, explore.html of the folder, is served to this machine until Ctrl-C, with the records
    of every trace, also where they would make the file too large.
    """
    from faithscope.experiments.analysis.explorer import server
    from faithscope.experiments.studies.compare.explore import opened

    server.view(opened(run))
    return 0


COMMANDS = {"run": compare, "views": view}
