"""New prompts about one item, answered without reasoning, all in one pack.

`probes.framing` asks for the answer after an edit of a trace. Here the model is asked anything
else, as a person would: by a user message, perhaps with a system message, and the reply is read
whole, from the first word of the assistant's turn.
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
"""Why models of a task in no natural language are left out: they cannot be asked in words."""


@dataclass(frozen=True)
class MessageReply:
    """The model's reply to one message, in all readings."""

    text: str | None
    """The greedy reply; None if only labels were scored."""
    cut: bool
    """Whether the reply reached its token limit before its end."""
    generated: str | None
    """The reply's answer in canonical form; None if it did not parse, or was not asked."""
    log_probs: Mapping[str, float] | None
    """Log distribution over the canonical answers; None if fewer than two were scored."""
    label_mass: float | None = None
    """The model's probability of all labels together; None if none was scored."""
    declined: bool = False
    """Whether there was no readable answer (`probes.text_model.DECLINED`)."""
    narrowest: float | None = None
    """Margin of the greedy reply's answer in nats (`probes.floor.answer_margin`)."""

    def answer(self, reading: Reading) -> str | None:
        """The answer by one reading."""
        if reading == "generated":
            return self.generated
        return None if self.log_probs is None else top(self.log_probs)

    def margin(self, reading: Reading) -> float | None:
        """Margin of the answer in one reading, in nats."""
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
    """Execution and cost of the pack, as fields of a record."""

    def __getitem__(self, name: str) -> MessageReply:
        return self.by_name[name]


def message_ids(model: Model, message: Message) -> tuple[int, ...]:
    """Token ids of a prompt that is to be answered without reasoning.

    A family that cannot turn its thinking off has its think block opened and closed at once. A
    system message goes where the template puts it; a template without that role gets it before the
    user message, with a blank line between (`interp.prompts.render`).
    """
    tokenizer, fmt = model.tokenizer, model.format
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.prompts import render_direct

    turns = message.turns
    if message.system is not None:
        turns = [{"role": "system", "content": message.system}, *turns]
    return render_direct(tokenizer, fmt, turns).ids


def opening_labels(labels: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Labels as the first words of a turn: without the blank that separates them from a cue."""
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
    """Put every message to the model, and read both readings from one forward.

    Args:
        baseline: name of the message that the other one is compared with; its reply is taken from
            the other message's pack, and the cost holds the noise floor.
        labels: (canonical answer, surface), each surface as it would open the reply.
        parse: function from a whole reply to the canonical answer.

    Raises:
        FloatingPointError: the model's logits are not finite; the message names the item.
        Unanswered: an API model has still to be asked.
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
