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
from faithscope.experiments.config.study import STUDIES, register_installed
from faithscope.experiments.console import DONE, INTERRUPTED, complain
from faithscope.experiments.files import MORE_OPEN_FILES
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import extensions, why_broken

_NO_MEMORY = re.compile("map segment|cannot allocate memory", re.I)
_EXTRA = re.compile(r"unexpected extra argument\S* \((.*)\)")
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
        return complain(_usage(error))
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


def _usage(error: typer.TyperException) -> str:
    """One line for a usage error of typer, with what was probably meant or where to look."""
    context = getattr(error, "ctx", None)
    commands = sorted(getattr(context.command, "commands", {})) if context else []
    where = context.command_path if context else "faithscope"
    message = " ".join(error.format_message().split()).rstrip(".")
    option = getattr(error, "option_name", None)
    if option and message.startswith("No such option"):
        names = [n for p in context.command.params for n in p.opts] if context else []
        known = [*names, "--help"]
        if "--set" in names and "." in (key := option.lstrip("-").replace("-", "_")):
            return f"{where}: {option!r} is no option; keys of the config: --set {key}=VALUE"
        guess = did_you_mean(option, known) or f"; known: {', '.join(known)}"
        return f"{where}: unknown option {option!r}{guess}"
    extra = _EXTRA.search(message)
    if extra and context and "--set" in [n for p in context.command.params for n in p.opts]:
        sets = " ".join(f"--set {word}" for word in extra[1].split() if "=" in word)
        if sets:
            return f"{where}: {message[:1].lower()}{message[1:]}; keys of the config: {sets}"
    if commands and message.startswith("No such command"):
        # click may add a guess of its own after the name of the command
        named = re.match(r"""No such command (['"])(.*?)\1""", message)
        word = named[2] if named else message.removeprefix("No such command ").strip("'\"")
        if problem := why_broken(word, "commands"):
            return problem
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
