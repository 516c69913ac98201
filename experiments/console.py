"""Exit codes and output that all commands of `faithscope` share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Protocol

import typer

from faithscope.interp.plain import visible, without_passwords

DONE, BAD_INPUT, FAILED_ITEMS, INTERRUPTED = 0, 2, 3, 130
RunFolder = Annotated[
    str, typer.Argument(metavar="RUN", help="A run folder, e.g. runs/quickstart.")
]


def to_output(line: object) -> None:
    """Print a line on standard output, with control characters made visible, since names come from
    files and models and may hold anything."""
    print(visible(str(line)))


def say(line: str) -> None:
    """Print a note on standard error, with passwords in addresses removed."""
    print(visible(without_passwords(line)), file=sys.stderr)


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
