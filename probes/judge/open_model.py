"""An open model as judge by the replies it writes, here or through another backend (vLLM).

The model gets the prompt of an API judge whose server knows no JSON schema: the form's prompt, then
the request for the reply's form. `probes.judge.scoring` reads its log-probs instead.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from faithscope.interp.generation import Generation, Sampling
from faithscope.probes.judge.form import Ask, OnReply, Reply, Usage, Writing
from faithscope.probes.judge.parse import read, requested, sent

if TYPE_CHECKING:
    from faithscope.interp.backends import Backend, BackendError
    from faithscope.interp.language import Speaks
    from faithscope.interp.prompts import Prompt


@dataclass(frozen=True)
class GeneratingSettings:
    """Everything but model, form and item that determines a written verdict."""

    max_new_tokens: int = 512
    batch_size: int = 8
    """Most asks that are generated in lockstep here, in the order given."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    top_p: float = 1.0
    seed: int = 0
    """Seed of sampling: each ask draws from a generator of its own, made of this seed, the form's
    name, the ask's id and the attempt, so that a resumed run draws the same."""
    thinking: bool | None = None
    """Whether a hybrid model thinks; None leaves it to the template."""
    attempts: int = 1
    """Most attempts at a reply that does not parse; 1 if greedy."""

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
    """The user message: the prompt, with an ask's request for the reply's form."""
    return sent(ask.prompt, requested(ask))


class GeneratingJudge:
    """A `Judge` that writes its reply, which is parsed strictly (`probes.judge.parse`).

    A greedy reply that does not parse would be written again word for word; so it is `unparsed` at
    once, and only sampled replies are drawn anew (`GeneratingSettings.attempts`).

    Thinking is told from the answer by the model's own marks (`interp.formats`). A reply that the
    token limit cut off is `truncated`, or `unclosed_thinking`, whatever it holds. A prompt that
    leaves no position free is an `overflow`; one that leaves fewer than `max_new_tokens` gets a
    reply of at most those. An ask that the backend does not answer is `failed`.
    """

    def __init__(
        self,
        model: Speaks,
        settings: GeneratingSettings | None = None,
        backend: Backend | None = None,
    ) -> None:
        """
        Args:
            model: tokenizer and format of the judge, with weights (`interp.Model`) if there is no
                backend.
            backend: backend that writes; None writes with the weights of `model` here.
        """
        self.model = model
        self.name = model.name
        self.settings = settings or GeneratingSettings()
        self._backend = backend

    def ask_all(self, asks: Sequence[Ask | Writing], on_reply: OnReply) -> None:
        """Give every ask or writing one reply, as soon as its text has ended.

        Raises:
            FloatingPointError: the model's logits are not finite.
            UserError: the backend is closed or lost.
        """
        backend = self._backend or self._here()
        waiting, attempt = list(self._prompted(asks, backend.max_positions, on_reply)), 0
        while waiting:
            waiting = self._once(backend, waiting, attempt, on_reply)
            attempt += 1

    def _here(self) -> Backend:
        # Not at the top: they bring torch, which listing the probes need not wait for.
        from faithscope.interp.backends.here import Here
        from faithscope.interp.model import Model

        assert isinstance(self.model, Model), f"{self.name} has no weights here, and no backend"
        return Here(self.model, self.settings.batch_size)

    def _prompted(
        self, asks: Sequence[Ask | Writing], positions: int | None, on_reply: OnReply
    ) -> Iterator[_Put]:
        """The asks whose prompts leave room for a reply; the others get an `overflow`."""
        for ask in asks:
            content = ask.turns if isinstance(ask, Writing) else words(ask)
            prompt = self.model.prompt(content, ask.system, self.settings.thinking)
            room = self.settings.max_new_tokens
            if positions is not None:
                room = min(room, positions - len(prompt.ids))
            if room < 1:
                none = overflow(self.name, positions, len(prompt.ids) + 1)
                on_reply(ask, replace(none, requested=requested(ask)))
            else:
                yield _Put(ask, prompt, room)

    def _once(
        self, backend: Backend, batch: list[_Put], attempt: int, on_reply: OnReply
    ) -> list[_Put]:
        """Write a reply to every ask once; returns those to be drawn anew."""
        again: dict[int, _Put] = {}

        def ended(i: int, text: Generation | BackendError) -> None:
            put = batch[i]
            if isinstance(text, Exception):
                reply = Reply("failed", problem=str(text), usage=put.usage)
            else:
                reply = _reply_of(self.model, put, text)
            if reply.outcome == "unparsed" and attempt + 1 < self.settings.attempts:
                again[i] = replace(put, usage=reply.usage, seconds=reply.seconds)
            else:
                on_reply(put.ask, replace(reply, requested=requested(put.ask)))

        sampling = Sampling(
            tuple(self.model.end_ids),
            self.settings.max_new_tokens,
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            seed=tuple(seed_of(self.settings, put.ask, attempt) for put in batch),
            limits=tuple(put.room for put in batch),
        )
        backend.each([put.prompt.ids for put in batch], sampling, ended)
        return [again[i] for i in sorted(again)]


def seed_of(settings: GeneratingSettings, ask: Ask | Writing, attempt: int) -> int:
    """The seed of one attempt at one ask, which no other ask of its batch changes."""
    name = "" if isinstance(ask, Writing) else ask.form.name
    text = f"{settings.seed}\n{name}\n{ask.id}\n{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


@dataclass(frozen=True)
class _Put:
    """An ask on its way through the model."""

    ask: Ask | Writing
    prompt: Prompt
    room: int
    """Most tokens of the ask's reply."""
    usage: Usage = field(default_factory=Usage)
    """Tokens that the attempts so far have used."""
    seconds: float = 0.0
    """Wall time of the attempts so far, in seconds."""


def _reply_of(model: Speaks, put: _Put, generation: Generation) -> Reply:
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.responses import split_response

    fmt = put.prompt.format
    response = split_response(model.tokenizer, fmt, generation.ids)
    thinking, text = "", model.decode(generation.ids)
    if fmt.marks:
        thinking = model.decode(response.reasoning_ids).strip()
        text = _after(fmt.closer, fmt.answer_opener, model.decode(response.tail_ids))
    seconds = put.seconds + (generation.seconds or 0.0)
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
    # in a format without marks the text may hold thinking that is still to be taken off
    parsed = read(put.ask, text, generation.finish == "length", after_thinking=fmt.marks)
    return Reply(
        parsed.outcome,
        parsed.values,
        text=parsed.answer,
        thinking="\n".join(t for t in (thinking, parsed.thinking) if t),
        problem=parsed.problem,
        extra_fields=parsed.n_extra_fields,
        usage=usage,
        seconds=seconds,
    )


def _after(closer: str, answer_opener: str, tail: str) -> str:
    """The text of a tail without the mark at its beginning, as the model spelled that mark."""
    for mark in (closer, answer_opener):
        if mark and mark in tail:
            return tail.partition(mark)[2]
    return tail


def overflow(model: str, positions: int | None, needed: int) -> Reply:
    """The reply to an ask whose prompt the model cannot read to its end."""
    problem = f"{needed} tokens do not fit the {positions} positions of {model}"
    return Reply("overflow", problem=problem)
