"""Token-exact edits of a trace: pure functions to an edited trace.

Every token that an edit does not claim to touch keeps its id. Steps of an edited trace keep the
index they had in the original, so that records of branches can be joined, and tile the edited
reasoning. `prompt_ids`, `tail_ids` and `answer` are left as they were: they belong to the model's
response with the *unedited* reasoning.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from faithscope.interventions.corrupt import Change, NotCorruptible, corruption
from faithscope.interventions.segment import token_offsets
from faithscope.interventions.trace import Edit, Part, Trace
from faithscope.interventions.writing import Encode, NotWritable, Pieces, written

REMARK = "Let me go on from here."
"""Words that state nothing about any question, for the control of an edit."""


def remove_step(trace: Trace, step: int) -> Trace:
    """The reasoning without one step; necessity (SLRC, section 4.1)."""
    at = _require_step(trace, step)
    return trace.spliced(at, at + 1, (), Edit("remove", step=step))


def keep_only_step(trace: Trace, step: int) -> Trace:
    """The reasoning reduced to one step; sufficiency (SLRC, section 4.1).

    Stretches that are not counted as steps go too: one of them may hold the result.
    """
    part = trace.part(trace.steps[_require_step(trace, step)])
    return trace.spliced(0, len(trace.steps), (part,), Edit("keep_only", step=step))


def truncate_after_step(trace: Trace, step: int) -> Trace:
    """The reasoning up to and including one step."""
    at = _require_step(trace, step)
    return trace.spliced(at + 1, len(trace.steps), (), Edit("truncate_step", step=step))


def truncate_after_token(trace: Trace, kept: int) -> Trace:
    """The first `kept` tokens of the reasoning, 0 for none; a step that the cut divides stays in
    part."""
    n = len(trace.reasoning_ids)
    if not 0 <= kept <= n:
        raise IndexError(
            f"{_name(trace)}: cannot keep {kept} of {n} reasoning tokens; give 0 to {n}"
        )
    first = sum(s.tokens[0] < kept and s.tokens[1] <= kept for s in trace.steps)
    divided = [s for s in trace.steps[first : first + 1] if s.tokens[0] < kept]
    parts = [
        Part(step, ids[: kept - step.tokens[0]], pieces[: kept - step.tokens[0]])
        for step, ids, pieces in map(trace.part, divided)
    ]
    edit = Edit("truncate_token", detail={"kept": kept})
    return trace.spliced(first, len(trace.steps), parts, edit)


def shuffle_steps(trace: Trace, seed: int) -> Trace:
    """The counted steps in another order, drawn by `seed`; uncounted steps stay in place.

    Never the order as written: an order that says the same is drawn again.

    Raises:
        ValueError: all steps say the same.
    """
    slots = [i for i, s in enumerate(trace.steps) if s.counted]
    if n_orders(trace) < 2:
        raise ValueError(
            f"{_name(trace)}: {len(slots)} counted steps have only one order; leave traces with "
            "fewer than 2 distinct steps out of shuffling"
        )
    # The draw depends on the trace too: with one seed, not every trace has the same order.
    rng = random.Random(f"shuffle-{seed}-{trace.question.task}-{trace.question.id}")
    order = list(slots)
    said = [step.text.strip() for step in trace.steps]
    while [said[i] for i in order] == [said[i] for i in slots]:
        rng.shuffle(order)
    return _permuted(trace, slots, order, "shuffle", seed)


def shuffles(trace: Trace, n: int, seed: int) -> list[Trace]:
    """`n` different shuffles of the counted steps, drawn by `seed` and the seeds after it; fewer
    where the steps have fewer other orders (two steps have one), none where all say the same."""
    drawn: dict[tuple[str, ...], Trace] = {}
    while len(drawn) < min(n, n_orders(trace) - 1):
        edited = shuffle_steps(trace, seed)
        drawn.setdefault(_said(edited), edited)
        seed += 1
    return list(drawn.values())


def n_orders(trace: Trace) -> int:
    """Number of orders of the counted steps, the one as written included; steps that say the same,
    white space aside, are exchanged without making another."""
    orders = math.factorial(len(trace.counted_steps))
    for count in Counter(_said(trace)).values():
        orders //= math.factorial(count)
    return orders


def _said(trace: Trace) -> tuple[str, ...]:
    return tuple(step.text.strip() for step in trace.counted_steps)


def reverse_steps(trace: Trace) -> Trace:
    """The counted steps from last to first; uncounted steps stay in place.

    Raises:
        ValueError: the steps read the same backwards.
    """
    slots = [i for i, s in enumerate(trace.steps) if s.counted]
    if _said(trace) == _said(trace)[::-1]:
        raise ValueError(
            f"{_name(trace)}: its {len(slots)} counted steps read the same backwards; leave it "
            "out of reversing"
        )
    return _permuted(trace, slots, slots[::-1], "reverse", None)


def replace_step(
    trace: Trace,
    step: int,
    ids: Sequence[int],
    pieces: Sequence[str],
    *,
    kind: str = "replace",
    seed: int | None = None,
    detail: dict[str, Any] | None = None,
) -> Trace:
    """The trace with one step's ids replaced by others.

    Args:
        pieces: the text that each of `ids` adds in its new place.
        kind, seed, detail: fields of the recorded `Edit`.
    """
    at = _require_step(trace, step)
    if len(ids) != len(pieces):
        raise ValueError(
            f"{_name(trace)}: {len(ids)} ids but {len(pieces)} pieces to replace step {step}; "
            "give the text of every id"
        )
    old = trace.steps[at]
    detail = {"old": old.text, "new": "".join(pieces)} if detail is None else detail
    part = Part(old, tuple(ids), tuple(pieces))
    return trace.spliced(at, at + 1, (part,), Edit(kind, step=step, seed=seed, detail=detail))


def corrupt_step(
    trace: Trace,
    step: int,
    seed: int,
    encode: Encode,
    pieces_of: Pieces,
    *,
    rule: Callable[[str, int], Change | None] = corruption,
) -> Trace:
    """The trace with one step made to say something else by `rule`
    (`interventions.corrupt.corruption`), or as its file says, if a mistake was given for the step.

    Only tokens that overlap the changed characters are encoded anew: every other id stays.

    Args:
        encode: ids of a piece of text, nothing added (`interp.Model.encode`).
        pieces_of: the text each id adds (`interp.Model.pieces`).
        rule: a function from a step's text and a seed to the change, or to None.

    Raises:
        NotCorruptible: the rule finds nothing to change in the step.
        ValueError: no ids of this tokenizer give the changed text.
    """
    at = _require_step(trace, step)
    part = trace.part(trace.steps[at])
    change = _given_mistake(trace, at) if rule is corruption else None
    change = change or rule(part.step.text, seed)
    if change is None:
        raise NotCorruptible(
            f"{_name(trace)}: step {step} ({part.step.text.strip()!r}) has no number, no word with "
            "a known opposite and no verb to negate; corrupt another step, or replace this one "
            "by ids of your own"
        )
    offsets = token_offsets(part.pieces)
    nearest, last = _overlapping(offsets, change.start, change.end)
    # Tokens further left are encoded anew only if the tokenizer cannot join at `nearest`.
    for first in range(nearest, -1, -1):
        text = (
            part.step.text[offsets[first] : change.start]
            + change.new
            + part.step.text[change.end : offsets[last]]
        )
        before = trace.prompt_ids + trace.reasoning_ids[: part.step.tokens[0] + first]
        encoded = written(text, before, encode, pieces_of)
        if encoded is not None:
            ids, pieces = encoded
            return replace_step(
                trace,
                step,
                part.ids[:first] + ids + part.ids[last:],
                part.pieces[:first] + pieces + part.pieces[last:],
                kind="corrupt",
                seed=seed,
                detail={
                    "rule": change.rule,
                    "old": part.step.text[change.start : change.end],
                    "new": change.new,
                    "char": part.step.chars[0] + change.start,
                },
            )
    raise NotWritable(
        f"{_name(trace)}: this tokenizer gives no ids for step {step} with "
        f"{part.step.text[change.start : change.end]!r} changed to {change.new!r}; replace the "
        "step by ids of your own"
    )


def _given_mistake(trace: Trace, step: int) -> Change | None:
    """What the mistake that was given for a step changes in its text; None if none was given."""
    given, old = trace.origin.given, trace.steps[step].text
    said = None if given is None else given.edits.get("mistake", {}).get(step)
    if said is None:
        return None
    new = old[: len(old) - len(old.lstrip())] + said.strip() + old[len(old.rstrip()) :]
    start = _shared(old, new)
    kept = _shared(old[start:][::-1], new[start:][::-1])
    return Change(start, len(old) - kept, new[start : len(new) - kept], "given")


def _shared(one: str, other: str) -> int:
    """Number of characters with which both texts begin."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def retold(
    trace: Trace, text: str, encode: Encode, pieces_of: Pieces, *, cut: bool = False
) -> tuple[int, ...]:
    """Ids of the trace's reasoning with another text, which may differ in several places.

    Tokens stay from the beginning up to the first character that differs, and from the last one
    to the end; what lies between is encoded anew.

    Args:
        cut: whether `text` ends early, so that no token of the reasoning's end stays.

    Raises:
        NotWritable: this tokenizer has no ids for the changed text.
    """
    old, offsets = trace.reasoning_text, token_offsets(trace.pieces)
    start = _shared(old, text)
    kept = 0 if cut else _shared(old[start:][::-1], text[start:][::-1])
    if old == text:
        return trace.reasoning_ids
    first = max(i for i, at in enumerate(offsets) if at <= start)
    first = offsets.index(offsets[first])
    last = next(i for i, at in enumerate(offsets) if at >= len(old) - kept)
    end = len(text) - (len(old) - offsets[last])
    for begin in range(first, -1, -1):
        before = trace.prompt_ids + trace.reasoning_ids[:begin]
        encoded = written(text[offsets[begin] : end], before, encode, pieces_of)
        if encoded is not None:
            return trace.reasoning_ids[:begin] + encoded[0] + trace.reasoning_ids[last:]
    raise NotWritable(
        f"{_name(trace)}: this tokenizer gives no ids for {text[start:end]!r} in its place"
    )


