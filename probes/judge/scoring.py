"""An open model as judge by the log-probs of its verdict: it always gives one, and its certainty.

The model gets the form's prompt alone, like an API judge whose server enforces the schema: here the
cue does. (With the request for JSON that a writing judge gets, a small model echoes the schema
after the cue: SmolLM2-135M then gives all verdicts together less than .1.)
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from faithscope.probes.graded import label_mass, log_distribution, top
from faithscope.probes.judge.form import Ask, OnReply, Reply, Usage, VerdictValue
from faithscope.probes.judge.open_model import overflow
from faithscope.probes.label_tokens import LabelTokens
from faithscope.probes.messages import Message, message_ids

if TYPE_CHECKING:
    from faithscope.interp.model import Model


@dataclass(frozen=True)
class ScoringSettings:
    """Everything but model, form and item that determines a scored verdict."""

    batch_size: int = 16
    """Most asks in one packed call: a prefix that their prompts share (a rubric) is computed once.
    The model's token budget splits calls that are too large."""
    execution: Literal["auto", "packed", "dense", "loop"] = "auto"

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"scoring judge: batch_size = {self.batch_size}; give 1 or more")


class ScoringJudge:
    """A `Judge` by log-probs: the form's cue is prefilled, and every possible verdict scored.

    The model answers at once: a family that thinks has its think block opened and closed with
    nothing in it, and if the form asks for a rationale first, the cue skips it. Verdicts are scored
    whole: all tokens of a number and that no further digit follows, all tokens of a label and its
    closing quote. `Reply.probabilities` are normalised over the verdicts, `Reply.mass` is the
    model's probability of all verdicts together. The verdict is the likeliest, of equals the first.

    White space at the end of the cue goes with the number (` 1`), since some tokenizers join the
    two; a verdict that does not read back as written is an error.
    """

    def __init__(self, model: Model, settings: ScoringSettings | None = None) -> None:
        self.model = model
        self.name = model.name
        self.settings = settings or ScoringSettings()
        self._label_tokens = LabelTokens(model)

    def ask_all(self, asks: Sequence[Ask], on_reply: OnReply) -> None:
        """Give every ask one reply, call by call; `Reply.seconds` is its share of the call's time.

        Raises:
            ValueError: a form has no cue, or the tokenizer cannot write a verdict.
            FloatingPointError: the model's logits are not finite.
        """
        size = self.settings.batch_size
        for numbers in (True, False):
            alike = [a for a in asks if (a.form.verdict_field.kind == "integer") == numbers]
            for start in range(0, len(alike), size):
                self._call(alike[start : start + size], numbers, on_reply)

    def _call(self, asks: Sequence[Ask], numbers: bool, on_reply: OnReply) -> None:
        began = time.perf_counter()
        fitting: list[tuple[Ask, tuple[int, ...], list[tuple[int, ...]]]] = []
        limit = self.model.max_positions
        for ask in asks:
            prefix, labels = self._prefix(ask), self._labels(ask)
            needed = len(prefix) + max(map(len, labels))
            if limit is not None and needed > limit:
                on_reply(ask, overflow(self.name, limit, needed))
            else:
                fitting.append((ask, prefix, labels))
        if not fitting:
            return
        answers = self.model.ask(
            [prefix for _, prefix, _ in fitting],
            [labels for _, _, labels in fitting],
            boundary="number" if numbers else None,
            execution=self.settings.execution,
        )
        seconds = (time.perf_counter() - began) / len(fitting)
        for (ask, prefix, _), answered in zip(fitting, answers, strict=True):
            choices = ask.choices()
            names = list(map(str, choices))
            shares = log_distribution(
                answered.log_probs, names, what=f"judge form {ask.form.name!r}, item {ask.id!r}"
            )
            on_reply(
                ask,
                Reply(
                    "parsed",
                    {ask.form.verdict: choices[names.index(top(shares))]},
                    usage=Usage(calls=1, input_tokens=len(prefix)),
                    seconds=seconds,
                    probabilities=tuple(math.exp(x) for x in shares.values()),
                    mass=label_mass(answered.log_probs),
                ),
            )

    def _prefix(self, ask: Ask) -> tuple[int, ...]:
        if not ask.form.cue.strip():
            raise ValueError(
                f"judge form {ask.form.name!r} has no cue to read log-probs after; give it the "
                "beginning of a reply, up to where the number stands"
            )
        message = Message(ask.prompt, ask.system)
        return (*message_ids(self.model, message), *self.model.encode(ask.form.cue.rstrip()))

    def _labels(self, ask: Ask) -> list[tuple[int, ...]]:
        cue = ask.form.cue
        before = self.model.encode(cue.rstrip())
        gap = cue[len(cue.rstrip()) :]
        return [
            self._label_tokens.after(before, gap + _written(verdict, before_it=cue))
            for verdict in ask.choices()
        ]


def _written(verdict: VerdictValue, before_it: str) -> str:
    """The verdict in JSON, without the quote that the cue has opened."""
    text = json.dumps(verdict, ensure_ascii=False)
    quoted = isinstance(verdict, str) and before_it.rstrip().endswith('"')
    return text.removeprefix('"') if quoted else text
