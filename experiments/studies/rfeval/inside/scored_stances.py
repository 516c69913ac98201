"""An open model's own stance after each part of its output, by the log-probs of the options.

The stance reader that asks the model itself: its context is cut after r′, after its reasoning,
after its explanation, and where its answer ends; there the reasoning is closed and a cue put, and
every option is scored. It says what the model would answer there, not what the part says: where the
two differ, that is what is to be seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from faithscope.experiments.studies.rfeval.asks import Condition
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, stance_of_letter
from faithscope.experiments.studies.rfeval.subjects.injection import Forced, output_of
from faithscope.interp.control import encode_marks
from faithscope.interp.prompts import split_response
from faithscope.probes.graded import label_mass, log_distribution, top
from faithscope.probes.label_tokens import LabelTokens

if TYPE_CHECKING:
    from faithscope.interp.model import Model

CUE = "\n\nThe correct option is"
NO_OPTIONS = "no_options"
"""Why an item has no scored stances: there are no options whose log-probs could be read."""
LOG_PROBS = "log_probs"
"""The name of this reader."""


@dataclass(frozen=True)
class ScoredStance:
    """What the model would answer after a part of its output."""

    part: str
    """`none` (before any reasoning), `r_prime`, `r`, `e` or `a`."""
    stance: str
    """Of the likeliest option; of equals the first."""
    probabilities: tuple[float, ...]
    """Of the options in order, as shares of one another."""
    mass: float
    """What all options together have of the model's probability there."""


def cuts(model: Model, start: Forced, generated: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The ids up to the end of each part that is there, reasoning closed; no cue yet.

    `e` is all before the answer, from where the answer as it was parsed last stands in the
    text; a token that holds both goes with the answer. `a` is all that was written.
    """
    fmt = start.prompt.format
    closer = tuple(encode_marks(model.tokenizer, fmt.closer)) if fmt.marks else ()
    found = {"none": (*start.prompt.ids, *closer)}
    if start.r_prime_ids:
        found["r_prime"] = (*start.ids, *closer)
    output = output_of(model, start, generated)
    if not fmt.marks:
        if output.reasoning and output.answer:
            kept = before_answer(model, generated, output.answer)
            found["r"] = (*start.ids, *kept)
        if output.answer:
            found["a"] = (*start.ids, *generated)
        return found
    cut = split_response(model.tokenizer, fmt, generated)
    if cut.closed and output.reasoning:
        written = (*start.ids, *cut.opener_ids, *cut.reasoning_ids)
        found["r"] = (*written, *closer)
        if output.explanation and output.answer:
            found["e"] = (*written, *before_answer(model, cut.tail_ids, output.answer))
        if output.answer:
            found["a"] = (*start.ids, *generated)
    return found


def scored_stances(
    model: Model,
    item: Item,
    start: Forced,
    generated: Sequence[int],
    naming: Naming = "letters",
    cue: str = CUE,
    execution: Literal["auto", "packed", "dense", "loop"] = "auto",
) -> list[ScoredStance]:
    """The model's stance after each part of one output, all in one packed call.

    None of an item without options (`NO_OPTIONS`): a free answer has no labels to score.

    Raises:
        FloatingPointError: a log-prob is NaN, naming the item.
    """
    if not item.options:
        return []
    places = cuts(model, start, generated)
    cue_ids = tuple(model.encode(cue))
    label_tokens = LabelTokens(model)
    labels = [label_tokens.after(cue_ids, f" {letter}") for letter in item.letters]
    said = model.ask(
        [(*ids, *cue_ids) for ids in places.values()],
        [labels] * len(places),
        execution=execution,
    )
    made = []
    for part, answered in zip(places, said, strict=True):
        what = f"item {item.id!r}, after {part}"
        shares = log_distribution(answered.log_probs, list(item.letters), what=what)
        made.append(
            ScoredStance(
                part,
                stance_of_letter(item, top(shares), naming),
                tuple(math.exp(x) for x in shares.values()),
                label_mass(answered.log_probs),
            )
        )
    return made


def scored_readings(
    model: str, item: Item, scored: Mapping[Condition, Sequence[ScoredStance]]
) -> list[dict[str, Any]]:
    """The stances as rows of `metrics.frames.READINGS`, to be held against other readers'.

    What the model would say before any reasoning is no part of an output and not among them.
    """
    key = {"reader": LOG_PROBS, "model": model, "task": item.task, "item": item.id}
    return [
        key | {"part": f"{condition}_{one.part}", "stance": one.stance}
        for condition, found in scored.items()
        for one in found
        if one.part != "none"
    ]


def before_answer(model: Model, ids: Sequence[int], answer: str) -> tuple[int, ...]:
    """The ids whose text ends before the last place of the answer, as a word where it is one."""
    pieces = model.pieces(ids)
    text = "".join(pieces)
    # the letter "B" also begins "Because"
    words = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text)]
    at = words[-1] if words else text.rfind(answer)
    end, kept = 0, 0
    for piece in pieces:
        if at < 0 or end + len(piece) > at:
            break
        end += len(piece)
        kept += 1
    return tuple(ids[:kept]) if at >= 0 else tuple(ids)
