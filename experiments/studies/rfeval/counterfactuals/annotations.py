"""People's labels of parts of outputs, from a CSV (RFEval, appendix D.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import pandas as pd

from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import has, text_of
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, stance_set
from faithscope.experiments.studies.rfeval.metrics.frames import FLAWS, STANCES
from faithscope.experiments.studies.rfeval.metrics.people import ANNOTATIONS
from faithscope.interp.errors import UserError, did_you_mean

DECISIONS = {"stance": STANCES, "flaw": FLAWS}
"""What is labelled -> the components that have it: parts of an output, or links between two."""
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


def item_name(model: str, item: str, models: Collection[str]) -> str:
    """What an output's item is called in annotations: with its model where a run has several."""
    return f"{model} {item}" if len(models) > 1 else item


def annotations_of(
    path: Path, items: Iterable[Item], models: Collection[str], naming: Naming
) -> pd.DataFrame:
    """The labels of a file, for a run of these items and models; see `read_annotations`.

    Raises:
        UserError: also where none of its labels is of such an item, or a stance is none that its
            item has.
    """
    labels = read_annotations(path)
    known = {item_name(m, item.id, models): item for item in items for m in models}
    if known.keys().isdisjoint(labels["item"]):
        raise UserError(
            f"annotations: {path}: none of its {len(labels)} labels is of an item of this run: it "
            f"has {labels['item'].iloc[0]!r}, the run {next(iter(known), 'none')!r}; give the "
            "sheet of `faithscope review write RUN --of stances`"
        )
    stances = labels.loc[labels["decision"] == "stance"]
    for name, label in zip(stances["item"], stances["label"], strict=True):
        if name in known and label not in (right := stance_set(known[name], naming)):
            raise UserError(
                f"annotations: {path}: label {label!r} of item {name!r} is none of its stances; "
                f"give one of {', '.join(map(repr, right))}"
            )
    return labels


def read_annotations(path: Path) -> pd.DataFrame:
    """The labels of a file with the columns `ANNOTATIONS`, a row for each label of each person.

    A label of a flaw is yes or no, in whatever way; one of a stance is taken as it stands. A row
    without a label is one that was left open, and is not among them.

    Raises:
        UserError: the file cannot be read, no row has a label, another cell is empty, a decision
            is neither stance nor flaw or has no such component, a flaw is neither yes nor no, or
            one person labelled a decision twice.
    """
    if not path.is_file():
        raise UserError(f"annotations: no such file: {str(path)!r}; check the path, or give null")
    labels: list[dict[str, str]] = []
    seen: dict[tuple[str, ...], str] = {}
    rows = read_rows(path, "")
    for row in rows:
        if "label" in row.values and not has(row, "label"):
            continue
        values = {name: text_of(row, (name,)) for name in ANNOTATIONS}
        if values["decision"] not in DECISIONS:
            raise UserError(
                f"{row.where}: decision {values['decision']!r}; give {' or '.join(DECISIONS)}"
            )
        components = DECISIONS[values["decision"]]
        if values["component"] not in components:
            listed = f"; give one of {', '.join(components)}"
            raise UserError(
                f"{row.where}: a {values['decision']} has no component {values['component']!r}"
                f"{did_you_mean(values['component'], components) or listed}"
            )
        if values["decision"] == "flaw":
            answer = values["label"].casefold()
            if answer not in (*_YES, *_NO):
                raise UserError(f"{row.where}: label {values['label']!r} of a flaw; give yes or no")
            values["label"] = str(answer in _YES)
        key = tuple(values[name] for name in ANNOTATIONS if name != "label")
        if key in seen:
            raise UserError(f"{row.where}: labels what {seen[key]} labels; keep one of the two")
        seen[key] = row.where
        labels.append(values)
    if not labels:
        raise UserError(f"annotations: {path}: no label in {len(rows)} rows; fill in 'label'")
    return pd.DataFrame(labels, columns=list(ANNOTATIONS))
