"""Direct answers: the model's answers when it is told not to reason (SLRC, sections 2.3 and 4.3).

Three prompts that insist more and more on the bare answer (unformatted, formatted, with a system
message), so that a low accuracy can be told from a wrong output format. Compared with the accuracy
with reasoning, they tell scaffolding from decoration.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydantic import Field, StrictBool, StrictInt

from faithscope.interventions import Trace
from faithscope.probes.framing import FEWER_LABELS, READINGS, Asking, Reading
from faithscope.probes.messages import Message, MessageReply, ask_messages, opening_labels
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, number, numbers, record
from faithscope.probes.settings import Execution, Settings, Some
from faithscope.probes.text_model import DECLINED, TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_PROMPTS = "no_direct_prompts"


class DirectSettings(Settings):
    """Answers without reasoning (2.3, 4.3)."""

    readings: Some[Reading] = READINGS
    """Readings of the answer: the reply parsed whole, or log-probs of the labels."""
    answer_tokens: StrictInt = Field(default=32, ge=1)
    """Most tokens of a reply: room for a sentence, not for reasoning."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens in the scored reading."""
    execution: Execution = "auto"


@probe(
    "accuracy without reasoning, asked for in three ways (2.3, 4.3)",
    listed=2,
    papers=("slrc",),
    words=("direct", "labels"),
    reads_labels=True,
    calls=lambda size, s: 3,
    quoted=lambda size, s: 0,
    on_excluded=True,
    from_outside={"readings": ("generated",)},
)
def direct(
    model: Model | TextModel, trace: Trace, asking: Asking, settings: DirectSettings
) -> list[Record]:
    """A record for each prompt and reading; only the trace's question is asked about.

    `generated`: the greedy reply, parsed whole. `scored`: the likeliest of the labels as the first
    words of the reply. A reply that does not parse has no answer and is not correct. `system` says
    how a system message was given: by its `role`, or `folded` into the user message if the template
    has no such role. All prompts are in one pack; for a task without such prompts one record says
    so in `excluded`.

    Raises:
        FloatingPointError: the model's logits are not finite; the message names the item.
    """
    prompts = asking.direct_prompts
    if not prompts:
        return [record(trace, "direct", "", None, excluded=NO_PROMPTS)]
    replies = ask_messages(
        model,
        trace,
        prompts,
        # without a cue before them, labels lose the blank that they begin with
        opening_labels(asking.labels),
        asking.parse_reply or asking.parse,
        kind=asking.kind,
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


def _answered(reply: MessageReply, reading: Reading, gold: str | None) -> dict[str, Any]:
    if reply.declined:
        return {"excluded": DECLINED, "reply": reply.text, "cut": reply.cut}
    answer = reply.answer(reading)
    values: dict[str, Any] = {
        "answer": answer,
        "correct": None if gold is None else answer == gold,
        "unparsed": answer is None,
    }
    if reading == "generated":
        return values | {"reply": reply.text, "cut": reply.cut}
    if reply.log_probs is None or reply.label_mass is None:
        return {"excluded": FEWER_LABELS}
    return values | {
        "label_names": list(reply.log_probs),
        "label_mass": number(reply.label_mass),
        "p": numbers(map(math.exp, reply.log_probs.values())),
    }


def _system(model: Model | TextModel, message: Message) -> str | None:
    from faithscope.interp.prompts import takes_system

    if message.system is None:
        return None
    if isinstance(model, TextModel):
        return "role"
    return "role" if takes_system(model.tokenizer) else "folded"
