"""Positions of the parts of an output, in tokens, and the places where it may be cut.

The text is r′ and what was generated after it, `written`, as the ids they are. A **cut** is a
number of these tokens that are given: after it the reasoning is closed, unless the model has
closed it itself, and the answer is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced, output_of
from faithscope.interp.control import encode_marks
from faithscope.interp.responses import split_response
from faithscope.probes.answer_token import Span, token_span

if TYPE_CHECKING:
    from faithscope.interp.model import Model


@dataclass(frozen=True)
class Layout:
    """Parts of one output; positions count the tokens of `written`."""

    prompt_ids: tuple[int, ...]
    written: tuple[int, ...]
    """Ids of r′ and of all that was generated."""
    closer_ids: tuple[int, ...]
    """Ids that close the reasoning; empty for a format without marks."""
    n_r_prime: int
    """Number of tokens of r′, 0 for a baseline."""
    reasoned: int
    """Position where the model's own reasoning ends."""
    resumed: int
    """Position where its explanation begins, after the closer that it wrote; `reasoned` if it wrote
    none."""
    end: int
    """Position where its answer begins; the end of the text if it has none."""
    closed: bool
    """Whether the reasoning has an end; always true for a format without marks."""
    output: Output

    @property
    def last(self) -> int:
        """The last cut, which gives all tokens before the answer."""
        return self.end if self.end > self.resumed else self.reasoned

    @property
    def spans(self) -> dict[str, Span]:
        """Half-open spans of the parts that are there, in order."""
        ends = {
            "r_prime": (0, self.n_r_prime),
            "r": (self.n_r_prime, self.reasoned),
            "e": (self.resumed, self.end),
        }
        return {part: (a, b) for part, (a, b) in ends.items() if a < b}

    def prefix(self, cut: int) -> tuple[int, ...]:
        """The ids up to a cut, with the reasoning closed and without a cue.

        Raises:
            ValueError: a cut inside the closer, or outside the text.
        """
        if not 0 <= cut <= self.last or self.reasoned < cut <= self.resumed:
            raise ValueError(
                f"cut {cut}: give one from 0 to {self.last}, none in {self.reasoned + 1} to "
                f"{self.resumed}, where the closer stands"
            )
        closer = self.closer_ids if cut <= self.reasoned else ()
        return (*self.prompt_ids, *self.written[:cut], *closer)

    @property
    def after_parts(self) -> dict[str, tuple[int, ...]]:
        """The ids up to the end of each part that is there, with the reasoning closed and without a
        cue.

        `none` is before any reasoning, `e` is all before the answer, `a` all that was written.
        """
        answer, reasoned = self.output.answer, self.closed and bool(self.output.reasoning)
        ends = {"none": self.prefix(0)}
        if self.n_r_prime:
            ends["r_prime"] = self.prefix(self.n_r_prime)
        if reasoned and (self.closer_ids or answer):
            ends["r"] = self.prefix(self.reasoned)
        if reasoned and self.output.explanation and answer:
            ends["e"] = (*self.prompt_ids, *self.written[: self.end])
        if answer and (reasoned or not self.closer_ids):
            ends["a"] = (*self.prompt_ids, *self.written)
        return ends

    def grid(self, points: int) -> list[int]:
        """Cuts in rising order: 0, and up to `points` in each part, the last of them at its end."""
        cuts = {0}
        for a, b in self.spans.values():
            inside = np.rint(np.linspace(a, b, min(points, b - a) + 1)).astype(int)
            cuts |= set(inside[1:].tolist())
        return sorted(cuts)

    def between(self, one: int, other: int) -> list[int]:
        """The cuts that may be made between two given ones."""
        within = range(one + 1, other)
        return [cut for cut in within if not self.reasoned < cut <= self.resumed]


def layout(model: Model, start: Forced, generated: Sequence[int], finished: bool = True) -> Layout:
    """Finds the parts of one output.

    Reasoning without an end reaches to the end of the text. In a format without marks all before
    the answer is reasoning. A token that holds the end of a part and the start of the next goes
    with the next.

    Args:
        generated: the ids after `start.ids`, without the token that ended them.
        finished: False where the token limit ended it.
    """
    fmt = start.prompt.format
    output = output_of(model, start, generated, finished)
    before, written = len(start.r_prime_ids), (*start.r_prime_ids, *generated)
    closer: tuple[int, ...] = ()
    closed = True
    if not fmt.marks:
        reasoned = resumed = end = before + len(before_answer(model, generated, output.answer))
    else:
        closer = tuple(encode_marks(model.tokenizer, fmt.closer))
        cut = split_response(model.tokenizer, fmt, generated)
        closed = cut.closed
        reasoned = resumed = end = before + len(cut.opener_ids) + len(cut.reasoning_ids)
        if closed:
            resumed += _past(model.pieces(cut.tail_ids), (fmt.closer, fmt.answer_opener))
            before_it = before_answer(model, cut.tail_ids, output.answer)
            end = max(resumed, reasoned + len(before_it))
    ids = start.prompt.ids
    return Layout(ids, written, closer, before, reasoned, resumed, end, closed, output)


def before_answer(model: Model, ids: Sequence[int], answer: str) -> tuple[int, ...]:
    """The ids whose text ends before the last place of the answer (as a word, if it occurs as one);
    all ids if the answer is "" or nowhere."""
    pieces = model.pieces(ids)
    text = "".join(pieces)
    # the letter "B" also begins "Because"
    words = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text)]
    at = words[-1] if words else text.rfind(answer)
    if not answer or at < 0:
        return tuple(ids)
    ends = np.cumsum([len(piece) for piece in pieces])
    return tuple(ids[: int(np.searchsorted(ends, at, side="right"))])


def text_span(pieces: Sequence[str], texts: Iterable[str]) -> Span | None:
    """Half-open span of the tokens from the first of some texts to the last, each searched from the
    end; None if the first text that is not empty is nowhere."""
    whole = "".join(pieces)
    places = [(whole.rfind(text), len(text)) for text in map(str.strip, texts) if text]
    if not places or places[0][0] < 0:
        return None
    start = min(at for at, _ in places if at >= 0)
    end = max(at + n for at, n in places if at >= 0)
    return token_span(pieces, start, end)


def _past(pieces: Sequence[str], marks: Iterable[str]) -> int:
    """Counts the tokens up to the end of the first mark that the text has; 0 if it has none."""
    whole = "".join(pieces)
    for mark in filter(None, marks):
        at = whole.find(mark)
        if at >= 0:
            return token_span(pieces, at, at + len(mark))[1]
    return 0
