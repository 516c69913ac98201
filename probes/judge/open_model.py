"""An open model as a judge by what it writes.

It is told what an API judge is told where the server knows no JSON schema: the form's prompt,
then the request for the reply's form. `probes.judge.scoring` reads its log-probs instead.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from faithscope.probes.judge.form import Ask, OnReply, OnText, Reply, Usage, Writing
from faithscope.probes.judge.parse import read, requested, sent

if TYPE_CHECKING:
    from faithscope.interp.execute import Generation
    from faithscope.interp.model import Model
    from faithscope.interp.prompts import Prompt


Put = Callable[[Any, Reply], None]
"""Takes an ask or a writing, and what came back."""


@dataclass(frozen=True)
class GeneratingSettings:
    """What determines a written verdict besides model, form and item."""

    max_new_tokens: int = 512
    batch_size: int = 8
    """Most asks that are generated in lockstep, taken in the order given."""
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    seed: int = 0
    """Where sampled: each ask draws from a generator of its own, made of this seed, the form's
    name, the ask's id and the attempt, so that a resumed run draws what it would have drawn."""
    thinking: bool | None = None
    """Ask a hybrid model to think, or not to; None leaves it to the template."""
    attempts: int = 1
    """How often at most a reply that does not parse is drawn anew; 1 where greedy."""

    def __post_init__(self) -> None:
        for name in ("max_new_tokens", "batch_size", "attempts"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"generating judge: {name} = {getattr(self, name)}; give 1 or more"
                )
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(
                f"generating judge: temperature = {self.temperature}; give 0 (greedy) or more"
            )
        if self.attempts > 1 and self.temperature == 0:
            raise ValueError(
                f"generating judge: attempts = {self.attempts} with temperature 0, which writes "
                "the same again; give attempts 1, or a temperature"
            )


def words(ask: Ask | Writing) -> str:
    """The user message: the prompt, and of an ask the request for the reply's form."""
    return sent(ask.prompt, requested(ask))


class GeneratingJudge:
    """The model writes its reply, which is parsed strictly (`probes.judge.parse`).

    A greedy reply that does not parse would be written again word for word; so it stays
    `unparsed` at once, and only sampled ones are drawn anew (`GeneratingSettings.attempts`).

    Thinking is told from the answer by the model's own marks (`interp.formats`). What the token
    limit cut off is `truncated`, or `unclosed_thinking`, whatever stands in it. A prompt that
    leaves no position free is an `overflow`; one that leaves fewer than `max_new_tokens` gets
    what there is. `Reply.seconds` run from the beginning of the batch to the reply's end.
    """

    def __init__(self, model: Model, settings: GeneratingSettings | None = None) -> None:
        self.model = model
        self.name = model.name
        self.settings = settings or GeneratingSettings()

    def ask_all(self, asks: list[Ask], on_reply: OnReply) -> None:
        """Every ask gets one reply, as soon as its text has come to an end.

        Raises:
            FloatingPointError: the model's logits are not finite.
        """
        self._all(asks, on_reply)

    def write_all(self, writings: list[Writing], on_text: OnText) -> None:
        """Every writing gets one reply, as soon as its text has come to an end.

        Raises:
            FloatingPointError: the model's logits are not finite.
        """
        self._all(writings, on_text)

    def _all(self, asks: Sequence[Ask | Writing], on_reply: Put) -> None:
        for batch, room in self._batches(asks, on_reply):
            began, attempt, waiting = time.perf_counter(), 0, batch
            while waiting:
                waiting = self._once(waiting, room, attempt, began, on_reply)
                attempt += 1

    def _batches(
        self, asks: Sequence[Ask | Writing], on_reply: Put
    ) -> Iterator[tuple[list[_Put], int]]:
        """Asks with as many tokens to write in, batch after batch."""
        limit = self.model.max_positions
        most = self.settings.max_new_tokens
        by_room: dict[int, list[_Put]] = {}
        for ask in asks:
            content = ask.turns if isinstance(ask, Writing) else words(ask)
            prompt = self.model.prompt(content, _system(ask), self.settings.thinking)
            room = most if limit is None else min(most, limit - len(prompt.ids))
            if room < 1:
                none = overflow(self.model, len(prompt.ids) + 1)
                on_reply(ask, replace(none, requested=requested(ask)))
                continue
            batch = by_room.setdefault(room, [])
            batch.append(_Put(ask, prompt))
            if len(batch) == self.settings.batch_size:
                yield by_room.pop(room), room
        for room, batch in by_room.items():
            yield batch, room

    def _once(
        self, batch: list[_Put], room: int, attempt: int, began: float, on_reply: Put
    ) -> list[_Put]:
        """Write every ask of a batch once; back come those to be drawn anew."""
        again: dict[int, _Put] = {}

        def done(i: int, generation: Generation) -> None:
            put = batch[i]
            reply = _reply_of(self.model, put, generation, time.perf_counter() - began)
            if reply.outcome == "unparsed" and attempt + 1 < self.settings.attempts:
                again[i] = replace(put, usage=reply.usage)
            else:
                on_reply(put.ask, replace(reply, requested=requested(put.ask)))

        self.model.generate(
            [put.prompt.ids for put in batch],
            max_new_tokens=room,
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            seed=[seed_of(self.settings, put.ask, attempt) for put in batch],
            on_done=done,
        )
        return [again[i] for i in sorted(again)]


