"""Exit codes and output that all commands of `faithscope` share."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Annotated, Protocol, TextIO

import typer

from faithscope.interp.plain import visible, without_passwords

DONE, BAD_INPUT, FAILED_ITEMS, INTERRUPTED = 0, 2, 3, 130
WIDTH = 80
"""Characters of a line where there is no terminal."""
RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, e.g. runs/quickstart.")
]


def wrapped(
    text: str, indent: str = "", file: TextIO | None = None, hanging: str | None = None
) -> str:
    """A text in lines that fit the terminal, broken between words; whole where `file` is no
    terminal.

    Args:
        indent: what stands before each line.
        file: where it is printed; None breaks it at `WIDTH` where there is no terminal.
        hanging: what stands before the further lines of a line that is broken; None is `indent`,
            and leaves lines whole that begin with a space.
    """
    if file is not None and not file.isatty():
        return "\n".join(indent + line for line in text.split("\n"))
    width = shutil.get_terminal_size((WIDTH, 0)).columns
    by_word = textwrap.TextWrapper(
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(
        by_word.fill(line)
        if len(indent) + len(line) > width and (hanging or not line.startswith(" "))
        else indent + line
        for line in text.split("\n")
    )


def in_columns(rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Rows of texts as lines for standard output, with aligned columns; the last breaks between
    words, and goes on below itself."""
    lines = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    hanging = indent + " " * sum(w + 2 for w in widths)
    return "\n".join(
        wrapped(
            "".join(f"{c:<{w}}  " for c, w in zip(row, widths, strict=False)) + row[-1],
            indent,
            sys.stdout,
            hanging,
        ).rstrip()
        for row in lines
    )


def to_output(line: object) -> None:
    """Print a line on standard output, with control characters made visible, since names come from
    files and models and may hold anything."""
    print(visible(str(line)))


def say(line: str) -> None:
    """Print a note on standard error, with passwords in addresses removed."""
    print(wrapped(visible(without_passwords(line)), file=sys.stderr), file=sys.stderr)


def in_notebook() -> bool:
    """Whether this runs in a notebook, whose cells show HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def say_warnings(warnings: Sequence[str]) -> None:
    """Say warnings on standard error, a line each; a notebook shows them as one list."""
    if not warnings or not in_notebook():
        for warning in warnings:
            say(f"warning: {warning}")
        return
    from html import escape

    from IPython.display import HTML, display

    items = "".join(f"<li>{escape(visible(without_passwords(w)))}</li>" for w in warnings)
    n = "1 warning" if len(warnings) == 1 else f"{len(warnings)} warnings"
    display(HTML(f"<details open><summary>{n}</summary><ul>{items}</ul></details>"))


def say_failed(failures: Sequence[str]) -> int:
    """Say what failed, a line each; returns the exit code."""
    for failure in failures:
        say(f"failed: {failure}")
    return FAILED_ITEMS if failures else DONE


class Tally(Protocol):
    """Interface of `engine.tallies.tally.Tally`: counts of the measured items of a run."""

    @property
    def falls_short(self) -> bool: ...
    def lines(self) -> list[str]: ...


def say_tally(tally: Tally) -> int:
    """Say how many items are measured and why others are not; returns the exit code."""
    for line in tally.lines():
        say(line)
    return FAILED_ITEMS if tally.falls_short else DONE


def complain(message: str) -> int:
    """Say what is wrong with the input, line by line; returns the exit code."""
    for line in message.split("\n"):
        say(f"error: {line}")
    return BAD_INPUT
