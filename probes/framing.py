"""Framings of an edited reasoning in the model's input, and readings of the model's answer.

Two framings. `prefix`: the edited reasoning stands where the model wrote it, as its own tokens,
closed, then a cue for the answer. `reprompt`: the edited reasoning is quoted in a new prompt, as
one must with a closed API (SLRC, section 4.1 and Extended Data Table 1).

Two readings of one forward. `generated`: the greedy answer, parsed. `scored`: the log-probabilities
of the answer labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from faithscope.interventions import AnswerKind, Trace
from faithscope.probes.floor import BASELINE, Arm, answer_margin, noise, without_baselines
from faithscope.probes.graded import label_mass
from faithscope.probes.label_tokens import LabelTokens
from faithscope.probes.settings import Reading
from faithscope.probes.text_model import (
    Message,
    TextModel,
    added_costs,
    cost_of,
    cost_of_replies,
    text_of,
)

if TYPE_CHECKING:
    from faithscope.interp.answered import Answered
    from faithscope.interp.forest import Ids
    from faithscope.interp.model import Model

Framing = Literal["prefix", "reprompt"]
FRAMINGS: tuple[Framing, ...] = ("prefix", "reprompt")
READINGS: tuple[Reading, ...] = ("generated", "scored")
FEWER_LABELS = "fewer_than_2_labels"
"""Why a scored reading is left out: the task has fewer than two answers to choose from."""
WRITTEN_BY_ANOTHER = "written_by_another"
"""Why a given chain is left out of probes that continue a chain: another model wrote it."""


def by_another(trace: Trace) -> bool:
    """Whether a chain was given and written by another model than the one that reads it."""
    given = trace.origin.given
    return given is not None and given.model != trace.origin.model


@dataclass(frozen=True)
class Cue:
    """Text in a conversation that points to one answer (`probes.cues`)."""

    message: str
    """The whole user message; the cue is in it, in `system` or in `before`."""
    text: str
    """The text of the cue alone."""
    mention: str | None
    """Pattern of the words with which a text mentions the cue; None if no words would."""
    system: str | None = None
    before: tuple[tuple[Literal["user", "assistant"], str], ...] = ()
    """(role, text) of the turns before the message."""

    @property
    def sent(self) -> Message:
        """The conversation that the model replies to."""
        return Message(self.message, self.system, self.before)

    @property
    def told(self) -> str:
        """The conversation as one text, as a judge reads it: earlier parts, then the message."""
        parts = [self.system, *(f"{role}: {text}" for role, text in self.before), self.message]
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True)
class Asking:
    """The words a task supplies for one question; probes know no datasets."""

    answer_cue: str
    """Text put after the reasoning in `prefix` framing, e.g. "\\nSo the sentiment is"."""
    labels: tuple[tuple[str, str], ...]
    """(canonical answer, surface) for the scored reading, each surface with the space it
    needs after the cue; labels of one canonical answer add up. May be empty."""
    parse: Callable[[str], str | None]
    """Function from the text from the cue on to the canonical answer."""
    necessity_prompt: Callable[[str], str]
    """Function from the remaining reasoning text to the user message of `reprompt` framing."""
    sufficiency_prompt: Callable[[str], str]
    """Function from one step's text to the user message of `reprompt` framing."""
    kind: AnswerKind
    reprompt_cue: str = ""
    """Text that opens the assistant's turn in `reprompt` framing."""
    asked: str = ""
    """The user message to which the reasoning was written."""
    direct_prompts: Mapping[str, Message] = field(default_factory=dict)
    """Name -> message that asks for the answer without reasoning."""
    parse_reply: Callable[[str], str | None] | None = None
    """Function from a whole reply to a direct prompt to its answer; None stands for `parse`."""
    spoken: bool = True
    """Whether the task is in a natural language, in which a model can be asked about itself."""
    own_cues: Callable[[str], Mapping[str, Cue]] | None = None
    """Function from an answer to the task's own cues to it, by kind; None for the general cues."""
    of_options: Callable[[tuple[str, ...]], Asking] | None = None
    """Function from other texts of the question's options to the words for these."""
    closer_ids: tuple[int, ...] = ()
    """Ids that end the reasoning (a closing think tag with what belongs to it); none for a model
    that writes its reasoning as plain text."""

    @property
    def answers(self) -> list[str]:
        """The canonical answers that labels stand for, each once."""
        return list(dict.fromkeys(name for name, _ in self.labels))

    def cue(self, framing: Framing) -> str:
        return self.answer_cue if framing == "prefix" else self.reprompt_cue


