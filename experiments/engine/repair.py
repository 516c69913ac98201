"""Repair of run folders: moves damaged lines and files out, so that the next run redoes them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.append import cut_torn_line, whole_lines
from faithscope.experiments.engine.folder import read_environment
from faithscope.experiments.engine.index import beside
from faithscope.experiments.engine.models.account import read_call, spend_file
from faithscope.experiments.engine.store import hold
from faithscope.experiments.engine.tallies import input_report
from faithscope.experiments.engine.tallies.input_report import InputReport
from faithscope.experiments.engine.units import read_unit
from faithscope.experiments.files import StoreError, write_atomically

DROPPED = ".dropped"
"""Ending of the file, beside a repaired file, that holds the lines taken out of it."""
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors that show that a line cannot be read."""


def repair(run_dir: Path) -> list[str]:
    """Drop damaged lines and files of a run folder; returns a line of text for each.

    A dropped line goes to `<file>.dropped`, and a damaged file is renamed so; only a torn last line
    is deleted. The next run redoes an item whose line was dropped; a dropped API call is no longer
    counted.

    Raises:
        StoreError: a process is at work in the folder.
    """
    said = []
    for pattern, read, lost in (
        ("records/*.*.jsonl", _check_unit, "its item is redone"),
        (spend_file("*"), lambda line, _: read_call(line), "its call is no longer counted"),
    ):
        for path in sorted(run_dir.glob(pattern)):
            with hold(run_dir, path.stem.partition(".")[2]):
                said += _repaired(path, read, lost)
    for name, check in (
        ("environment.json", read_environment),
        (planfile.FILE, lambda folder: planfile.read(folder, stages={})),
        (input_report.FILE, InputReport.of),
    ):
        path = run_dir / name
        try:
            check(run_dir)
        except StoreError as error:
            aside = _dropped(path)
            path.replace(aside)
            said.append(f"{error}".partition(";")[0] + f": it is {aside.name} now, and made anew")
    return said


def _dropped(path: Path) -> Path:
    return path.with_name(path.name + DROPPED)


def _repaired(path: Path, read: Callable[[bytes, Path], object], lost: str) -> list[str]:
    """Moves the unreadable lines of a file to its `.dropped` file; returns a line of text for
    each."""
    said = []
    if torn := cut_torn_line(path):
        said.append(f"{path}: its torn last line of {torn} bytes is dropped: {lost}")
    kept, bad = [], []
    for number, (_, line) in enumerate(whole_lines(path), start=1):
        try:
            read(line, path)
        except _UNREADABLE as error:
            bad.append(line)
            reason = " ".join(str(error).split())[:80]
            said.append(f"{path}: line {number} is dropped ({reason}): {lost}")
        else:
            kept.append(line)
    if bad:
        with _dropped(path).open("ab") as file:
            file.writelines(bad)
        write_atomically(path, b"".join(kept))
    return said


def _check_unit(line: bytes, path: Path) -> None:
    """Raises one of `_UNREADABLE` if a record line, or its arrays, are damaged."""
    unit = read_unit(line)
    if unit.arrays is None:
        return
    offset, size, crc = unit.arrays
    arrays = beside(path)
    if not arrays.is_file():
        raise ValueError(f"{arrays.name} is missing")
    with arrays.open("rb") as file:
        file.seek(offset)
        if zlib.crc32(file.read(size)) != crc:
            raise ValueError(f"its arrays at byte {offset} of {arrays.name} are damaged")
