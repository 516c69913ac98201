"""Rates per question, over its samples: how often each yes-or-no outcome of a measure is a yes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Boot, Count, rows_known
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.stored_records import Record, place_of
from faithscope.experiments.analysis.tables import Table
from faithscope.probes.record import is_right

COLUMNS = {
    "dataset": "where the question comes from",
    "task": "what was asked, or in which words",
    "model": "the subject",
    "question": "id of the question, without the sample",
    "item": "id of its first sample",
    "measure": "trace: the chains themselves; else the probe whose records are counted",
    "variant": "condition: the record's variant, such as the kind of a cue",
    "outcome": "field of the records that is true or false; `correct`: the answer is the "
    "right one; `answered`: an answer was read",
    "n_samples": "samples of the question in which the outcome is known",
    "rate": "share of these in which it is true",
    "gap": "rate minus that of the chains themselves (measure `trace`), if they have the outcome",
}
TRACE = "trace"


def has_samples(records: Iterable[Record]) -> bool:
    """Whether some record is of a sample of a question."""
    return any("asked_id" in r for r in records)


def question_rates(records: Iterable[Record]) -> pd.DataFrame:
    """A row per question, measure, variant and outcome; see `COLUMNS`.

    Args:
        records: those of traces, which name their question if it has samples (`asked_id`), and of
            probes.
    """
    ordered = sorted(records, key=place_of)
    asked = {place_of(r): r["asked_id"] for r in ordered if "asked_id" in r}
    values: dict[tuple[str, ...], list[bool]] = {}
    first: dict[tuple[str, ...], str] = {}
    for record in ordered:
        if (question := asked.get(place_of(record))) is None:
            continue
        about = (record["dataset"], record["task"], record["model"], question)
        first.setdefault(about, str(record["item"]))
        way = (*about, record["probe"], record["variant"] or "")
        for name, value in _outcomes(record).items():
            values.setdefault((*way, name), []).append(value)
    rates = {key: sum(of) / len(of) for key, of in values.items()}
    rows = [
        {
            **dict(zip(("dataset", "task", "model", "question"), key[:4], strict=True)),
            "item": first[key[:4]],
            **dict(zip(("measure", "variant", "outcome"), key[4:], strict=True)),
            "n_samples": len(values[key]),
            "rate": rate,
            "gap": rate - plain
            if key[4] != TRACE and (plain := rates.get((*key[:4], TRACE, "", key[6]))) is not None
            else None,
        }
        for key, rate in rates.items()
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"rate": float, "gap": float})


def _outcomes(record: Record) -> dict[str, bool]:
    """Name -> value of the outcomes of a record that are known."""
    if record["probe"] == TRACE:
        answer, found = record.get("answer"), {}
        labels = (record.get("labels") or {}).items()
        found = {f"label_{name}": x for name, x in labels if isinstance(x, bool)}
        return found | {"answered": answer is not None} | _right(answer, record.get("gold"))
    if record.get("excluded"):
        return {}
    own = {name: x for name, x in record.items() if isinstance(x, bool) and name != "cut"}
    return own | _right(record.get("answer"), record.get("gold"))


def _right(answer: Any, gold: Any) -> dict[str, bool]:
    right = is_right(answer, gold)
    return {} if right is None else {"correct": right}


def _column(name: str) -> Column:
    return Column(name, meaning=f"{COLUMNS[name][:1].upper()}{COLUMNS[name][1:]}.")


QUESTION_RATES = Table(
    "question_rates",
    "question_rates",
    ("model", "task", _column("measure"), _column("variant"), _column("outcome")),
    (
        Count("n", label="questions", meaning="Questions with samples in which it is known."),
        Boot("n_samples", "n_samples", label="samples a question", meaning="Mean per question."),
        Boot("rate", "rate", label="rate", meaning="Mean over questions of their rates."),
        Boot(
            "gap",
            "gap",
            among=rows_known("gap"),
            label="gap",
            meaning="Mean over questions of their rate minus that of their own chains.",
        ),
    ),
    caption="Rates over the samples of a question; the question is the unit of the intervals",
)
