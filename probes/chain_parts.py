"""Parts of a chain that begins with prefilled reasoning: r′, own reasoning, explanation, answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from faithscope.interventions import Trace
from faithscope.probes.answer_token import Span, token_span
from faithscope.probes.framing import Asking

if TYPE_CHECKING:
    from faithscope.interp.model import Model

PARTS = {"r_prime": "r′", "r": "own reasoning", "e": "explanation"}
"""Part of a chain -> its name in words."""


@dataclass(frozen=True)
class ChainText:
    """A chain's token ids, with the positions of its parts in tokens after the prompt."""

    n_r_prime: int
    """Number of tokens of r′; 0 for a chain without prefilled reasoning."""
    reasoned: int
    """Position where the model's own reasoning ends."""
    resumed: int
    """Position where the explanation begins, after the tokens that close the reasoning."""
    end: int
    """Position where the answer begins; the end of the text if it has none."""
    prompt_ids: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    """Ids of r′ and of all text that the model wrote after it."""
    closer_ids: tuple[int, ...] = ()
    """Ids that close the reasoning; none for a format without marks."""

    @classmethod
    def of(cls, model: Model, trace: Trace, asking: Asking) -> ChainText:
        """The parts of a chain. A token that holds the end of a part and the start of the next
        belongs to the next.

        In a format with marks, the text after the closer is explanation up to the last place of
        the answer; all of it without a parsed answer, none if the answer is not there as parsed.
        """
        n, tail, resumed, end = len(trace.reasoning_ids), model.pieces(trace.tail_ids), 0, 0
        if asking.closer_ids:
            text, marks = "".join(tail), (model.format.closer, model.format.answer_opener)
            closers = [text.find(mark) + len(mark) for mark in marks if mark and mark in text]
            resumed = token_span(tail, 0, closers[0])[1] if closers else 0
            start = len(tail) if trace.answer is None else answer_start(tail, trace.answer)
            end = max(resumed, start or 0)
        ids = (*trace.reasoning_ids, *trace.tail_ids)
        places = (trace.origin.prefilled, n, n + resumed, n + end)
        return cls(*places, trace.prompt_ids, ids, asking.closer_ids)

    @classmethod
    def stored(cls, record: Mapping[str, Any]) -> ChainText:
        """The positions in a record, without the ids."""
        return cls(*(record[name] for name in PLACES))

    @property
    def spans(self) -> dict[str, Span]:
        """Half-open spans of the parts that the chain has, in order."""
        n, ends = self.n_r_prime, (self.resumed, self.end)
        parts = {"r_prime": (0, n), "r": (n, self.reasoned), "e": ends}
        return {part: (a, b) for part, (a, b) in parts.items() if a < b}

    def cuts(self, points: int) -> list[int]:
        """Numbers of given tokens, rising from 0: up to `points` in each part, equally spaced, the
        last of them at its end."""
        cuts = {0}
        for a, b in self.spans.values():
            at = np.rint(np.linspace(a, b, min(points, b - a) + 1)).astype(int)
            cuts |= set(at[1:].tolist())
        return sorted(cuts)

    def prefix(self, cut: int) -> tuple[int, ...]:
        """The ids up to a cut, with the reasoning closed and without a cue."""
        closer = self.closer_ids if cut <= self.reasoned else ()
        return (*self.prompt_ids, *self.written[:cut], *closer)


PLACES = tuple(ChainText.__dataclass_fields__)[:4]
"""Names of the positions, in a chain and in records."""


def answer_start(pieces: Sequence[str], answer: str) -> int | None:
    """Number of tokens before the last place of the answer, as a word if it occurs as one; None if
    the text does not hold it."""
    text = "".join(pieces)
    # the letter "B" also begins "Because"
    words = [m.start() for m in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text)]
    at = words[-1] if words else text.rfind(answer)
    return None if at < 0 else token_span(pieces, at, at + len(answer))[0]
