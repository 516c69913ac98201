"""The human review of counterfactual reasoning as a CSV: written, filled in, read back."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.rfeval.items import Item
from experiments.rfeval.metrics.review import REVIEWS
from experiments.tasks.files import read_rows
from experiments.tasks.rows import has, text_of
from interp.errors import UserError

SHEET: tuple[str, ...] = (
    "item",
    "task",
    "question",
    "context",
    "options",
    "answer",
    "r_prime",
    "flaw",
)
SHEET += ("reviewer", "decision", "comment")
"""The last three are for the reviewer; an item has a row for each of its reviewers."""


def write_review(
    path: Path, items: Sequence[Item], reviewers: Sequence[str], each: int = 2, seed: int = 0
) -> None:
    """A sheet to be filled in: each item to `each` reviewers, as evenly shared out as can be.

    Raises:
        UserError: fewer reviewers than an item needs, or the file is there already.
    """
    if len(set(reviewers)) < each or each < 1:
        raise UserError(f"review: {len(set(reviewers))} reviewers, {each} to an item; name more")
    if path.exists():
        raise UserError(f"{path}: is there already, perhaps filled in; name another file")
    rng = random.Random(seed)
    load = dict.fromkeys(reviewers, 0)
    with path.open("w", encoding="utf-8", newline="") as file:
        sheet = csv.DictWriter(file, SHEET)
        sheet.writeheader()
        for item in items:
            order = sorted(load, key=lambda name: (load[name], rng.random()))
            shown = {"item": item.id, "task": item.task, "question": item.question}
            shown |= {"context": item.context, "options": item.lettered, "answer": item.gold}
            shown |= {"r_prime": item.r_prime, "flaw": item.explanation}
            for reviewer in order[:each]:
                load[reviewer] += 1
                sheet.writerow(shown | {"reviewer": reviewer, "decision": "", "comment": ""})


def read_review(path: Path) -> tuple[pd.DataFrame, int]:
    """The decisions of a filled-in sheet (`metrics.review.REVIEWS`), and how many rows have none.

    Raises:
        UserError: the file cannot be read, a decision is neither yes nor no, or a reviewer
            decided an item twice.
    """
    made, seen, open_rows = [], {}, 0
    for row in read_rows(path, ""):
        values = {name: text_of(row, (name,)) for name in REVIEWS if name != "decision"}
        if not has(row, "decision"):
            open_rows += 1
            continue
        decision = text_of(row, ("decision",)).casefold()
        if decision not in ("yes", "no"):
            raise UserError(f"{row.where}: decision {decision!r}; give yes or no, or leave it open")
        key = values["item"], values["reviewer"]
        if key in seen:
            raise UserError(f"{row.where}: {key[1]!r} has decided {key[0]!r} in {seen[key]}")
        seen[key] = row.where
        made.append(values | {"decision": decision})
    return pd.DataFrame(made, columns=list(REVIEWS)), open_rows
