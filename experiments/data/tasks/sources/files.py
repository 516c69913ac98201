"""Rows of local data: JSON lines, JSON, CSV, TSV or YAML, gzipped or not, Parquet, Arrow, or a
folder of such files.

In a folder, the files of a split are recognised by the names that the hub's data sets use.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import yaml

from faithscope.experiments.data.tasks.sources.json_text import (
    NotJson,
    check_depth,
    json_of,
)
from faithscope.experiments.data.tasks.sources.options import may_be_empty
from faithscope.experiments.data.tasks.sources.rows import Faults, SourceRow, begin_file
from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError

_TEXTS = (".jsonl", ".json", ".csv", ".tsv", ".yaml", ".yml")
SUFFIXES = (*_TEXTS, *(f"{suffix}.gz" for suffix in _TEXTS), ".parquet", ".arrow")
_LEFT_AS_TEXTS = ("timestamp", "bool")
_BESIDE_DATA = ("state.json", "dataset_info.json", "dataset_dict.json")
"""Files that `datasets` saves beside the data."""
_POINTER = b"version https://git-lfs.github.com/spec/"
Placed = tuple[dict[str, Any], str]
"""A row's values, and its place in the file: `line 3`."""


def suffix_of(file: Path) -> str:
    """The ending that tells how a file is read: `.jsonl`, `.csv.gz`."""
    return "".join(file.suffixes[-2:]) if file.suffix == ".gz" else file.suffix


def read_rows(
    path: Path,
    split: str,
    config: str | None = None,
    key: str = "data.path",
    *,
    all_else: bool = False,
) -> list[SourceRow]:
    """Every row of a file, or of a split.

    Args:
        path: a file of any name, or a folder laid out like a data set's on the hub, of which the
            files of `split` are read ("test.jsonl", "main/test-00000-of-00002.parquet",
            "test/0000.parquet").
        config: name of the folder to read if several hold the split.
        key: the config key that gives the path, for messages.
        all_else: whether all files of a folder in which no name tells of a split are read.

    Raises:
        UserError: the path does not exist, there is no file of this split, or a file is none of
            `SUFFIXES`, cannot be read or holds no rows.
    """
    with readable(path):
        one = path.is_file()
        files = [path] if one else files_of_split(path, split, config, key, all_else=all_else)
        # files of one name lie in different folders
        alike = len({f.name for f in files}) < len(files)
        names = [str(f.relative_to(path)) if alike else f.name for f in files]
        rows = [row for f, name in zip(files, names, strict=True) for row in rows_in(f, name)]
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


def rows_in(file: Path, name: str | None = None) -> Iterator[SourceRow]:
    """Iterate over the rows of one file; JSON lines are read one by one.

    Args:
        name: the file's name in ids of rows, where its own is not its alone.

    Raises:
        UserError: as in `read_rows`, except that a file may hold no rows.
        OSError: the file may not be read.
    """
    with file.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            raise UserError(f"{file}: is a Git LFS pointer, not the data; run `git lfs pull` there")
    read = begin_file(str(file))
    stem = (name or file.name).removesuffix(suffix_of(file))
    for i, (values, place) in enumerate(_rows(file)):
        yield read.row(f"{stem}-{i}", values, f"{file}, {place}")


def _rows(file: Path) -> Iterator[Placed]:
    suffix = suffix_of(file)
    readers = {
        ".jsonl": _json_lines,
        ".json": _json_list,
        ".csv": _table,
        ".tsv": _table,
        ".yaml": _yaml,
        ".yml": _yaml,
        ".parquet": _parquet,
        ".arrow": _arrow,
    }
    if suffix not in SUFFIXES:
        raise UserError(f"{file}: cannot read {suffix!r}; give one of {', '.join(SUFFIXES)}")
    return readers[suffix.removesuffix(".gz")](file)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """A file opened for reading, unpacked if it is gzipped."""
    if file.suffix != ".gz":
        with file.open("rb") as opened:
            yield opened
        return
    try:
        with gzip.GzipFile(file, "rb") as unpacked:
            yield io.BufferedReader(unpacked)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{file}: is no whole gzip file ({error}); write it again") from error


def _bytes(file: Path) -> bytes:
    with _opened(file) as opened:
        return opened.read()


def _json_lines(file: Path) -> Iterator[Placed]:
    faults, n = Faults(), 0
    with _opened(file) as opened:
        for i, line in enumerate(opened, start=1):
            where = f"{file}, line {i}"
            try:
                text = _text(line, file, i)
                if not text.strip():
                    continue
                n += 1
                row = _object(_json_line(text, where), where, "one object per line")
            except UserError as error:
                faults.add(where, error)
                continue
            if not faults:  # what follows a fault is only looked through for others
                yield row, f"line {i}"
    faults.check(n)


def _json_line(text: str, where: str) -> Any:
    try:
        return json_of(text, where)
    except NotJson as error:
        raise UserError(f"{where}: is not JSON ({error}); give one object per line") from error


def _json_list(file: Path) -> Iterator[Placed]:
    text = _text(_bytes(file), file)
    try:
        rows = json_of(text, lambda at: f"{file}, line {text.count(chr(10), 0, at) + 1}")
    except NotJson:
        # many ".json" files of data sets hold JSON lines
        yield from _json_lines(file)
        return
    yield from _objects(rows, file)