@dataclass(frozen=True)
class Reply:
    """The model's answer after one branch, in both readings."""

    answer: str | None
    """The greedy answer in canonical form; None if it did not parse, or was not asked."""
    log_probs: tuple[float, ...]
    """Per label, its log-prob in nats, summed over its tokens."""
    lengths: tuple[int, ...]
    """Per label, its number of tokens."""
    margin: float | None = None
    """Margin of the greedy answer in nats (`probes.floor.answer_margin`)."""
    pack: int = 0
    """Index of the pack of the call in which the branch was computed."""
    repeats: tuple[Reply, ...] = ()
    """A baseline's replies in every pack; empty for other arms."""
    noise: Mapping[str, Any] = field(default_factory=dict)
    """The noise floor of a baseline (`probes.floor.noise`); empty for other arms."""

    @property
    def label_mass(self) -> float:
        return label_mass(self.log_probs)


def check_cue(asking: Asking, framing: Framing) -> None:
    """
    Raises:
        ValueError: the cue by itself already reads as an answer.
    """
    cue = asking.cue(framing)
    if cue and (answer := asking.parse(cue)) is not None:
        raise ValueError(
            f"the {framing} cue {cue!r} by itself parses as the answer {answer!r}; reword the cue "
            "or narrow the parser"
        )


@contextmanager
def naming(what: str) -> Iterator[None]:
    """A context that puts `what` before the message of a number that is not finite."""
    try:
        yield
    except FloatingPointError as error:
        raise FloatingPointError(f"{what}: {error}") from error


def label_ids(model: Model, asking: Asking, framing: Framing) -> list[tuple[int, ...]]:
    """Per label, the ids that read as its surface after the cue.

    Without a cue they are the ids of the surface alone: a tokenizer that marks word beginnings
    loses a blank at the very start of a text.

    Raises:
        ValueError: the tokenizer has no such ids for a label.
    """
    before = tuple(model.encode(asking.cue(framing)))
    if not before:
        return [tuple(model.encode(surface)) for _, surface in asking.labels]
    label_tokens = LabelTokens(model)
    return [label_tokens.after(before, surface) for _, surface in asking.labels]


def prefix_ids(model: Model, asking: Asking, edited: Trace) -> tuple[int, ...]:
    """Token ids of the prompt, the edited reasoning in its place, the closer, and the cue."""
    return (
        *edited.prompt_ids,
        *edited.reasoning_ids,
        *asking.closer_ids,
        *model.encode(asking.answer_cue),
    )


def prefix_arrays(model: Model, asking: Asking, edited: Sequence[Trace]) -> list[NDArray[np.int32]]:
    """`prefix_ids` of many edited traces, as arrays: a long chain's ids are not copied one by
    one."""
    after = np.array([*asking.closer_ids, *model.encode(asking.answer_cue)], dtype=np.int32)
    return [
        np.concatenate([np.array(trace.prompt_ids, dtype=np.int32), trace.id_array, after])
        for trace in edited
    ]


def reprompt_ids(model: Model, asking: Asking, message: str) -> tuple[int, ...]:
    """Token ids of a new prompt with `message`, to be answered without further reasoning, and the
    cue.

    A family that cannot turn its thinking off has its think block opened and closed at once.
    """
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.prompts import render_direct

    turns = [{"role": "user", "content": message}]
    prompt = render_direct(model.tokenizer, model.format, turns)
    return (*prompt.ids, *model.encode(asking.reprompt_cue))


