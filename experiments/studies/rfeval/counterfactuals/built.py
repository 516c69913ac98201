"""A benchmark whose r′ a model wrote, as it lies in a run folder: items, and what became none."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.data.saved import MANIFEST, SavedBenchmark, json_lines, rows_of
from faithscope.experiments.studies.rfeval.counterfactuals.construction import FILTERING, row_of
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item

ITEMS, LEFT_OUT, FILTERED = "items.jsonl", "left_out.jsonl", "rf_filtering.csv"
Reason = Literal["not_written", "no_reasoning", "unvalidated", "rejected"]


@dataclass(frozen=True)
class LeftOut:
    """A problem of the data that became no item."""

    item: str
    task: str
    source: str
    reason: Reason
    """`not_written`: the writer never replied; `no_reasoning`: its reply holds no r′ with a flaw;
    `unvalidated`: no verdict on it; `rejected`: the validator is against it."""
    detail: str
    """What was wrong; of one that is rejected, the criteria it fails and the validator's reason."""
    r_prime: str
    """"" where there is none."""
    flaw: str


@dataclass(frozen=True)
class Built:
    """The items that were let in, and the account of all others."""

    items: tuple[Item, ...]
    left_out: tuple[LeftOut, ...]
    filtering: pd.DataFrame
    """`construction.filtering`."""
    made_of: Mapping[str, Any]
    """Who wrote and validated, asked what, of which problems (`sources`); plain JSON values."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """File name -> content, of what writer and validator were asked with."""

    @property
    def saved(self) -> SavedBenchmark:
        """What `load` reads."""
        files = {
            ITEMS: item_lines(self.items),
            LEFT_OUT: json_lines(self.left_out),
            FILTERED: to_csv(self.filtering),
        }
        return SavedBenchmark(files, self.made_of, {"items": len(self.items)})

    @classmethod
    def load(cls, folder: Path) -> Built | None:
        """What was saved there; None where nothing was built.

        Raises:
            UserError: it is damaged, or its items are not those that were built.
        """
        if not (folder / MANIFEST).is_file():
            return None
        saved = SavedBenchmark.load(folder)
        tasks = [json.loads(line)["task"] for line in saved.files[ITEMS].split("\n") if line]
        items, _ = read_rfeval(folder / ITEMS, list(dict.fromkeys(tasks)))
        return cls(tuple(items), read_left_out(folder), read_filtering(folder), saved.made_of)


def item_lines(items: Iterable[Item]) -> str:
    """Items as JSON lines, which `data.path` takes."""
    return json_lines(map(row_of, items))


def read_filtering(folder: Path) -> pd.DataFrame:
    """The stored account of the validation; empty where nothing was built."""
    path = folder / FILTERED
    if not path.is_file():
        return pd.DataFrame(columns=FILTERING)
    return pd.read_csv(io.StringIO(path.read_text("utf-8")))


def read_left_out(folder: Path) -> tuple[LeftOut, ...]:
    """The stored account of what became no item; none where nothing was built."""
    path = folder / LEFT_OUT
    return rows_of(LeftOut, path.read_text("utf-8"), path) if path.is_file() else ()
