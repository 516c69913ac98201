"""Answers after a text with a span left out, of which only chosen later tokens are computed anew.

A token after a span depends on it in two ways: it attends to the span's tokens, and to later ones
that do. Without the span, every later token would have to be computed again. Here the keys and
values of the whole text are cached, those of the span are hidden, later keys are rotated to the
positions that they have without it, and only some later tokens are computed anew; the others keep
what they were computed from. With all later tokens among them, the answers are exactly those after
the text without the span.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from faithscope.interp import execute
from faithscope.interp.answer import Boundary
from faithscope.interp.attention import is_eager
from faithscope.interp.attention_sums import Summed, forwards
from faithscope.interp.edits import Span
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Forest, Ids, id_array
from faithscope.interp.kept import Kept
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.masked import mask_for, masked
from faithscope.interp.masks import Reach
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.prefill import Prefill
from faithscope.interp.read import choose_execution
from faithscope.interp.rotation import Rotation
from faithscope.interp.scoring import Place, Scoring, scorings


@dataclass(frozen=True)
class Omission:
    """A span of a text that is left out, and the later tokens that are computed anew."""

    cut: Span
    """Half-open span of positions; an empty one leaves nothing out."""
    fresh: tuple[int, ...]
    """Ascending positions after the span; the last is that of the text's last token."""


@dataclass
class CachedText:
    """A text up to where its answer begins, with the keys and values of all its tokens."""

    model: LoadedModel
    ids: NDArray[np.integer]
    cache: KeyValues
    seen: Float[NDArray[np.float32], "T S"]
    """Attention of each token to each of the spans that were asked for, mean over all heads."""
    read: Float[NDArray[np.float32], " T"]
    """Attention to each token of the text's last tokens, mean over these and all heads."""
    rotation: Rotation = field(repr=False)

    @classmethod
    def of(
        cls, model: LoadedModel, ids: Ids, spans: Sequence[Span] = (), since: int | None = None
    ) -> CachedText:
        """Run a text once.

        Args:
            spans: spans of positions; attention to them is read, which takes about as long as the
                rest of the forward. None are read if there are none.
            since: the position from which on tokens are the text's last.

        Raises:
            UserError: the model cannot run packs, or its positions are not rotary.
        """
        _, reason = choose_execution(model, [ids], "auto")
        if reason is not None:
            raise UserError(
                f"{model.name}: removal cannot be estimated from cached keys ({reason}); take "
                "steps.screen out"
            )
        n = len(ids)
        cache, seen, read = KeyValues(n), torch.zeros(n, len(spans)), torch.zeros(n)
        last = n - 1 if since is None else since
        make = partial(_Watched, spans=spans, since=last) if spans else Prefill
        for session in forwards(model, ids, cache, make):
            if isinstance(session, _Watched):
                of_tokens, of_last = session.sums()
                seen[session.start : session.stop] = of_tokens / model.n_layers
                read[: session.stop] += of_last / model.n_layers
        return cls(model, id_array(ids), cache, seen.numpy(), read.numpy(), Rotation(model))

    def ask(
        self,
        omissions: Sequence[Omission],
        labels: Sequence[Sequence[int]],
        boundary: Boundary | None = None,
    ) -> tuple[list[tuple[float, ...]], int]:
        """Log-probs of labels after the text without each span, and the number of tokens run.

        Args:
            boundary: as in `interp.answer.ask`, but for a digit after a mark that follows a number
                ("7" before ".5"), which is not looked for.

        Raises:
            ValueError: a fresh position does not lie after its span, or the last is missing.
        """
        ends = self.model.number_ends if boundary == "number" else None
        (scoring,) = scorings(self.model, [labels], ends)
        parts = (_Part.of(self.ids, omission, scoring) for omission in omissions)
        scores: list[tuple[float, ...]] = []
        tokens = 0
        for group in _packs(parts, self.model.chunk):
            scores += self._ask(group, scoring)
            tokens += sum(len(part.forest) for part in group)
        return scores, tokens

    @torch.inference_mode()
    def _ask(self, parts: list[_Part], scoring: Scoring) -> list[tuple[float, ...]]:
        session = _Recomputed(self, parts)
        firsts = np.cumsum([0, *(len(p.forest) for p in parts)])
        tokens = np.concatenate([p.forest.tokens for p in parts])
        positions = np.concatenate([p.positions for p in parts])
        asked = [part.queries(scoring) for part in parts]
        keep = [
            first + node
            for first, of in zip(firsts[:-1].tolist(), asked, strict=True)
            for node in of
        ]
        logits = execute.forward(
            self.model,
            session,
            torch.from_numpy(tokens),
            torch.from_numpy(positions),
            np.array(keep),
        )
        wanted = dict(enumerate(tokens for of in asked for tokens in of.values()))
        scores: dict[int, Mapping[int | TokenSet, float]] = {}
        if wanted:
            Kept(self.model, logits, list(wanted), wanted).read(scores)
        rows = (dict(scores[i]) for i in wanted)
        return [
            part.scores(scoring, {node: next(rows) for node in of})
            for part, of in zip(parts, asked, strict=True)
        ]


