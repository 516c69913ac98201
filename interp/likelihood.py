"""How likely a text's own tokens are, and how open each next token was: nats, token by token.

The logits of a long text fill gigabytes (2,000 tokens of a vocabulary of 150,000: 1.2 GB), so
they are reduced to two numbers per token as they are made, a few hundred positions at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from faithscope.interp import execute
from faithscope.interp.edit_checks import check
from faithscope.interp.edits import Edit, Knockout
from faithscope.interp.execute import Execution
from faithscope.interp.forest import Forest
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.read import choose_execution, groups, spills
from faithscope.interp.trunk import NO_TRUNK, linked

POSITIONS = 256
"""Most positions whose logits are held at once, but for `dense`, which holds all."""
_ROWS = 64
INF = float("inf")


@dataclass(frozen=True)
class Likelihood:
    """Scores of one sequence's tokens from a start on; NaN at the first token of all."""

    log_probs: Float[NDArray[np.float64], " n"]
    """log p(token | all tokens before it), nats."""
    entropies: Float[NDArray[np.float64], " n"]
    """Entropy of the whole next-token distribution before each token, nats."""
    log_odds: Float[NDArray[np.float64], " n"] | None = None
    """log p - log(1 - p) of each token, exact also where p rounds to 1; None if not asked for."""


@dataclass(frozen=True)
class Likelihoods:
    """Scores of the sequences of one call, with the execution used and its token counts."""

    sequences: tuple[Likelihood, ...]
    execution: Literal["packed", "dense", "flex", "loop"]
    reason: str | None
    """Why the one-by-one loop was used; None if it was not."""
    trie_tokens: int
    naive_tokens: int


def likelihood(
    model: LoadedModel,
    sequences: Sequence[Sequence[int]],
    starts: Sequence[int],
    *,
    edits: Sequence[Sequence[Edit]] | None = None,
    odds: bool = False,
    execution: Execution = "auto",
) -> Likelihoods:
    """Log-probabilities and entropies of the tokens of each sequence from its start on.

    The loop runs a text once for every `POSITIONS` asked tokens.

    Args:
        starts: per sequence, the position of the first token wanted, 0 for all.
        edits: per sequence, the edits of the model while it reads the sequence.
        odds: whether the tokens' log-odds are computed, too.

    Raises:
        UserError: a sequence is longer than the model's positions, or an edit is not possible in
            this model.
        ValueError: a start outside its sequence, or an edit names a position, layer, head or width
            that is not there.
        FloatingPointError: the model's logits are not finite.
    """
    for ids, start in zip(sequences, starts, strict=True):
        if not 0 <= start <= len(ids):
            raise ValueError(f"start {start} lies outside a sequence of {len(ids)} tokens")
    under = [()] * len(sequences) if edits is None else [tuple(e) for e in edits]
    for ids, of in zip(sequences, under, strict=True):
        check(model, of, len(ids))
    how, reason = choose_execution(model, sequences, execution)
    by_sequence: dict[int, Likelihood] = {}
    trie, trunk = 0, NO_TRUNK
    packs = (
        _Pack.of(sequences, starts, under, group, odds)
        for group in groups(model, sequences, how, under)
    )
    for pack, after, size in linked(packs, apart=how == "loop"):
        scores = pack.scores
        trie += len(pack.forest) - len(trunk.nodes)
        cut = any(isinstance(e, Knockout) for i in pack.group for e in under[i])
        if how == "loop" and not cut:
            (i,) = pack.group
            _run_loop(model, sequences[i], under[i], scores)
        else:
            cache = execute.prefill(
                model,
                pack.forest,
                sorted(scores.tokens),
                lambda nodes, logits, into=scores: into.take(model, nodes, logits),
                # in one chunk if positions are scaled by the longest sequence of a forward
                chunk=None if how == "loop" else min(model.chunk, POSITIONS),
                way=execute.WAYS.get(how),
                trunk=trunk,
            )
            trunk = cache.trunk(after, spend=True, spill=spills(model, size))
        for i, path in zip(pack.group, pack.forest.paths, strict=True):
            by_sequence[i] = scores.along(path.tolist(), sequences[i], starts[i])
    return Likelihoods(
        sequences=tuple(by_sequence[i] for i in range(len(sequences))),
        execution=how,
        reason=reason,
        trie_tokens=trie,
        naive_tokens=sum(map(len, sequences)),
    )


