"""A benchmark whose r′ a model wrote, as it lies in a run folder: items, and what became none."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.studies.rfeval.counterfactuals.construction import FILTERING, row_of
from faithscope.experiments.studies.rfeval.data import Source, read_rfeval
from faithscope.experiments.studies.rfeval.items import Item, benchmark_sha256
from faithscope.interp.errors import UserError

ITEMS, LEFT_OUT, FILTERED = "items.jsonl", "left_out.jsonl", "rf_filtering.csv"
MANIFEST = "counterfactual.json"
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
    sources: tuple[Source, ...]
    """Of the problems."""
    made_of: Mapping[str, Any]
    """Who wrote and validated, asked what, of which problems; plain JSON values."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """File name -> content, of what writer and validator were asked with."""

    @property
    def files(self) -> dict[str, str]:
        """Name -> content of what `load` reads; the manifest last."""
        manifest = {
            "made_of": self.made_of,
            "sources": [asdict(s) for s in self.sources],
            "n_items": len(self.items),
            "sha256": benchmark_sha256(self.items),
        }
        return {
            ITEMS: item_lines(self.items),
            LEFT_OUT: _lines(asdict(one) for one in self.left_out),
            FILTERED: to_csv(self.filtering),
            MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False) + "\n",
        }


def item_lines(items: Any) -> str:
    """Items as JSON lines, which `data.path` takes."""
    return _lines(row_of(item) for item in items)


def load(folder: Path) -> Built | None:
    """What `files` wrote there; None where nothing was built.

    Raises:
        UserError: it is damaged, or its items are not those that were built.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text("utf-8"))
        sources = tuple(Source(**s) for s in manifest["sources"])
        made_of, digest = manifest["made_of"], manifest["sha256"]
        left_out = tuple(read_left_out(folder))
        filtered = read_filtering(folder)
        tasks = list(dict.fromkeys(row["task"] for row in _rows(folder / ITEMS)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: is damaged ({' '.join(str(error).split())[:80]}); restore the folder "
            f"{folder}, or delete it, and it is built again from what was written"
        ) from error
    items, _ = read_rfeval(folder / ITEMS, tasks, key=str(folder / ITEMS))
    if (found := benchmark_sha256(items)) != digest:
        raise UserError(
            f"{folder / ITEMS}: holds other items than were built (sha256 {found[:12]}…, "
            f"{MANIFEST} says {digest[:12]}…); restore it, or take the edited file as data of "
            "another run (data.path)"
        )
    return Built(tuple(items), left_out, filtered, sources, made_of)


def read_filtering(folder: Path) -> pd.DataFrame:
    """The stored account of the validation; empty where nothing was built."""
    path = folder / FILTERED
    if not path.is_file():
        return pd.DataFrame(columns=FILTERING)
    return pd.read_csv(io.StringIO(path.read_text("utf-8")))


def read_left_out(folder: Path) -> list[LeftOut]:
    """The stored account of what became no item; none where nothing was built."""
    path = folder / LEFT_OUT
    return [LeftOut(**row) for row in _rows(path)] if path.is_file() else []


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What sets apart what two benchmarks are made of, in words."""
    return [
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in dict.fromkeys((*before, *now))
        if before.get(key) != now.get(key)
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def _lines(rows: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
