"""Reads labels of traces from a CSV or JSONL file whose columns are the keys of records."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.scores import PLACE, label_row
from faithscope.experiments.data.tasks.sources.json_text import NotJson, check_depth, json_of
from faithscope.interp.errors import UserError


def labels_of(path: Path) -> pd.DataFrame:
    """The labels of a file as a frame (`scores.ITEMS`), a row per line and label.

    Dataset, task and model are "" where the file does not give them.

    Raises:
        UserError: the file cannot be read, has no column `item` or no label, or has a label that is
            neither 1 nor 0; the error names line and column.
    """
    rows = []
    for line, values in _lines(path):
        if not values.get("item"):
            raise UserError(f"{path}, line {line}: names no item; give the column 'item'")
        about = {name: str(values.pop(name, None) or "") for name in PLACE}
        for name, value in values.items():
            rows.append(label_row(about, name, _label(value, f"{path}, line {line}: {name}")))
    if not rows:
        raise UserError(f"{path}: holds no label; give a column for each beside {', '.join(PLACE)}")
    frame = pd.DataFrame(rows)
    if (twice := frame.duplicated([*PLACE, "measure"])).any():
        row = frame.loc[twice].iloc[0]
        raise UserError(f"{path}: two rows label item {row['item']!r}; keep one")
    return frame


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); give a CSV or JSONL file") from error
    if path.suffix.casefold() == ".csv":
        for line, row in enumerate(csv.DictReader(text.splitlines()), start=2):
            yield line, dict(row)
        return
    for line, part in enumerate(text.splitlines(), start=1):
        if part.strip():
            try:
                row = json_of(part, f"{path}, line {line}")
            except NotJson as error:
                raise UserError(f"{path}, line {line}: is not JSON ({error})") from error
            check_depth(row, f"{path}, line {line}")
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {line}: is no mapping from names to values")
            yield line, row


_WORDS = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0, "": None}


def _label(value: Any, where: str) -> float | None:
    text = "" if value is None else str(value).strip().casefold()
    if text not in _WORDS:
        raise UserError(
            f"{where} = {value!r} is no label; give 1, 0, true, false or nothing, or take the "
            "column out"
        )
    return _WORDS[text]