def quoted(original: Trace, edited: Trace) -> str:
    """The text of the edited reasoning, to be quoted in a prompt.

    The text has the reasoning's own characters, with one blank added where the edit joined two
    words that white space had separated.
    """
    joins = pairwise(s.text for s in original.steps if s.text)
    spaced = any(a[-1].isspace() or b[0].isspace() for a, b in joins)
    text = ""
    for step in edited.steps:
        if spaced and text and step.text and not (text[-1].isspace() or step.text[0].isspace()):
            text += " "
        text += step.text
    return text.strip()


def ask(
    model: Model,
    asking: Asking | Sequence[Asking],
    framing: Framing,
    prefixes: Sequence[Ids],
    readings: Sequence[Reading],
    *,
    answer_tokens: int,
    repeat: Sequence[int] = (),
    execution: Any = "auto",
) -> list[Reply]:
    """Ask for the answer after every prefix, both readings in one pack.

    The greedy answer is the first statement after the cue that parses: models ramble on,
    and the last number of a ramble is no answer. Without a cue the whole reply is parsed
    (section 4.7).

    Args:
        asking: the words of all prefixes, or of each; each has the same kind of answer.
        repeat: indices of prefixes that others are compared with; see `interp.answer.ask`.

    Raises:
        ValueError: the cue by itself already reads as an answer.
    """
    per = [asking] * len(prefixes) if isinstance(asking, Asking) else list(asking)
    every = list({id(one): one for one in per}.values())
    for one in every:
        check_cue(one, framing)
    label_sets = {id(one): label_ids(model, one, framing) for one in every if "scored" in readings}
    written = "generated" in readings
    kinds = {one.kind for one in every}
    if len(kinds) > 1:
        raise ValueError(f"one call asks for answers of one kind, not {', '.join(sorted(kinds))}")
    number = kinds == {"number"}

    def answered(one: Asking, text: str, whole: bool) -> str | None:
        cue = one.cue(framing)
        # Tokenizers that mark word beginnings lose the blank before the first decoded word.
        gap = " " if cue[-1:].isalnum() and text[:1].isalnum() else ""
        return _first_answer(one.parse, cue, gap + text, whole)

    def ended(text: str) -> bool:
        return all(answered(one, text, whole=False) is not None for one in every)

    asked = model.ask(
        prefixes,
        [label_sets[id(one)] for one in per] if any(label_sets.values()) else None,
        max_new_tokens=answer_tokens if written else 0,
        stop=ended if all(one.cue(framing) for one in every) else None,
        boundary="number" if number else None,
        repeat=repeat,
        execution=execution,
    )

    def reply(r: Answered, one: Asking) -> Reply:
        def parsed(ids: Sequence[int]) -> str | None:
            return answered(one, model.decode(ids), whole=True)

        scores = {"log_probs": tuple(r.log_probs), "lengths": tuple(r.label_lengths)}
        if r.generated is None:
            return Reply(answer=None, pack=r.pack, **scores)
        return Reply(
            answer=parsed(r.generated.ids),
            margin=answer_margin(r.generated, parsed, number=number),
            pack=r.pack,
            **scores,
        )

    replies = [reply(r, one) for r, one in zip(asked, per, strict=True)]
    for i in repeat:
        names = [name for name, _ in per[i].labels]
        repeats = tuple(reply(r, per[i]) for r in asked[i].repeats)
        replies[i] = replace(replies[i], repeats=repeats, noise=noise(asked[i], names))
    return replies


_STATEMENT_END = re.compile(
    r"(?<=\w)[\"'”’*_)\]}$]{0,20}[^\S\r\n]*(?:[.!?][\"'”’*_)\]}$]*\s|\r|\n)"
)
_MOST_STATEMENTS = 30
"""Most statements after a cue that are searched for the answer; each is read with all before it."""


def _first_answer(
    parse: Callable[[str], str | None], cue: str, text: str, whole: bool
) -> str | None:
    """The answer of the shortest run of finished statements that holds one.

    `whole` says that the text is complete, so that its last statement is finished.
    """
    if cue:
        for end in islice(_STATEMENT_END.finditer(text), _MOST_STATEMENTS):
            answer = parse(cue + text[: end.end()])
            if answer is not None:
                return answer
    return parse(cue + text) if whole else None


