"""The human review of counterfactual reasoning as a CSV: written, filled in, read back."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pandas as pd

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import has, text_of
from faithscope.experiments.files import unwritable
from faithscope.experiments.studies.rfeval.counterfactuals.built import ITEMS
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.metrics.review import REVIEWS
from faithscope.experiments.studies.rfeval.plan import FOLDER
from faithscope.interp.errors import UserError

T = TypeVar("T")
SHEET = ("item", "task", "question", "context", "options", "answer", "r_prime", "flaw")
SHEET += ("reviewer", "decision", "comment")
"""The last three are for the reviewer; an item has a row for each of its reviewers."""


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was filled in."""

    path: Path
    reviews: pd.DataFrame
    """A row per decision: `metrics.review.REVIEWS`."""
    open_rows: int
    """Rows without a decision."""
    r_primes: Mapping[str, tuple[str, str]]
    """Item -> where it first stands, and the r′ that was shown."""


def items_in(place: str) -> list[Item]:
    """The items of a run folder, or of data as released.

    Raises:
        UserError: there are none, or they cannot be used; names file, line, value and remedy.
    """
    path = Path(place).expanduser()
    if (path / "config.yaml").is_file():
        path = path / FOLDER / ITEMS
        if not path.is_file():
            raise UserError(
                f"{place}: is a run folder without {FOLDER}/{ITEMS}: no run of RFEval, or not "
                "built yet; `faithscope build` with its config, or give a data file"
            )
    items, _ = read_rfeval(path, key=place)
    return items


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


def shared_out(n: int, people: Sequence[str], each: int, seed: int) -> list[list[str]]:
    """For each of `n` things the `each` people who get it, as evenly shared out as can be.

    Raises:
        UserError: fewer people than a thing needs.
    """
    if len(set(people)) < each or each < 1:
        raise UserError(f"review: {len(set(people))} reviewers, {each} to an item; name more")
    rng = random.Random(seed)
    load = dict.fromkeys(people, 0)
    made = []
    for _ in range(n):
        made.append(sorted(load, key=lambda name: (load[name], rng.random()))[:each])
        for name in made[-1]:
            load[name] += 1
    return made


def write_review(
    path: Path, items: Sequence[Item], reviewers: Sequence[str], each: int = 2, seed: int = 0
) -> None:
    """A sheet to be filled in: each item to `each` reviewers, as evenly shared out as can be.

    Raises:
        UserError: fewer reviewers than an item needs, or the file is there already or cannot be
            written.
    """
    whose = shared_out(len(items), reviewers, each, seed)
    if path.exists():
        raise UserError(f"{path}: is there already, perhaps filled in; name another file")
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            sheet = csv.DictWriter(file, SHEET)
            sheet.writeheader()
            for item, names in zip(items, whose, strict=True):
                shown = {"item": item.id, "task": item.task, "question": item.question}
                shown |= {"context": item.context, "options": item.lettered, "answer": item.gold}
                shown |= {"r_prime": item.r_prime, "flaw": item.explanation}
                for reviewer in names:
                    sheet.writerow(shown | {"reviewer": reviewer, "decision": "", "comment": ""})
    except OSError as error:
        raise unwritable(path, error) from error


def read_sheet(path: Path) -> Sheet:
    """A filled-in sheet; further rows may be added to it, such as an adjudicator's.

    Raises:
        UserError: the file cannot be read, a decision is neither yes nor no, a reviewer decided an
            item twice, or an item has another task or r′ in another row.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the sheet of `faithscope review write`")
    made, seen, open_rows = [], {}, 0
    shown: dict[str, tuple[str, str, str]] = {}
    for row in read_rows(path, ""):
        item, task = text_of(row, ("item",)), text_of(row, ("task",))
        r_prime = text_of(row, ("r_prime",))
        where, *first = shown.setdefault(item, (row.where, task, r_prime))
        if first != [task, r_prime]:
            what = "task" if first[0] != task else "r_prime"
            raise UserError(
                f"{row.where}: {what} of item {item!r} is not that of {where}; restore the row"
            )
        reviewer = text_of(row, ("reviewer",))
        if not has(row, "decision"):
            open_rows += 1
            continue
        decision = text_of(row, ("decision",)).casefold()
        if decision not in ("yes", "no"):
            raise UserError(f"{row.where}: decision {decision!r}; give yes or no, or leave it open")
        if (item, reviewer) in seen:
            raise UserError(
                f"{row.where}: {reviewer!r} has decided {item!r} in {seen[item, reviewer]}; "
                "leave one of them open"
            )
        seen[item, reviewer] = row.where
        made.append({"item": item, "task": task, "reviewer": reviewer, "decision": decision})
    reviews = pd.DataFrame(made, columns=list(REVIEWS))
    r_primes = {item: (where, text) for item, (where, _, text) in shown.items()}
    return Sheet(path, reviews, open_rows, r_primes)
