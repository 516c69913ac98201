"""Owen values of a text's tokens: Shapley values over a tree of neighbouring tokens.

The Shapley value of a token asks for the value of every set of tokens. Owen values ask only for the
sets that a tree of the tokens allows: a node's worth is divided between its two children, each met
once without the other and once with it, and so on down to single tokens (`shap`'s Partition
explainer, Lundberg et al.; the tree and the order of evaluations are those of Parcalabescu & Frank
2024). Where the budget of evaluations ends, a node's worth is shared among its tokens alike.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np

Tree = list[tuple[int, int]]
"""Children of the nodes n, n + 1, …, 2n - 2; the n tokens are the nodes before these."""
Value = Callable[[np.ndarray], np.ndarray]
"""(sets, tokens) truth values, of the tokens that are there, -> (sets, outputs) values."""
SPLITS = 5
"""Nodes that are divided between two looks at which node to divide next: ten sets each."""
_STOPS, _CONNECTORS = (".", "?", "!"), ("but", "and", "or")


def owen_values(value: Value, tree: Tree, n: int, evaluations: int) -> np.ndarray:
    """(n, outputs) values of the tokens.

    The node to be divided next is the one with the greatest change of any output, by its weight;
    the first found of equals.

    Args:
        evaluations: most sets whose value is asked for, and one more if odd; at least 2.
    """
    there = _members(tree, n)
    ends = value(np.array([np.zeros(n, bool), np.ones(n, bool)]))
    credit = np.zeros((len(there), ends.shape[1]))
    found = count()
    whole = _Worth(len(there) - 1, np.zeros(n, bool), ends[0], ends[1], 1.0)
    heap, left = [(0.0, next(found), whole)], evaluations - 2
    while heap:
        divided: list[_Worth] = []
        while heap and len(divided) < SPLITS and left > 2 * len(divided):
            worth = heapq.heappop(heap)[2]
            if worth.node < n:
                credit[worth.node] += worth.share
            else:
                divided.append(worth)
        if not divided:
            for _, _, worth in heap:
                credit[worth.node] += worth.share
            break
        sets = [w.beside | there[child] for w in divided for child in tree[w.node - n]]
        values = value(np.array(sets))
        left -= len(sets)
        for i, w in enumerate(divided):
            (one, other), half = tree[w.node - n], w.weight / 2
            with_one, with_other = sets[2 * i : 2 * i + 2]
            of_one, of_other = values[2 * i : 2 * i + 2]
            for part in (
                _Worth(one, w.beside, w.low, of_one, half),
                _Worth(other, w.beside, w.low, of_other, half),
                _Worth(one, with_other, of_other, w.high, half),
                _Worth(other, with_one, of_one, w.high, half),
            ):
                heapq.heappush(heap, (-float(np.abs(part.share).max()), next(found), part))
    for node in range(len(there) - 1, n - 1, -1):
        for child in tree[node - n]:
            credit[child] += credit[node] * (there[child].sum() / there[node].sum())
    return credit[:n]


class _Worth(NamedTuple):
    """What a node adds to the tokens that are there already."""

    node: int
    beside: np.ndarray
    """The tokens that are there already."""
    low: np.ndarray
    """The value without the node's tokens; `high`, with them."""
    high: np.ndarray
    weight: float

    @property
    def share(self) -> np.ndarray:
        return (self.high - self.low) * self.weight


def evaluations_of(most: int) -> int:
    """Sets whose value is asked for where the tree has enough nodes."""
    return 2 + 2 * max(0, (most - 1) // 2)


def _members(tree: Tree, n: int) -> np.ndarray:
    there = np.zeros((n + len(tree), n), bool)
    there[:n] = np.eye(n, dtype=bool)
    for i, (one, other) in enumerate(tree):
        there[n + i] = there[one] | there[other]
    return there


def tree_of_tokens(pieces: Sequence[str]) -> Tree:
    """The tree that joins neighbours one by one, by their scores: parts of a word first, sentences
    last, small groups before large ones; the first of equals."""
    words: list[_Token] = []
    for i, piece in enumerate(pieces):
        before = pieces[i - 1] if i else " "
        inside = not re.search(r"\W$", before) and "A" <= piece[:1] <= "z" and words[-1].text
        words.append(_Token(("##" if inside else "") + piece.strip()))
    groups: list[list[_Token]] = [[word] for word in words]
    names, tree = list(range(len(words))), []
    scores = [_score(a, b) for a, b in pairwise(groups)]
    while scores:
        at = int(np.argmax(scores))
        one, other = groups[at], groups[at + 1]
        tree.append((names[at], names[at + 1]))
        if one[0].text == "(" and other[-1].text == ")":
            one[0].closed = other[-1].closed = True
        groups[at : at + 2] = [one + other]
        names[at : at + 2] = [len(words) + len(tree) - 1]
        scores[at : at + 1] = []
        for place in (at - 1, at):
            if 0 <= place < len(scores):
                scores[place] = _score(groups[place], groups[place + 1])
    return tree


class _Token:
    def __init__(self, text: str) -> None:
        self.text = text
        self.closed = text not in ("(", ")")


def _score(one: Sequence[_Token], other: Sequence[_Token]) -> int:
    """How soon two neighbouring groups are joined, the greatest first."""
    first, last, begins, ends = one[0].text, one[-1].text, other[0].text, other[-1].text
    score = 20 * begins.startswith("##")
    score += 15 * (begins == "'" and (len(other) == 1 or (len(other) == 2 and ends in ("t", "s"))))
    score += 15 * (last == "'" and begins in ("t", "s"))
    marked = [text.startswith("[") and text.endswith("]") for text in (first, ends)]
    score -= 1000 * (marked[0] != marked[1])
    score -= 100 * (begins == "(" and not other[0].closed)
    score -= 100 * (last == ")" and not one[-1].closed)
    score -= 2 * (first == "(")
    score -= 2 * (last in _CONNECTORS or begins in _CONNECTORS)
    score -= 10 * (last == ",") + 20 * (last in _STOPS)
    if begins == "," or begins in _STOPS:
        score -= 1 if len(other) == 1 else 10 if begins == "," else 20
    return score - len(one) - len(other)
