"""An open model as judge whose reply is held to the form while it is written.

This does what a provider's structured output does for its models: the names, quotes and commas of
the JSON object are prefilled, a text field is written freely up to its closing quote, and a number
is chosen among those that the form admits, by log-probs of the whole number. So every reply parses,
and a model that cannot keep to a form is asked about its judgement, not about JSON. Labels, true
and false, and whether an optional text is null are chosen by log-probs, too.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, inf
from typing import TYPE_CHECKING, Any

from faithscope.probes.graded import log_distribution, top
from faithscope.probes.judge.form import Ask, Field, OnReply, Reply, Usage, VerdictValue
from faithscope.probes.judge.open_model import GeneratingSettings, overflow, seed_of
from faithscope.probes.label_tokens import LabelTokens
from faithscope.probes.messages import Message, message_ids

if TYPE_CHECKING:
    from faithscope.interp.generation import Generation
    from faithscope.interp.model import Model

_CUT = "ended by the"
SPARE = 16
"""Tokens kept free for each text beyond those counted: the closing quote may be another token than
the one that was written, and one character several tokens."""


@dataclass
class _State:
    """One ask on its way through the fields of its form."""

    ask: Ask
    prompt: tuple[int, ...]
    room: float
    """Tokens left for all remaining texts together."""
    texts: int
    """Number of texts still to be written, if none of them is null."""
    ids: list[int] = field(default_factory=list)
    """Token ids of the reply so far, prefilled or written."""
    values: dict[str, Any] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    """Names of texts that the token limit ended."""
    short: list[str] = field(default_factory=list)
    """Names of texts that ended before the token limit, for want of positions."""

    def room_now(self, most: int) -> int:
        """Tokens for the next text, at most `most`: its share of the tokens left."""
        return int(min(most, self.room // self.texts))


class ForcedJudge:
    """A `Judge` that fills the form's fields in order: it writes texts and chooses numbers.

    The prompt stands alone, without a request for JSON. The model answers at once: a family that
    thinks has its think block opened and closed with nothing in it;
    `probes.judge.open_model.GeneratingJudge` lets a model think first. A text that reaches
    `max_new_tokens`, or the model's last position, is closed there, which `Reply.problem` says; the
    numbers after it are the model's own choice. A prompt that leaves no position is an `overflow`.
    Replies are greedy, or drawn with the settings' temperature and a seed for each ask.
    """

    def __init__(self, model: Model, settings: GeneratingSettings | None = None) -> None:
        self.model = model
        self.name = model.name
        self.settings = settings or GeneratingSettings()
        self._label_tokens = LabelTokens(model)

    def ask_all(self, asks: Sequence[Ask], on_reply: OnReply) -> None:
        """Give every ask one reply, batch by batch; `Reply.seconds` is its share of the batch's
        time.

        Raises:
            FloatingPointError: the model's logits are not finite.
        """
        # asks of a batch fill their fields together, in one way
        by_form: dict[tuple[str, bool], list[Ask]] = defaultdict(list)
        for ask in asks:
            by_form[ask.form.name, bool(ask.labels)].append(ask)
        size = self.settings.batch_size
        for of_form in by_form.values():
            for start in range(0, len(of_form), size):
                self._batch(of_form[start : start + size], on_reply)

    def _batch(self, asks: Sequence[Ask], on_reply: OnReply) -> None:
        began = time.perf_counter()
        form, limit, states = asks[0].form, self.model.max_positions, []
        texts = sum(asks[0].writes(f) for f in form.fields)
        for ask in asks:
            prompt = tuple(message_ids(self.model, Message(ask.prompt, ask.system)))
            needed = len(prompt) + self._put_there(ask)
            room = inf if limit is None else limit - needed
            if room < texts:
                on_reply(ask, overflow(self.name, limit, needed + texts))
            else:
                states.append(_State(ask, prompt, room, texts))
        if not states:
            return
        for i, f in enumerate(form.fields):
            lead = lead_of(f, form.fields[i - 1] if i else None)
            if asks[0].writes(f):
                self._text(states, f, lead)
            else:
                self._put(states, lead)
                self._choose(states, f)
        seconds = (time.perf_counter() - began) / len(states)
        for state in states:
            on_reply(state.ask, self._reply(state, seconds))

    def _put_there(self, ask: Ask) -> int:
        """Most tokens of a reply outside of its texts."""
        fields, n = ask.form.fields, len(self.model.encode("}")) * len(ask.form.fields[-1].path)
        for i, f in enumerate(fields):
            n += len(self.model.encode(lead_of(f, fields[i - 1] if i else None)))
            if ask.writes(f):
                n += SPARE
            if not ask.writes(f) or f.optional:
                values = (None, "") if f.optional else ask.choices(f)
                n += max(map(len, self._labels(f, values)))
        return n

    def _labels(self, f: Field, values: Sequence[VerdictValue | None]) -> list[tuple[int, ...]]:
        """Ids of each of `values` as written after the lead, the same in all asks of a form."""
        before = tuple(self.model.encode(":"))
        return [self._label_tokens.after(before, f" {_written(f, v)}") for v in values]

    def _put(self, states: Sequence[_State], text: str) -> None:
        for state in states:
            state.ids += self.model.encode(text)

    def _text(self, states: Sequence[_State], f: Field, lead: str) -> None:
        """Fill a text field; if it may be null, the choice between null and a text comes first."""
        if f.optional:
            self._put(states, lead)
            self._choose(states, f, (None, ""))
            null = [s for s in states if s.values[f.name] is None]
            for state in null:
                state.texts -= 1
            states = [s for s in states if s.values[f.name] is not None]
        else:
            self._put(states, f'{lead} "')
        by_room: dict[int, list[_State]] = defaultdict(list)
        for state in states:
            by_room[state.room_now(self.settings.max_new_tokens)].append(state)
        for room, of_room in by_room.items():
            self._write(of_room, f, room)

    def _write(self, states: Sequence[_State], f: Field, room: int) -> None:
        """Write the text `f` of every state, up to its closing quote or `room` tokens."""
        generations = self.model.generate(
            [(*s.prompt, *s.ids) for s in states],
            max_new_tokens=room,
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            seed=[seed_of(self.settings, s.ask, 0) for s in states],
            stop=lambda text: closing_quote(text) is not None,
        )
        for state, generation in zip(states, generations, strict=True):
            self._take(state, f, generation)

    def _take(self, state: _State, f: Field, generation: Generation) -> None:
        pieces = self.model.pieces(generation.ids)
        text = "".join(pieces)
        end = closing_quote(text)
        if end is None:
            n_kept, rest = len(pieces), ""
            if generation.finish == "length":
                whole = len(generation.ids) == self.settings.max_new_tokens
                (state.cut if whole else state.short).append(f.name)
        else:
            # the token that holds the quote may also hold the end of the text
            n_kept, at = 0, 0
            while at + len(pieces[n_kept]) <= end:
                at += len(pieces[n_kept])
                n_kept += 1
            text, rest = text[:end], text[at:end]
        state.ids += [*generation.ids[:n_kept], *self.model.encode(f'{rest}"')]
        state.texts -= 1
        state.room -= n_kept
        state.values[f.name] = text

    def _choose(
        self, states: Sequence[_State], f: Field, among: tuple[str | None, ...] = ()
    ) -> None:
        """Choose a value of `f` for every state, among those that the form admits, or in `among`.

        For a text that is not null, the opening quote is written.
        """
        values = [among or s.ask.choices(f) for s in states]
        labels = [self._labels(f, of) for of in values]
        boundary = "number" if f.kind == "integer" else None
        answers = self.model.ask([(*s.prompt, *s.ids) for s in states], labels, boundary=boundary)
        for state, of, own_labels, answered in zip(states, values, labels, answers, strict=True):
            names = [_written(f, v) for v in of]
            shares = log_distribution(
                answered.log_probs,
                names,
                what=f"judge form {state.ask.form.name!r}, item {state.ask.id!r}",
            )
            at = names.index(self._drawn(shares, state.ask, f))
            state.ids += own_labels[at]
            state.values[f.name] = of[at]

    def _drawn(self, shares: dict[str, float], ask: Ask, f: Field) -> str:
        """The likeliest value, or a draw from `shares` if the settings have a temperature."""
        t = self.settings.temperature
        if t == 0:
            return top(shares)
        rng = random.Random(f"{seed_of(self.settings, ask, 0)}\n{f.name}")
        return rng.choices(list(shares), [exp(x / t) for x in shares.values()])[0]

    def _reply(self, state: _State, seconds: float) -> Reply:
        most, limit = self.settings.max_new_tokens, self.model.max_positions
        problems = [
            f"{', '.join(map(repr, names))} {_CUT} {what}"
            for names, what in (
                (state.cut, f"limit of {most} tokens"),
                (state.short, f"last of the {limit} positions of {self.name}"),
            )
            if names
        ]
        return Reply(
            "parsed",
            {f.name: state.values[f.name] for f in state.ask.form.fields},
            text=self.model.decode(state.ids) + "}" * len(state.ask.form.fields[-1].path),
            problem="; ".join(problems),
            usage=Usage(calls=1, input_tokens=len(state.prompt), output_tokens=len(state.ids)),
            seconds=seconds,
        )


def was_cut(problem: str) -> bool:
    """Whether the problem of a parsed reply says that tokens or positions ran out in a text."""
    return f" {_CUT} " in problem


def lead_of(f: Field, before: Field | None) -> str:
    """The JSON text between the value of field `before` and that of `f`.

    Objects are closed and opened on the way: `}, "b": {"c":`.
    """
    if before is None:
        shared, text = 0, "{"
    else:
        last = len(before.path) - 1
        same = (a == b for a, b in zip(before.path[:-1], f.path[:-1], strict=False))
        shared = next((i for i, equal in enumerate(same) if not equal), min(last, len(f.path) - 1))
        text = "}" * (last - shared) + ", "
    opened = "".join(f"{json.dumps(name)}: {{" for name in f.path[shared:-1])
    return f"{text}{opened}{json.dumps(f.path[-1])}:"


def _written(f: Field, value: VerdictValue | None) -> str:
    """A value in JSON; for a text its opening quote alone."""
    return '"' if f.kind == "text" and value == "" else json.dumps(value, ensure_ascii=False)


def closing_quote(text: str) -> int | None:
    """The place of the first quote that no backslash escapes; None without one."""
    escaped = False
    for i, c in enumerate(text):
        if c == '"' and not escaped:
            return i
        escaped = c == "\\" and not escaped
    return None
