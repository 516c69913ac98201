"""Encoding of text that no model wrote in a model's tokens: words of an edit, or a whole chain.

A text is encoded alone and its ids put after those before it: tokenised together with its
neighbours it would take other tokens at the joins, and no id would keep its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from faithscope.interventions.trace import Question, Step, Trace

Encode = Callable[[str], Sequence[int]]
"""A function to the ids of a text, nothing added (`interp.Model.encode`)."""
Pieces = Callable[[Sequence[int]], Sequence[str]]
"""A function to the text that each id adds (`interp.Model.pieces`)."""

_CONTEXT = 8
"""Number of tokens before a text that are decoded with it to check how it reads."""


class NotWritable(ValueError):
    """A text for which a tokenizer has no ids."""


def written(
    text: str, before: Sequence[int], encode: Encode, pieces_of: Pieces
) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """Ids that read as `text` after `before`, with their pieces; None if there are none.

    Tokenizers of the SentencePiece kind put a space before the text they encode: then the ids of
    the text without its own leading space are the ones that read right.
    """
    if not text:
        return (), ()
    before = tuple(before)[-_CONTEXT:]
    for candidate in (text, text.removeprefix(" ")):
        ids = tuple(encode(candidate))
        pieces = tuple(pieces_of((*before, *ids)))[len(before) :]
        if ids and "".join(pieces) == text:
            return ids, pieces
    return None


def from_steps(
    question: Question,
    prompt_ids: Sequence[int],
    steps: Sequence[str],
    encode: Encode,
    pieces_of: Pieces,
    **known: Any,
) -> Trace:
    """A trace whose reasoning is given as a list of texts, each one step, however short.

    Every step is tokenised by itself, so that two chains that share their first steps share those
    tokens, and exchanging a step changes no other step's tokens.

    Args:
        steps: texts of the reasoning's steps in order, with the white space between steps, by
            custom at the end of the earlier step.
        known: further fields of `Trace`: `answer`, `tail_text`, `origin`.

    Raises:
        ValueError: a step has no text.
        NotWritable: this tokenizer has no ids for a step (a vocabulary of few words).
    """
    ids: list[int] = []
    pieces: list[str] = []
    located = []
    chars = 0
    for i, text in enumerate(steps):
        if not text.strip():
            raise ValueError(
                f"chain of {question.id!r}: step {i} of {len(steps)} is {text!r}; give steps with "
                "text, or leave it out"
            )
        before = (*prompt_ids[-_CONTEXT:], *ids[-_CONTEXT:])
        encoded = written(text, before, encode, pieces_of)
        if encoded is None:
            raise NotWritable(
                f"chain of {question.id!r}: this tokenizer gives no ids for step {i} "
                f"({text[:60]!r}); give it in words that the tokenizer has"
            )
        located.append(
            Step(i, text, (chars, chars + len(text)), (len(ids), len(ids) + len(encoded[0])))
        )
        ids += encoded[0]
        pieces += encoded[1]
        chars += len(text)
    return Trace(question, tuple(prompt_ids), tuple(ids), tuple(pieces), tuple(located), **known)
