"""Scoring of whole labels after a prefix: the tokens to run, and the next tokens to read at each.

Labels of one prefix share the tokens that they begin with. Whether a number goes on past a label is
read where the label ends; after a comma, a point or a slash that may follow it, one more token has
to be run, and is run only if the model is likely to write that far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from faithscope.interp.language import Speaks
from faithscope.interp.number_ends import Continuation, NumberEnds, TokenSet

Place = tuple[int, int, int | TokenSet]
"""(index of a tail, number of its tokens before the place, next token or `TokenSet` scored)."""
LEAST_LIKELY, LEAST_SHARE = 1e-5, 0.005
"""Least probability of a label and the token after it, and least probability of that token given
the label, for which the token is run. Each token that is not run makes the label's probability too
high by less than the greater of `LEAST_LIKELY` and this share of it: most marks after a number are
unlikely, and a digit after them is more so."""


class Beyond(NamedTuple):
    """A continuation of a label by one token, and then by any token of a set."""

    place: Place
    """The place at which the label ends, with the one token that follows it."""
    ids: TokenSet | int


LogProb = Callable[[Place], float]
LogProbAfter = Callable[[Beyond], float]
"""Log-prob that any of a `Beyond`'s set follows, given the label and the token after it."""


@dataclass(frozen=True)
class Label:
    """The places at which one label is scored."""

    tokens: tuple[Place, ...]
    longer: tuple[tuple[Place, ...], ...]
    """Continuations that turn the label into another text; no two of them overlap."""
    beyond: tuple[Beyond, ...] = ()
    """Further such continuations, whose token no tail runs; none overlaps another or `longer`."""

    def score(self, log_prob: LogProb, after: LogProbAfter) -> float:
        total = sum(map(log_prob, self.tokens))
        if not self.longer and not self.beyond:
            return total
        ways = [sum(map(log_prob, way)) for way in self.longer]
        ways += [log_prob(way.place) + after(way) for way in self.likely(log_prob)]
        p = math.fsum(map(math.exp, ways))
        # if the label is all but certain to go on, 1 - p rounds to zero and its log to -inf
        return total + math.log1p(-min(p, 1 - 1e-12))

    def likely(self, log_prob: LogProb) -> Iterator[Beyond]:
        """The continuations in `beyond` that are likely enough for their token to be run."""
        if self.beyond:
            total = sum(map(log_prob, self.tokens))
            least = max(math.log(LEAST_LIKELY) - total, math.log(LEAST_SHARE))
            yield from (way for way in self.beyond if log_prob(way.place) > least)


@dataclass(frozen=True)
class Scoring:
    """The tokens run after a prefix to score one set of labels, and the places to read."""

    tails: tuple[tuple[int, ...], ...]
    """Token sequences run after the prefix; none is the beginning of another."""
    labels: tuple[Label, ...]
    lengths: tuple[int, ...]
    """Number of tokens per label."""

    @property
    def places(self) -> Iterator[Place]:
        """All places that are read."""
        for label in self.labels:
            yield from itertools.chain(label.tokens, *label.longer)
            yield from (way.place for way in label.beyond)

    def beyond(self, log_prob: LogProb) -> Iterator[Beyond]:
        """The continuations to run besides the tails, given the log-probs read on the tails."""
        for label in self.labels:
            yield from label.likely(log_prob)

    def scores(self, log_prob: LogProb, after: LogProbAfter) -> tuple[float, ...]:
        """The log-prob of each label, given those read at each place and after each of `beyond`."""
        return tuple(label.score(log_prob, after) for label in self.labels)

    @classmethod
    def of(
        cls,
        labels: Sequence[Sequence[int]],
        longer: Callable[[Sequence[int]], Iterable[Continuation]],
    ) -> Scoring:
        """
        Args:
            longer: per label, the continuations that would turn it into another text: tokens that
                follow, and a set of ids of which one then follows. No two of them overlap.
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
    """The scoring of each of several sets of labels; equal sets share one.

    Args:
        ends: continuations that turn the number at a label's end into another, whose probability is
            taken off the label; None to credit a label with every text that begins with it but
            other labels.
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
    """The continuations that complete another label that begins with this one ("no", "no one")."""
    n = len(label)
    rests = {other[n:] for other in others if len(other) > n and other[:n] == tuple(label)}
    for rest in rests:
        if not any(rest[:k] in rests for k in range(1, len(rest))):
            yield rest[:-1], rest[-1]
