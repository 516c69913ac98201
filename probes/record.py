"""Records: flat, one per item and probe, with the keys that join all records of an item."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from faithscope.interventions import Trace

Record = dict[str, Any]
"""A flat, JSON-serialisable mapping of scalars or lists of scalars. Longer data (per layer, head or
token) stands under `ARRAYS` and is stored beside the records."""

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
"""Join key -> its meaning; every record begins with these keys, on which any two runs join."""

COST = (
    "execution",
    "tree_reason",
    "trie_tokens",
    "naive_tokens",
    "dtype",
    "noise_floor",
    "texts_by",
)
"""Fields that say how a record was computed, and not what it found."""

DIGITS = 6
"""Number of decimals that records keep: further digits are noise of the pack."""

NO_STREAM = "no_residual_stream"
"""Why a model is left out: its layers, norm and unembedding could not be told."""

_SCALARS = (str, int, float, bool, type(None))


def mean_of_steps(
    values: Iterable[float | None], inclusion: Sequence[float | None] | None = None
) -> float | None:
    """Mean over the steps of a list with one value per counted step, without None; None without
    values.

    Args:
        inclusion: per counted step, the probability with which the draw of edited steps includes it
            (`Trace.inclusion`); each step then counts by its inverse, as so many steps that were
            not drawn. None counts all alike.
    """
    values = list(values)
    if inclusion is None or not values:
        pairs = [(float(x), 1.0) for x in values if x is not None]
    else:
        both = zip(values, inclusion, strict=True)
        pairs = [(float(x), 1 / (p or 1.0)) for x, p in both if x is not None]
    if not pairs:
        return None
    if len({weight for _, weight in pairs}) == 1:
        return math.fsum(x for x, _ in pairs) / len(pairs)
    return math.fsum(x * w for x, w in pairs) / math.fsum(w for _, w in pairs)


def is_right(answer: str | None, gold: str | None) -> bool | None:
    """Whether `answer` is the right one; None if either is unknown. An answer that could not be
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
    """The join keys (`KEYS`) that a record begins with."""
    values = (dataset, task, item, model, judge, probe, variant, seed)
    return dict(zip(KEYS, values, strict=True))


def head_of(
    trace: Trace, probe: str, variant: str, seed: int | None, judge: str | None = None
) -> Record:
    """The join keys that a record about `trace` begins with."""
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
    """A record of `trace`, with its join keys and the kind of its steps (`unit`) filled in.

    Args:
        probe: the probe's name in `probes.PROBES`.
        variant: name of the measure's variant, "" if there is only one.
        arrays: name -> raw numbers of any shape; NaN stands for missing ones.
        values: the measured values; tuples become lists.

    Raises:
        ValueError: JSON cannot hold a value flat, or a value is named like a join key.
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
    """A float rounded as records keep it."""
    return round(float(value), DIGITS)


def numbers(values: Iterable[Any]) -> list[float]:
    """Floats rounded as records keep them."""
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
