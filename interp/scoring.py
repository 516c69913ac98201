"""How labels are scored whole after a prefix: what is run, and which next tokens are read where.

Labels of one prefix share the tokens that they begin with, and so do the tokens past a label's
end that have to be read to know whether its number goes on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from interp.language import Speaks
from interp.number_ends import Continuation, NumberEnds, TokenSet

Place = tuple[int, int, int | TokenSet]
"""A tail, how many of its tokens are read, and the next token (or `TokenSet`) that is scored."""


@dataclass(frozen=True)
class Label:
    """How one label is scored."""

    tokens: tuple[Place, ...]
    longer: tuple[tuple[Place, ...], ...]
    """Ways in which it would go on to be another; no two of them overlap."""

    def score(self, log_prob: Callable[[Place], float]) -> float:
        total = sum(map(log_prob, self.tokens))
        if not self.longer:
            return total
        p = math.fsum(math.exp(sum(map(log_prob, way))) for way in self.longer)
        # where it is all but certain to go on, 1 - p rounds to zero and its log to -inf
        return total + math.log1p(-min(p, 1 - 1e-12))


@dataclass(frozen=True)
class Scoring:
    """What is run after a prefix to score one set of labels, and where each is then read."""

    tails: tuple[tuple[int, ...], ...]
    """Tokens after the prefix; none is the beginning of another."""
    labels: tuple[Label, ...]
    lengths: tuple[int, ...]
    """Tokens per label."""

    @property
    def places(self) -> Iterator[Place]:
        """All that is read."""
        for label in self.labels:
            yield from itertools.chain(label.tokens, *label.longer)

    def scores(self, log_prob: Callable[[Place], float]) -> tuple[float, ...]:
        """Per label, given the log-prob of what is read at each place."""
        return tuple(label.score(log_prob) for label in self.labels)

    @classmethod
    def of(
        cls,
        labels: Sequence[Sequence[int]],
        longer: Callable[[Sequence[int]], Iterable[Continuation]],
    ) -> Scoring:
        """
        Args:
            longer: of a label, tokens that may follow and ids of which one then follows, each
                way something else than the label; no two of them overlap.
        """
        made: list[tuple[list[Any], list[list[Any]]]] = []
        for label in map(tuple, labels):
            if not label:
                raise ValueError("a label without tokens cannot be scored")
            ways = []
            for between, ids in longer(label):
                whole = (*label, *between)
                steps = [(whole[:k], whole[k]) for k in range(len(label), len(whole))]
                ways.append([*steps, (whole, ids)])
            made.append(([(label[:k], token) for k, token in enumerate(label)], ways))
        contexts = {c for tokens, ways in made for places in (tokens, *ways) for c, _ in places}
        inner = {c[:k] for c in contexts for k in range(len(c))}
        tails = sorted(contexts - inner) or [()]
        at = {tail[:k]: i for i, tail in enumerate(tails) for k in range(len(tail) + 1)}

        def places(found: Iterable[Any]) -> tuple[Place, ...]:
            return tuple((at[context], len(context), token) for context, token in found)

        return cls(
            tuple(tails),
            tuple(Label(places(tokens), tuple(map(places, ways))) for tokens, ways in made),
            tuple(map(len, labels)),
        )


def scorings(
    language: Speaks,
    labels: Sequence[Sequence[Sequence[int]]],
    ends: NumberEnds | None,
) -> list[Scoring]:
    """How each of several sets of labels is scored; equal sets share theirs.

    Args:
        ends: what makes another number of the one that a label ends with, none of which is then
            credited to the label; None to credit a label with all that begins with it but what
            is another label.
    """
    known: dict[tuple[tuple[int, ...], ...], Scoring] = {}

    keys = [tuple(map(tuple, options)) for options in labels]
    for key in keys:
        if key not in known:
            known[key] = Scoring.of(
                key,
                (lambda label: ends.continuations(language.decode(label)))
                if ends is not None
                else (lambda label, others=key: _longer_labels(label, others)),
            )
    return [known[key] for key in keys]


def _longer_labels(
    label: Sequence[int], others: Sequence[tuple[int, ...]]
) -> Iterable[Continuation]:
    """What completes another label that begins with this one ("no", "no one")."""
    n = len(label)
    rests = {other[n:] for other in others if len(other) > n and other[:n] == tuple(label)}
    for rest in rests:
        if not any(rest[:k] in rests for k in range(1, len(rest))):
            yield rest[:-1], TokenSet(torch.tensor(rest[-1:]))
