"""The human review of r′ as a CSV: written, filled in, read back, and what people let in.

How a sheet that people fill in is shared out among them, and written, stands here for all sheets.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import SourceRow, has, text_of
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.plan import BENCHMARK
from faithscope.experiments.files import unwritable, write_atomically
from faithscope.experiments.studies.rfeval.counterfactuals.construction import ITEMS, item_lines
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.metrics.people import (
    AGREEMENT,
    REVIEWS,
    review_agreement,
    review_items,
    review_rates,
)
from faithscope.interp.errors import UserError
from faithscope.interp.plain import as_cell, from_cell, visible

SHEET = ("item", "task", "question", "context", "options", "answer", "r_prime", "flaw")
SHEET += ("reviewer", "decision", "comment")
"""The last three are for the reviewer; an item has a row for each of its reviewers."""


@dataclass(frozen=True)
class Sheet:
    """A sheet as it was filled in."""

    path: Path
    reviews: pd.DataFrame
    """A row per decision: `metrics.people.REVIEWS`."""
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
        path = path / BENCHMARK / ITEMS
        if not path.is_file():
            raise UserError(
                f"{place}: is a run folder without {BENCHMARK}/{ITEMS}: no run of RFEval, or not "
                "built yet; `faithscope build` with its config, or give a data file"
            )
    items, _ = read_rfeval(path, key=place)
    return items


def write_review(
    path: Path, items: Sequence[Item], reviewers: Sequence[str], each: int = 2, seed: int = 0
) -> None:
    """A sheet to be filled in, each item by `each` reviewers.

    Raises:
        UserError: as `write_sheet`.
    """
    rows = [
        [
            {"item": i.id, "task": i.task, "question": i.question, "context": i.context}
            | {"options": i.lettered, "answer": i.gold, "r_prime": i.r_prime, "flaw": i.explanation}
        ]
        for i in items
    ]
    write_sheet(path, SHEET, "reviewer", rows, reviewers, each, seed)


def read_sheet(path: Path) -> Sheet:
    """A filled-in sheet; further rows may be added to it, such as an adjudicator's.

    Raises:
        UserError: the file cannot be read, a decision is neither yes nor no, a reviewer decided an
            item twice, or an item has another task or r′ in another row.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the sheet of `faithscope review write`")
    decisions: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    open_rows = 0
    shown: dict[str, tuple[str, str, str]] = {}
    for row in read_rows(path, ""):
        item, task, r_prime = (_cell(row, name) for name in ("item", "task", "r_prime"))
        where, *first = shown.setdefault(item, (row.where, task, r_prime))
        if first != [task, r_prime]:
            what = "task" if first[0] != task else "r_prime"
            raise UserError(
                f"{row.where}: {what} of item {item!r} is not that of {where}; restore the row"
            )
        reviewer = _cell(row, "reviewer")
        if not has(row, "decision"):
            open_rows += 1
            continue
        decision = text_of(row, ("decision",)).casefold()
        if decision not in ("yes", "no"):
            raise UserError(f"{row.where}: decision {decision!r}; give yes or no, or leave it open")
        if (item, reviewer) in decisions:
            raise UserError(
                f"{row.where}: {reviewer!r} has decided {item!r} in "
                f"{decisions[item, reviewer][0]}; leave one of them open"
            )
        decisions[item, reviewer] = row.where, (item, task, reviewer, decision)
    reviews = pd.DataFrame([values for _, values in decisions.values()], columns=list(REVIEWS))
    r_primes = {item: (where, text) for item, (where, _, text) in shown.items()}
    return Sheet(path, reviews, open_rows, r_primes)


def _cell(row: SourceRow, name: str) -> str:
    return from_cell(text_of(row, (name,)))


def review_tables(sheet: Sheet) -> dict[str, pd.DataFrame]:
    """Agreement, rates and items by file name (Tables 5 to 7).

    Raises:
        UserError: nothing is decided yet.
    """
    if sheet.reviews.empty:
        raise UserError(
            f"{sheet.path}: no decision in {sheet.open_rows} rows; fill in yes or no as 'decision'"
        )
    return {
        "rf_review_agreement": review_agreement(sheet.reviews),
        "rf_review_rates": review_rates(sheet.reviews),
        "rf_review_items": review_items(sheet.reviews),
    }


def in_lines(sheet: Sheet, tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """The tables in lines for a terminal: agreement, rates, the items that were not let in."""
    agreed, rates, items = tables.values()
    heads = ("items", "double", "judgements", "agreement", *AGREEMENT[5:-1])
    lines = [
        *_table(agreed, AGREEMENT[1:-1], heads),
        "",
        *_table(rates, ("n", "n_yes", "yes_rate", "yes_rate_low", "yes_rate_high")),
    ]
    for name in ("rejected", "disputed"):
        of = items.loc[items["decision"] == name].to_dict("records")
        lines += ["", f"{name}: {len(of)} of {len(items)} items"]
        lines += [f"  {visible(str(r['item']))}  {r['n_yes']} yes, {r['n_no']} no" for r in of]
    if sheet.open_rows:
        lines += ["", f"open: {sheet.open_rows} rows have no decision"]
    return lines


def _table(
    table: pd.DataFrame, names: Sequence[str], heads: Sequence[str] | None = None
) -> list[str]:
    rows = [(r["task"], "", *(_shown(r[n]) for n in names)) for r in table.to_dict("records")]
    return columns([("task", "", *(heads or names)), *rows])


def _shown(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "–" if math.isnan(value) else f"{value:.3f}"


def keep_accepted(sheet: Sheet, source: str, path: Path) -> None:
    """Write the items that people accepted as JSON lines, which `data.path` takes.

    Raises:
        UserError: an item of the sheet is not in `source` or has another r′ there, none was
            accepted, or the file is there already.
    """
    items = {item.id: item for item in items_in(source)}
    for name, (where, r_prime) in sheet.r_primes.items():
        if name not in items:
            raise UserError(
                f"{where}: item {name!r} is not in {source}; give what the sheet was written of "
                "as --from"
            )
        if items[name].r_prime.split() != r_prime.split():
            raise UserError(
                f"{where}: r_prime of item {name!r} is not that of {source}; give what the sheet "
                "was written of as --from, or restore the cell"
            )
    if path.exists():
        raise UserError(f"{path}: is there already; name another file")
    decided = review_tables(sheet)["rf_review_items"]
    accepted = set(decided.loc[decided["decision"] == "accepted", "item"])
    if not accepted:
        raise UserError(f"{sheet.path}: no item was accepted; there is nothing to keep")
    write_atomically(path, item_lines(item for item in items.values() if item.id in accepted))


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
                    sheet.writerows(
                        {k: as_cell(v) for k, v in {**row, person: name}.items()} for row in whole
                    )
    except OSError as error:
        raise unwritable(path, error) from error
