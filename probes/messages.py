"""New prompts of one item, answered without reasoning, all in one pack.

Where an edit of a trace is asked about, `probes.framing` does it. Here the model is asked
something else, as a person would: a user message, perhaps a system message, and the reply is
read whole, from the first word of the assistant's turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.interventions import AnswerKind, Trace
from faithscope.probes.floor import answer_margin, noise, rounded
from faithscope.probes.framing import Reading, naming
from faithscope.probes.graded import label_mass, log_distribution, logit_difference, top
from faithscope.probes.text_model import Message, TextModel, cost_of, cost_of_replies, text_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_WORDS = "no_words_for_it"
"""Why models of a task in no natural language are left out: nothing can be said to them."""


@dataclass(frozen=True)
class MessageReply:
    """What it replied."""

    text: str | None
    """The greedy reply; None where only labels were scored."""
    cut: bool
    """Whether the reply reached its limit before it came to an end."""
    generated: str | None
    """The reply's canonical answer; None where it did not parse, or was not asked."""
    log_probs: Mapping[str, float] | None
    """Log distribution over the canonical answers; None where fewer than two were scored."""
    label_mass: float | None = None
    """What all labels together have of the model's probability; None where none was scored."""
    declined: bool = False
    """Whether there was no answer to be read (`probes.text_model.DECLINED`)."""
    narrowest: float | None = None
    """How narrowly the greedy reply's answer was decided, in nats: `probes.floor.answer_margin`."""

    def answer(self, reading: Reading) -> str | None:
        """The answer in one reading."""
        if reading == "generated":
            return self.generated
        return None if self.log_probs is None else top(self.log_probs)

    def margin(self, reading: Reading) -> float | None:
        """By how much the answer was decided in one reading, in nats."""
        if reading == "generated":
            return rounded(self.narrowest)
        if self.log_probs is None:
            return None
        return rounded(logit_difference(self.log_probs, top(self.log_probs)))


@dataclass(frozen=True)
class Replies:
    """The replies of one pack, by the names of their messages."""

    by_name: dict[str, MessageReply]
    cost: dict[str, Any]
    """How the pack ran, as a record tells it."""

    def __getitem__(self, name: str) -> MessageReply:
        return self.by_name[name]


def message_ids(model: Model, message: Message) -> tuple[int, ...]:
    """A prompt to be answered without reasoning.

    A family that cannot turn its thinking off has its think block opened and closed at once.
    A system message goes where the template puts it; a template without that role gets it at
    the head of the user message, a blank line between (`interp.prompts.render`).
    """
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.prompts import render_direct

    turns = [{"role": "user", "content": message.user}]
    if message.system is not None:
        turns = [{"role": "system", "content": message.system}, *turns]
    return render_direct(model.tokenizer, model.format, turns).ids


def opening_labels(labels: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Labels as they open a turn: without the blank that stands between a cue and them."""
    return tuple(dict.fromkeys((name, surface.lstrip()) for name, surface in labels))


def ask_messages(
    model: Model | TextModel,
    trace: Trace,
    messages: Mapping[str, Message],
    labels: Sequence[tuple[str, str]],
    parse: Callable[[str], str | None],
    *,
    kind: AnswerKind,
    readings: Sequence[Reading],
    answer_tokens: int,
    baseline: str | None = None,
    length_normalise: bool = False,
    execution: Any = "auto",
) -> Replies:
    """Put every message to the model, both readings of the same forward.

    Args:
        baseline: the message that the other one is compared with; its reply is that of the
            other one's pack, and the cost has the noise floor.
        labels: (canonical answer, surface), each surface as it would open the reply.
        parse: whole reply -> canonical answer.

    Raises:
        FloatingPointError: naming the item, where the model's logits are not finite.
        Unanswered: a model behind an API has still to be asked.
    """
    if isinstance(model, TextModel):
        return _say_messages(model, messages, parse, readings)
    prefixes = [message_ids(model, m) for m in messages.values()]
    names = [name for name, _ in labels]
    scored = "scored" in readings and len(set(names)) > 1
    written = "generated" in readings
    item = f"item {trace.question.id!r}"
    repeat = [i for i, name in enumerate(messages) if name == baseline]
    with naming(f"{item}, {', '.join(messages)}"):
        answers = model.ask(
            prefixes,
            [[model.encode(surface) for _, surface in labels]] * len(prefixes) if scored else None,
            max_new_tokens=answer_tokens if written else 0,
            boundary="number" if kind == "number" else None,
            repeat=repeat,
            execution=execution,
        )
    cost = cost_of(model, prefixes, execution, room=answer_tokens)
    for i in repeat:
        cost |= noise(answers[i], names)
        pack = max(r.pack for k, r in enumerate(answers) if k != i)
        answers[i] = answers[i].repeats[pack]
    by_name = {}
    for name, reply in zip(messages, answers, strict=True):
        text = None if reply.generated is None else model.decode(reply.generated.ids)
        by_name[name] = MessageReply(
            text=text,
            cut=reply.generated is not None and reply.generated.finish == "length",
            generated=None if text is None else parse(text),
            log_probs=log_distribution(
                reply.log_probs,
                names,
                lengths=reply.label_lengths if length_normalise else None,
                what=f"{item}, {name}",
            )
            if scored
            else None,
            narrowest=None
            if reply.generated is None
            else answer_margin(
                reply.generated, lambda ids: parse(model.decode(ids)), number=kind == "number"
            ),
            label_mass=label_mass(reply.log_probs) if scored else None,
        )
    return Replies(by_name, cost)


def _say_messages(
    model: TextModel,
    messages: Mapping[str, Message],
    parse: Callable[[str], str | None],
    readings: Sequence[Reading],
) -> Replies:
    if "scored" in readings:
        raise ValueError(f"model {model.name!r} is behind an API: no reading but generated")
    by_message = model.say(messages.values())
    by_name = {}
    for name, message in messages.items():
        reply, text = by_message[message], text_of(by_message[message])
        by_name[name] = MessageReply(
            text=reply.text,
            cut=reply.outcome == "truncated",
            generated=None if text is None else parse(text),
            log_probs=None,
            declined=text is None,
        )
    return Replies(by_name, cost_of_replies(by_message.values()))
