"""`faithscope report` and `merge`: they write the outputs of a run from its records."""

from __future__ import annotations

from typing import Annotated

import typer

from faithscope.experiments.console import FAILED_ITEMS, RunFolder, say, say_tally, to_output

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def report(run: RunFolder) -> int:
    """Write tables, figures and page again from the records."""
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.run import write_outputs
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    folder = existing_run(run)
    path = write_outputs(folder)
    code = say_tally(tally_of_run(folder))
    to_output(path)
    return code


@commands.command()
def merge(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…", help="The folder that all shards share, or the folder of each."
        ),
    ],
    into: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Join several folders in this one."),
    ] = None,
) -> int:
    """Join the shards of a run; see that none is missing.

    Then writes tables, figures and page, and prints the folder.
    """
    from faithscope.experiments.engine.merge import merge as merge_runs
    from faithscope.experiments.engine.run import write_outputs
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    run_dir, failures = merge_runs(runs, into)
    write_outputs(run_dir)
    for failure in failures:
        say(f"failed: {failure}")
    code = say_tally(tally_of_run(run_dir))
    to_output(run_dir)
    return FAILED_ITEMS if failures else code