def remark_after_step(
    trace: Trace, step: int, encode: Encode, pieces_of: Pieces, remark: str = REMARK
) -> Trace:
    """The trace with a remark that says nothing after one step: the control of an edit.

    A change of the answer by the remark is due to the mere fact of an edit. The step's own ids
    stay; the white space that ended it ends the remark instead.

    Raises:
        NotWritable: this tokenizer has no ids for the remark (a vocabulary of few words).
    """
    at = _require_step(trace, step)
    part = trace.part(trace.steps[at])
    text = part.step.text
    trailing = text[len(text.rstrip()) :]
    added = f"{'' if trailing else ' '}{remark}{trailing}"
    before = trace.prompt_ids + trace.reasoning_ids[: part.step.tokens[1]]
    encoded = written(added, before, encode, pieces_of)
    if encoded is None:
        raise NotWritable(
            f"{_name(trace)}: this tokenizer gives no ids for {added!r} after step {step}; give a "
            "remark in words that it has"
        )
    ids, pieces = encoded
    return replace_step(
        trace, step, part.ids + ids, part.pieces + pieces, kind="remark", detail={"new": added}
    )


EDITS: dict[str, Callable[..., Trace]] = {
    "remove": remove_step,
    "keep_only": keep_only_step,
    "truncate_step": truncate_after_step,
    "truncate_token": truncate_after_token,
    "shuffle": shuffle_steps,
    "reverse": reverse_steps,
    "replace": replace_step,
    "corrupt": corrupt_step,
    "remark": remark_after_step,
}
"""Name of an edit in its record -> the function that makes it."""