class _Watched(Summed):
    """Sums the attention of all tokens to spans, and of the last ones to all, mean over heads."""

    def __init__(self, *whole: Any, block: int, spans: Sequence[Span], since: int) -> None:
        super().__init__(*whole, block=block, spans=spans)
        self._since = since
        self._sums: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def sums(self) -> tuple[Tensor, Tensor]:
        """(T, S) attention of each token to each span, and (P,) that of the text's last tokens to
        each token up to the forward's last, summed over layers; on the CPU."""
        seen, read = zip(*self._sums.values(), strict=True)
        return sum(x.cpu() for x in seen), sum(x.cpu() for x in read)  # pyright: ignore

    def take(self, layer: int, at: int, first: int, weights: Tensor) -> None:
        mean = weights.mean(0, dtype=torch.float32)
        n, p = mean.shape
        if mean.device not in self._sums:
            sizes = (self.stop - self.start, self._bounds.shape[1]), (self.stop,)
            zeros = tuple(torch.zeros(size, device=mean.device) for size in sizes)
            self._sums[mean.device] = zeros  # pyright: ignore
        seen, read = self._sums[mean.device]
        seen[at : at + n] += self.of_spans(mean, first)
        late = max(0, self._since - (self.start + at))
        if late < n:
            read[first : first + p] += mean[late:].sum(0) / (len(self.forest) - self._since)


@dataclass(frozen=True)
class _Part:
    """The tokens that are run for one omission: fresh ones of the text, then those of labels."""

    omission: Omission
    length: int
    """Number of tokens of the text."""
    forest: Forest
    """The fresh tokens, followed by the labels' tokens."""

    @classmethod
    def of(cls, ids: NDArray[np.integer], omission: Omission, scoring: Scoring) -> _Part:
        (_, stop), fresh, n = omission.cut, omission.fresh, len(ids)
        if not fresh or fresh[0] < stop or fresh[-1] != n - 1:
            raise ValueError(
                f"fresh positions {fresh[:1]} to {fresh[-1:]} of a text of {n} tokens without "
                f"{omission.cut}: they must lie after the span, the text's last token among them"
            )
        own = ids[list(fresh)]
        tails = [np.concatenate([own, id_array(tail)]) for tail in scoring.tails]
        return cls(omission, n, Forest.of(tails))

    @property
    def size(self) -> int:
        """Number of tokens that the omission leaves out."""
        return self.omission.cut[1] - self.omission.cut[0]

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """(N,) positions of the tokens that are run, in the text without the span."""
        fresh = np.array(self.omission.fresh)
        after = np.arange(self.length, self.length + int(self.forest.depth.max()) + 1)
        return np.concatenate([fresh, after])[self.forest.depth] - self.size

    @cached_property
    def kept(self) -> tuple[Tensor, Tensor]:
        """(T - size,) positions of the cached tokens without the span, and whether each is in
        use."""
        start, stop = self.omission.cut
        used = np.ones(self.length, dtype=bool)
        used[list(self.omission.fresh)] = False
        left = np.concatenate([used[:start], used[stop:]])
        return torch.arange(self.length - self.size), torch.from_numpy(left)

    def mask(self, reach: Reach) -> Tensor:
        """(N, T - size + N) bool: the cached tokens, then the fresh ones, that each token sees."""
        at = torch.from_numpy(self.positions)[:, None]
        kept, used = self.kept
        end, own = torch.from_numpy(self.forest.end)[None], torch.arange(len(self.forest))
        path = (own[None] <= own[:, None]) & (own[:, None] < end)
        return torch.cat([used & reach.sees(at, kept[None]), path & reach.sees(at, at.T)], dim=1)

    def node(self, place: Place) -> int:
        tail, read, _ = place
        return int(self.forest.paths[tail][len(self.omission.fresh) - 1 + read])

    def queries(self, scoring: Scoring) -> dict[int, set[int | TokenSet]]:
        """node -> the next tokens that are scored after it."""
        tokens: dict[int, set[int | TokenSet]] = {}
        for place in scoring.places:
            tokens.setdefault(self.node(place), set()).add(place[2])
        return dict(sorted(tokens.items()))

    def scores(
        self, scoring: Scoring, scores: dict[int, dict[int | TokenSet, float]]
    ) -> tuple[float, ...]:
        return scoring.scores(lambda place: scores[self.node(place)][place[2]], lambda _: -math.inf)


def _packs(parts: Iterable[_Part], most: int) -> Iterator[list[_Part]]:
    """Parts that run in one forward: of at most `most` tokens, or one part alone."""
    pack: list[_Part] = []
    for part in parts:
        if pack and sum(len(p.forest) for p in (*pack, part)) > most:
            yield pack
            pack = []
        pack.append(part)
    if pack:
        yield pack


class _Recomputed:
    """A session that runs the tokens of several omissions over the keys and values of one text."""

    def __init__(self, text: CachedText, parts: Sequence[_Part]) -> None:
        self._text, self._parts = text, parts
        self._masks: dict[tuple[Any, ...], Tensor] = {}

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        cached = self._text.cache.read(int(module.layer_idx))  # pyright: ignore
        outs, first = [], 0
        for i, part in enumerate(self._parts):
            own = slice(first, first + len(part.forest))
            start, stop = part.omission.cut
            keys, values = cached
            later = self._text.rotation.turn(module, keys[:, :, stop:], -part.size)
            k = torch.cat([keys[:, :, :start], later, key[:, :, own]], dim=2)
            v = torch.cat([values[:, :, :start], values[:, :, stop:], value[:, :, own]], dim=2)
            mask = self._mask(module, i, (query, key, value))
            outs.append(masked(module, query[:, :, own], k, v, mask, **kwargs)[0])
            first = own.stop
        return torch.cat(outs, dim=1)

    def _mask(self, module: nn.Module, i: int, of: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        query, key, value = of
        reach = self._text.model.structure.reaches[int(module.layer_idx)]  # pyright: ignore
        assert reach is not None, "models with masks of other kinds are run one by one"
        heads = query.shape[1], key.shape[1], value.shape[-1]
        name = (i, reach, query.device, is_eager(module), heads)
        if name not in self._masks:
            self._masks[name] = mask_for(module, self._parts[i].mask(reach)[None, None], *of)
        return self._masks[name]
