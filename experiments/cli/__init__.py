"""The `faithscope` command.

Standard output carries only what was asked for; logs and progress go to standard error. The exit
codes are:

- 0: done;
- 2: bad input or config;
- 3: finished with failed items, or nothing was measured (for a dry run: nothing can be measured);
- 130: interrupted, or stopped by a spent budget; the same command resumes the run.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Annotated

import typer

from faithscope.experiments.cli import cluster, docs, folders, machine, new, reproduce, run, views
from faithscope.experiments.cli.help import Grouped
from faithscope.experiments.cli.usage import usage
from faithscope.experiments.config.study import STUDIES, register_installed
from faithscope.experiments.console import DONE, INTERRUPTED, complain
from faithscope.experiments.files import MORE_OPEN_FILES
from faithscope.interp.errors import UserError
from faithscope.interp.extensions import extensions

_NO_MEMORY = re.compile("map segment|cannot allocate memory", re.I)
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}
"""Errors of a disk that is full or may not be written; they are reported without a traceback."""
_TOO_MANY_FILES = f"this process may open no more files; {MORE_OPEN_FILES} and go on"

app = typer.Typer(
    name="faithscope",
    cls=Grouped,
    help="Measure whether a language model uses the chain of thought it writes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

GROUPS = {
    "run": run.commands,
    "cluster": cluster.commands,
    "reproduce": reproduce.commands,
    "folders": folders.commands,
    "views": views.commands,
    "machine": machine.commands,
    "new": new.commands,
    "docs": docs.commands,
}
"""Groups of commands that belong to no study, in the order of `faithscope --help`."""


def _in_order() -> Iterator[typer.Typer]:
    """Yields all groups of commands; those of a study follow the group that the study names."""
    added: dict[str, list[typer.Typer]] = {name: [] for name in GROUPS}
    for study in STUDIES.values():
        for group, commands in study.commands().items():
            added[group].append(commands)
    for name, commands in GROUPS.items():
        yield from (commands, *added[name])


@cache
def _add_commands() -> None:
    """Add all commands to `app`: those of groups and studies, then those of installed packages."""
    register_installed()
    every = [*_in_order()]
    commands = (command for group in every for command in group.registered_commands)
    known = {c.name or getattr(c.callback, "__name__", "") for c in commands}
    added = typer.Typer(rich_markup_mode=None)
    for name, command in extensions("commands", Callable, taken=known).items():
        added.command(name)(command)
    for group in (*every, added):
        app.add_typer(group)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs one command and exits with its code.

    A scheduler's SIGTERM or SIGUSR1 stops it as cleanly as Ctrl-C does.
    """
    # Before torch is imported: idle OpenMP threads that spin halve the speed of tiny models,
    # and cost up to four times on a machine with other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for name in ("SIGTERM", "SIGUSR1"):
        if number := getattr(signal, name, None):  # Windows has no SIGUSR1
            signal.signal(number, signal.default_int_handler)
    _open_streams()
    sys.exit(execute(sys.argv[1:] if arguments is None else arguments))


def _open_streams() -> None:
    """Makes standard output and error usable where the terminal lacks UTF-8 or the shell closed
    them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            # a terminal without UTF-8 shows an escape such as \xb7 for a letter that it lacks
            stream.reconfigure(errors="backslashreplace")


def execute(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Expected errors are reported in one line each."""
    try:
        _add_commands()
        # without arguments it shows the help
        code = app(list(arguments) or ["--help"], prog_name="faithscope", standalone_mode=False)
    except UserError as error:
        return complain(str(error))
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except IsADirectoryError as error:
        return complain(f"{error.filename}: is a folder where a file should be; move it away")
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return complain(_TOO_MANY_FILES)
        if error.errno not in _DISK:
            raise
        return complain(f"{error.filename or 'a file'}: {error.strerror}; make room or allow it")
    except typer.TyperException as error:
        return complain(usage(error, arguments))
    except (MemoryError, ImportError) as error:
        # Python reports a library that cannot be mapped into memory as missing
        if os.strerror(errno.EMFILE) in str(error):
            return complain(_TOO_MANY_FILES)
        if isinstance(error, ImportError) and not _NO_MEMORY.search(str(error)):
            raise
        return complain("the machine gives no more memory; free some, or ask for more, and go on")
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


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
