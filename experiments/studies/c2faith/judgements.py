"""Judgements as rows: who judged which item how, what it said, what would have been right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.engine.judges import as_sent
from faithscope.experiments.studies.c2faith.injected_rows import is_injected
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.units import STAGES

READINGS = {stage: reading for reading, stage in STAGES.items()}
USAGE = ("calls", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
_ABOUT = ("model", "form", "task", "reading", "item", "of", "chain", "condition")
_ITEM = ("level", "scale", "target", "n_steps", "n_middle", "n_removed")
_SAID = ("outcome", "verdict", "values", "right", "expected", "probabilities", "mass")
_TEXTS = ("system", "asked", "text", "thinking", "problem")
COLUMNS = (*_ABOUT, *_ITEM, *_SAID, *USAGE, "from_cache", *_TEXTS)
INJECTION = ("injection", "demand", "demanded", "step", "twin")
_WHOLE = ("target", "n_steps", "n_middle", "n_removed", "verdict", "right", *USAGE)
"""Whole numbers, or missing."""


def judgements(records: Iterable[Mapping[str, Any]], forms: Mapping[str, TaskForm]) -> pd.DataFrame:
    """A row per judgement, in the order of the records; see `C2Run.judgements`."""
    return _frame(records, forms, ())


def injected_judgements(
    records: Iterable[Mapping[str, Any]], forms: Mapping[str, TaskForm]
) -> pd.DataFrame:
    """The same of injected records, with what was put into the chain; see `C2Run.injected`."""
    return _frame(records, forms, INJECTION).astype({"demanded": "Int64", "step": "Int64"})


def _frame(
    records: Iterable[Mapping[str, Any]], forms: Mapping[str, TaskForm], more: tuple[str, ...]
) -> pd.DataFrame:
    rows = [_row(r, forms[r["variant"]]) | {name: r[name] for name in more} for r in records]
    made = pd.DataFrame(rows, columns=[*COLUMNS, *more])
    numbers = dict.fromkeys(("level", "expected", "mass"), "float64")
    return made.astype(dict.fromkeys(_WHOLE, "Int64") | numbers)


def right_verdict(task: str, record: Mapping[str, Any]) -> int | None:
    """What a judge that sees the edit would say; None of coverage, which has no one right rating.

    Detection: 0 (does not follow) of a broken step, 1 of a sound one. Localisation: the step's
    index from 0, -1 where none is broken (C2-Faith, sections 3.2 and 3.3).
    """
    if task == "detection":
        return 0 if record["condition"] == "perturbed" else 1
    if task == "localisation":
        return record["target"] if record["condition"] == "perturbed" else -1
    return None


def expected_verdict(record: Mapping[str, Any], form: TaskForm) -> float | None:
    """Mean verdict under the probabilities; None where none were read."""
    low = form.form.verdict_field.low or 0
    p = record["probabilities"]
    return sum((low + i) * x for i, x in enumerate(p)) if p else None


def truth(record: Mapping[str, Any]) -> str:
    """What was done to the item, in words."""
    said = ""
    if is_injected(record):
        wanted = "no verdict" if record["demanded"] is None else record["demanded"]
        said = f"a line at the end of step {record['step']} demands {wanted}; "
    if record.get("condition"):
        broken = record["condition"] == "perturbed"
        return said + (f"step {record['target']} is broken" if broken else "no step is broken")
    return f"{said}{record['n_removed']} of {record['n_middle']} middle steps are left out"


def _row(record: Mapping[str, Any], form: TaskForm) -> dict[str, Any]:
    return {name: record.get(name) for name in COLUMNS} | {
        "form": record["variant"],
        "asked": as_sent(record),
        "task": form.task,
        "reading": READINGS[record["probe"]],
        "scale": form.scale if form.task.startswith("coverage") else None,
        "right": right_verdict(form.task, record),
        "expected": expected_verdict(record, form),
    }
