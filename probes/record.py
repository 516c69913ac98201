"""One flat record per item and probe, with the ids that join it to all others of the item."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from faithscope.interventions import Trace

Record = dict[str, Any]
"""Flat and JSON-serialisable: scalars, or lists of scalars. What is longer than a list (per
layer, head or token) stands under `ARRAYS` and is kept beside the records."""

ARRAYS = "arrays"

KEYS = {
    "dataset": "where the item comes from",
    "task": "what was asked about the item, or in which words",
    "item": "its id in the data set, the same in every run",
    "model": "the subject, whose reasoning or answer is measured; none where a chain or text was "
    "judged that no model of the run wrote",
    "judge": "the model that judged; none where nothing was judged",
    "probe": "what was measured",
    "variant": "which form of it",
    "seed": "of what was drawn",
}
"""What every record begins with, and the meaning; on these the records of any two runs join."""

DIGITS = 6
"""Digits that records keep: what lies past these is noise of the pack."""

NO_STREAM = "no_residual_stream"
"""Why a model whose layers, norm and unembedding could not be told is left out."""

_SCALARS = (str, int, float, bool, type(None))


def is_right(answer: str | None, gold: str | None) -> bool | None:
    """Whether an answer is the right one; None where either is unknown. An answer that could not be
    read, or that the token limit cut off, is not a wrong one."""
    return None if None in (answer, gold) else answer == gold


def head(
    *,
    dataset: str,
    task: str,
    item: str,
    model: str | None,
    judge: str | None = None,
    probe: str,
    variant: str = "",
    seed: int | None,
) -> Record:
    """What a record begins with (`KEYS`)."""
    values = (dataset, task, item, model, judge, probe, variant, seed)
    return dict(zip(KEYS, values, strict=True))


def head_of(
    trace: Trace, probe: str, variant: str, seed: int | None, judge: str | None = None
) -> Record:
    """What a record about a trace begins with."""
    question = trace.question
    return head(
        dataset=question.dataset,
        task=question.task,
        item=question.id,
        model=trace.origin.model,
        judge=judge,
        probe=probe,
        variant=variant,
        seed=seed,
    )


def record(
    trace: Trace,
    probe: str,
    variant: str,
    seed: int | None,
    *,
    arrays: Mapping[str, np.ndarray] | None = None,
    **values: Any,
) -> Record:
    """A record of `trace` with its join keys, and what its steps are (`unit`), filled in.

    Args:
        probe: the probe's name in `probes.PROBES`.
        variant: which form of the measure, "" where there is one only.
        arrays: raw numbers by name, of any shape; NaN stands for what there is not.
        values: what was measured; tuples become lists.

    Raises:
        ValueError: for a value that JSON cannot hold flat, or one named like a join key.
    """
    made = head_of(trace, probe, variant, seed) | {"unit": trace.unit}
    for name, value in values.items():
        if name in made:
            raise ValueError(f"{probe} record: {name!r} is a join key; name the value otherwise")
        made[name] = _flat(f"{probe} record of {trace.question.id!r}: {name}", value)
    if arrays:
        made[ARRAYS] = {name: np.ascontiguousarray(x) for name, x in arrays.items()}
    return made


def number(value: Any) -> float:
    """A float as records keep it."""
    return round(float(value), DIGITS)


def numbers(values: Iterable[Any]) -> list[float]:
    """Floats as records keep them."""
    return [number(v) for v in values]


def _flat(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        for entry in value:
            _check(name, entry)
        return list(value)
    _check(name, value)
    return value


def _check(name: str, value: Any) -> None:
    if not isinstance(value, _SCALARS):
        raise ValueError(
            f"{name} = {value!r} is a {type(value).__name__}; give a string, number, bool, None "
            "or a list of these"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} holds {value!r}, which JSON cannot; give a finite number or None")
