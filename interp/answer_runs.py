"""Execution of requested positions: prefixes with their labels and continuations, in one forest or
one by one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithscope.interp import continuation, execute, lockstep, writer
from faithscope.interp.answered import Answered
from faithscope.interp.edits import Edit
from faithscope.interp.forest import Forest, id_array
from faithscope.interp.generation import Generation
from faithscope.interp.kept import Kept, rows_of
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.leads import Lead
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.lockstep import Stop
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.prefill import Way
from faithscope.interp.read import loop_logits, spills
from faithscope.interp.requested_positions import Behind, RequestedPositions, Scores
from faithscope.interp.trunk import NO_TRUNK, Share, Trunk, linked


class End(NamedTuple):
    """The end of a prefix, with what its continuation is subject to."""

    node: int
    edits: tuple[Edit, ...]
    """Edits that the prefix runs under; one may begin after it, and then the node does not tell."""
    limit: int
    stop: Stop | None
    here: bool
    """Whether this process writes it whatever writer the model has."""


@dataclass(frozen=True)
class Pack:
    """Prefixes that are asked together, with the nodes of their forest at which they are read."""

    group: list[int]
    asked: RequestedPositions
    forest: Forest
    tokens: dict[int, set[int | TokenSet]]
    """node -> the next tokens and token sets that are scored after it."""
    ends: list[End]
    """Per prefix, where and how it is continued."""
    places: list[tuple[list[int], list[int]]]
    """Per prefix, the nodes whose leads are wanted."""

    @classmethod
    def of(
        cls,
        asked: RequestedPositions,
        group: list[int],
        stops: Sequence[Stop | None],
        here: Sequence[bool],
    ) -> Pack:
        """
        Args:
            here: per prefix, whether its call has edits, so that this process writes its text.
        """
        forest = Forest.of(asked.sequences, asked.edits)
        ends = [
            End(int(forest.paths[i][asked.starts[i] - 1]), asked.edits[i], limit, stop, own)
            for i, limit, stop, own in zip(asked.first, asked.limits, stops, here, strict=True)
        ]
        paths = forest.paths
        return cls(group, asked, forest, asked.queries(paths), ends, asked.places(paths))

    @property
    def led(self) -> list[int]:
        """Nodes whose leads are wanted."""
        return list(dict.fromkeys(n for pair in self.places for nodes in pair for n in nodes))

    @property
    def read(self) -> list[int]:
        return [*self.tokens, *(end.node for end in self.ends if end.limit), *self.led]

    def path(self, place: int) -> NDArray[np.int64]:
        first = self.asked.first[place]
        return self.forest.paths[first][: self.asked.starts[first]]


def by_forests(
    model: LoadedModel, packs: Iterable[Pack], way: Way | None = None
) -> Iterator[list[Answered] | None]:
    """The answers of each pack, which takes over what it shares with the one before; and before
    them None, once its nodes are run and the host is about to wait for the device."""
    trunk = NO_TRUNK
    for pack, after, size in linked(packs):

        def hand_on(cache: KeyValues, spend: bool, after: Share = after, size: int = size) -> Trunk:
            return cache.trunk(after, spend=spend, spill=spills(model, size))

        answers, trunk = yield from _by_forest(model, pack, way, trunk, hand_on)
        yield answers


def _by_forest(
    model: LoadedModel,
    pack: Pack,
    way: Way | None,
    trunk: Trunk,
    hand_on: Callable[[KeyValues, bool], Trunk],
) -> Generator[None, None, tuple[list[Answered], Trunk]]:
    asked, forest, tokens = pack.asked, pack.forest, pack.tokens
    ends = list(dict.fromkeys(sorted((e for e in pack.ends if e.limit), key=lambda e: e.node)))
    elsewhere = [end for end in ends if model.writer is not None and not end.here]
    decoded = [end for end in ends if end not in elsewhere]
    led, places = frozenset(pack.led), frozenset(end.node for end in decoded)
    kept: list[Kept[int]] = []
    firsts: list[tuple[list[int], Tensor]] = []

    def reduce(here: list[int], logits: Tensor) -> None:
        kept.append(Kept(model, logits, here, tokens, led))
        at = [i for i, node in enumerate(here) if node in places]
        if at:
            firsts.append(([here[i] for i in at], rows_of(logits, at).float()))

    cache = execute.prefill(
        model, forest, pack.read, reduce, chunk=model.chunk, way=way, trunk=trunk
    )
    yield
    scores: dict[int, Scores] = {}
    leads: dict[int, Lead] = {}
    for of_forward in kept:
        of_forward.read(scores, leads)
    after: dict[Behind, Scores] = {}
    beyond = asked.beyond(scores, forest.paths)
    if beyond:
        keys, sets = list(beyond), {key: x.sets for key, x in beyond.items()}
        further: list[Kept[Behind]] = []

        def behind(rows: list[int], logits: Tensor) -> None:
            further.append(Kept(model, logits, [keys[i] for i in rows], sets))

        execute.one_more(
            model,
            forest,
            cache,
            [key.node for key in keys],
            [key.token for key in keys],
            behind,
            edits=[key.edits for key in keys],
        )
        for of_tokens in further:
            of_tokens.read(after)
    trunk = hand_on(cache, not decoded)
    ids = [forest.tokens[forest.path(end.node)].tolist() for end in elsewhere]
    texts = _written(model, ids, [e.limit for e in elsewhere], [e.stop for e in elsewhere])
    written = dict(zip(elsewhere, texts, strict=True))
    # decoding comes last, since it frees the cache
    if decoded:
        generations = lockstep.decode(
            model,
            cache,
            [forest.path(end.node).tolist() for end in decoded],
            _at_ends([end.node for end in decoded], firsts),
            [end.limit for end in decoded],
            stop=[end.stop for end in decoded],
            group_tokens=model.token_budget,
            edits=[end.edits for end in decoded],
        )
        written |= dict(zip(decoded, generations, strict=True))
    generated = [written.get(end) for end in pack.ends]
    return asked.answers(scores, after, forest.paths, generated, pack.places, leads), trunk


def by_loop(
    model: LoadedModel, asked: RequestedPositions, stops: Sequence[Stop | None]
) -> list[Answered]:
    """Answers from a plain forward for each sequence, and a continuation for each prefix."""
    offset, paths = 0, []
    for sequence in asked.sequences:
        paths.append(range(offset, offset + len(sequence)))
        offset += len(sequence)
    tokens = asked.queries(paths)
    places = asked.places(paths)
    wanted = {n for pair in places for nodes in pair for n in nodes}
    leads: dict[int, Lead] = {}
    scores: dict[int, Scores] = {}
    for sequence, path, under in zip(asked.sequences, paths, asked.edits, strict=True):
        here = [n for n in path if n in tokens or n in wanted]
        if here:
            logits = loop_logits(
                model, id_array(sequence).tolist(), [n - path[0] for n in here], under
            )
            Kept(model, logits, here, tokens, wanted).read(scores, leads)
    after: dict[Behind, Scores] = {}
    for key, further in asked.beyond(scores, paths).items():
        ids = id_array(asked.sequences[further.sequence])[: further.length].tolist()
        logits = loop_logits(model, [*ids, key.token], [-1], key.edits)
        Kept(model, logits, [key], {key: further.sets}).read(after)
    goes_on = [k for k, limit in enumerate(asked.limits) if limit]
    prefixes = [
        id_array(asked.sequences[i])[: asked.starts[i]].tolist()
        for i in (asked.first[k] for k in goes_on)
    ]
    texts = _written(
        model, prefixes, [asked.limits[k] for k in goes_on], [stops[k] for k in goes_on]
    )
    written = dict(zip(goes_on, texts, strict=True))
    generated = [written.get(k) for k in range(len(asked.limits))]
    return asked.answers(scores, after, paths, generated, places, leads)


def _written(
    model: LoadedModel,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    stops: Sequence[Stop | None],
) -> list[Generation]:
    """Greedy continuations by the model's writer, or one by one where it has none."""
    if model.writer is not None and prefixes:
        return writer.write(model, prefixes, writer.greedy(model, limits), stops)
    return [
        continuation.continue_one_by_one(model, prefix, limit, stop=stop)
        for prefix, limit, stop in zip(prefixes, limits, stops, strict=True)
    ]


def _at_ends(ends: Sequence[int], firsts: Sequence[tuple[list[int], Tensor]]) -> Tensor:
    """(B, V) logits at the ends of what is continued, of those of each forward."""
    at = {node: i for i, node in enumerate(n for nodes, _ in firsts for n in nodes)}
    rows = [x for _, x in firsts]
    return rows_of(rows[0] if len(rows) == 1 else torch.cat(rows), [at[node] for node in ends])