def _overlapping(offsets: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Half-open range of the tokens that share a character with [start, end).

    The range is empty if text is put in between two tokens. Tokens that hold parts of a character
    completed in the range belong to it.
    """
    touched = [
        i
        for i in range(len(offsets) - 1)
        if max(offsets[i], start) < min(offsets[i + 1], end)
        or (start == end and offsets[i] < start < offsets[i + 1])
    ]
    if not touched:
        at = offsets.index(start)
        return at, at
    first = touched[0]
    while first > 0 and offsets[first - 1] == offsets[first]:
        first -= 1
    return first, touched[-1] + 1


def _permuted(
    trace: Trace, slots: Sequence[int], order: Sequence[int], kind: str, seed: int | None
) -> Trace:
    parts = list(map(trace.part, trace.steps))
    moved = list(parts)
    for slot, source in zip(slots, order, strict=True):
        moved[slot] = parts[source]
    detail = {"order": [parts[i].step.index for i in order]}
    return trace.spliced(0, len(parts), moved, Edit(kind, seed=seed, detail=detail))


def _require_step(trace: Trace, step: int) -> int:
    """The place in `trace.steps` of the step with index `step`."""
    for at, s in enumerate(trace.steps):
        if s.index == step:
            return at
    raise IndexError(
        f"{_name(trace)}: no step {step!r}; it has {len(trace.steps)} steps, with the indices "
        f"{', '.join(str(s.index) for s in trace.steps) or 'of none'}"
    )


def _name(trace: Trace) -> str:
    return f"trace of {trace.question.id!r} ({trace.question.dataset}, {trace.origin.model})"
