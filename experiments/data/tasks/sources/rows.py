"""Rows of data, and reading of their cells: errors name what is missing or unusable, with its
place.

The cells of a row record which columns were asked for, so that unused columns can be reported
(`files_read`) without a list of columns in each reader.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from faithscope.interp.errors import UserError

T = TypeVar("T")
MAX_CHARS = 1_000_000
"""Most characters of a question or an option, far beyond any model's context: a longer text is a
file that went into one cell."""
NO_CHARACTER = re.compile(r"[\0\ud800-\udfff]")
"""Pattern of what no text has: NUL, half of a surrogate pair."""


@dataclass
class FileRead:
    """A file, or a split of the hub, with the columns of its rows that were read."""

    name: str
    rows: int = 0
    filled: dict[str, None] = field(default_factory=dict)
    """The columns with a value in some row of which any cell was asked for, in their order: columns
    of rows that a limit leaves out do not count."""
    asked: set[str] = field(default_factory=set)
    """The columns that were asked for in some row."""
    group: str | None = None
    """Column, or dotted path of one, with the group of each row; None if none is read."""
    groups: dict[str, Any] = field(default_factory=dict)
    """Id and place of a row -> its cell of that column."""
    columns: dict[str, None] = field(default_factory=dict)
    """The columns of all rows, where groups are read."""

    def row(self, id: str, values: Mapping[str, Any], where: str) -> SourceRow:
        """The next row of the file."""
        self.rows += 1
        filled = {name: None for name, value in values.items() if is_filled(value)}
        if self.group is not None:
            self.columns |= dict.fromkeys(map(str, values))
            self.groups[id] = self.groups[where] = self._group(SourceRow(id, values, where))
        return SourceRow(id, Cells(values, self, filled), where)

    def _group(self, row: SourceRow) -> Any:
        """The row's cell of the column `group`; of a dotted path, the value at its end."""
        path = [str(self.group)]
        if not columns_called(row, path[0]):
            path = path[0].split(".")
        self.asked.update(columns_called(row, path[0]))
        value = cell(row, path[0])
        for name in path[1:]:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns with values that were asked for in no row."""
        return tuple(name for name in self.filled if name not in self.asked)


MOST_FAULTS = 10
"""Most faults of a file that are listed, and most places of one fault."""


class Faults:
    """What is wrong with rows of a file, said together: a user mends a file once."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        """What is wrong -> where."""

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, where: str, error: UserError) -> None:
        """Adds what is wrong with the row at `where` (`mine.csv, line 3`)."""
        self._places.setdefault(str(error).removeprefix(f"{where}: "), []).append(where)

    def check(self, rows: int) -> None:
        """Check that nothing is wrong.

        Args:
            rows: number of all rows.

        Raises:
            UserError: something is; a line for each kind of fault, and what can be read.
        """
        n = sum(map(len, self._places.values()))
        if not n:
            return
        lines = []
        for what, (first, *others) in [*self._places.items()][:MOST_FAULTS]:
            places = [where.rpartition(", ")[2] for where in others]
            more = f" and {len(places) - MOST_FAULTS:,} more" * (len(places) > MOST_FAULTS)
            also = f" (the same in {', '.join(places[:MOST_FAULTS])}{more})" if places else ""
            lines.append(f"{what if what.startswith(first) else f'{first}: {what}'}{also}")
        if n > 1:
            others = f", the other {rows - n:,} can" * (rows > n)
            kinds = len(self._places) - len(lines)
            file = first.rpartition(", ")[0]
            lines.append(
                f"{file}: {n:,} of {rows:,} rows cannot be read{others}"
                f"{f' ({kinds:,} more kinds of fault)' * (kinds > 0)}; mend or delete them, since "
                "no row is left out by itself"
            )
        raise UserError("\n".join(lines))


def each(rows: Iterable[SourceRow], read: Callable[[SourceRow], T]) -> list[T]:
    """What `read` makes of every row.

    Raises:
        UserError: some row cannot be read; what is wrong with all of them (`Faults`).
    """
    faults, made, n = Faults(), list[T](), 0
    for row in rows:
        n += 1
        try:
            made.append(read(row))
        except UserError as error:
            faults.add(row.where, error)
    faults.check(n)
    return made


_OPEN: ContextVar[tuple[list[FileRead], ...]] = ContextVar("open", default=())
_GROUP: ContextVar[str | None] = ContextVar("group", default=None)


@contextmanager
def files_read(group: str | None = None) -> Iterator[list[FileRead]]:
    """A context that collects every file whose rows are read within it.

    Args:
        group: column whose cells are kept as the groups of rows.
    """
    files: list[FileRead] = []
    token, of_group = _OPEN.set((*_OPEN.get(), files)), _GROUP.set(group)
    try:
        yield files
    finally:
        _OPEN.reset(token)
        _GROUP.reset(of_group)


def begin_file(name: str) -> FileRead:
    """A new `FileRead`, which every open `files_read` collects."""
    file = FileRead(name, group=_GROUP.get())
    for files in _OPEN.get():
        files.append(file)
    return file


class Cells(Mapping[str, Any]):
    """The cells of a row by column; reading a value marks its column as asked for.

    Reading names alone (`in`, iteration) marks nothing. Cells made from others with `|` share their
    marks.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        file: FileRead | None = None,
        filled: Mapping[str, None] | None = None,
        sources: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """
        Args:
            file: record of the file that the cells are from, if any.
            filled: the file's columns that have a value in this row.
            sources: a column whose value is from others of the file -> these.
        """
        self.plain = values.plain if isinstance(values, Cells) else dict(values)
        """The plain values, whose reading marks no column."""
        self._file = FileRead("") if file is None else file
        self._filled = dict(filled or {})
        self._sources = dict(sources or {})

    def __getitem__(self, name: str) -> Any:
        self._mark(name)
        return self.plain[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a column, which is marked even if this row lacks it."""
        self._mark(name)
        return self.plain.get(name, default)

    def _mark(self, name: str) -> None:
        self._file.asked.update(self._sources.get(name, (name,)))
        if self._filled:
            self._file.filled |= self._filled
            self._filled = {}

    def __contains__(self, name: object) -> bool:
        return name in self.plain

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __or__(self, other: Mapping[str, Any]) -> Cells:
        return Cells(self.plain | dict(other), self._file, self._filled, self._sources)

    @property
    def file(self) -> str:
        """Name of the file that the cells are from, "" if they are from none."""
        return self._file.name

    def renamed(self, values: Mapping[str, Any], sources: Mapping[str, Sequence[str]]) -> Cells:
        """Cells with other columns, of the same row.

        Args:
            sources: a new column -> these cells' columns whose values it has.
        """
        of_file = {
            name: tuple(own for one in of for own in self._sources.get(one, (one,)))
            for name, of in sources.items()
        }
        return Cells(values, self._file, self._filled, self._sources | of_file)

    def name_row(self, row: str, own: str) -> None:
        """Gives a row of the file its own id, by which its group is found, too."""
        if self._file.group is not None:
            self._file.groups[own] = self._file.groups[row]

    def without(self, *names: str) -> Cells:
        """The cells of all columns but `names`."""
        kept = {n: v for n, v in self.plain.items() if n not in names}
        return Cells(kept, self._file, self._filled, self._sources)


@dataclass(frozen=True)
class SourceRow:
    """A row of data and its place in its source."""

    id: str
    """Id of the row: the file's stem (or the split) and the row's number from 0."""
    values: Mapping[str, Any]
    where: str
    """Place of the row for messages: `mine.jsonl, line 3`."""

    @property
    def cells(self) -> Cells:
        """The values as `Cells`, which mark asked columns if the row was read from a file."""
        return self.values if isinstance(self.values, Cells) else Cells(self.values)


def has(row: SourceRow, name: str) -> bool:
    """Whether the row has a value in column `name` (`cell`): null, NaN and empty texts are none."""
    return is_filled(cell(row, name))


def is_filled(value: Any) -> bool:
    """Whether a cell holds a value: null, NaN and an empty text are none."""
    return value is not None and value == value and str(value).strip() != ""


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A column's name in the form that tells columns apart: `Correct Answer`, `correct_answer` and
    `correctAnswer` are one."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name)).casefold()


def cell(row: SourceRow, name: str) -> Any:
    """The value in the column `name`; if that is missing or empty, in a column whose name differs
    only in case, blanks, dashes and underscores. None if there is neither."""
    value = row.values.get(name)
    if is_filled(value):
        return value
    alike = (own for own in columns_called(row, name) if own != name)
    return next((row.values[own] for own in alike if is_filled(row.values[own])), value)


def flag(row: SourceRow, name: str) -> bool:
    """The truth value in a cell, which may be a word (as in CSV).

    Raises:
        UserError: the cell is neither true nor false.
    """
    value = cell(row, name)
    known = {True: True, False: False, "true": True, "false": False}
    value = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(value, bool | str) or value not in known:
        raise UserError(f"{row.where}: {name!r} is {value!r}; give true or false")
    return known[value]


def columns_called(row: SourceRow, name: str) -> tuple[str, ...]:
    """The columns of a row whose `folded` name is that of `name`."""
    values = row.values.plain if isinstance(row.values, Cells) else row.values
    return _by_name(tuple(values)).get(folded(name), ())


@lru_cache(maxsize=1024)
def _by_name(columns: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for column in columns:
        names[folded(str(column))] = (*names.get(folded(str(column)), ()), column)
    return names


def column(row: SourceRow, names: Sequence[str]) -> Any:
    """The value of the first of `names` that the row has.

    Raises:
        UserError: the row has none of them.
    """
    for name in names:
        if has(row, name):
            return cell(row, name)
    for name in names:
        if isinstance(cell(row, name), str):
            raise UserError(f"{row.where}: {name!r} is empty; fill it, or take the row out")
    raise UserError(
        f"{row.where}: no column {' or '.join(map(repr, names))}; it has "
        f"{', '.join(map(str, row.values)) or 'none'}"
    )


def text_of(row: SourceRow, names: Sequence[str]) -> str:
    """The text in the first of `names` that the row has, without white space around it.

    Raises:
        UserError: there is no such text, or a model cannot be asked it (see `usable`).
    """
    name = next((n for n in names if has(row, n)), names[0])
    return usable(column(row, names), repr(name), row)


def usable(value: Any, what: str, row: SourceRow) -> str:
    """`value` as a text that can be put into a prompt.

    Raises:
        UserError: the value is a list or an object, is empty or longer than `MAX_CHARS`, or holds
            characters that no text has (NUL, half of a surrogate pair).
    """
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise UserError(f"{row.where}: {what} is a {type(value).__name__}; give a text")
    text = str(value).strip()
    if not text:
        raise UserError(f"{row.where}: {what} is empty; fill it, or take the row out")
    if len(text) > MAX_CHARS:
        raise UserError(
            f"{row.where}: {what} has {len(text):,} characters, the limit is {MAX_CHARS:,}; "
            "shorten it, or take the row out"
        )
    if bad := NO_CHARACTER.search(text):
        raise UserError(f"{row.where}: {what} holds the character {bad[0]!r}; take it out")
    return text


def with_ids(rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """The rows with the ids of their column `id`; a row without one keeps its id.

    Raises:
        UserError: two rows have the same id.
    """
    seen: dict[str, str] = {}
    for row in rows:
        own = usable(cell(row, "id"), "'id'", row) if has(row, "id") else row.id
        if own in seen:
            raise UserError(
                f"{row.where}: id {own!r} is that of {seen[own]}; give each row an id of its own, "
                "or none"
            )
        seen[own] = row.where
        row.cells.name_row(row.where, own)
        yield SourceRow(own, row.values, row.where)
