"""Direct answers: what the model says when it is not to reason (SLRC, sections 2.3 and 4.3).

Three prompts that insist more and more on the bare answer (unformatted, formatted, with a
system message), so that a low accuracy can be told from a wrong output format. Against the
accuracy with reasoning they tell scaffolding from decoration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from faithscope.interventions import AnswerKind, Trace
from faithscope.probes.framing import READINGS, Reading
from faithscope.probes.messages import Message, Said, ask_messages, opening_labels
from faithscope.probes.record import Record, record
from faithscope.probes.text_model import DECLINED, TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_PROMPTS = "no_direct_prompts"
_DIGITS = 6


@dataclass(frozen=True)
class DirectSettings:
    """What determines a record of direct answers besides model, trace and task."""

    readings: tuple[Reading, ...] = READINGS
    answer_tokens: int = 32
    """Longest greedy reply, in tokens."""
    length_normalise: bool = False
    """Divide each label's log-probability by its number of tokens."""
    execution: Literal["auto", "packed", "dense", "loop"] = "auto"


def direct(
    model: Model | TextModel,
    trace: Trace,
    prompts: Mapping[str, Message],
    labels: Sequence[tuple[str, str]],
    parse: Callable[[str], str | None],
    kind: AnswerKind,
    settings: DirectSettings,
) -> list[Record]:
    """A record for each prompt and reading; of the trace only its question is asked about.

    `generated`: the greedy reply, parsed whole. `scored`: the likeliest of the labels as the
    first words of the reply. A reply that does not parse has no answer and is not correct.
    `system` says how a system message went in: by its `role`, or `folded` into the user
    message where the template has no such role.

    Args:
        prompts: by name; all in one pack. With none, one record says so in `excluded`.
        labels: (canonical answer, surface) as after a cue: the blank before them goes.
        parse: whole reply -> canonical answer.

    Raises:
        FloatingPointError: naming the item, where the model's logits are not finite.
    """
    if not prompts:
        return [record(trace, "direct", "", None, excluded=NO_PROMPTS)]
    replies = ask_messages(
        model,
        trace,
        prompts,
        opening_labels(labels),
        parse,
        kind=kind,
        readings=settings.readings,
        answer_tokens=settings.answer_tokens,
        length_normalise=settings.length_normalise,
        execution=settings.execution,
    )
    return [
        record(
            trace,
            "direct",
            f"{name}.{reading}",
            None,
            prompt=name,
            reading=reading,
            gold=trace.question.gold,
            system=_system(model, message),
            **_answered(replies[name], reading, trace.question.gold),
            **replies.cost,
        )
        for name, message in prompts.items()
        for reading in settings.readings
    ]


def _answered(said: Said, reading: Reading, gold: str | None) -> dict[str, Any]:
    if said.declined:
        return {"excluded": DECLINED, "reply": said.text, "cut": said.cut}
    answer = said.answer(reading)
    values: dict[str, Any] = {
        "answer": answer,
        "correct": None if gold is None else answer == gold,
        "unparsed": answer is None,
    }
    if reading == "generated":
        return values | {"reply": said.text, "cut": said.cut}
    if said.log_probs is None or said.label_mass is None:
        return {"excluded": "fewer_than_2_labels"}
    return values | {
        "label_names": list(said.log_probs),
        "label_mass": round(said.label_mass, _DIGITS),
        "p": [round(math.exp(x), _DIGITS) for x in said.log_probs.values()],
    }


def _system(model: Model | TextModel, message: Message) -> str | None:
    from faithscope.interp.prompts import takes_system

    if message.system is None:
        return None
    if isinstance(model, TextModel):
        return "role"
    return "role" if takes_system(model.tokenizer) else "folded"
