"""Insertions: a text that a model did not write is put into its chain, and the model writes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from faithscope.interp.errors import NoRoom, UserError
from faithscope.interventions import (
    CLOSING_PATTERNS,
    Edit,
    NotWritable,
    Step,
    Trace,
    segment,
    split_conclusion,
    written,
)
from faithscope.probes.framing import Asking
from faithscope.probes.regenerate import closer_at
from faithscope.probes.resample import MODES_OF_UNITS

if TYPE_CHECKING:
    from faithscope.interp.model import Model

Where = Literal["before", "after", "replace"]
"""Place of a text at a step: before it, with the step kept after the text; after it; or in its
place. What follows is written anew."""
RESERVE = 64
"""Positions that are left free for the answer after a continuation."""


@dataclass(frozen=True)
class Insertion:
    """A text to be put into a chain."""

    text: str
    """The text; empty for a control, in which the model writes on from the same place."""
    where: Where
    step: int
    """Index of the step at which the text stands."""


def injected(
    model: Model,
    trace: Trace,
    asking: Asking,
    insertions: Sequence[Insertion],
    max_new_tokens: int | None = None,
    execution: Any = "auto",
) -> list[Trace]:
    """The chains that follow insertions, written on by the model greedily and in lockstep.

    Each is an edited trace with the text as one step. Its `answer` is the one that the model states
    after the text (after the closer, where reasoning is marked), None if it states none; the
    tokens up to the end of the text count as prefilled (`Origin.prefilled`). The continuation is
    cut as a response is: at the closer, or where the statement of its answer begins.

    Args:
        max_new_tokens: most tokens of a continuation; None is twice those of the trace's own
            response, and 64. Fewer if the model has fewer positions left.

    Raises:
        UserError: the trace has no such step; `NoRoom`: no position is left to write in.
        NotWritable: the tokenizer has no ids for a text.
    """
    begun = [_begun(model, trace, x) for x in insertions]
    most = max_new_tokens or 2 * (len(trace.reasoning_ids) + len(trace.tail_ids)) + 64
    prefixes = [t.prompt_ids + t.reasoning_ids for t in begun]
    if (room := model.max_positions) is None:
        limits = [most] * len(begun)
    else:
        limits = [min(most, room - RESERVE - len(ids)) for ids in prefixes]
        if min(limits) < 1:
            raise NoRoom(
                f"trace of {trace.question.id!r}: prompt and reasoning up to the text take "
                f"{max(map(len, prefixes))} of the model's {room} positions; put a shorter text "
                "in, or put it further to the front"
            )
    replies = model.ask(prefixes, max_new_tokens=limits, execution=execution)
    chains = []
    for trace_begun, reply in zip(begun, replies, strict=True):
        assert reply.generated is not None
        cut = reply.generated.finish == "length"
        chains.append(_continued(model, trace_begun, asking, tuple(reply.generated.ids), cut))
    return chains


def _begun(model: Model, trace: Trace, x: Insertion) -> Trace:
    """The trace up to the end of what stands before the continuation."""
    at = next((i for i, s in enumerate(trace.steps) if s.index == x.step), None)
    if at is None:
        raise UserError(
            f"trace of {trace.question.id!r}: no step {x.step}; it has "
            f"{', '.join(str(s.index) for s in trace.steps) or 'none'}"
        )
    kept = trace.steps[: at + 1 if x.where == "after" else at]
    step = trace.steps[at]
    parts = [(s.text, trace.step_ids(s), trace.part(s).pieces, s.counted) for s in kept]
    n_given = sum(len(ids) for _, ids, _, _ in parts)
    if x.text:
        before = (*trace.prompt_ids, *trace.reasoning_ids[:n_given])
        glued = kept and not (kept[-1].text[-1:].isspace() or x.text[:1].isspace())
        text = f"{' ' * bool(glued)}{x.text}"
        if x.where == "before" and not text[-1].isspace():
            text += "\n" if "\n" in step.text else " "
        encoded = written(text, before, model.encode, model.pieces)
        if encoded is None:
            raise NotWritable(
                f"trace of {trace.question.id!r}: {model.name}'s tokenizer gives no ids for "
                f"{x.text[:60]!r}; write it in characters that it gives back"
            )
        parts.append((text, *encoded, True))
        n_given += len(encoded[0])
    if x.where == "before":
        parts.append((step.text, trace.step_ids(step), trace.part(step).pieces, step.counted))
    steps, char, token = [], 0, 0
    for i, (text, ids, _, counted) in enumerate(parts):
        steps.append(Step(i, text, (char, char + len(text)), (token, token + len(ids)), counted))
        char, token = char + len(text), token + len(ids)
    edit = Edit("inject", step=x.step, detail={"where": x.where, "new": x.text})
    return trace.edited(
        reasoning_ids=tuple(i for _, ids, _, _ in parts for i in ids),
        pieces=tuple(p for _, _, pieces, _ in parts for p in pieces),
        steps=tuple(steps),
        edits=(*trace.edits, edit),
        origin=replace(trace.origin, prefilled=n_given),
        sample=None,
    )


def _continued(
    model: Model, begun: Trace, asking: Asking, ids: tuple[int, ...], cut: bool
) -> Trace:
    context = (begun.prompt_ids + begun.reasoning_ids)[-8:]
    pieces = tuple(model.pieces((*context, *ids))[len(context) :])
    if asking.closer_ids:
        closer = model.decode(asking.closer_ids)
        end = closer_at(ids, pieces, tuple(asking.closer_ids), closer)
        said = "".join(pieces[end:]).partition(closer)[2]
    else:
        end = split_conclusion(pieces, closing=() if cut else CLOSING_PATTERNS)
        # the last number of a chain that was cut off is one on the way
        said = "" if cut and end == len(pieces) else "".join(pieces)
    char, token, n = len(begun.reasoning_text), len(begun.reasoning_ids), len(begun.steps)
    mode = MODES_OF_UNITS.get(begun.unit, "sentences")
    added = [
        Step(
            n + s.index,
            s.text,
            (char + s.chars[0], char + s.chars[1]),
            (token + s.tokens[0], token + s.tokens[1]),
            s.counted,
        )
        for s in segment(pieces[:end], mode)
    ]
    return replace(
        begun,
        reasoning_ids=begun.reasoning_ids + ids[:end],
        pieces=begun.pieces + pieces[:end],
        steps=(*begun.steps, *added),
        tail_ids=ids[end:],
        tail_text="".join(pieces[end:]),
        answer=(asking.parse_reply or asking.parse)(said) if said else None,
        finish="length" if cut else "stop",
    )