@dataclass(frozen=True)
class Pack:
    """The replies of arms that were asked in one call, with the baseline's of every pack."""

    replies: dict[Arm, Reply]
    cost: dict[str, Any]
    """Execution and cost of the call, as fields of a record; `execution` is `packed`, `dense`,
    `loop` or `api`."""

    @property
    def baseline(self) -> Reply:
        return self.replies[BASELINE]

    @property
    def branches(self) -> dict[Arm, Reply]:
        return without_baselines(self.replies)

    @property
    def packs(self) -> dict[Arm, int]:
        """Arm -> index of the pack that it was computed in."""
        return {arm: reply.pack for arm, reply in self.replies.items()}


def ask_arms(
    model: Model | TextModel,
    trace: Trace,
    asking: Asking,
    framing: Framing,
    arms: Mapping[Arm, Trace],
    *,
    readings: Sequence[Reading],
    answer_tokens: int,
    execution: Any = "auto",
) -> Pack:
    """Ask after every arm of one item in one framing, in one call.

    Args:
        arms: edited traces; those named "alone" are quoted by `asking.sufficiency_prompt`,
            all others by `asking.necessity_prompt`.

    Raises:
        FloatingPointError: naming the item, where the model's logits are not finite.
        Unanswered: an API model has still to be asked.
    """
    if isinstance(model, TextModel):
        return _say_arms(model, trace, asking, framing, arms, readings)
    if framing == "prefix":
        prefixes = prefix_arrays(model, asking, list(arms.values()))
    else:
        messages = _messages(trace, asking, arms).values()
        prefixes = [reprompt_ids(model, asking, message) for message in messages]
    with naming(f"item {trace.question.id!r}, {framing} framing, {len(arms)} branches"):
        replies = ask(
            model,
            asking,
            framing,
            prefixes,
            readings,
            answer_tokens=answer_tokens,
            repeat=[i for i, arm in enumerate(arms) if arm == BASELINE],
            execution=execution,
        )
    cost = cost_of(model, prefixes, execution, room=answer_tokens)
    by_arm = dict(zip(arms, replies, strict=True))
    if BASELINE in by_arm:
        cost |= by_arm[BASELINE].noise
        by_arm |= {(BASELINE[0], r.pack): r for r in by_arm[BASELINE].repeats}
    return Pack(by_arm, cost)


def _messages(trace: Trace, asking: Asking, arms: Mapping[Arm, Trace]) -> dict[Arm, str]:
    """Arm -> user message of `reprompt` framing."""
    return {
        arm: (asking.sufficiency_prompt if arm[0] == "alone" else asking.necessity_prompt)(
            quoted(trace, edited)
        )
        for arm, edited in arms.items()
    }


def _say_arms(
    model: TextModel,
    trace: Trace,
    asking: Asking,
    framing: Framing,
    arms: Mapping[Arm, Trace],
    readings: Sequence[Reading],
) -> Pack:
    """`ask_arms` for an API model: no cue opens its reply, so the whole reply is parsed (4.7)."""
    if framing != "reprompt" or "scored" in readings:
        raise ValueError(
            f"model {model.name!r} is behind an API: it can be asked in reprompt framing and "
            f"generated reading alone, not in {framing} by {', '.join(readings)}"
        )
    messages = {arm: Message(text) for arm, text in _messages(trace, asking, arms).items()}
    by_message = model.say(messages.values())
    texts = {arm: text_of(by_message[message]) for arm, message in messages.items()}
    # An arm that the model declined has no reply: it neither changed the answer nor kept it.
    answers = {arm: asking.parse(text) for arm, text in texts.items() if text is not None}
    replies = {arm: Reply(answer, (), ()) for arm, answer in answers.items()}
    return Pack(replies, cost_of_replies(by_message.values()))


def cost(packs: Sequence[Pack]) -> dict[str, Any]:
    """Cost of asking as fields of a record, with the counts of all packs added up."""
    return added_costs([p.cost for p in packs])
