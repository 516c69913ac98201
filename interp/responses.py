"""Cutting of a model's response into opener, reasoning and tail, exactly between tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from faithscope.interp import detokenise
from faithscope.interp.control import controls, encode_marks
from faithscope.interp.formats import ReasoningFormat


@dataclass(frozen=True)
class Response:
    """Generated ids cut exactly between tokens; opener, reasoning and tail joined are the input."""

    reasoning_ids: tuple[int, ...]
    tail_ids: tuple[int, ...]
    """The closer and all ids after it; empty if the reasoning was not closed."""
    closed: bool
    """Whether the reasoning ended; True for a format without marks."""
    opener_ids: tuple[int, ...] = ()
    """The opener, if the model wrote it itself; it stands before `reasoning_ids`."""


def split_response(
    tokenizer: PreTrainedTokenizerBase, fmt: ReasoningFormat, ids: Sequence[int]
) -> Response:
    """Cut generated ids at the closer, between tokens: no id is changed, none is lost.

    `fmt` is the `format` of the prompt that was continued. Without marks everything is
    reasoning (the answer is found in its prose). The closer is searched as its own ids; a
    closer spelled in ordinary tokens is found in the text, and a token that holds both the
    end of the reasoning and the start of the closer (`.</`) goes to the tail. A block within
    the reasoning, opened and closed again, is part of it.

    An opener that the model wrote itself is set apart, as is all before an answer that no
    reasoning precedes (harmony's final channel).
    """
    ids = tuple(ids)
    if not fmt.marks:
        return Response(ids, (), closed=True)
    pieces = detokenise.pieces(tokenizer, ids)
    start = _after_opener(fmt, pieces)
    tag = fmt.opener.rstrip()
    # marks spelled in ordinary tokens have other ids beside other text
    own = controls(tokenizer).pattern.match(fmt.closer)
    closers = _find(ids, encode_marks(tokenizer, fmt.closer), start) if own else []
    if closers:
        cut = _closing(_find(ids, encode_marks(tokenizer, tag), start), closers, fmt.nests)
    else:
        cut = _closing_in_text(pieces, fmt, start)
    if cut is None and fmt.answer_opener and "".join(pieces).startswith(fmt.answer_opener):
        cut = 0
    if cut is None:
        return Response(ids[start:], (), closed=False, opener_ids=ids[:start])
    return Response(ids[start:cut], ids[cut:], closed=True, opener_ids=ids[:start])


def _after_opener(fmt: ReasoningFormat, pieces: Sequence[str]) -> int:
    """Number of tokens that the opener takes at the start, white space before it included."""
    text = "".join(pieces)
    lead = len(text) - len(text.lstrip())
    tag = fmt.opener.rstrip()
    if not text.startswith(tag, lead):
        return 0
    end = lead + len(tag)
    if text.startswith(fmt.opener, lead):
        end = lead + len(fmt.opener)
    return _token_at(pieces, end, past=True)


def _token_at(pieces: Sequence[str], char: int, past: bool) -> int:
    """The token boundary at a character, or after (else before) the token that it lies inside."""
    at = 0
    for i, piece in enumerate(pieces):
        if at >= char:
            return i
        if at + len(piece) > char and not past:
            return i
        at += len(piece)
    return len(pieces)


def _find(ids: Sequence[int], wanted: Sequence[int], start: int) -> list[int]:
    n = len(wanted)
    return [i for i in range(start, len(ids) - n + 1) if ids[i : i + n] == wanted]


def _closing(openers: Sequence[int], closers: Sequence[int], nests: bool) -> int | None:
    """The place of the closer that ends the block open at the start; None if there is none."""
    depth = 1
    for at, change in sorted([*((o, 1) for o in openers if nests), *((c, -1) for c in closers)]):
        depth += change
        if not depth:
            return at
    return None


def _closing_in_text(pieces: Sequence[str], fmt: ReasoningFormat, start: int) -> int | None:
    text = "".join(pieces)
    at = sum(map(len, pieces[:start]))
    openers, closers = (
        [m.start() for m in re.finditer(re.escape(mark), text) if m.start() >= at]
        for mark in (fmt.opener.rstrip(), fmt.closer)
    )
    char = _closing(openers, closers, fmt.nests)
    return None if char is None else max(start, _token_at(pieces, char, past=False))
