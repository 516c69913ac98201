"""How labels are scored whole after a prefix: what is run, and which next tokens are read where.

Labels of one prefix share the tokens that they begin with. Whether a number goes on past a label
is read where the label ends; behind a comma, a point or a slash that may follow it, one more token
has to be run, and is run only where the model is likely to write that far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from faithscope.interp.language import Speaks
from faithscope.interp.number_ends import Continuation, NumberEnds, TokenSet

Place = tuple[int, int, int | TokenSet]
"""A tail, how many of its tokens are read, and the next token (or `TokenSet`) that is scored."""
LEAST_LIKELY, LEAST_SHARE = 1e-5, 0.005
"""What a label and the token behind it must have of the probability, and the token of the label's,
for that token to be run. The label's probability is too high by less than the greater of the two
for each that is not: most marks behind a number are unlikely, and a digit behind them is more so.
"""


class Beyond(NamedTuple):
    """A way to go on by one token behind a label, and then by any of a set."""

    place: Place
    """The place at which the label ends, and the one token behind it."""
    ids: TokenSet


LogProb = Callable[[Place], float]
LogProbAfter = Callable[[Beyond], float]
"""That any of the set follows, given the label and the token behind it."""


@dataclass(frozen=True)
class Label:
    """How one label is scored."""

    tokens: tuple[Place, ...]
    longer: tuple[tuple[Place, ...], ...]
    """Ways in which it would go on to be another; no two of them overlap."""
    beyond: tuple[Beyond, ...] = ()
    """More such ways, of a token that no tail runs; no two of them, or of `longer`, overlap."""

    def score(self, log_prob: LogProb, after: LogProbAfter) -> float:
        total = sum(map(log_prob, self.tokens))
        if not self.longer and not self.beyond:
            return total
        ways = [sum(map(log_prob, way)) for way in self.longer]
        ways += [log_prob(way.place) + after(way) for way in self.likely(log_prob)]
        p = math.fsum(map(math.exp, ways))
        # where it is all but certain to go on, 1 - p rounds to zero and its log to -inf
        return total + math.log1p(-min(p, 1 - 1e-12))

    def likely(self, log_prob: LogProb) -> Iterator[Beyond]:
        """Those of `beyond` whose token has to be run."""
        if self.beyond:
            total = sum(map(log_prob, self.tokens))
            least = max(math.log(LEAST_LIKELY) - total, math.log(LEAST_SHARE))
            yield from (way for way in self.beyond if log_prob(way.place) > least)


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
            yield from (way.place for way in label.beyond)

    def beyond(self, log_prob: LogProb) -> Iterator[Beyond]:
        """What has to be run besides the tails, given what is read on these."""
        for label in self.labels:
            yield from label.likely(log_prob)

    def scores(self, log_prob: LogProb, after: LogProbAfter) -> tuple[float, ...]:
        """Per label, given the log-prob of what is read at each place and `beyond`."""
        return tuple(label.score(log_prob, after) for label in self.labels)

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
        run = {label[:k] for label in map(tuple, labels) for k in range(len(label))}
        parts: list[tuple[list[Any], list[list[Any]], list[Any]]] = []
        for label in map(tuple, labels):
            if not label:
                raise ValueError("a label without tokens cannot be scored")
            ways, beyond = [], []
            for between, ids in longer(label):
                whole = (*label, *between)
                if len(between) == 1 and whole not in run:
                    beyond.append(((label, between[0]), ids))
                    continue
                steps = [(whole[:k], whole[k]) for k in range(len(label), len(whole))]
                ways.append([*steps, (whole, ids)])
            parts.append(([(label[:k], token) for k, token in enumerate(label)], ways, beyond))
        contexts = {
            context
            for tokens, ways, beyond in parts
            for places in (tokens, *ways, [place for place, _ in beyond])
            for context, _ in places
        }
        inner = {c[:k] for c in contexts for k in range(len(c))}
        tails = sorted(contexts - inner) or [()]
        at = {tail[:k]: i for i, tail in enumerate(tails) for k in range(len(tail) + 1)}

        def places(pairs: Iterable[Any]) -> tuple[Place, ...]:
            return tuple((at[context], len(context), token) for context, token in pairs)

        def made_of(tokens: Any, ways: Any, beyond: Any) -> Label:
            befores, ids = zip(*beyond, strict=True) if beyond else ((), ())
            after = map(Beyond, places(befores), ids)
            return Label(places(tokens), tuple(map(places, ways)), tuple(after))

        return cls(tuple(tails), tuple(made_of(*x) for x in parts), tuple(map(len, labels)))


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
