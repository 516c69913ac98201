"""Stances of an open model by its own log-probs after each part of its output, and RF of a pair by
these stances.

The stance reader that asks the model itself: its context is cut after r′, after its reasoning,
after its explanation, and where its answer ends; there the reasoning is closed and a cue put, and
every option is scored. It says what the model would answer there, not what the part says: where the
two differ, that is what is to be seen. RF by these stances needs no judge, and is a bound from
below: log-probs name no flaw, so that every transition to another stance breaks its chain, also one
that says in so many words what was wrong before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from faithscope.experiments.studies.rfeval.config_sections import CUE
from faithscope.experiments.studies.rfeval.items import Condition, Item
from faithscope.experiments.studies.rfeval.judging.stances import (
    stance_of_answer,
    stance_of_letter,
)
from faithscope.experiments.studies.rfeval.pairs import FIELDS, pair_row
from faithscope.experiments.studies.rfeval.subjects.inside import asking_of, output_chain
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced, output_of
from faithscope.probes.chain_parts import ChainText
from faithscope.probes.framing import Asking, label_ids
from faithscope.probes.graded import label_mass, log_distribution, top
from faithscope.probes.settings import Execution

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_OPTIONS = "no_options"
"""Why an item has no scored stances: there are no options whose log-probs could be read."""
LOG_PROBS = "log_probs"
"""Name of this reader of stances."""


Stances = Mapping[Condition, Sequence[Mapping[str, Any]]]
"""What `scored_stances` gives, by condition; empty for an output whose log-probs were not read."""


def scored_stances(
    model: Model,
    item: Item,
    start: Forced,
    generated: Sequence[int],
    execution: Execution = "auto",
) -> list[dict[str, Any]]:
    """What the model would answer after each part of one output, all in one packed call.

        part            `none` (before any reasoning), `r_prime`, `r`, `e` or `a`
        stance          of the likeliest option; of equals the first
        probabilities   of the options in order, as shares of one another
        mass            what all options together have of the model's probability there

    An item without options has none (`NO_OPTIONS`): a free answer has no labels to score.

    Raises:
        FloatingPointError: a log-prob is NaN, naming the item.
    """
    if not item.options:
        return []
    asking = asking_of(model, item, CUE, "letters")
    ends = part_ends(model, item, start, generated, asking)
    replies = model.ask(
        [(*ids, *model.encode(CUE)) for ids in ends.values()],
        [label_ids(model, asking, "prefix")] * len(ends),
        execution=execution,
    )
    stances = []
    for part, reply in zip(ends, replies, strict=True):
        what = f"item {item.id!r}, after {part}"
        shares = log_distribution(reply.log_probs, list(item.letters), what=what)
        stance = {"part": part, "stance": stance_of_letter(item, top(shares))}
        stance |= {"probabilities": [math.exp(x) for x in shares.values()]}
        stances.append(stance | {"mass": label_mass(reply.log_probs)})
    return stances


def part_ends(
    model: Model, item: Item, start: Forced, generated: Sequence[int], asking: Asking
) -> dict[str, tuple[int, ...]]:
    """The ids up to the end of each part that an output has, with the reasoning closed and without
    a cue: `e` is all before the answer, `a` all that was written."""
    output = output_of(model, start, generated)
    chain = output_chain(model, item, start, generated)
    text = ChainText.of(model, chain, asking)
    whole = (*text.prompt_ids, *text.written)
    closed = not asking.closer_ids or bool(chain.tail_ids)
    reasoned = closed and bool(output.reasoning)
    ends = {"none": text.prefix(0)}
    if text.n_r_prime:
        ends["r_prime"] = text.prefix(text.n_r_prime)
    if reasoned and (asking.closer_ids or output.answer):
        ends["r"] = text.prefix(text.reasoned)
    if reasoned and output.explanation and output.answer:
        ends["e"] = (*text.prompt_ids, *text.written[: text.end])
    if output.answer and (reasoned or not asking.closer_ids):
        ends["a"] = whole
    return ends


def scored_readings(model: str, item: Item, scored: Stances) -> list[dict[str, Any]]:
    """The stances as rows of `tables.frames.READINGS`, for comparison with other readers.

    What the model would say before any reasoning is no part of an output and not among them.
    """
    key = {"reader": LOG_PROBS, "model": model, "task": item.task, "item": item.id}
    return [
        key | {"part": f"{condition}_{one['part']}", "stance": one["stance"]}
        for condition, stances in scored.items()
        for one in stances
        if one["part"] != "none"
    ]


NO_ANSWER = "no_answer"
"""Why an output has no stances here: no answer was marked whose stance could be matched."""
NO_LOG_PROBS = "no_log_probs"
"""Why an output has no stances here: no log-probs were read after its reasoning (or after r′)."""


def row_without_judge(
    model: str,
    item: Item,
    outputs: Mapping[Condition, Output],
    scored: Stances,
    excluded: str = "",
) -> dict[str, Any]:
    """The row of one item for the reader `LOG_PROBS`.

    Stances of r′, r and e are the likeliest option after them (`scored_stances`), that of a is
    the written answer's by matching (`stance_of_answer`). No flaw is ever named.

    Args:
        outputs: see `pairs.pair_row`.
        excluded: why the pair counts for nothing at all, "" for most pairs; items without options
            are left out anyway (`NO_OPTIONS`).

    Returns:
        A row for `tables.frames.checked`. `…_judged` is "parsed" for an output with all stances,
        else `NO_ANSWER` or `NO_LOG_PROBS`; "" for an output that is not complete.
    """
    replies: dict[Condition, dict[str, Any]] = {}
    for condition, output in outputs.items() if item.options else ():
        if not output.usable:
            continue
        read = {one["part"]: one["stance"] for one in scored.get(condition, ())}
        needed = ("r_prime", "r") if condition == "intervened" else ("r",)
        if not output.answer:
            replies[condition] = {"outcome": NO_ANSWER}
        elif not all(part in read for part in needed):
            replies[condition] = {"outcome": NO_LOG_PROBS}
        else:
            stances = {part: read.get(part, "") for part in (*needed, "e")}
            stances |= {"a": stance_of_answer(item, output.answer)}
            values = {FIELDS[condition][f"{condition}_{part}"]: x for part, x in stances.items()}
            replies[condition] = {"outcome": "parsed", "values": values}
    why = excluded or ("" if item.options else NO_OPTIONS)
    return pair_row(LOG_PROBS, model, item, outputs, replies, excluded=why)
