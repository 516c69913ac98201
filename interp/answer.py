"""Ask for answers after many prefixes: score labels whole, decode continuations.

Labels and continuations of all prefixes come from one packed cache, so every arm of a
comparison shares its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithscope.interp import continuation, execute
from faithscope.interp.answered import Answered
from faithscope.interp.edit_checks import check
from faithscope.interp.edits import Edit
from faithscope.interp.errors import UserError
from faithscope.interp.execute import Execution
from faithscope.interp.forest import Forest, Ids, id_array
from faithscope.interp.generation import Generation, each_of
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.leads import Lead, gaps
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.prefill import Way
from faithscope.interp.read import choose_execution, groups, loop_logits, spills
from faithscope.interp.requested_positions import Behind, RequestedPositions, Scores
from faithscope.interp.scoring import scorings
from faithscope.interp.trunk import NO_TRUNK, Share, Trunk, linked

Boundary = Literal["number"]
Stop = Callable[[str], bool]


def ask(
    model: LoadedModel,
    prefixes: Sequence[Ids],
    labels: Sequence[Sequence[Sequence[int]]] | None = None,
    max_new_tokens: int | Sequence[int] = 0,
    *,
    stop: Stop | None = None,
    boundary: Boundary | None = None,
    edits: Sequence[Sequence[Edit]] | None = None,
    repeat: Sequence[int] = (),
    execution: Execution = "auto",
) -> list[Answered]:
    """Score labels and decode an answer after every prefix, from one packed cache.

    Args:
        prefixes: token ids up to where the answer begins.
        labels: per prefix, the ids of each label, scored whole: every token counts.
        max_new_tokens: longest greedy continuation, of all prefixes or of each; 0 for none.
        stop: ends a continuation when true of its text so far.
        boundary: `number` adds the log-prob that the number at a label's end is complete there, so
            that "70" gets no credit for "700", "70,000", "70.5", "70^3", "70 million", "70 to 80"
            or "70 * 2". The probabilities of different labels are then those of mutually exclusive
            events, and may be added up.
        edits: per prefix, the edits of the model while it runs that prefix; they also hold for
            tokens of labels and continuations if they reach beyond the prefix.
        repeat: indices of the prefixes that others are compared with. Where the token budget splits
            the pack, their last tokens and labels are run in every part, over keys and values that
            the first part computed, so that an arm can be compared with the baseline of its own
            part; and all their tokens once more alone, which tells how far the shape of a pack
            alone moves an answer (`interp.floor`).

    Raises:
        UserError: a prefix does not fit the model's positions, the execution is not possible,
            or an edit is not possible in this model or this execution.
        ValueError: an edit names a position, layer or head that is not there.
    """
    per = [[] for _ in prefixes] if labels is None else [list(x) for x in labels]
    if len(per) != len(prefixes):
        raise ValueError(f"{len(prefixes)} prefixes but labels for {len(per)} of them")
    under = [()] * len(prefixes) if edits is None else [tuple(e) for e in edits]
    if len(under) != len(prefixes):
        raise ValueError(f"{len(prefixes)} prefixes but edits for {len(under)} of them")
    for prefix, prefix_edits in zip(prefixes, under, strict=True):
        check(model, prefix_edits, len(prefix), grows=True)
    arrays = list(map(id_array, prefixes))
    limits = each_of(max_new_tokens, len(prefixes))
    how, reason = choose_execution(model, prefixes, execution, room=limits)
    if how == "loop" and any(n and edits for n, edits in zip(limits, under, strict=True)):
        raise UserError(
            f"{model.name}: an edited prefix cannot be continued one by one ({reason}); score "
            "labels instead, or shorten the text"
        )
    scored = scorings(model, per, model.number_ends if boundary == "number" else None)
    tails = [x.tails for x in scored]
    copies: list[list[Answered]] = [[] for _ in prefixes]

    def requested(group: list[int]) -> RequestedPositions:
        return RequestedPositions.of(
            [arrays[i] for i in group],
            [scored[i] for i in group],
            [under[i] for i in group],
            [limits[i] for i in group],
            watched=[k for k, i in enumerate(group) if i in repeat],
        )

    taken = groups(model, arrays, how, under, tails, repeat)
    for number, (group, answers) in enumerate(
        ((group, _by_loop(model, requested(group), stop)) for group in taken)
        if how == "loop"
        else _by_forests(
            model, (_Pack.of(requested(g), g) for g in taken), stop, execute.WAYS.get(how)
        )
    ):
        for i, answer in zip(group, answers, strict=True):
            copies[i].append(replace(answer, pack=0 if how == "loop" else number))
    for i in repeat:
        asked = RequestedPositions.of([arrays[i]], [scored[i]], [under[i]], [0], [0], copies[i][0])
        (alone,) = _in_another_shape(model, asked, how)
        copies[i][0] = replace(copies[i][0], repeats=tuple(copies[i]), alone=alone)
    return [of_prefix[0] for of_prefix in copies]


def _in_another_shape(
    model: LoadedModel, asked: RequestedPositions, how: Execution
) -> list[Answered]:
    """Answers of one prefix run alone, in other batch shapes than those of execution `how`."""
    longest = max(asked.sequences, key=len)
    if how != "loop" or choose_execution(model, [longest], "auto")[0] == "packed":
        ((_, answers),) = _by_forests(model, [_Pack.of(asked, [0])], None)
        return answers
    # a token appended to a sequence changes no earlier one, only the shapes of the computation
    behind: list[Ids] = [np.append(s, s[-1]) for s in asked.sequences]
    return _by_loop(model, replace(asked, sequences=behind), None)


@dataclass(frozen=True)
class _Pack:
    """Prefixes that are asked together, with the nodes of their forest at which they are read."""

    group: list[int]
    asked: RequestedPositions
    forest: Forest
    tokens: dict[int, set[int | TokenSet]]
    """node -> the next tokens and token sets that are scored after it."""
    ends: list[tuple[int, tuple[Edit, ...], int]]
    """Per prefix, its last node, the edits that it runs under, and the limit of its continuation;
    an edit may begin after the prefix, and then the node does not tell it."""
    places: list[tuple[list[int], list[int]]]
    """Per prefix, the nodes whose leads are wanted."""

    @classmethod
    def of(cls, asked: RequestedPositions, group: list[int]) -> _Pack:
        forest = Forest.of(asked.sequences, asked.edits)
        ends = [
            (int(forest.paths[i][asked.starts[i] - 1]), asked.edits[i], limit)
            for i, limit in zip(asked.first, asked.limits, strict=True)
        ]
        paths = forest.paths
        return cls(group, asked, forest, asked.queries(paths), ends, asked.places(paths))

    @property
    def led(self) -> list[int]:
        """Nodes whose leads are wanted."""
        return list(dict.fromkeys(n for pair in self.places for nodes in pair for n in nodes))

    @property
    def read(self) -> list[int]:
        return [*self.tokens, *(node for node, _, limit in self.ends if limit), *self.led]

    def path(self, place: int) -> NDArray[np.int64]:
        first = self.asked.first[place]
        return self.forest.paths[first][: self.asked.starts[first]]


def _by_forests(
    model: LoadedModel, packs: Iterable[_Pack], stop: Stop | None, way: Way | None = None
) -> Iterator[tuple[list[int], list[Answered]]]:
    """The prefixes of each pack, by their indices, and their answers."""
    trunk = NO_TRUNK
    for pack, after, size in linked(packs):

        def hand_on(cache: KeyValues, spend: bool, after: Share = after, size: int = size) -> Trunk:
            return cache.trunk(after, spend=spend, spill=spills(model, size))

        answers, trunk = _by_forest(model, pack, stop, way, trunk, hand_on)
        yield pack.group, answers


def _by_forest(
    model: LoadedModel,
    pack: _Pack,
    stop: Stop | None,
    way: Way | None,
    trunk: Trunk,
    hand_on: Callable[[KeyValues, bool], Trunk],
) -> tuple[list[Answered], Trunk]:
    asked, forest, tokens = pack.asked, pack.forest, pack.tokens
    decoded = list(dict.fromkeys(sorted((e for e in pack.ends if e[2]), key=lambda e: e[0])))
    scores: dict[int, Scores] = {}
    leads = dict.fromkeys(pack.led, Lead(0, 0.0))
    firsts: dict[int, Tensor] = {n: torch.empty(0) for n, _, _ in decoded}

    def reduce(here: list[int], logits: Tensor) -> None:
        at = [i for i, node in enumerate(here) if node in tokens]
        of_nodes = [here[i] for i in at]
        of_rows = _scored(model, logits[at], [tokens[node] for node in of_nodes])
        scores.update(zip(of_nodes, of_rows, strict=True))
        for node, row in zip(here, logits, strict=True):
            if node in firsts:
                firsts[node] = row.float()
            if node in leads:
                leads[node] = _lead(row.float())

    cache = execute.prefill(
        model, forest, pack.read, reduce, chunk=model.chunk, way=way, trunk=trunk
    )
    after: dict[Behind, Scores] = {}
    beyond = asked.beyond(scores, forest.paths)
    if beyond:
        keys, sets = list(beyond), [x.sets for x in beyond.values()]

        def read(rows: list[int], logits: Tensor) -> None:
            of_rows = _scored(model, logits, [sets[i] for i in rows])
            after.update(zip([keys[i] for i in rows], of_rows, strict=True))

        execute.one_more(
            model,
            forest,
            cache,
            [key.node for key in keys],
            [key.token for key in keys],
            read,
            edits=[key.edits for key in keys],
        )
    trunk = hand_on(cache, not decoded)
    # decoding comes last, since it frees the cache
    written: dict[tuple[int, tuple[Edit, ...], int], Generation] = {}
    if decoded:
        generations = execute.decode(
            model,
            cache,
            [forest.path(n).tolist() for n, _, _ in decoded],
            torch.stack([firsts[n] for n, _, _ in decoded]),
            [limit for _, _, limit in decoded],
            stop=stop,
            group_tokens=model.token_budget,
            edits=[under for _, under, _ in decoded],
        )
        written = dict(zip(decoded, generations, strict=True))
    generated = [written.get(end) for end in pack.ends]
    return asked.answers(scores, after, forest.paths, generated, pack.places, leads), trunk


def _by_loop(model: LoadedModel, asked: RequestedPositions, stop: Stop | None) -> list[Answered]:
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
            at = [i for i, node in enumerate(here) if node in tokens]
            of_rows = _scored(model, logits[at], [tokens[here[i]] for i in at])
            scores.update(zip([here[i] for i in at], of_rows, strict=True))
            for node, row in zip(here, logits, strict=True):
                if node in wanted:
                    leads[node] = _lead(row)
    after: dict[Behind, Scores] = {}
    for key, (ids, sets) in asked.beyond(scores, paths).items():
        logits = loop_logits(model, [*ids, key.token], [-1], key.edits)
        (after[key],) = _scored(model, logits, [sets])
    generated = [
        continuation.continue_one_by_one(
            model, id_array(asked.sequences[i])[: asked.starts[i]].tolist(), limit, stop=stop
        )
        if limit
        else None
        for i, limit in zip(asked.first, asked.limits, strict=True)
    ]
    return asked.answers(scores, after, paths, generated, places, leads)


def _lead(logits: Tensor) -> Lead:
    return Lead(int(logits.argmax()), *gaps(logits[None]))


def _scored(
    model: LoadedModel, logits: Tensor, tokens: Sequence[Collection[int | TokenSet]]
) -> list[dict[int | TokenSet, float]]:
    """Log-probs of next tokens under (A, V) logits: per row, the tokens wanted at it.

    All token sets are read in one call, and all single tokens in another.
    """
    if not tokens:
        return []
    logits = logits.float()
    execute.check_finite(model, logits)
    totals = torch.logsumexp(logits, -1)
    rows_of: dict[TokenSet, list[int]] = {}
    singles: list[tuple[int, int]] = []
    for i, wanted in enumerate(tokens):
        for token in wanted:
            if isinstance(token, TokenSet):
                rows_of.setdefault(token, []).append(i)
            else:
                singles.append((i, token))
    scores: list[dict[int | TokenSet, float]] = [{} for _ in tokens]
    if singles:
        rows, ids = torch.tensor(singles, device=logits.device).T
        for (i, token), x in zip(singles, (logits[rows, ids] - totals[rows]).tolist(), strict=True):
            scores[i][token] = x
    for token_set, rows in rows_of.items():
        together = token_set.logsumexp(logits[rows]) - totals[rows]
        for i, x in zip(rows, together.tolist(), strict=True):
            scores[i][token_set] = x
    return scores
