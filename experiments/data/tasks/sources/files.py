"""Rows of local data: JSON lines, JSON, CSV, TSV, parquet, or a folder of such files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faithscope.experiments.data.tasks.sources.rows import Row
from faithscope.experiments.data.tasks.sources.splits import SUFFIXES, files_of_split
from faithscope.interp.errors import UserError

Placed = tuple[dict[str, Any], str]
"""A row's values, and where it stands in its file: `line 3`."""


def read_rows(path: Path, split: str, config: str | None = None) -> list[Row]:
    """Every row of a file, or of a split.

    Args:
        path: a file, which is read whatever its name, or a folder laid out like a data set's
            on the hub, of which the files of `split` are read ("test.jsonl",
            "main/test-00000-of-00002.parquet", "test/0000.parquet").
        config: the folder to read where several hold the split.

    Raises:
        UserError: nothing there, no file of this split, a file that is none of `SUFFIXES`,
            cannot be read or holds no rows.
    """
    try:
        files = [path] if path.is_file() else files_of_split(path, split, config)
        rows = [
            Row(f"{file.stem}-{i}", values, f"{file}, {place}")
            for file in files
            for i, (values, place) in enumerate(_rows(file))
        ]
    except OSError as error:
        at = error.filename or path
        raise UserError(
            f"{at}: cannot be read ({error.strerror}); check its permissions"
        ) from error
    if not rows:
        raise UserError(f"{', '.join(map(str, files))}: holds no rows; give a file with some")
    return rows


def _rows(file: Path) -> Iterator[Placed]:
    if file.suffix == ".jsonl":
        return _json_lines(file, _text(file))
    if file.suffix == ".json":
        return _json_list(file)
    if file.suffix in (".csv", ".tsv"):
        return _table(file)
    if file.suffix == ".parquet":
        return _parquet(file)
    raise UserError(f"{file}: cannot read {file.suffix!r}; give one of {', '.join(SUFFIXES)}")


def _json_lines(file: Path, text: str) -> Iterator[Placed]:
    # not splitlines: it also breaks at characters that JSON strings may hold (U+2028)
    for i, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{file}, line {i}: is not JSON ({error}); give one object per line"
            ) from error
        yield _object(row, f"{file}, line {i}", "one object per line"), f"line {i}"


def _json_list(file: Path) -> Iterator[Placed]:
    text = _text(file)
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        # many a ".json" of a data set holds JSON lines
        yield from _json_lines(file, text)
        return
    for i, row in enumerate(rows if isinstance(rows, list) else [rows], start=1):
        yield _object(row, f"{file}, row {i}", "a list of objects"), f"row {i}"


def _object(row: Any, where: str, wanted: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UserError(f"{where}: is a {type(row).__name__}; give {wanted}")
    return row


def _table(file: Path) -> Iterator[Placed]:
    text = _text(file)
    before = csv.field_size_limit(max(len(text), 1))  # a long cell is refused by name, later
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter="\t" if file.suffix == ".tsv" else ",",
            strict=True,
        )
        header = next(reader, [])
        if twice := next((h for h in header if header.count(h) > 1), None):
            raise UserError(f"{file}, line 1: column {twice!r} is there twice; rename one")
        at = reader.line_num + 1
        for cells in reader:
            place, at = f"line {at}", reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise UserError(
                    f"{file}, {place}: has {len(cells)} cells, the header has {len(header)}; "
                    "quote cells that hold a separator"
                )
            yield dict(zip(header, cells, strict=True)), place
    except csv.Error as error:
        raise UserError(
            f"{file}: is no {file.suffix[1:].upper()} ({error}); check its quotes"
        ) from error
    finally:
        csv.field_size_limit(before)


def _text(file: Path) -> str:
    data = file.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{file}, line {line}: is not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from error
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise UserError(f"{file}, line {line}: holds a NUL byte; save the file as UTF-8 text")
    return text


def _parquet(file: Path) -> Iterator[Placed]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UserError(
            f"{file}: reading parquet needs pyarrow: pip install 'faithscope[data]'"
        ) from error
    try:
        rows = parquet.read_table(file).to_pylist()
    except ValueError as error:  # pyarrow's errors of form are ValueErrors
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: is no parquet file ({reason}); write it again") from error
    for i, row in enumerate(rows, start=1):
        yield row, f"row {i}"
