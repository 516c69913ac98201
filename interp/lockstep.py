"""Continues paths of a cached forest, all of them one token further in every forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from faithscope.interp import attention, execute, hooks
from faithscope.interp.decoding import Decode, Shared
from faithscope.interp.detokenise import GrowingText
from faithscope.interp.edits import Edit
from faithscope.interp.generation import Generation, each_of
from faithscope.interp.graphs import Steps
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.loaded import LoadedModel

Choose = Callable[[Tensor, list[int]], Tensor]
"""(B, V) logits, and the indices of what they continue, to (B,) next tokens."""
Stop = Callable[[str], bool]
"""Whether a continuation ends, from its text so far."""


@torch.inference_mode()
def decode(
    model: LoadedModel,
    cache: KeyValues,
    paths: Sequence[Sequence[int]],
    first: Tensor,
    max_new_tokens: int | Sequence[int],
    *,
    choose: Choose | None = None,
    stop: Stop | Sequence[Stop | None] | None = None,
    group_tokens: int,
    on_done: Callable[[int, Generation], None] | None = None,
    edits: Sequence[Sequence[Edit]] | None = None,
    end_ids: frozenset[int] | None = None,
) -> list[Generation]:
    """Continue every path of the cached forest, all in lockstep.

    `first` is (B, V): the logits at the end of each path. `choose(logits, rows)` picks the next
    tokens of those rows of `paths` (greedy by default). A sequence ends at one of `end_ids` (the
    model's by default), when `stop` says so of its text, or after `max_new_tokens`; `stop` and
    `max_new_tokens` are one for all or one for each. Sequences are grouped so that a group holds at
    most `group_tokens` cached positions. `edits` hold the edits of each path, applied here to
    tokens beyond the path. The cache is freed as the last group is copied from it.
    """
    done: dict[int, Generation] = {}
    ends = model.end_ids if end_ids is None else end_ids
    limits = each_of(max_new_tokens, len(paths))
    stops = [stop] * len(paths) if stop is None or callable(stop) else list(stop)

    def finish(row: int, generation: Generation) -> None:
        done[row] = generation
        if on_done:
            on_done(row, generation)

    whole = [len(p) + limit for p, limit in zip(paths, limits, strict=True)]
    shared = (
        not attention.runs_eager(model.hf)
        and sum(limits) + cache.n_nodes <= group_tokens
        and Shared.serves(cache, paths, max(limits))
    )
    groups = [list(range(len(paths)))] if shared else _groups(whole, group_tokens)
    for rows in groups:
        of_rows = [_beyond(edits[r], len(paths[r])) for r in rows] if edits else None
        room, reaches = max(limits[r] for r in rows), model.structure.reaches
        last = rows is groups[-1]
        state = (Shared if shared else Decode)(
            cache,
            [paths[r] for r in rows],
            room,
            reaches,
            of_rows,
            spend=last,
            positions=model.max_positions,
        )
        _decode_group(model, state, rows, first, limits, choose, stops, ends, finish)
    return [done[i] for i in range(len(paths))]


def _beyond(edits: Sequence[Edit], length: int) -> list[Edit]:
    """The edits that may touch tokens after the first `length`."""
    return [edit for edit in edits if edit.reaches(length)]


def _groups(lengths: list[int], budget: int) -> list[list[int]]:
    """Rows of similar length together, each group within `budget` padded positions."""
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if groups and lengths[groups[-1][0]] * (len(groups[-1]) + 1) <= budget:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _decode_group(
    model: LoadedModel,
    state: Decode,
    rows: list[int],
    first: Tensor,
    limits: Sequence[int],
    choose: Choose | None,
    stops: Sequence[Stop | None],
    ends: frozenset[int],
    finish: Callable[[int, Generation], None],
) -> None:
    logits = first[rows]
    written: dict[int, list[int]] = {r: [] for r in rows}
    texts = {r: GrowingText(model.tokenizer) for r in rows if stops[r] is not None}
    led: dict[int, list[float]] = {r: [] for r in rows}
    living = list(range(len(rows)))
    """Places in the batch of the sequences that have not ended."""

    def ended(row: int, why: Literal["stop", "length"], end_id: int | None = None) -> None:
        finish(row, Generation(tuple(written[row]), why, end_id, gaps=tuple(led[row])))

    def step(tokens: Tensor) -> Tensor:
        with hooks.patched(model, state.changes, state.positions_on):
            return execute.forward(model, state, tokens, state.positions)

    steps = Steps(model, state, step)

    def after(tokens: Tensor) -> Tensor:
        left = max(limits[row] - len(written[row]) for row in rows)
        return steps(tokens, left - 2)

    while True:
        following: Tensor | None = None
        if choose:
            seen = logits.cpu()
            seen = seen if len(living) == len(rows) else seen[living]
            execute.check_finite(model, seen)
            tokens = choose(seen, [rows[i] for i in living]).tolist()
        else:
            drawn = Greedy(logits)
            # a device runs the next step while the host reads this one
            if state.static and any(len(written[rows[i]]) + 1 < limits[rows[i]] for i in living):
                following = after(drawn.tokens)
            chosen, of_best, worst = drawn.read()
            execute.check_greatest(model, worst[living])
            tokens = chosen[living].tolist()
            for i in living:
                led[rows[i]].append(float(of_best[i]))
        alive: list[int] = []
        for i, token in zip(living, tokens, strict=True):
            row = rows[i]
            if token in ends:
                ended(row, "stop", token)
                continue
            written[row].append(token)
            stop = stops[row]
            if stop is not None and stop(texts[row].add(token)):
                ended(row, "stop")
            elif len(written[row]) >= limits[row]:
                ended(row, "length")
            else:
                alive.append(i)
        if not alive:
            return
        living = alive
        # where keys and values are laid out anew at a cost, ended sequences stay for a while
        if len(alive) < len(rows) and (not state.static or 2 * len(alive) <= len(rows)):
            state.keep(torch.tensor(alive))
            rows, living = [rows[i] for i in alive], list(range(len(alive)))
            following = following if following is None else following[alive]
        if following is None:
            latest = [written[row][-1] if written[row] else 0 for row in rows]
            following = after(torch.tensor(latest))
        logits = following


def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


class Greedy:
    """The likeliest next tokens of (B, V) logits and their leads, read in one transfer.

    On a CUDA device the transfer waits for nothing that is started after it.
    """

    def __init__(self, logits: Tensor) -> None:
        best = logits.topk(2).values.float()
        self.tokens = greedy(logits)
        """(B,) on the device of the logits."""
        # the difference in the precision of the logits, as `leads.gaps` has it
        gaps = (best[:, 0] - best[:, 1]).to(logits.dtype).float()
        numbers = (self.tokens.int(), *(x.view(torch.int32) for x in (gaps, best[:, 0])))
        self._bits = torch.stack(numbers)
        self._arrived: Any = None
        if logits.is_cuda:
            here = torch.empty(self._bits.shape, dtype=torch.int32, pin_memory=True)
            self._bits = here.copy_(self._bits, non_blocking=True)
            self._arrived = torch.cuda.current_stream(logits.device).record_event()

    def read(self) -> tuple[Tensor, Tensor, Tensor]:
        """(B,) tokens, their leads over the second, and the greatest logits, on the CPU."""
        if self._arrived is not None:
            self._arrived.synchronize()
        tokens, gaps, best = self._bits.cpu()
        return tokens, gaps.view(torch.float32), best.view(torch.float32)
