"""Regeneration: an edited step, with all later text written anew by the model.

Frozen corruption leaves the later steps unchanged, and they may restate what the corrupted step
said: only the steps from which the answer is read are credited. Here the model itself continues
after the corrupted step, so a corruption that it takes up reaches the answer through the steps that
it writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.interventions import (
    CONCLUSION_PATTERNS,
    Edit,
    Step,
    Trace,
    split_conclusion,
    truncate_after_step,
)

if TYPE_CHECKING:
    from faithscope.interp.model import Model

_STATED = re.compile(
    "(?:" + "|".join(f"(?:{p})" for p in CONCLUSION_PATTERNS) + r")[^\n]*?\w[^\n]*?(?:[.!?}]\s|\n)",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!?}]\s|\n")
_RECENT = 400
"""Number of characters at the end of a continuation that are searched for an answer statement."""


@dataclass(frozen=True)
class Regenerated:
    """The reasoning up to a corrupted step, and the model's continuation of it."""

    trace: Trace
    """The trace with corrupted step and new continuation; its last edit is `regenerate`."""
    continuation: str
    """The text after the corrupted step."""
    cut: bool
    """Whether the continuation reached its token limit before its end."""


def regenerate(
    model: Model,
    corrupted: Sequence[Trace],
    closer_ids: Sequence[int] = (),
    *,
    max_new_tokens: int | None = None,
    reserve: int = 64,
    execution: Any = "auto",
) -> list[Regenerated | None]:
    """Let the model continue after the corrupted step of each trace, greedily and in lockstep.

    The new reasoning ends at the closer; without one, where the answer statement begins
    (`interventions.split_conclusion`), as the model's own reasoning was split off. None stands
    for a trace whose corrupted step ends so late that no position is left to write in.

    Args:
        corrupted: traces whose last edit is of one step.
        max_new_tokens: longest continuation; None is one and a half times the tokens it replaces,
            and 32. Fewer if the model has fewer positions left.
        reserve: positions to leave free at the end for the answer.

    Raises:
        ValueError: the last edit of a trace names no step.
    """
    upto = [truncate_after_step(t, _edited_step(t)) for t in corrupted]
    prefixes = [t.prompt_ids + t.reasoning_ids for t in upto]
    limits = [
        max_new_tokens
        if max_new_tokens is not None
        else math.ceil(1.5 * (len(whole.reasoning_ids) - len(part.reasoning_ids))) + 32
        for whole, part in zip(corrupted, upto, strict=True)
    ]
    room = model.max_positions
    if room is not None:
        limits = [min(n, room - reserve - len(p)) for n, p in zip(limits, prefixes, strict=True)]
    closer = model.decode(closer_ids) if closer_ids else ""
    fitting = [i for i, limit in enumerate(limits) if limit > 0]
    if not fitting:
        return [None] * len(corrupted)
    replies = model.ask(
        [prefixes[i] for i in fitting],
        max_new_tokens=[limits[i] for i in fitting],
        stop=(lambda text: closer in text) if closer else [_Concluded() for _ in fitting],
        execution=execution,
    )
    regenerated: list[Regenerated | None] = [None] * len(corrupted)
    for i, reply in zip(fitting, replies, strict=True):
        assert reply.generated is not None
        ids, cut = reply.generated.ids, reply.generated.finish == "length"
        n_steps = max(s.index for s in corrupted[i].steps) + 1
        regenerated[i] = _continued(model, upto[i], n_steps, ids, tuple(closer_ids), closer, cut)
    return regenerated


def _edited_step(trace: Trace) -> int:
    step = trace.edits[-1].step if trace.edits else None
    if step is None:
        raise ValueError(
            f"trace of {trace.question.id!r}: its last edit names no step to go on from; corrupt "
            "or replace a step first"
        )
    return step


class _Concluded:
    """Whether a text that grows states its answer, searched where a sentence of it has ended.

    A search costs as much of a host's time as a large model's step costs for one sequence.
    """

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, text: str) -> bool:
        # a text may be written again from its beginning
        before = self._length if self._length < len(text) else 0
        self._length = len(text)
        ended = _ENDED.search(text, max(0, before - 1)) is not None
        return ended and _STATED.search(text[-_RECENT:]) is not None


def _continued(
    model: Model,
    upto: Trace,
    n_steps: int,
    ids: tuple[int, ...],
    closer_ids: tuple[int, ...],
    closer: str,
    cut: bool,
) -> Regenerated:
    context = (upto.prompt_ids + upto.reasoning_ids)[-8:]
    pieces = model.pieces((*context, *ids))[len(context) :]
    end = closer_at(ids, pieces, closer_ids, closer) if closer else split_conclusion(pieces)
    cut = cut and end == len(ids)
    ids, pieces = ids[:end], pieces[:end]
    text = "".join(pieces)
    at, chars = len(upto.reasoning_ids), len(upto.reasoning_text)
    # One uncounted stretch with an index past all others: no step of the original matches it.
    added = Step(
        index=n_steps,
        text=text,
        chars=(chars, chars + len(text)),
        tokens=(at, at + len(ids)),
        counted=False,
    )
    trace = upto.edited(
        reasoning_ids=upto.reasoning_ids + ids,
        pieces=upto.pieces + pieces,
        steps=(*upto.steps, added) if ids else upto.steps,
        edits=(*upto.edits, Edit("regenerate", step=upto.edits[-1].step, detail={"new": text})),
    )
    return Regenerated(trace=trace, continuation=text, cut=cut)


def closer_at(
    ids: tuple[int, ...], pieces: Sequence[str], closer_ids: tuple[int, ...], closer: str
) -> int:
    """The place at which the closer begins, as ids or else as text; the end if there is none."""
    n = len(closer_ids)
    for i in range(len(ids) - n + 1):
        if ids[i : i + n] == closer_ids:
            return i
    at = "".join(pieces).find(closer)
    length = 0
    for i, piece in enumerate(pieces):
        if at != -1 and length + len(piece) > at:
            return i
        length += len(piece)
    return len(ids)
