"""The `faithscope` command.

Standard output carries only what was asked for; logs and progress go to standard error.
Exit codes: 0 done; 2 bad input or config; 3 finished with failed items, or nothing was measured
(of a dry run: nothing can be); 130 interrupted or stopped by a spent budget; the same command goes
on.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faithscope.experiments.cli_views import RunFolder, to_output, views
from faithscope.experiments.files import MORE_OPEN_FILES
from faithscope.experiments.garbage import nothing_to_collect
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible, without_passwords

if TYPE_CHECKING:
    from faithscope.experiments.engine.tallies.tally import Tally

DONE, BAD_INPUT, FAILED_ITEMS, INTERRUPTED = 0, 2, 3, 130
_NO_MEMORY = re.compile("map segment|cannot allocate memory", re.I)
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}
"""What a disk says when it is full or may not be written: nothing that is wrong with us."""
_TOO_MANY_FILES = f"this process may open no more files; {MORE_OPEN_FILES} and go on"

app = typer.Typer(
    name="faithscope",
    help="Measure whether a language model uses the chain of thought it writes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(views)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs one command and exits with its code.

    A scheduler's SIGTERM stops it as cleanly as Ctrl-C does.
    """
    # Before torch is imported: idle OpenMP threads that spin halve the speed of tiny models,
    # and cost up to four times on a machine with other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _open_streams()
    sys.exit(execute(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """Have every line printed, whatever the terminal can show and the shell has left open."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # a terminal without UTF-8 shows \xb7 for a letter that it has not
            stream.reconfigure(errors="backslashreplace")


def execute(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code. Expected errors become one line each."""
    try:
        # alone, it says what there is, as `--help` does
        code = app(list(arguments) or ["--help"], prog_name="faithscope", standalone_mode=False)
    except UserError as error:
        return _complain(str(error))
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except IsADirectoryError as error:
        return _complain(f"{error.filename}: is a folder where a file should be; move it away")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return _complain(_TOO_MANY_FILES)
        if error.errno not in _DISK:
            raise
        return _complain(f"{error.filename or 'a file'}: {error.strerror}; make room or allow it")
    except typer.TyperException as error:
        return _complain(_usage(error))
    except (MemoryError, ImportError) as error:
        # libraries that cannot be mapped are as good as absent to Python
        if os.strerror(errno.EMFILE) in str(error):
            return _complain(_TOO_MANY_FILES)
        if isinstance(error, ImportError) and not _NO_MEMORY.search(str(error)):
            raise
        return _complain("the machine gives no more memory; free some, or ask for more, and go on")
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _complain(message: str) -> int:
    for line in message.split("\n"):
        _say(f"error: {line}")
    return BAD_INPUT


def _say(line: str) -> None:
    print(visible(without_passwords(line)), file=sys.stderr)


def _usage(error: typer.TyperException) -> str:
    """typer's several lines as one, with what was probably meant and where to look."""
    context = getattr(error, "ctx", None)
    commands = sorted(getattr(context.command, "commands", {})) if context else []
    where = context.command_path if context else "faithscope"
    message = " ".join(error.format_message().split()).rstrip(".")
    option = getattr(error, "option_name", None)
    if option and message.startswith("No such option"):
        names = [n for p in context.command.params for n in p.opts] if context else []
        known = [*names, "--help"]
        guess = did_you_mean(option, known) or f"; known: {', '.join(known)}"
        return f"{where}: unknown option {option!r}{guess}"
    if commands and message.startswith("No such command"):
        # click may have a guess of its own behind the word, after a full stop
        named = re.match(r"""No such command (['"])(.*?)\1""", message)
        word = named[2] if named else message.removeprefix("No such command ").strip("'\"")
        guess = did_you_mean(word, commands) or f"; known: {', '.join(commands)}"
        return f"{where}: unknown command {word!r}{guess}"
    return f"{where}: {message[:1].lower()}{message[1:]}; see {where} --help"


def _version(asked: bool) -> None:
    if asked:
        from faithscope.experiments.engine.environment import version

        print(f"faithscope {version('faithscope')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


Config = Annotated[
    Path,
    typer.Argument(
        help="A YAML file, or the name of a shipped config, e.g. quickstart (faithscope list "
        "configs)."
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
        help="As the authors' released code does it where that differs (RFEval: outputs taken "
        "apart, chains scored); as --set paper_compat=true.",
    ),
]


@app.command()
def run(
    config: Config,
    overrides: Overrides = None,
    paper_compat: PaperCompat = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; read no weights.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Do the K-th of N parts (K from 1), e.g. as one task of "
            "a Slurm array; join them afterwards with `faithscope merge`.",
        ),
    ] = None,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed",
            help="Finish items that were begun on another kind of device, in another dtype or "
            "with other versions of torch or transformers, too; status and page say so.",
        ),
    ] = False,
) -> int:
    """Run a config, or go on with it. Prints the run folder as its last line."""
    with_all = _with(overrides, paper_compat)
    return _carry_out(config, with_all, shard, dry_run=dry_run, mixed=mixed)


