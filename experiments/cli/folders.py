"""Commands `faithscope status`, `repair`, `verify` and `export`, which work on a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import DONE, RunFolder, say, to_output
from faithscope.interp.errors import UserError

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def status(run: RunFolder) -> int:
    """Show how far a run is, how fast it goes, and what failed.

    It can be called while the run is at work, and on another machine. If the run was submitted to
    Slurm, the state of its jobs is shown, too.
    """
    from faithscope.experiments.engine.cluster import FOLDER
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.status import status_lines

    folder = existing_run(run)
    lines = status_lines(folder)
    if (folder / FOLDER).is_dir():
        from faithscope.experiments.engine.cluster.jobs import submissions
        from faithscope.experiments.engine.cluster.state import cluster_state

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


@commands.command()
def verify(
    run: RunFolder,
    items: Annotated[
        int, typer.Option("--items", metavar="N", min=1, help="Items of each model, at random.")
    ] = 3,
) -> int:
    """Measure a few items again, one branch at a time and in float32.

    It shows how far the stored numbers are from those, writes verified.csv into the run folder, and
    changes nothing else. It is for runs over traces (faithscope run slrc and the like). The last
    line printed is the path of the file.
    """
    from faithscope.experiments.engine.traces.verification import summary
    from faithscope.experiments.engine.traces.verification import verify as verify_run

    path, rows = verify_run(run, items, say)
    to_output("\n".join(summary(rows)))
    to_output(path)
    return DONE


TABLES = {"csv": "csv", "md": "md", "markdown": "md", "tex": "tex", "latex": "tex"}
"""Format that tables are in without an export -> the ending of their files."""


def _tables(run: Path, ending: str) -> Path:
    """The folder of a run's tables, which are named on standard error.

    Raises:
        UserError: the run has none yet.
    """
    files = sorted((run / "tables").glob(f"*.{ending}"))
    if not files:
        raise UserError(f"{run}: has no tables yet; faithscope report {run} writes them")
    names = ", ".join(path.name for path in files)
    say(f"every run has its tables in this folder; as .{ending} there are {names}")
    return run / "tables"


@commands.command()
def export(
    run: RunFolder,
    format: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="inspect|dataset|bonafide|csv",
            help="Logs (.eval) that `inspect view` and Inspect Scout open, a dataset of the "
            "Hugging Face hub, rows of BonaFide's metric results, or the tables as they lie in "
            "RUN/tables (CSV, Markdown, LaTeX).",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write into; by default RUN/exports/FORMAT."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="ORG/NAME",
            help="With --as dataset: upload it to the hub, as a private dataset if it is new.",
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="With --push: make a new dataset public.")
    ] = False,
) -> int:
    """Write a run for Inspect, for the hub, or as rows of BonaFide.

    Each chain has all its scores and labels. What is written can be read again as given chains
    (traces.path). The last line printed is the folder, or the address of the pushed dataset.
    """
    from faithscope.experiments.engine.folder import existing_run

    if format is None:
        raise UserError(
            f"faithscope export: say as what: --as csv (the tables as they lie in {run}/tables), "
            "--as inspect, --as dataset or --as bonafide"
        )
    if format in TABLES and push is None and out is None:
        to_output(_tables(existing_run(run), TABLES[format]))
        return DONE
    from faithscope.experiments.analysis.exports import export as write
    from faithscope.experiments.analysis.run import load_run

    if (push is not None and format != "dataset") or (public and push is None):
        raise UserError("faithscope export: --push goes with --as dataset, --public with --push")
    if push is None:
        to_output(write(load_run(run), format, out))
        return DONE
    from faithscope.experiments.analysis.exports.hub_dataset import push as upload

    to_output(upload(load_run(run), push, private=not public, folder=out))
    return DONE
