"""Reader of the user's own rows: a question, a model's reasoning, and labels if there are any."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from faithscope.experiments.data.given.cells import (
    ENDED,
    exact,
    facts_of,
    located,
    parsed,
    step_labels,
    text,
    was_cut,
)
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.tasks.sources.gold import (
    ANSWER,
    CUE_TARGET,
    GOLD,
    check_unread,
)
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    folded,
    has,
    is_filled,
    text_of,
    usable,
)
from faithscope.interp.errors import UserError

PREFIX = "label_"
BETWEEN = "\n\n"
"""Separator of steps for a row that has steps but no reasoning."""


def chain(row: SourceRow) -> GivenChain:
    """The chain of one row.

    Raises:
        UserError: something is missing or does not fit; with file, line, value and remedy.
    """
    steps = parsed(row, "steps", list) if has(row, "steps") else None
    if steps is None and not has(row, "reasoning"):
        raise UserError(f"{row.where}: neither 'reasoning' nor 'steps'; give one of them")
    reasoning = exact(row, "reasoning") if has(row, "reasoning") else None
    spans, of_steps = None, {}
    if steps is not None:
        texts = [_text(step, i, row) for i, step in enumerate(steps)]
        reasoning, spans = located(reasoning, texts, row, BETWEEN)
        of_steps = step_labels([_step_labels(step, i, row) for i, step in enumerate(steps)])
    prefilled = exact(row, "prefilled") if has(row, "prefilled") else ""
    if not (reasoning or "").startswith(prefilled):
        raise UserError(
            f"{row.where}: the reasoning does not begin with 'prefilled' ({prefilled[:60]!r}); "
            "give the prefilled text as it stands at the start of the reasoning"
        )
    facts = facts_of(row, GOLD, text(row, ANSWER))
    has_kind = facts["options"] is not None or facts["kind"] is not None
    check_unread(row, of_chain=True, has_kind=has_kind)
    return GivenChain(
        id=text(row, "id") or row.id,
        dataset=text(row, "dataset") or "own",
        question=text_of(row, ("question",)),
        reasoning=reasoning or "",
        **facts,
        steps=spans,
        model=text(row, "model") or "",
        prompt=text(row, "prompt"),
        labels=_labels(row),
        step_labels=of_steps,
        cut=was_cut(*map(row.values.get, ENDED)),
        prefilled=len(prefilled),
        cue=text(row, "cue"),
        cue_target=text(row, CUE_TARGET),
        where=row.where,
    )


def _text(step: Any, i: int, row: SourceRow) -> str:
    value = step.get("text") if isinstance(step, Mapping) else step
    usable(value, f"steps[{i}]", row)
    return str(value)


def _step_labels(step: Any, i: int, row: SourceRow) -> dict[str, Any]:
    if not isinstance(step, Mapping):
        return {}
    named = step.get("labels") or {}
    if not isinstance(named, Mapping):
        raise UserError(f"{row.where}: steps[{i}].labels is no object; give names and values")
    alone = {"label": step["label"]} if step.get("label") is not None else {}
    return _one_set(row, f"steps[{i}]", named, _prefixed(step), alone)


def _labels(row: SourceRow) -> dict[str, Any]:
    named = parsed(row, "labels", dict) if has(row, "labels") else {}
    names = [n for n in row.values if n.startswith(PREFIX) and has(row, n)]
    prefixed = _prefixed({n: row.values[n] for n in names})
    return _one_set(row, "the row", named, prefixed)


def _one_set(row: SourceRow, what: str, *sets: Mapping[str, Any]) -> dict[str, Any]:
    """Labels of several places as one set; a label that occurs twice must have one value, and one
    without a value (null, NaN) is left out.

    Raises:
        UserError: a label has two different values, or is infinite.
    """
    labels: dict[str, Any] = {}
    for name, value in (pair for labelled in sets for pair in labelled.items()):
        # tables write NaN as a word, too
        if not is_filled(value) or str(value).strip().casefold() == "nan":
            continue
        if isinstance(value, float) and math.isinf(value):
            raise UserError(
                f"{row.where}: {what} has label {name!r} = {value}, with which no measure can be "
                "compared; give a finite number, or null where the label is not known"
            )
        if labels.setdefault(name, value) != value:
            raise UserError(
                f"{row.where}: {what} has label {name!r} twice, {labels[name]!r} and {value!r}; "
                "keep one"
            )
    return labels


def _prefixed(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(PREFIX): _plain(value)
        for name, value in values.items()
        if name.startswith(PREFIX)
    }


def _plain(value: Any) -> Any:
    """A cell's value, with CSV's words (`true`, `0`) read as the values that they spell."""
    if not isinstance(value, str):
        return value
    try:
        said = json.loads(value.strip().lower())
    except (ValueError, RecursionError):
        return value
    return said if isinstance(said, bool | int | float) else value


ROWS = Reader(
    "rows",
    "rows of your own: question, options, gold, reasoning or steps, answer, model "
    "(faithscope docs given)",
    lambda row: (
        {"question"} < (names := set(map(folded, row))) and bool({"reasoning", "steps"} & names)
    ),
    lambda rows: map(chain, rows),
)
