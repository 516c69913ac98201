"""Rows of local data: JSON lines, JSON, CSV, TSV, parquet, or a folder of such files.

In a folder, the files of a split are recognised by the names that the hub's data sets use.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faithscope.experiments.data.tasks.sources.json_text import (
    NotJson,
    check_depth,
    json_of,
)
from faithscope.experiments.data.tasks.sources.rows import SourceRow, begin_file
from faithscope.interp.errors import UserError

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
_POINTER = b"version https://git-lfs.github.com/spec/"
Placed = tuple[dict[str, Any], str]
"""A row's values, and its place in the file: `line 3`."""


def read_rows(
    path: Path, split: str, config: str | None = None, key: str = "data.path"
) -> list[SourceRow]:
    """Every row of a file, or of a split.

    Args:
        path: a file of any name, or a folder laid out like a data set's on the hub, of which the
            files of `split` are read ("test.jsonl", "main/test-00000-of-00002.parquet",
            "test/0000.parquet").
        config: name of the folder to read if several hold the split.
        key: the config key that gives the path, for messages.

    Raises:
        UserError: the path does not exist, there is no file of this split, or a file is none of
            `SUFFIXES`, cannot be read or holds no rows.
    """
    with readable(path):
        files = [path] if path.is_file() else files_of_split(path, split, config, key)
        rows = [row for file in files for row in rows_in(file)]
    if not rows:
        raise UserError(f"{', '.join(map(str, files))}: holds no rows; give a file with some")
    return rows


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A context in which a file or folder is named that the system refuses to read, or that does
    not fit into memory."""
    try:
        yield
    except MemoryError as error:
        raise UserError(
            f"{path}: does not fit into the memory that is left; free some or ask for more, or "
            "give a smaller file"
        ) from error
    except OSError as error:
        raise UserError(
            f"{error.filename or path}: cannot be read ({error.strerror}); check its permissions"
        ) from error


def rows_in(file: Path) -> Iterator[SourceRow]:
    """Iterate over the rows of one file; JSON lines are read one by one.

    Raises:
        UserError: as in `read_rows`, except that a file may hold no rows.
        OSError: the file may not be read.
    """
    with file.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            raise UserError(f"{file}: is a Git LFS pointer, not the data; run `git lfs pull` there")
    read = begin_file(str(file))
    for i, (values, place) in enumerate(_rows(file)):
        yield read.row(f"{file.stem}-{i}", values, f"{file}, {place}")


def _rows(file: Path) -> Iterator[Placed]:
    if file.suffix == ".jsonl":
        return _json_lines(file)
    if file.suffix == ".json":
        return _json_list(file)
    if file.suffix in (".csv", ".tsv"):
        return _table(file)
    if file.suffix == ".parquet":
        return _parquet(file)
    raise UserError(f"{file}: cannot read {file.suffix!r}; give one of {', '.join(SUFFIXES)}")


def _json_lines(file: Path) -> Iterator[Placed]:
    with file.open("rb") as opened:
        for i, line in enumerate(opened, start=1):
            text = _text(line, file, i)
            if not text.strip():
                continue
            try:
                row = json_of(text, f"{file}, line {i}")
            except NotJson as error:
                raise UserError(
                    f"{file}, line {i}: is not JSON ({error}); give one object per line"
                ) from error
            yield _object(row, f"{file}, line {i}", "one object per line"), f"line {i}"


def _json_list(file: Path) -> Iterator[Placed]:
    text = _text(file.read_bytes(), file)
    try:
        rows = json_of(text, lambda at: f"{file}, line {text.count(chr(10), 0, at) + 1}")
    except NotJson:
        # many ".json" files of data sets hold JSON lines
        yield from _json_lines(file)
        return
    for i, row in enumerate(rows if isinstance(rows, list) else [rows], start=1):
        yield _object(row, f"{file}, row {i}", "a list of objects"), f"row {i}"


def _object(row: Any, where: str, wanted: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise UserError(f"{where}: is a {type(row).__name__}; give {wanted}")
    check_depth(row, where)
    return row


def _table(file: Path) -> Iterator[Placed]:
    text = _text(file.read_bytes(), file)
    before = csv.field_size_limit(max(len(text), 1))  # a long cell is refused by name, later
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter="\t" if file.suffix == ".tsv" else _separator(text),
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
                remedy = "quote cells that hold a separator"
                if len(cells) < len(header):
                    remedy = "write every cell, empty ones too"
                raise UserError(
                    f"{file}, {place}: has {len(cells)} cells, the header has {len(header)}; "
                    f"{remedy}"
                )
            yield dict(zip(header, cells, strict=True)), place
    except csv.Error as error:
        raise UserError(
            f"{file}: is no {file.suffix[1:].upper()} ({error}); check its quotes"
        ) from error
    finally:
        csv.field_size_limit(before)


def _separator(text: str) -> str:
    """The separator of cells in a CSV file: a semicolon if the header has semicolons and no commas,
    as spreadsheets write it where the comma is the decimal mark; else a comma."""
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _text(data: bytes, file: Path, line: int = 1) -> str:
    """The text of a file's bytes; `line` is the number of its first line, for messages."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise UserError(
            f"{file}, line {line}: is not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from error
    if (at := text.find("\0")) >= 0:
        line += text.count("\n", 0, at)
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
    except MemoryError:
        raise
    except Exception as error:  # pyarrow's errors of form are of many classes
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: is no parquet file ({reason}); write it again") from error
    for i, row in enumerate(rows, start=1):
        yield row, f"row {i}"


