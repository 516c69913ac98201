"""Commands `faithscope status` and `repair`, which inspect and repair a run folder."""

from __future__ import annotations

import typer

from faithscope.experiments.console import DONE, RunFolder, to_output

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def status(run: RunFolder) -> int:
    """Show how far a run is, how fast it goes, and what failed.

    It can be called while the run is at work, and on another machine. If the run was submitted to
    Slurm, the state of its jobs is shown, too.
    """
    from faithscope.experiments.engine.cluster.jobs import submissions
    from faithscope.experiments.engine.cluster.state import cluster_state
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.status import status as status_of

    folder = existing_run(run)
    lines = status_of(folder).lines()
    if submissions(folder):
        lines += ["", *cluster_state(folder).lines()]
    to_output("\n".join(lines))
    return DONE


@commands.command()
def repair(run: RunFolder) -> int:
    """Drop damaged lines and files from a run folder.

    Dropped lines are kept beside their file, with the ending .dropped; the next run redoes their
    items.
    """
    from faithscope.experiments.engine.folder import run_folder
    from faithscope.experiments.engine.repair import repair as repair_run

    said = repair_run(run_folder(run))
    to_output("\n".join(said) or "nothing is damaged")
    return DONE
