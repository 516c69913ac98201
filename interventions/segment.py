"""Segmentation of reasoning text into steps that tile it, by characters and by tokens.

Where steps begin is decided on the text; a token then belongs to the step of its first
visible character, a token of white space alone to the step before it. Spans in characters
follow from the tokens, so that an edit that moves a step's ids moves exactly its text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, get_args

from faithscope.interventions.scripts import length_in_letters
from faithscope.interventions.sentences import (
    bracket_spans,
    masked,
    next_visible,
    outside,
    paragraph_starts,
    sentence_starts,
)
from faithscope.interventions.thoughts import thought_starts
from faithscope.interventions.trace import Question, Step, Trace, Unit

Mode = Literal["auto", "sentences", "numbered", "paragraphs", "thoughts"]
MODES: tuple[Mode, ...] = get_args(Mode)

SEGMENTATION = 5
"""Version of the rules of segmentation; a run makes traces that another version cut anew."""
MIN_CHARS = 15
"""Least length of a step, in letters; a shorter stretch is no step of its own (SLRC, section 4.1);
see `scripts.length_in_letters`."""
LEAST_STEPS = 2
"""Least number of steps of a chain that is measured (SLRC, section 4.1)."""
LONG_TOKENS = 512
"""Number of tokens above which `auto` cuts reasoning into thoughts: think blocks come in
paragraphs, and the sentences of a long one are too many and too slight to remove one by one."""
LIST_SHARE = 0.5
"""Least share of the text that a numbered list must take up for its items to be the steps."""

_EMPHASIS = r"[*_#>\-]{0,6}+[ \t]*+[*_]{0,3}+"
_STEP_MARKER = re.compile(
    rf"(?:^[ \t]*+{_EMPHASIS}|(?<=[.!?:;)*])[ \t]+[*_]*)"
    r"step[ \t]*\d{1,3}[*_]*[ \t]*[:.)\u2013\u2014-]",
    re.IGNORECASE | re.MULTILINE,
)
_LIST_MARKER = re.compile(
    r"^[ \t]{0,3}[*_#]*[ \t]*\(?(?P<k>\d{1,3})[.)][*_]*(?=\s|$)", re.MULTILINE
)
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_HEADING = re.compile(r"[ \t]*+(?:#.*|[*_]{2}.*[*_]{2}:?|.*:[*_]*|\(?\d{1,3}[.)])[ \t]*")


def segment(
    pieces: Sequence[str],
    mode: Mode = "auto",
    min_chars: int = MIN_CHARS,
    n_tokens: int | None = None,
    groups: int | None = None,
) -> tuple[Step, ...]:
    """Cut reasoning into steps.

    Args:
        pieces: the text each token adds; joined, they are the reasoning text.
        mode: `sentences`; `numbered`: one step per item of a "Step k:" or "k." list, the
            text around the list by sentences; `paragraphs`: blocks between blank lines;
            `thoughts`: paragraphs, cut where the text turns ("Wait, …") and joined to the formulas
            that go on with them (`thoughts.thought_starts`); `auto`: `numbered` where a list of at
            least two items makes up half of the text or more, else `thoughts` where the reasoning
            has more than `LONG_TOKENS` tokens and blank lines, else `sentences`.
        min_chars: a step that is shorter, counted in characters of an alphabet
            (`scripts.length_in_letters`: a Han character is three of them), keeps its place with
            `counted=False`: it is no unit of edits, and never merged into another step.
        n_tokens: length of the reasoning in tokens, if the pieces are no model's tokens.
        groups: most steps; where there are more, each is a group of as many neighbouring ones as it
            takes. None joins none.

    Returns:
        Steps that tile the tokens: every token is in exactly one. Empty for no tokens.

    Raises:
        ValueError: the mode is unknown.
    """
    return _segment(pieces, mode, min_chars, n_tokens, groups)[1]


def _segment(
    pieces: Sequence[str],
    mode: Mode,
    min_chars: int,
    n_tokens: int | None,
    groups: int | None,
) -> tuple[Unit, tuple[Step, ...]]:
    long = len(pieces) if n_tokens is None else n_tokens
    unit, starts = units("".join(pieces), mode, long, min_chars, groups)
    return unit, tile(pieces, _whole_tokens(pieces, starts), min_chars)


def units(
    text: str,
    mode: Mode = "auto",
    n_tokens: int | None = None,
    min_chars: int = MIN_CHARS,
    groups: int | None = None,
) -> tuple[Unit, tuple[int, ...]]:
    """The unit of a text's steps, and the character offsets where they begin; see `segment`."""
    unit, starts = _units(text, mode, n_tokens, min_chars)
    if groups is not None and len(starts) > groups:
        return "group", starts[:: -(-len(starts) // groups)]
    return unit, starts


def _units(
    text: str, mode: Mode, n_tokens: int | None, min_chars: int
) -> tuple[Unit, tuple[int, ...]]:
    if mode not in MODES:
        raise ValueError(f"unknown segmentation mode {mode!r}; use one of {', '.join(MODES)}")
    if mode in ("auto", "numbered"):
        items = numbered_starts(text, LIST_SHARE if mode == "auto" else 0.0)
        if items:
            return "item", items
    long = (len(text) // 4 if n_tokens is None else n_tokens) > LONG_TOKENS
    if mode == "paragraphs":
        return "paragraph", paragraph_starts(text)
    if mode == "thoughts" or (mode == "auto" and long and len(paragraph_starts(text)) > 1):
        return "thought", thought_starts(text, min_chars)
    return "sentence", sentence_starts(text)


def numbered_starts(
    text: str, least_share: float = LIST_SHARE, *, goes_on: bool = False
) -> tuple[int, ...]:
    """Offsets of the items of a numbered list, and of the sentences around it.

    "Step k:" markers are preferred to "k." markers, which must stand at the beginning of a line and
    count up by one (or begin again at one). Empty if there are fewer than two items, or if the
    items make up less than `least_share` of the text.

    Args:
        goes_on: whether the text continues a list, so that one item at its beginning suffices.
    """
    plain = masked(text)
    first = next_visible(plain, 0) if goes_on else None
    markers = _markers(plain, first)
    if len(markers) < 2 and markers[:1] != [first]:
        return ()
    end = _list_end(plain, markers[-1])
    visible = len("".join(text.split())) or 1
    if len("".join(text[markers[0] : end].split())) < least_share * visible:
        return ()
    before = sentence_starts(text, 0, markers[0])
    after = sentence_starts(text, end)
    return (*before, *markers, *after)


def tile(
    pieces: Sequence[str], starts: Sequence[int], min_chars: int = MIN_CHARS
) -> tuple[Step, ...]:
    """Steps that begin at character offsets `starts`, rounded to whole tokens."""
    offsets = token_offsets(pieces)
    text = "".join(pieces)
    # The first step includes any text before the first start.
    cuts = sorted(set(tokens_at(pieces, starts[1:])) - {0, len(pieces)})
    steps = []
    for i, (a, b) in enumerate(pairwise((0, *cuts, len(pieces)))):
        if a == b:
            continue
        step_text = text[offsets[a] : offsets[b]]
        steps.append(
            Step(
                index=i,
                text=step_text,
                chars=(offsets[a], offsets[b]),
                tokens=(a, b),
                counted=length_in_letters(step_text) >= min_chars,
            )
        )
    return tuple(steps)


def _whole_tokens(pieces: Sequence[str], starts: Sequence[int]) -> list[int]:
    """Offsets of the tokens that steps begin with; starts that no token meets are left out.

    A token that ends a sentence and opens a bracket (".(") begins the step of the bracket.
    """
    text, offsets = "".join(pieces), token_offsets(pieces)
    brackets = bracket_spans(masked(text))
    begins = []
    for token in tokens_at(pieces, starts):
        at = [next_visible(text, offsets[i]) for i in (token, token - 1) if i >= 0]
        begins += [char for char in at if outside(brackets, char)][:1]
    return begins


def token_offsets(pieces: Sequence[str]) -> list[int]:
    """Character offset where each token's text begins, and the length of the text."""
    return [0, *accumulate(map(len, pieces))]


def tokens_at(pieces: Sequence[str], chars: Sequence[int]) -> list[int]:
    """For each character offset, the first token whose first visible character is not before it.

    Tokens that add no text (the first parts of a character spread over several) go with the token
    that completes the character. The result is `len(pieces)` if no visible character is left.
    """
    visible = [i for i, piece in enumerate(pieces) if piece.strip()]
    offsets = token_offsets(pieces)
    first = [offsets[i] + next_visible(pieces[i], 0) for i in visible]
    tokens = []
    for char in chars:
        at = bisect_left(first, char)
        token = visible[at] if at < len(visible) else len(pieces)
        while at < len(visible) and token > 0 and not pieces[token - 1]:
            token -= 1
        tokens.append(token)
    return tokens


def from_ids(
    question: Question,
    prompt_ids: Sequence[int],
    reasoning_ids: Sequence[int],
    pieces: Sequence[str],
    *,
    mode: Mode = "auto",
    min_chars: int = MIN_CHARS,
    n_tokens: int | None = None,
    groups: int | None = None,
    **known: Any,
) -> Trace:
    """A trace from a model's ids, cut into steps.

    Args:
        pieces: the text that each reasoning id adds (`interp.Model.pieces`).
        n_tokens: length of the reasoning in tokens, as for `segment`.
        groups: most steps, as for `segment`.
        known: further fields of `Trace`: `tail_ids`, `tail_text`, `answer`, `finish`, `origin`.
    """
    unit, steps = _segment(pieces, mode, min_chars, n_tokens, groups)
    return Trace(
        question=question,
        prompt_ids=tuple(prompt_ids),
        reasoning_ids=tuple(reasoning_ids),
        pieces=tuple(pieces),
        steps=steps,
        unit=unit,
        **known,
    )


def _markers(plain: str, first: int | None = None) -> list[int]:
    """Offsets at which the items of the text's list begin, emphasis around their markers included;
    a single "Step k:" is a list only at `first`."""
    brackets = bracket_spans(plain)
    named = [
        _line_start(plain, m)
        for m in _STEP_MARKER.finditer(plain)
        if outside(brackets, _line_start(plain, m))
    ]
    if len(named) >= 2 or named[:1] == [first]:
        return named
    starts: list[int] = []
    last = 0
    for m in _LIST_MARKER.finditer(plain):
        k = int(m["k"])
        counts_up = not starts or k == last + 1 or k == 1
        if counts_up and outside(brackets, _line_start(plain, m)):
            starts.append(_line_start(plain, m))
            last = k
    return starts


def _line_start(plain: str, marker: re.Match[str]) -> int:
    return next_visible(plain, marker.start())


def _list_end(plain: str, last: int) -> int:
    """Offset at which the last item of a list ends: a blank line with unindented text after it.

    A heading ("Step 3: the total" on a line of its own) is not yet the item's text: the
    paragraph under it is.
    """
    seen_text = after_blank = False
    for line in _LINES.finditer(plain, last):
        content = line.group().rstrip()
        if content and seen_text and after_blank and not content[0].isspace():
            return line.start()
        after_blank = not content
        seen_text = seen_text or bool(content and not _HEADING.fullmatch(content))
    return len(plain)