@app.command()
def build(config: Config, overrides: Overrides = None, paper_compat: PaperCompat = False) -> int:
    """Make what a run shared out with --shard needs beforehand.

    The items and prompts of a benchmark, and what a model writes for them; nothing is asked of
    them. Prints the run folder as its last line; the parts, started with the same config, go on
    there.
    """
    return _carry_out(config, _with(overrides, paper_compat), build_only=True)


def _with(overrides: list[str] | None, paper_compat: bool) -> list[str]:
    return [*(overrides or []), *(["paper_compat=true"] if paper_compat else [])]


def _carry_out(
    config: Path,
    overrides: list[str],
    shard: str | None = None,
    *,
    dry_run: bool = False,
    build_only: bool = False,
    mixed: bool = False,
) -> int:
    with nothing_to_collect():
        from faithscope.experiments.config.load import load_config
        from faithscope.experiments.engine.planfile import parse_shard
        from faithscope.experiments.engine.run import plan, work_through

        loaded = load_config(config, overrides)
        part = parse_shard(shard)
        for line in loaded.notes:
            _say(f"note: {line}")
        if dry_run:
            from faithscope.experiments.engine.models.at_hand import not_at_hand

            for line in not_at_hand(loaded):
                _say(f"note: {line}")
        whole = plan(loaded)
        forecast = whole.forecast()
        if dry_run:
            to_output(whole.summary())
            return _told(forecast)
        if forecast.says_something:
            for line in forecast.lines():
                _say(f"note: {line}")
    outcome = work_through(whole, part, build_only, mixed)
    for failure in outcome.failures:
        _say(f"failed: {failure}")
    if outcome.interrupted:
        _say(f"interrupted: {outcome.done}; the same command goes on from here")
        return INTERRUPTED
    if outcome.problems:
        return _complain("\n".join(outcome.problems))
    code = DONE if outcome.tally is None else _told(outcome.tally)
    to_output(outcome.run_dir)
    if outcome.stopped:
        _say(f"stopped: {outcome.stopped}")
        return INTERRUPTED
    return FAILED_ITEMS if outcome.failures else code


def _told(tally: Tally) -> int:
    """Say how many items are measured and why the others are not; gives the exit code."""
    for line in tally.lines():
        _say(line)
    return FAILED_ITEMS if tally.nothing_measured else DONE


@app.command()
def report(run: RunFolder) -> int:
    """Write tables, figures and page again from the records."""
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.run import write_outputs
    from faithscope.experiments.engine.tallies.tally import tally_of_run

    folder = existing_run(run)
    path = write_outputs(folder)
    code = _told(tally_of_run(folder))
    to_output(path)
    return code


@app.command()
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
        _say(f"failed: {failure}")
    code = _told(tally_of_run(run_dir))
    to_output(run_dir)
    return FAILED_ITEMS if failures else code


@app.command()
def compare(
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
    code = _told(tally_of_run(folder))
    to_output(folder)
    return code


@app.command()
def status(run: RunFolder) -> int:
    """How far a run is, how fast it goes, and what failed.

    Also while it runs, also on another machine.
    """
    from faithscope.experiments.engine.folder import existing_run
    from faithscope.experiments.engine.status import status as status_of

    to_output("\n".join(status_of(existing_run(run)).lines()))
    return DONE


@app.command()
def repair(run: RunFolder) -> int:
    """Drop what is damaged in a run folder, line by line.

    What is dropped lies beside its file, with the ending .dropped; the next run does it again.
    """
    from faithscope.experiments.engine.folder import run_folder
    from faithscope.experiments.engine.repair import repair as repair_run

    said = repair_run(run_folder(run))
    to_output("\n".join(said) or "nothing is damaged")
    return DONE


if __name__ == "__main__":
    main()