def seed_of(settings: GeneratingSettings, ask: Ask | Writing, attempt: int) -> int:
    """The seed of one attempt at one ask, whoever shares its batch."""
    name = "" if isinstance(ask, Writing) else ask.form.name
    text = f"{settings.seed}\n{name}\n{ask.id}\n{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _system(ask: Ask | Writing) -> str | None:
    return ask.system if isinstance(ask, Writing) else ask.form.system


@dataclass(frozen=True)
class _Put:
    """An ask on its way through the model."""

    ask: Ask | Writing
    prompt: Prompt
    usage: Usage = field(default_factory=Usage)
    """What the attempts so far have used."""


def _reply_of(model: Model, put: _Put, generation: Generation, seconds: float) -> Reply:
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.responses import split_response

    fmt = put.prompt.format
    response = split_response(model.tokenizer, fmt, generation.ids)
    thinking, text = "", model.decode(generation.ids)
    if fmt.marks:
        thinking = model.decode(response.reasoning_ids).strip()
        text = _after(fmt.closer, fmt.answer_opener, model.decode(response.tail_ids))
    usage = Usage(
        calls=put.usage.calls + 1,
        input_tokens=put.usage.input_tokens + len(put.prompt.ids),
        output_tokens=put.usage.output_tokens + len(generation.ids),
        reasoning_tokens=put.usage.reasoning_tokens
        + (len(response.reasoning_ids) if fmt.marks else 0),
    )
    if not response.closed:
        return Reply(
            "unclosed_thinking",
            thinking=thinking,
            problem="the thinking has no end",
            usage=usage,
            seconds=seconds,
        )
    parsed = read(put.ask, text, cut=generation.finish == "length")
    return Reply(
        parsed.outcome,
        parsed.values,
        text=parsed.answer,
        thinking="\n".join(t for t in (thinking, parsed.thinking) if t),
        problem=parsed.problem,
        usage=usage,
        seconds=seconds,
    )


def _after(closer: str, answer_opener: str, tail: str) -> str:
    """The text of a tail without the mark that it begins with, spelled as the model spelled it."""
    for mark in (closer, answer_opener):
        if mark and mark in tail:
            return tail.partition(mark)[2]
    return tail


def overflow(model: Model, needed: int) -> Reply:
    """The reply to an ask whose prompt the model cannot read to its end."""
    return Reply(
        "overflow",
        problem=f"{needed} tokens do not fit the {model.max_positions} positions of {model.name}",
    )
