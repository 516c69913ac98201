"""Commands `faithscope run`, `build`, `report` and `merge`, which make a run and its outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.cli.usage import not_a_config
from faithscope.experiments.console import (
    DONE,
    FAILED_ITEMS,
    INTERRUPTED,
    RunFolder,
    complain,
    say,
    say_failed,
    say_tally,
    to_output,
)
from faithscope.experiments.garbage import gc_paused
from faithscope.interp.errors import UserError

commands = typer.Typer(rich_markup_mode=None)


def _config(given: Path) -> Path:
    """A config as it was given, once checked that it is no data file, run or measure.

    Raises:
        UserError: it is one; with the command that is meant.
    """
    if instead := not_a_config(str(given)):
        raise UserError(f"{given}: {instead}")
    return given


Config = Annotated[
    Path,
    typer.Argument(
        callback=_config,
        help="A YAML file, or the name of a shipped config, e.g. quickstart (faithscope list "
        "configs).",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the config, e.g. --set data.limit=20; may be given again.",
    ),
]
PaperCompat = Annotated[
    bool,
    typer.Option(
        "--paper-compat",
        help="Follow the authors' released code where it differs from the paper (RFEval: parsing "
        "of outputs, scoring of chains); same as --set paper_compat=true.",
    ),
]


@commands.command()
def run(
    config: Config,
    overrides: Overrides = None,
    paper_compat: PaperCompat = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done; read no weights.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Do the K-th of N shards (K from 1), e.g. as one task of "
            "a Slurm array; join them afterwards with `faithscope merge`.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Do only the items of this model, of several that the config has."
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="weights|apis",
            help="Ask only the models whose weights are here, or only those behind APIs, e.g. in a "
            "job with a GPU and one without.",
        ),
    ] = None,
    workers: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Share the work between N processes with GPUs of their own; auto is as many as "
            "the GPUs allow.",
        ),
    ] = "1",
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Also finish items that were begun on another kind of device, in another dtype or "
            "with other versions of torch or transformers; status and page say so.",
        ),
    ] = False,
) -> int:
    """Run a config, or resume its run. The last line printed is the run folder."""
    values = with_overrides(overrides, paper_compat)
    part = shard, model, only
    if workers != "1" and not dry_run:
        return _in_processes(config, values, part, workers, mixed)
    return carry_out(config, values, part, dry_run=dry_run, mixed=mixed)


def _in_processes(
    config: Path,
    overrides: list[str],
    part: tuple[str | None, str | None, str | None],
    workers: str,
    mixed: bool,
) -> int:
    """Carry out a config in several processes; returns the gravest of their exit codes."""
    with gc_paused():
        from faithscope.experiments.config.load import asked_of, load_config
        from faithscope.experiments.config.study import study_of
        from faithscope.experiments.engine.planfile import is_whole, parse_shard, parse_workers
        from faithscope.experiments.engine.processes import Processes, gpu_groups, shares
        from faithscope.experiments.engine.run import check_model, plan, work_through, write_outputs
        from faithscope.experiments.engine.tallies.tally import tally_of_run

        n, shard = parse_workers(workers), parse_shard(*part)
        loaded = load_config(config, overrides)
        whole = plan(loaded, asked_of(config, overrides))
        check_model(whole, shard.model)
        if whole.prepares and shard.is_all:
            built = work_through(whole, build_only=True, mixed=mixed)
            if built.interrupted or built.stopped or built.problems:
                say("\n".join(built.problems) or built.stopped or "interrupted")
                return INTERRUPTED
            whole = plan(loaded, whole.input_report.asked)
        gpus = gpu_groups(n, whole.gpus(shard.model))
    command = ["run", str(config), *(word for o in overrides for word in ("--set", o))]
    parts = shares(shard, len(gpus))
    processes = Processes(loaded.run_dir, say)
    # a run that reads an earlier one whole can begin with that once all processes have done theirs
    for _ in range(2 if study_of(loaded.model_dump(mode="json")).reads_runs else 1):
        code = processes.run([*command, *(["--mixed"] if mixed else [])], parts, gpus)
    if code in (DONE, FAILED_ITEMS) and shard.is_all and is_whole(loaded.run_dir):
        written = write_outputs(loaded.run_dir)
        code = max(code, say_tally(tally_of_run(loaded.run_dir)), say_failed(written.failed))
    to_output(loaded.run_dir)
    return code


commands.command("train", help="Train adapters: `run` for configs of train/.")(run)


@commands.command()
def build(
    config: Config,
    overrides: Overrides = None,
    paper_compat: PaperCompat = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Do the K-th of N shards of the stage at hand; once all have ended, `build` "
            "again goes on with the next stage, in shards or alone.",
        ),
    ] = None,
) -> int:
    """Prepare inputs, before the work is sharded.

    It makes the items and prompts of a benchmark, including what a model writes for them, and
    measures nothing. The last line printed is the run folder, in which shards with the same config
    then work.
    """
    values = with_overrides(overrides, paper_compat)
    return carry_out(config, values, (shard, None, None), build_only=True)


def with_overrides(overrides: list[str] | None, paper_compat: bool) -> list[str]:
    """The overrides of a config, those of other options among them."""
    return [*(overrides or []), *(["paper_compat=true"] if paper_compat else [])]


def carry_out(
    config: str | Path,
    overrides: list[str],
    part: tuple[str | None, str | None, str | None] = (None, None, None),
    *,
    dry_run: bool = False,
    build_only: bool = False,
    mixed: bool = False,
    presets: Collection[str] = (),
    then: Callable[[Path], None] = lambda run_dir: None,
) -> int:
    """Carry out a config as `faithscope run` does; returns the exit code.

    Args:
        part: values of `--shard`, `--model` and `--only`.
        presets: entries of `overrides` that are not the user's.
        then: called with the run folder when its outputs are written, before the folder is printed.
    """
    with gc_paused():
        from faithscope.experiments.config.load import asked_of, load_config
        from faithscope.experiments.config.shipped import edited_copy
        from faithscope.experiments.engine.planfile import parse_shard
        from faithscope.experiments.engine.run import check_model, plan, work_through

        loaded = load_config(config, overrides)
        shard = parse_shard(*part)
        if copy := edited_copy(config):
            say(f"note: this is the shipped config {config}; your copy is run by its path, {copy}")
        for line in loaded.notes:
            say(f"note: {line}")
        if dry_run:
            from faithscope.experiments.engine.models.at_hand import not_at_hand

            for line in not_at_hand(loaded):
                say(f"note: {line}")
        whole = plan(loaded, asked_of(config, overrides, presets))
        check_model(whole, shard.model)
        forecast = whole.forecast()
        if dry_run:
            to_output(whole.summary())
            return say_tally(forecast)
        if forecast.says_something:
            for line in forecast.lines():
                say(f"note: {line}")
    outcome = work_through(whole, shard, build_only, mixed)
    failed = say_failed(outcome.failures)
    if outcome.interrupted:
        say(f"interrupted: {outcome.done}; the same command goes on from here")
        return INTERRUPTED
    if outcome.problems:
        return complain("\n".join(outcome.problems))
    if build_only and not shard.is_all:
        left = plan(loaded).prepares
        say(
            f"left to prepare: {left}; `build` again once every shard has ended"
            if left
            else "built"
        )
    code = DONE if outcome.tally is None else say_tally(outcome.tally)
    then(outcome.run_dir)
    to_output(outcome.run_dir)
    if outcome.stopped:
        say(f"stopped: {outcome.stopped}")
        return INTERRUPTED
    return max(failed, code)


@commands.command()
def report(run: RunFolder) -> int:
    """Write tables, figures and page again from the stored records."""
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.run import write_outputs
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    folder = existing_run(run)
    written = write_outputs(folder)
    code = max(say_tally(tally_of_run(folder)), say_failed(written.failed))
    to_output(written.page)
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
    """Join the shards of a run and check that none is missing.

    It then writes tables, figures and page, and prints the run folder.
    """
    from faithscope.experiments.engine.merge import merge as merge_runs
    from faithscope.experiments.engine.merge import own_runs
    from faithscope.experiments.engine.run import write_outputs
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    run_dir, failures = merge_runs(runs, into)
    for folder in (*own_runs(run_dir).values(), run_dir):
        failures += write_outputs(folder).failed
    code = max(say_failed(failures), say_tally(tally_of_run(run_dir)))
    to_output(run_dir)
    return code