_Plain: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class _Loader(_Plain):
    """A loader that leaves dates and `no` as texts, and refuses a key that stands twice."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in tags if tag.rpartition(":")[2] not in _LEFT_AS_TEXTS]
    for first, tags in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("(?i:true|false)$"), [*"tTfF"])


def _once(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [
        (loader.construct_object(key, deep=True), key.start_mark.line + 1) for key, _ in node.value
    ]
    seen: set[Any] = set()
    for key, line in keys:
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.YAMLError(f"line {line}: a list or an object is a key")
        if key in seen:
            raise yaml.YAMLError(f"line {line}: key {key!r} stands twice in one object")
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _once)


def _yaml(file: Path) -> Iterator[Placed]:
    text = _text(_bytes(file), file)
    try:
        rows = yaml_of(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: is no YAML ({reason}); mend it") from error
    yield from _objects(rows, file)


def _objects(rows: Any, file: Path) -> Iterator[Placed]:
    rows = [rows] if _is_conversation(rows) else rows
    for i, row in enumerate(rows if isinstance(rows, list) else [rows], start=1):
        yield _object(row, f"{file}, row {i}", "a list of objects"), f"row {i}"


def _is_conversation(value: Any) -> bool:
    """Whether a list is a conversation, kept bare: an object with its speaker for each message."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(m, dict) and {"role", "from"} & m.keys() for m in value)
    )


def _object(row: Any, where: str, wanted: str) -> dict[str, Any]:
    if _is_conversation(row):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise UserError(f"{where}: is a {type(row).__name__}; give {wanted}")
    check_depth(row, where)
    return row


def _table(file: Path) -> Iterator[Placed]:
    text = _text(_bytes(file), file)
    before = csv.field_size_limit(max(len(text), 1))  # a long cell is refused by name, later
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter="\t" if suffix_of(file).startswith(".tsv") else _separator(text),
            strict=True,
        )
        header = next(reader, [])
        if twice := next((h for h in header if header.count(h) > 1), None):
            raise UserError(f"{file}, line 1: column {twice!r} is there twice; rename one")
        at, n, faults = reader.line_num + 1, 0, Faults()
        for cells in reader:
            place, at = f"line {at}", reader.line_num + 1
            if not cells:
                continue
            n, cells = n + 1, _as_long_as(header, cells)
            if len(cells) != len(header):
                remedy = "quote cells that hold a separator"
                if len(cells) < len(header):
                    remedy = "write every cell, empty ones too"
                has = f"has {len(cells)} cells, the header has {len(header)}; {remedy}"
                faults.add(f"{file}, {place}", UserError(has))
            elif not faults:
                yield dict(zip(header, cells, strict=True)), place
        faults.check(n)
    except csv.Error as error:
        raise UserError(
            f"{file}: is no {suffix_of(file)[1:4].upper()} ({error}); check its quotes"
        ) from error
    finally:
        csv.field_size_limit(before)


def _as_long_as(header: list[str], cells: list[str]) -> list[str]:
    """The cells of a row without empty ones past the header, and with empty ones for options that
    its last columns would hold."""
    missing = header[len(cells) :]
    if missing and all(map(may_be_empty, missing)):
        return cells + [""] * len(missing)
    beyond = cells[len(header) :]
    return cells[: len(header)] if beyond and not any(c.strip() for c in beyond) else cells


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
    return _with_pyarrow(file, "parquet", lambda p: importlib.import_module(p).read_table(file))


def _arrow(file: Path) -> Iterator[Placed]:
    """Rows of what `Dataset.save_to_disk` writes."""

    def table(package: str) -> Any:
        ipc = importlib.import_module(package)
        with file.open("rb") as opened:
            try:
                return ipc.open_stream(opened).read_all()
            except ValueError:  # of the other of its two forms
                opened.seek(0)
                return ipc.open_file(opened).read_all()

    return _with_pyarrow(file, "ipc", table)


def _with_pyarrow(file: Path, module: str, table: Callable[[str], Any]) -> Iterator[Placed]:
    what = "parquet" if module == "parquet" else "arrow"
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise UserError(
            f"{file}: reading {what} needs pyarrow: pip install 'faithscope[data]'"
        ) from error
    try:
        rows = table(f"pyarrow.{module}").to_pylist()
    except MemoryError:
        raise
    except Exception as error:  # pyarrow's errors of form are of many classes
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{file}: is no {what} file ({reason}); write it again") from error
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
    folder: Path,
    split: str,
    config: str | None = None,
    key: str = "data.path",
    *,
    all_else: bool = False,
) -> list[Path]:
    """The files of one split, in order: one file, or all its shards.

    Patterns are tried in turn: files called `test` or `test-…`, files in a folder `test`, files
    with the word in their name (`us_4_options_test`), then these patterns with the split's other
    words (`dev`).

    Args:
        config: name of the folder to read if several have the split.
        key: the config key that gives the folder, for messages.
        all_else: whether, if no name tells of a split, all files are read, which must be of one
            ending.

    Raises:
        UserError: there is no such file, there are several, or shards are missing.
        OSError: the folder may not be read.
    """
    if not folder.is_dir():
        raise UserError(f"{key}: no such file or folder: {str(folder)!r}; check the path")
    next(folder.iterdir(), None)  # raises where the folder is closed; rglob passes over it
    files = sorted(
        f
        for f in folder.rglob("*")
        if suffix_of(f) in SUFFIXES and f.name not in _BESIDE_DATA and f.is_file()
    )
    if (folder / "state.json").is_file():  # one data set that `datasets` saved
        return _one(folder, split, [f for f in files if f.suffix == ".arrow"], key)
    inside = [(f, f.relative_to(folder)) for f in files]
    for word in dict.fromkeys((split, *_ALSO.get(split, ()))):
        of_split = _named(inside, word)
        in_config = [f for f in of_split if config in f.relative_to(folder).parts]
        of_split = in_config or of_split
        if of_split:
            return _one(folder, split, of_split, key)
    if all_else and len({suffix_of(f) for f in files}) == 1:
        return files
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
    kinds = {(f.parent, _without_number(f), suffix_of(f)) for f in of_split}
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
