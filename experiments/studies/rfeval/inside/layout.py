"""Where the parts of an output lie, in tokens, and where it may be cut.

The text is r′ and what was generated after it, `written`, as the ids they are. A **cut** is a
number of these tokens that are given: after it the reasoning is closed, unless the model has
closed it itself, and the answer is asked for (as `scored_stances.cuts` does at the ends of parts).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from faithscope.experiments.studies.rfeval.inside.scored_stances import before_answer
from faithscope.experiments.studies.rfeval.subjects.injection import Forced, output_of
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.interp.control import encode_marks
from faithscope.interp.prompts import split_response
from faithscope.probes.answer_token import Span, token_span

if TYPE_CHECKING:
    from faithscope.interp.model import Model


@dataclass(frozen=True)
class Layout:
    """One output; places count the tokens of `written`."""

    prompt_ids: tuple[int, ...]
    written: tuple[int, ...]
    """r′ and all that was generated."""
    closer_ids: tuple[int, ...]
    """What closes the reasoning; none of a format without marks."""
    n_r_prime: int
    """Tokens of r′, 0 of a baseline."""
    reasoned: int
    """Where the model's own reasoning ends."""
    resumed: int
    """Where its explanation begins, past the closer it wrote; `reasoned` where it wrote none."""
    end: int
    """Where its answer begins; all of the text where it has none."""
    output: Output

    @property
    def last(self) -> int:
        """The last cut: all before the answer."""
        return self.end if self.end > self.resumed else self.reasoned

    @property
    def spans(self) -> dict[str, Span]:
        """Half-open, of the parts that are there, in order."""
        found = {
            "r_prime": (0, self.n_r_prime),
            "r": (self.n_r_prime, self.reasoned),
            "e": (self.resumed, self.end),
        }
        return {part: (a, b) for part, (a, b) in found.items() if a < b}

    def prefix(self, cut: int) -> tuple[int, ...]:
        """The ids up to a cut, the reasoning closed; no cue yet.

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

    def grid(self, points: int) -> list[int]:
        """Rising: 0, and so many cuts in each part, its end the last of them."""
        found = {0}
        for a, b in self.spans.values():
            inside = np.rint(np.linspace(a, b, min(points, b - a) + 1)).astype(int)
            found |= set(inside[1:].tolist())
        return sorted(found)

    def between(self, one: int, other: int) -> list[int]:
        """The cuts that may be made between two."""
        within = range(one + 1, other)
        return [cut for cut in within if not self.reasoned < cut <= self.resumed]


def layout(model: Model, start: Forced, generated: Sequence[int], finished: bool = True) -> Layout:
    """The parts of one output.

    Reasoning that has no end reaches to the end of the text. Of a format without marks all before
    the answer is reasoning. A token that holds the end of a part and the start of the next goes
    with the next.

    Args:
        generated: the ids after `start.ids`, without the token that ended them.
        finished: False where the token limit ended it.
    """
    fmt = start.prompt.format
    output = output_of(model, start, generated, finished)
    written = (*start.r_prime_ids, *generated)
    before = len(start.r_prime_ids)
    if not fmt.marks:
        kept = before_answer(model, generated, output.answer) if output.answer else generated
        end = before + len(kept)
        return Layout(start.prompt.ids, written, (), before, end, end, end, output)
    closer = tuple(encode_marks(model.tokenizer, fmt.closer))
    cut = split_response(model.tokenizer, fmt, generated)
    reasoned = before + len(cut.opener_ids) + len(cut.reasoning_ids)
    if not cut.closed:
        return Layout(
            start.prompt.ids, written, closer, before, reasoned, reasoned, reasoned, output
        )
    opened = _past(model.pieces(cut.tail_ids), (fmt.closer, fmt.answer_opener))
    kept = before_answer(model, cut.tail_ids, output.answer) if output.answer else cut.tail_ids
    resumed = reasoned + opened
    end = max(resumed, reasoned + len(kept))
    return Layout(start.prompt.ids, written, closer, before, reasoned, resumed, end, output)


def text_span(pieces: Sequence[str], texts: Iterable[str]) -> Span | None:
    """Half-open span of the tokens from the first of some texts to the last; None if the first of
    them that is not empty is nowhere. Each is looked for from behind."""
    whole = "".join(pieces)
    found = [(whole.rfind(text), len(text)) for text in map(str.strip, texts) if text]
    if not found or found[0][0] < 0:
        return None
    start = min(at for at, _ in found if at >= 0)
    end = max(at + n for at, n in found if at >= 0)
    return token_span(pieces, start, end)


def _past(pieces: Sequence[str], marks: Iterable[str]) -> int:
    """Tokens up to the end of the first mark that the text holds; 0 where it holds none."""
    whole = "".join(pieces)
    for mark in filter(None, marks):
        at = whole.find(mark)
        if at >= 0:
            return token_span(pieces, at, at + len(mark))[1]
    return 0
