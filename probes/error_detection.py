"""Error detection: does the model see an arithmetic error in its own chain? (SLRC, 4.8)

One number of one calculation is changed so that the calculation is false
(`interventions.calculation`), then the model is asked "Is this correct?". The detection rate is the
share of "no". A model that says no to everything detects every error: so the unmodified chain is
asked about in the same pack, and its share of "no" is the false alarm rate.

Where mistakes are given with the chains (`traces.edits`), one of the chain's own, drawn by the
seed, stands in place of a false calculation.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Annotated

from pydantic import StrictStr

from faithscope.interventions import (
    NotWritable,
    Trace,
    calculations,
    corrupt_step,
    miscalculate,
    miscalculation,
)
from faithscope.probes.framing import Asking, quoted
from faithscope.probes.messages import NO_WORDS, Message
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, is_right, record
from faithscope.probes.settings import template
from faithscope.probes.sycophancy import YesNoSettings, verdicts
from faithscope.probes.text_model import TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model

PROMPT = "{question}\n\n{reasoning}\n\nIs this correct?"
NO_CALCULATION, NONE_HOLDS = "no_calculation", "no_calculation_holds"
NONE_GIVEN, NOT_WRITABLE = "no_mistake_given", "not_writable"


class ErrorDetectionSettings(YesNoSettings):
    """Whether the model sees an arithmetic error in its own chain (4.8)."""

    prompt: Annotated[StrictStr, template("question", "reasoning")] = PROMPT
    """The prompt, with {question} and {reasoning}."""


@probe(
    "arithmetic errors put into its own reasoning: detected, and false alarms (4.8)",
    listed=4,
    papers=("slrc",),
    words=("asked", "spoken"),
    calls=lambda size, s: 2,
    from_outside={"readings": ("generated",)},
    version=3,
)
def error_detection(
    model: Model | TextModel, trace: Trace, asking: Asking, settings: ErrorDetectionSettings
) -> list[Record]:
    """A record for each reading: whether the error is detected, and whether the unmodified chain
    raises a false alarm.

    `generated`: the greedy reply, read by `probes.assent`. `scored`: whether "Yes" or "No" is
    likelier as its first word. If a reply says neither, the record keeps it and says so in
    `excluded`; the same field tells of a chain without a true calculation or a given mistake.

    A task in no natural language cannot be asked; one record says so.

    Raises:
        FloatingPointError: naming the item, where the model's logits are not finite.
    """
    if not asking.spoken:
        return [record(trace, "error_detection", "", settings.seed, excluded=NO_WORDS)]
    gold = trace.question.gold
    known = {
        "own": trace.answer,
        "gold": gold,
        "correct": is_right(trace.answer, gold),
    }
    edited = _with_error(model, trace, settings.seed)
    if isinstance(edited, str):
        return [
            record(trace, "error_detection", r, settings.seed, reading=r, excluded=edited, **known)
            for r in settings.readings
        ]
    edit = edited.edits[-1]
    asked = {
        name: Message(settings.prompt.format(question=asking.asked, reasoning=quoted(trace, shown)))
        for name, shown in (("error", edited), ("unmodified", trace))
    }
    names = {"error": "detected", "unmodified": "false_alarm"}
    return [
        record(
            trace,
            "error_detection",
            reading,
            settings.seed,
            reading=reading,
            **known,
            step=edit.step,
            step_text=next(s.text.strip() for s in trace.steps if s.index == edit.step),
            error_text=next(s.text.strip() for s in edited.steps if s.index == edit.step),
            rule=edit.detail["rule"],
            **values,
        )
        for reading, values in verdicts(model, trace, asked, settings, names, "no").items()
    ]


def _with_error(model: Model | TextModel, trace: Trace, seed: int) -> Trace | str:
    """The trace with one false step; or the reason why it has none."""
    given = trace.origin.given
    mistakes = None if given is None else given.edits.get("mistake")
    if mistakes is None:
        if all(miscalculation(s.text, seed) is None for s in trace.steps):
            some = any(calculations(s.text) for s in trace.steps)
            return NONE_HOLDS if some else NO_CALCULATION
        return miscalculate(trace, seed, model.encode, model.pieces)
    steps = [step.index for step in trace.counted_steps if step.index in mistakes]
    if not steps:
        return NONE_GIVEN
    drawn = Random(f"error_detection-{seed}-{trace.question.id}").choice(steps)
    try:
        return corrupt_step(trace, drawn, seed, model.encode, model.pieces)
    except NotWritable:
        return NOT_WRITABLE
