"""Commands `faithscope prefetch`, `submit`, `resubmit` and `cancel`, for runs as jobs of Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faithscope.experiments.cli.run import Config, Overrides, PaperCompat, with_overrides
from faithscope.experiments.console import (
    DONE,
    FAILED_ITEMS,
    INTERRUPTED,
    RunFolder,
    say,
    say_tally,
    to_output,
)
from faithscope.experiments.garbage import gc_paused
from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from faithscope.experiments.engine.cluster.jobs import Submitter

commands = typer.Typer(rich_markup_mode=None)

ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile",
        metavar="FILE",
        help="Account, partition, limits, modules and caches of the cluster; without it those of "
        "the example hold.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="Show progress until all jobs have ended.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Write the files; submit nothing.")]


@commands.command()
def prefetch(config: Config, overrides: Overrides = None, paper_compat: PaperCompat = False) -> int:
    """Bring models and data of a config into the caches.

    It is called on a login node, so that jobs need no network. The last line printed is for the
    profile of the cluster.
    """
    with gc_paused():
        from faithscope.experiments.config.load import load_config
        from faithscope.experiments.engine.models import prefetch as fetching
        from faithscope.experiments.engine.run import plan

        values = with_overrides(overrides, paper_compat)
        loaded = load_config(config, values)
        for line in fetching.bring_models(loaded):
            say(line)
        # planning reads the data, for which models must be at hand
        whole = plan(loaded)
        for of_run in (c for c in whole.configs if c is not loaded):
            for line in fetching.bring_models(of_run):
                say(line)
        whole.forecast()
        say(f"data: items planned: {len(whole.items)}")
    fetching.check_offline([str(config), *(word for v in values for word in ("--set", v))])
    say("a dry run without the hub plans the same run")
    to_output(fetching.cache_settings())
    return DONE


def _print_profile(asked: bool) -> None:
    if asked:
        from faithscope.experiments.engine.cluster.profile import EXAMPLE

        print(EXAMPLE.read_text("utf-8"), end="")
        raise typer.Exit


@commands.command()
def submit(
    config: Config,
    shards: Annotated[int, typer.Option(metavar="N", min=1, help="Number of shards of a model.")],
    profile: ProfileFile = None,
    overrides: Overrides = None,
    paper_compat: PaperCompat = False,
    gpus: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="GPUs of a shard; without it as many as the models need."
        ),
    ] = None,
    workers: Annotated[
        str, typer.Option(metavar="N|auto", help="Processes in a shard; auto is one per GPU.")
    ] = "",
    dry_run: Dry = False,
    wait: Wait = False,
    print_profile: Annotated[
        bool,
        typer.Option(
            "--print-profile",
            callback=_print_profile,
            is_eager=True,
            help="Print a commented profile to edit, and exit.",
        ),
    ] = False,
) -> int:
    """Run a config as jobs of a cluster with Slurm.

    An array of shards is followed by a job that merges them and reports. The batch files are
    written into the run folder, below slurm/, and may be edited. The last line printed is the run
    folder.
    """
    with gc_paused():
        from faithscope.experiments.config.load import load_config
        from faithscope.experiments.engine.cluster import handling
        from faithscope.experiments.engine.cluster.profile import EXAMPLE, read_profile
        from faithscope.experiments.engine.planfile import parse_workers
        from faithscope.experiments.engine.run import plan

        settings = read_profile(EXAMPLE if profile is None else profile.expanduser())
        loaded = load_config(config, with_overrides(overrides, paper_compat))
        parse_workers(workers or "1")
        for line in loaded.notes:
            say(f"note: {line}")
        whole = plan(loaded)
        forecast = whole.forecast()
        if forecast.says_something:
            for line in forecast.lines():
                say(f"note: {line}")
        for line in handling.idle(whole, shards):
            say(f"note: {line}")
    submitter = handling.submit(whole, shards, settings, gpus, workers, dry_run)
    return _submitted(submitter, dry_run, wait)


@commands.command()
def resubmit(
    run: RunFolder,
    time: Annotated[
        str | None, typer.Option(metavar="HH:MM:SS", help="Another time limit of shards.")
    ] = None,
    mem: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Other memory of shards, e.g. 128G.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--sbatch",
            metavar="OPTION",
            help="Another option of sbatch, e.g. --sbatch=--partition=long; may be given again.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Also do shards again some of whose items failed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands; submit nothing.")
    ] = False,
    wait: Wait = False,
) -> int:
    """Submit again what lacks work and is in no queue.

    That is, the shards whose jobs failed, and the merge behind them.
    """
    from faithscope.experiments.engine.cluster import handling
    from faithscope.experiments.engine.cluster.profile import check_mem, check_time
    from faithscope.experiments.engine.folder import existing_run

    folder = existing_run(run)
    limits = []
    if time is not None:
        check_time("--time ", time)
        limits.append(f"--time={time}")
    if mem is not None:
        check_mem("--mem ", mem)
        limits.append(f"--mem={mem}")
    for option in options or []:
        if not option.startswith("-"):
            raise UserError(f"--sbatch {option}: expected an option such as --partition=long")
    submitter = handling.resubmit(folder, [*limits, *(options or [])], failed, dry_run)
    if not submitter.submissions:
        say("nothing is missing whose job is not in the queue")
    return _submitted(submitter, dry_run, wait)


def _submitted(submitter: Submitter, dry_run: bool, wait: bool) -> int:
    """Print what was submitted, and wait for it if asked; returns the exit code."""
    if dry_run:
        to_output("\n".join(submitter.commands))
    for submission in () if dry_run else submitter.submissions:
        shards = len(submission.tasks)
        does = f"{shards} shard{'s' * (shards != 1)}" if submission.tasks else submission.job.kind
        of = f" of {submission.job.model}" if submission.job.model else ""
        say(f"job {submission.id}: {does}{of} ({submission.job.file})")
    code = _wait(submitter.run_dir) if wait and not dry_run else DONE
    to_output(submitter.run_dir)
    return code


def _wait(run_dir: Path) -> int:
    from faithscope.experiments.engine.cluster import handling
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    try:
        state = handling.wait(run_dir, say)
    except KeyboardInterrupt:
        say("the jobs go on; `faithscope status` shows them, `faithscope cancel` ends them")
        return INTERRUPTED
    if any(task.state == "failed" for task in state.tasks):
        for line in state.lines():
            say(line)
        return INTERRUPTED
    failed = any(task.note is not None and task.note.code == FAILED_ITEMS for task in state.others)
    return FAILED_ITEMS if failed else say_tally(tally_of_run(run_dir))


@commands.command()
def cancel(run: RunFolder) -> int:
    """Cancel all jobs of a run.

    What is stored stays, and `faithscope resubmit` goes on from there.
    """
    from faithscope.experiments.engine.cluster import handling
    from faithscope.experiments.engine.folder import existing_run

    cancelled = handling.cancel(existing_run(run))
    for job in cancelled:
        to_output(f"cancelled {job}")
    if not cancelled:
        say("no job of this run waits or is at work")
    return DONE
