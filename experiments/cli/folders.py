"""`faithscope status` and `repair`: they tell of a run folder, and mend it."""

from __future__ import annotations

import typer

from faithscope.experiments.console import DONE, RunFolder, to_output

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def status(run: RunFolder) -> int:
    """How far a run is, how fast it goes, and what failed.

    Also while it runs, also on another machine.
    """
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.status import status as status_of

    to_output("\n".join(status_of(existing_run(run)).lines()))
    return DONE


@commands.command()
def repair(run: RunFolder) -> int:
    """Drop what is damaged in a run folder, line by line.

    What is dropped lies beside its file, with the ending .dropped; the next run does it again.
    """
    from faithscope.experiments.engine.folder import run_folder
    from faithscope.experiments.engine.repair import repair as repair_run

    said = repair_run(run_folder(run))
    to_output("\n".join(said) or "nothing is damaged")
    return DONE