@dataclass(frozen=True)
class _Pack:
    """Sequences that run together."""

    group: list[int]
    forest: Forest
    scores: _Scores

    @classmethod
    def of(
        cls,
        sequences: Sequence[Sequence[int]],
        starts: Sequence[int],
        edits: Sequence[Sequence[Edit]],
        group: list[int],
        odds: bool,
    ) -> _Pack:
        forest = Forest.of([tuple(sequences[i]) for i in group], [edits[i] for i in group])
        return cls(group, forest, _Scores.wanted(forest, [starts[i] for i in group], odds))

    @property
    def read(self) -> Iterable[int]:
        return self.scores.tokens

    def path(self, place: int) -> NDArray[np.int64]:
        return self.forest.paths[place]


@dataclass(frozen=True)
class _Scores:
    """The scores that are kept from the logits at each asked node."""

    tokens: dict[int, set[int]]
    """node -> the tokens that follow it in some sequence."""
    log_probs: dict[tuple[int, int], float]
    entropies: dict[int, float]
    log_odds: dict[tuple[int, int], float] | None

    @classmethod
    def wanted(cls, forest: Forest, starts: Sequence[int], odds: bool) -> _Scores:
        tokens: dict[int, set[int]] = {}
        for path, start in zip(forest.paths, starts, strict=True):
            for node, after in zip(path[max(start, 1) - 1 :], path[max(start, 1) :], strict=False):
                tokens.setdefault(int(node), set()).add(int(forest.tokens[after]))
        return cls(tokens, {}, {}, {} if odds else None)

    @torch.inference_mode()
    def take(self, model: LoadedModel, nodes: Sequence[int], logits: Tensor) -> None:
        """Reduce (A, V) logits at nodes to their scores."""
        for start in range(0, len(nodes), _ROWS):
            some = logits[start : start + _ROWS].float()
            execute.check_finite(model, some)
            log_p = torch.log_softmax(some, -1)
            here = nodes[start : start + _ROWS]
            # entr(0) is 0, while p * log p would be NaN for a token of probability 0
            entropies = torch.special.entr(log_p.exp()).sum(-1, dtype=torch.float64)
            self.entropies.update(zip(here, entropies.tolist(), strict=True))
            pairs = [(row, node, t) for row, node in enumerate(here) for t in self.tokens[node]]
            picked = log_p[[row for row, _, _ in pairs], [t for _, _, t in pairs]].tolist()
            for (_, node, token), value in zip(pairs, picked, strict=True):
                self.log_probs[node, token] = value
            if self.log_odds is not None:
                rows, tokens = [row for row, _, _ in pairs], [t for _, _, t in pairs]
                # from the logits: 1 - p is lost where p rounds to 1
                others = some[rows].scatter(1, torch.tensor(tokens)[:, None].to(some.device), -INF)
                odds = (some[rows, tokens] - others.logsumexp(-1)).tolist()
                self.log_odds.update(zip([(n, t) for _, n, t in pairs], odds, strict=True))

    def along(self, path: Sequence[int], ids: Sequence[int], start: int) -> Likelihood:
        at = [(path[p - 1], ids[p]) for p in range(max(start, 1), len(ids))]
        first = [np.nan] if start == 0 and ids else []
        return Likelihood(
            np.array([*first, *(self.log_probs[pair] for pair in at)], dtype=np.float64),
            np.array([*first, *(self.entropies[node] for node, _ in at)], dtype=np.float64),
            None
            if self.log_odds is None
            else np.array([*first, *(self.log_odds[pair] for pair in at)], dtype=np.float64),
        )


def _run_loop(
    model: LoadedModel, ids: Sequence[int], edits: Sequence[Edit], scores: _Scores
) -> None:
    # a forest of one path: its nodes are the positions
    asked = sorted(scores.tokens)
    for start in range(0, len(asked), POSITIONS):
        some = asked[start : start + POSITIONS]

        def reduce(_: int, logits: Tensor, here: list[int] = some) -> None:
            scores.take(model, here, logits)

        execute.one_by_one(model, [ids], [some], reduce, edits=[edits])
