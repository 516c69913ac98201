"""Reader of the user's own rows: a question, a model's reasoning, and labels if there are any."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from faithscope.experiments.data.given.cells import (
    exact,
    facts_of,
    is_cut,
    located,
    parsed,
    pattern,
    step_labels,
    text,
    with_options_of_question,
)
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.conditions import is_of_pairs
from faithscope.experiments.data.given.rules import rules
from faithscope.experiments.data.given.thinking import apart, chain_of, reasoning_text
from faithscope.experiments.data.tasks.sources.gold import (
    ANSWER,
    CUE_TARGET,
    GOLD,
    check_unread,
)
from faithscope.experiments.data.tasks.sources.prompts import counterfactual_of, sent_of
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    cell,
    each,
    folded,
    has,
    is_filled,
    text_of,
    usable,
)
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.marks import between_marks, without_opener

PREFIX = "label_"
BETWEEN = "\n\n"
"""Separator of steps for a row that has steps but no reasoning."""


def chain(row: SourceRow) -> GivenChain:
    """The chain of one row.

    Raises:
        UserError: something is missing or does not fit; with file, line, value and remedy.
    """
    steps = _steps(row) if has(row, "steps") else None
    # a service that gave nothing leaves the cell empty: the chain is left out, and counted
    is_empty = "reasoning" in row.values
    if steps is None and not has(row, "reasoning") and not is_empty:
        raise UserError(f"{row.where}: neither 'reasoning' nor 'steps'; give one of them")
    # a template that opens the reasoning leaves its opener at the end of what was asked
    question = without_opener(text_of(row, ("question",)), rules().pairs)
    prompt = text(row, "prompt")
    prompt = None if prompt is None else without_opener(prompt, rules().pairs)
    reasoning, said, ended = None, None, True
    if has(row, "reasoning"):
        held = reasoning_text(exact(row, "reasoning"))
        parted = apart(held, row.where, prompt or question)
        (reasoning, said), ended = chain_of([parted]), parted.ended
    spans, of_steps = None, {}
    if steps is not None:
        of_index = _step_texts(steps, row)
        reasoning, spans = located(reasoning, [*of_index.values()], row, BETWEEN)
        of_steps = step_labels([_step_labels(steps[i], i, row) for i in of_index])
    prefilled, rest = "", None
    if has(row, "prefilled"):
        prefilled, rest = chain_of([apart(exact(row, "prefilled"), row.where)])
    if not (reasoning or "").startswith(prefilled) or (rest and not (said or "").startswith(rest)):
        raise UserError(
            f"{row.where}: the reasoning does not begin with 'prefilled' ({prefilled[:60]!r}); "
            "give the prefilled text as it stands at the start of the reasoning"
        )
    answer = text(row, ANSWER)
    if answer is not None:
        answer = apart(answer, row.where, prompt or question).said.strip() or None
    row, question = with_options_of_question(row, GOLD, answer or said, question)
    facts = facts_of(row, GOLD, answer or said)
    has_kind = facts["options"] is not None or facts["kind"] is not None
    check_unread(row, of_chain=True, has_kind=has_kind)
    return GivenChain(
        id=text(row, "id") or row.id,
        dataset=text(row, "dataset") or "own",
        question=question,
        reasoning=reasoning or "",
        **facts,
        steps=spans,
        model=text(row, "model") or "",
        prompt=prompt,
        sent=sent_of(row),
        counterfactual=counterfactual_of(row),
        sample=text(row, "sample"),
        labels=_labels(row),
        step_labels=of_steps,
        cut=is_cut(row, ended or answer is not None),
        prefilled=len(prefilled),
        cue=text(row, "cue"),
        cue_target=text(row, CUE_TARGET),
        cue_name=text(row, "cue_name") or "",
        cue_mention=pattern(row, "cue_mention"),
        where=row.where,
    )


def _step_texts(steps: Sequence[Any], row: SourceRow) -> dict[int, str]:
    """Index of a step -> its text without the marks of the reasoning; a step that holds marks alone
    is none.

    Raises:
        UserError: a step holds no text, a mark stands inside a step, or a step follows the mark
            that ends the reasoning.
    """
    texts: dict[int, str] = {}
    closer = ""
    for i, step in enumerate(steps):
        own, ends = between_marks(_text(step, i, row), rules().pairs)
        thinking = apart(own, f"{row.where}, steps[{i}]").thinking
        if thinking is not None or (closer and own.strip()):
            raise UserError(
                f"{row.where}: steps[{i}] ({own.strip()[:60]!r}) holds or follows the mark that "
                "ends the reasoning; give the steps of the reasoning alone, and the reply after it "
                "as 'answer'"
            )
        closer = closer or ends
        if own.strip():
            texts[i] = own
    return texts


def _steps(row: SourceRow) -> list[Any]:
    """The steps in a cell: a list, JSON text of one, or a text with `||` or a line break between
    steps."""
    held = cell(row, "steps")
    if not isinstance(held, str) or held.lstrip().startswith(("[", "{")):
        return parsed(row, "steps", list)
    texts = held.split("||") if "||" in held else held.splitlines()
    return [text for text in texts if text.strip()]


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
        said = json_of(value.strip().lower())
    except ValueError:
        return value
    return said if isinstance(said, bool | int | float) else value


ROWS = Reader(
    "rows",
    "rows of your own: question, options, gold, reasoning or steps, answer, model "
    "(faithscope docs given)",
    lambda row: (
        {"question"} < (names := set(map(folded, row)))
        and bool({"reasoning", "steps"} & names)
        and not is_of_pairs(row)
    ),
    lambda rows: iter(each(rows, chain)),
)
