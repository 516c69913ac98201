"""A sheet of rows that people fill in: who gets what, and the CSV."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from faithscope.experiments.files import unwritable
from faithscope.interp.errors import UserError

T = TypeVar("T")


def names_in(text: str) -> list[str]:
    """Reviewers from `ann,bob`.

    Raises:
        UserError: one is named twice.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if twice := next((n for i, n in enumerate(names) if n in names[:i]), None):
        raise UserError(f"--reviewers {text}: {twice!r} is named twice; name each once")
    return names


def drawn(
    items: Sequence[T], limit: int | None, seed: int, group: Callable[[T], Hashable]
) -> list[T]:
    """So many items of each group, drawn at random, in their order; all of them for None.

    Args:
        group: what an item is one of: its task.

    Raises:
        UserError: fewer than one.
    """
    if limit is None:
        return list(items)
    if limit < 1:
        raise UserError(f"--limit {limit}: give 1 or more, or leave it out for all items")
    rng = random.Random(seed)
    chosen: set[int] = set()
    for name in dict.fromkeys(map(group, items)):
        of_group = [i for i, item in enumerate(items) if group(item) == name]
        chosen.update(rng.sample(of_group, min(limit, len(of_group))))
    return [item for i, item in enumerate(items) if i in chosen]


def write_sheet(
    path: Path,
    columns: Sequence[str],
    person: str,
    rows_of_items: Sequence[Iterable[Mapping[str, str]]],
    people: Sequence[str],
    each: int,
    seed: int,
) -> None:
    """Write the rows of each item for `each` people, as evenly shared out as can be.

    Args:
        columns: those that a row lacks are left empty, to be filled in.
        person: the column that names who fills a row in.

    Raises:
        UserError: fewer people than an item needs, or the file is there already or cannot be
            written.
    """
    if len(set(people)) < each or each < 1:
        raise UserError(f"review: {len(set(people))} reviewers, {each} to an item; name more")
    if path.exists():
        raise UserError(f"{path}: is there already, perhaps filled in; name another file")
    rng, load = random.Random(seed), dict.fromkeys(people, 0)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            sheet = csv.DictWriter(file, columns)
            sheet.writeheader()
            for rows in rows_of_items:
                whole = list(rows)
                for name in sorted(load, key=lambda name: (load[name], rng.random()))[:each]:
                    load[name] += 1
                    sheet.writerows({**row, person: name} for row in whole)
    except OSError as error:
        raise unwritable(path, error) from error
