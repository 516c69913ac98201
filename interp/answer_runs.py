"""Execution of requested positions: prefixes with their labels and continuations, in one forest or
one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from faithscope.interp import continuation, execute
from faithscope.interp.answered import Answered
from faithscope.interp.edits import Edit
from faithscope.interp.execute import Stop
from faithscope.interp.forest import Forest
from faithscope.interp.generation import Generation
from faithscope.interp.leads import Lead, gaps
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.number_ends import TokenSet
from faithscope.interp.prefill import Way
from faithscope.interp.read import loop_logits
from faithscope.interp.requested_positions import Behind, RequestedPositions, Scores


def by_forest(
    model: LoadedModel,
    asked: RequestedPositions,
    stops: Sequence[Stop | None],
    way: Way | None = None,
) -> list[Answered]:
    """Answers from one packed forest: labels scored, then continuations decoded.

    Args:
        stops: per prefix, what ends its continuation.
    """
    forest = Forest.of(asked.sequences, asked.edits)
    tokens = asked.queries(forest.paths)
    # An edit may begin after the prefix: then the prefix's last node does not tell it.
    ends = [
        (int(forest.paths[i][asked.starts[i] - 1]), asked.edits[i], limit, stop)
        for i, limit, stop in zip(asked.first, asked.limits, stops, strict=True)
    ]
    decoded = list(dict.fromkeys(sorted((e for e in ends if e[2]), key=lambda e: e[0])))
    scores: dict[int, Scores] = {}
    places = asked.places(forest.paths)
    leads = dict.fromkeys((n for pair in places for nodes in pair for n in nodes), Lead(0, 0.0))
    firsts: dict[int, Tensor] = {n: torch.empty(0) for n, _, _, _ in decoded}

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
        model, forest, [*tokens, *firsts, *leads], reduce, chunk=model.chunk, way=way
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
    # decoding comes last, since it frees the cache
    written: dict[tuple[int, tuple[Edit, ...], int, Stop | None], Generation] = {}
    if decoded:
        generations = execute.decode(
            model,
            cache,
            [forest.path(n).tolist() for n, _, _, _ in decoded],
            torch.stack([firsts[n] for n, _, _, _ in decoded]),
            [limit for _, _, limit, _ in decoded],
            stop=[stop for _, _, _, stop in decoded],
            group_tokens=model.token_budget,
            edits=[under for _, under, _, _ in decoded],
        )
        written = dict(zip(decoded, generations, strict=True))
    generated = [written.get(end) for end in ends]
    return asked.answers(scores, after, forest.paths, generated, places, leads)


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
            logits = loop_logits(model, sequence, [n - path[0] for n in here], under)
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
            model, asked.sequences[i][: asked.starts[i]], limit, stop=stop
        )
        if limit
        else None
        for i, limit, stop in zip(asked.first, asked.limits, stops, strict=True)
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
