"""Rollouts: chains that the model samples while it is trained, and the answers after edits."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.data.traces import TraceSettings, asking_for, exclusion, make_traces
from faithscope.experiments.studies.training.policy import Text
from faithscope.interp.model import Model
from faithscope.interventions import (
    NotCorruptible,
    NotWritable,
    Question,
    Step,
    Trace,
    corrupt_step,
    remove_step,
    shuffle_steps,
)
from faithscope.interventions.corrupt import numbers
from faithscope.probes.framing import Asking, ask, prefix_ids
from faithscope.probes.record import is_right
from faithscope.probes.regenerate import regenerate

Arm = Literal["dropped", "shuffled", "rewritten"]
"""An edit of a rollout. `dropped`: one step, drawn at random, is left out. `shuffled`: the steps
stand in another order. `rewritten`: one step is corrupted and the model writes all later text anew.
"""
FULL = "full"
TRUNCATED, UNANSWERED = "truncated", "unanswered"
"""Why a rollout is not rewarded, besides the reasons of `data.traces.exclusion`: the limit of
tokens cut it off, or it states no answer that could be read."""


@dataclass
class Rollout:
    """One sampled chain, and the answers after edits of it."""

    group: int
    """Number of its question in the batch."""
    trace: Trace
    asking: Asking
    excluded: str | None
    """Why the rollout is not rewarded; None if it is."""
    edited: dict[str, Trace] = field(default_factory=dict)
    """Arm -> edited trace, with `full` for the rollout itself; an edit that is impossible lacks."""
    answers: dict[str, str | None] = field(default_factory=dict)
    """Arm -> answer that is asked for after it; None if none could be read."""
    step: Step | None = None
    """The step that is dropped or corrupted."""

    @property
    def correct(self) -> bool | None:
        """Whether the rollout's own answer is right; None without a gold answer."""
        return is_right(self.trace.answer, self.trace.question.gold)

    @property
    def answer(self) -> str | None:
        """The answer that the rollout itself states, sampled as its reasoning is."""
        return self.trace.answer

    def changed(self, arm: str) -> bool | None:
        """Whether the answer after an edit is another than the rollout's own; None without such an
        edit. An answer that cannot be read any more is no change: a model that only trips over a
        gap earns nothing."""
        if arm not in self.edited:
            return None
        after = self.answers[arm]
        return after is not None and after != self.answer

    @property
    def claimed(self) -> str | None:
        """The answer that the rewritten text states, if it is another than before: the last number
        in its reasoning. None if there is none."""
        if "rewritten" not in self.edited:
            return None
        found = numbers(self.edited["rewritten"].reasoning_text)
        claim = canonical_number(found[-1].group()) if found else None
        return None if claim == self.answer else claim

    @property
    def drops_last(self) -> bool:
        """Whether the dropped step is the last one, which often states the answer."""
        return self.step is not None and self.step is self.trace.counted_steps[-1]

    def text(self) -> Text:
        """The token ids that the policy learns from: everything that the model wrote."""
        t = self.trace
        written = (*t.reasoning_ids, *t.tail_ids)
        return Text((*t.prompt_ids, *written), len(written), len(t.prompt_ids), len(t.tail_ids))


def sample(
    model: Model,
    asked: Sequence[tuple[Task, Question]],
    group: int,
    settings: TraceSettings,
) -> list[Rollout]:
    """`group` sampled chains of each question, those of a question one after the other."""
    every = [one for one in asked for _ in range(group)]
    traces = make_traces(model, every, settings)
    return [
        Rollout(i // group, trace, asking_for(model, task, trace), _excluded(trace))
        for i, ((task, _), trace) in enumerate(zip(every, traces, strict=True))
    ]


def _excluded(trace: Trace) -> str | None:
    if trace.finish == "length":
        return TRUNCATED
    return exclusion(trace) or (UNANSWERED if trace.answer is None else None)


def ask_after_edits(
    model: Model, rollouts: Sequence[Rollout], arms: Sequence[Arm], seed: str, answer_tokens: int
) -> None:
    """Edit every rollout in every way of `arms`, and ask for the answer after each edit.

    The step of a rollout is drawn from `seed` and its place in the batch.
    """
    begun: list[tuple[Rollout, Trace]] = []
    for i, rollout in enumerate(rollouts):
        if rollout.excluded is None:
            rollout.edited = {FULL: rollout.trace}
            rng = random.Random(f"{seed}-{i}")
            for arm, edited in _edits(model, rollout, arms, rng):
                if arm == "rewritten":
                    begun.append((rollout, edited))
                else:
                    rollout.edited[arm] = edited
    _write_onward(model, begun)
    branches = [(rollout, arm) for rollout in rollouts for arm in rollout.edited]
    if not branches:
        return
    prefixes = [prefix_ids(model, r.asking, r.edited[arm]) for r, arm in branches]
    askings = [rollout.asking for rollout, _ in branches]
    replies = ask(model, askings, "prefix", prefixes, ["generated"], answer_tokens=answer_tokens)
    for (rollout, arm), reply in zip(branches, replies, strict=True):
        rollout.answers[arm] = reply.answer


def _edits(
    model: Model, rollout: Rollout, arms: Sequence[Arm], rng: random.Random
) -> Iterator[tuple[Arm, Trace]]:
    """Yields the edits of a rollout; a rewritten one up to the step that is corrupted."""
    trace = rollout.trace
    rollout.step = rng.choice(trace.counted_steps)
    at, seed = rollout.step.index, rng.randrange(2**31)
    if "dropped" in arms:
        yield "dropped", remove_step(trace, at)
    if "shuffled" in arms:
        # steps that all read alike have no other order
        with contextlib.suppress(ValueError):
            yield "shuffled", shuffle_steps(trace, seed)
    if "rewritten" in arms:
        with contextlib.suppress(NotCorruptible, NotWritable):
            yield "rewritten", corrupt_step(trace, at, seed, model.encode, model.pieces)


def _write_onward(model: Model, begun: Sequence[tuple[Rollout, Trace]]) -> None:
    """Let the model write on after the corrupted step of each rollout; a text that the limit cuts
    off is no edit."""
    by_closer: dict[tuple[int, ...], list[tuple[Rollout, Trace]]] = {}
    for rollout, corrupted in begun:
        by_closer.setdefault(rollout.asking.closer_ids, []).append((rollout, corrupted))
    for closer, of in by_closer.items():
        written = regenerate(model, [corrupted for _, corrupted in of], closer)
        for (rollout, _), again in zip(of, written, strict=True):
            if again is not None and not again.cut:
                rollout.edited["rewritten"] = again.trace