_ALSO = {
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
    "train": ("train", "training"),
}
"""Split -> the words for it that the hub accepts."""
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]{8,})?$")


def files_of_split(
    folder: Path, split: str, config: str | None = None, key: str = "data.path"
) -> list[Path]:
    """The files of one split, in order: one file, or all its shards.

    Patterns are tried in turn: files called `test` or `test-…`, files in a folder `test`, files
    with the word in their name (`us_4_options_test`), then these patterns with the split's other
    words (`dev`).

    Args:
        config: name of the folder to read if several have the split.
        key: the config key that gives the folder, for messages.

    Raises:
        UserError: there is no such file, there are several, or shards are missing.
        OSError: the folder may not be read.
    """
    if not folder.is_dir():
        raise UserError(f"{key}: no such file or folder: {str(folder)!r}; check the path")
    next(folder.iterdir(), None)  # raises where the folder is closed; rglob passes over it
    files = sorted(f for f in folder.rglob("*") if f.suffix in SUFFIXES and f.is_file())
    inside = [(f, f.relative_to(folder)) for f in files]
    for word in dict.fromkeys((split, *_ALSO.get(split, ()))):
        of_split = _named(inside, word)
        in_config = [f for f in of_split if config in f.relative_to(folder).parts]
        of_split = in_config or of_split
        if of_split:
            return _one(folder, split, of_split, key)
    listed = ", ".join(str(at) for _, at in inside[:6]) or "no data file"
    raise UserError(
        f"{key}: {folder} has no file of split {split!r}; it holds {listed}. "
        "Give the file itself" + ", or set data.split" * (key == "data.path")
    )


def _named(inside: Sequence[tuple[Path, Path]], word: str) -> list[Path]:
    as_word = re.compile(rf"(?:^|[-._ \d]){re.escape(word)}(?:[-._ \d]|$)")
    for tells in (
        lambda at: at.stem == word or at.stem.startswith(f"{word}-"),
        lambda at: word in at.parts[:-1],
        lambda at: as_word.search(at.stem) is not None,
    ):
        if matching := [f for f, at in inside if tells(at)]:
            return matching
    return []


def _one(folder: Path, split: str, of_split: list[Path], key: str) -> list[Path]:
    """`of_split`, once checked to be one file or all its shards."""
    kinds = {(f.parent, _without_number(f), f.suffix) for f in of_split}
    if len(kinds) > 1:
        named = ", ".join(str(f.relative_to(folder)) for f in of_split[:6])
        raise UserError(
            f"{key}: {folder} holds split {split!r} several times ({named}); give one of them"
        )
    wanted = {int(m[2]) for f in of_split if (m := _SHARD.search(f.stem))}
    if wanted and wanted != {len(of_split)}:
        raise UserError(
            f"{key}: {folder} has {len(of_split)} of {max(wanted)} files of split {split!r} "
            f"({of_split[0].name}, …); fetch the others too, or give one file itself"
        )
    return of_split


def _without_number(file: Path) -> str:
    return "" if file.stem.isdigit() else _SHARD.sub("", file.stem)
