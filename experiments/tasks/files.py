"""Rows of local data: JSON lines, JSON, CSV, TSV, parquet, or a folder of such files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from interp.errors import UserError

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
Row = dict[str, Any]


def read_rows(path: Path, split: str) -> list[tuple[str, Row]]:
    """(id, row) of every row; ids are the file's stem and the row's number from 0.

    Args:
        path: a file, which is read whatever its name, or a folder laid out like a data set's
            on the hub, of which the files named for `split` are read ("test.jsonl",
            "main/test-00000-of-00002.parquet", "test/0000.parquet").

    Raises:
        UserError: nothing there, no file of this split, a file that is none of `SUFFIXES` or
            does not hold rows.
    """
    files = [path] if path.is_file() else _of_split(path, split)
    return [(f"{file.stem}-{i}", row) for file in files for i, row in enumerate(_rows(file))]


def column(row: Row, names: Sequence[str], where: str) -> Any:
    """The value of the first of `names` that the row has.

    Raises:
        UserError: it has none of them.
    """
    for name in names:
        if row.get(name) is not None:
            return row[name]
    raise UserError(
        f"{where}: no column {' or '.join(map(repr, names))}; it has "
        f"{', '.join(map(str, row)) or 'none'}"
    )


def _of_split(folder: Path, split: str) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"data.path: no such file or folder: {str(folder)!r}; check the path")
    files = sorted(f for f in folder.rglob("*") if f.suffix in SUFFIXES and f.is_file())
    inside = [(f, f.relative_to(folder)) for f in files]
    found = [f for f, at in inside if at.stem == split or at.stem.startswith(f"{split}-")]
    found = found or [f for f, at in inside if split in at.parts[:-1]]
    configs = {f.parent for f in found}
    if "main" in {c.name for c in configs}:
        found = [f for f in found if f.parent.name == "main"]
    elif len(configs) > 1:
        named = ", ".join(sorted(str(c) for c in configs))
        raise UserError(
            f"data.path: {folder} holds split {split!r} several times ({named}); give one of them"
        )
    if not found:
        held = ", ".join(str(at) for _, at in inside[:6]) or "no data file"
        raise UserError(
            f"data.path: {folder} has no file of split {split!r}; it holds {held}. "
            "Give the file itself, or set data.split"
        )
    return found


def _rows(file: Path) -> Iterator[Row]:
    if file.suffix == ".jsonl":
        return _json_lines(file)
    if file.suffix == ".json":
        return _json_list(file)
    if file.suffix in (".csv", ".tsv"):
        return _table(file)
    if file.suffix == ".parquet":
        return _parquet(file)
    raise UserError(f"{file}: cannot read {file.suffix!r}; give one of {', '.join(SUFFIXES)}")


def _json_lines(file: Path) -> Iterator[Row]:
    # not splitlines: it also breaks at characters that JSON strings may hold (U+2028)
    for i, line in enumerate(_text(file).split("\n"), start=1):
        if line.strip():
            yield _row(line, f"{file}, line {i}")


def _json_list(file: Path) -> Iterator[Row]:
    text = _text(file)
    try:
        rows = json.loads(text)
    except ValueError:
        # many a ".json" of a data set holds JSON lines
        yield from _json_lines(file)
        return
    for row in rows if isinstance(rows, list) else [rows]:
        if not isinstance(row, dict):
            raise UserError(f"{file}: expected a list of objects, found {type(row).__name__}")
        yield row


def _row(line: str, where: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: is not JSON ({error}); give one object per line") from error
    if not isinstance(row, dict):
        raise UserError(f"{where}: is a {type(row).__name__}; give one object per line")
    return row


def _table(file: Path) -> Iterator[Row]:
    lines = _text(file).splitlines(keepends=True)
    yield from csv.DictReader(lines, delimiter="\t" if file.suffix == ".tsv" else ",")


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: is not UTF-8 ({error.reason}); save it as UTF-8") from error


def _parquet(file: Path) -> Iterator[Row]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            f"{file}: reading parquet needs pyarrow: pip install 'faithscope[data]'"
        ) from error
    yield from parquet.read_table(file).to_pylist()
