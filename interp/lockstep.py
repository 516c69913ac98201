"""Continues paths of a cached forest, all of them one token further in every forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn

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
    """Continue every path of the cached forest, in lockstep.

    `first` is (B, V): the logits at the end of each path. `choose(logits, rows)` picks the next
    tokens of those rows of `paths` (greedy by default). A sequence ends at one of `end_ids` (the
    model's by default), when `stop` says so of its text, or after `max_new_tokens`; `stop` and
    `max_new_tokens` are one for all or one for each. `edits` hold the edits of each path, applied
    here to tokens beyond the path.

    As many sequences run at once as have room for their limits within `group_tokens` cached
    positions, the longest first; as one ends, the next begins in its place. The cache is freed as
    the last of them are copied from it.
    """
    done: dict[int, Generation] = {}
    ends = model.end_ids if end_ids is None else end_ids
    limits = each_of(max_new_tokens, len(paths))
    stops = [stop] * len(paths) if stop is None or callable(stop) else list(stop)
    under = [_beyond(e, len(p)) for e, p in zip(edits, paths, strict=True)] if edits else None
    written: list[list[int]] = [[] for _ in paths]
    led: list[list[float]] = [[] for _ in paths]
    texts = {r: GrowingText(model.tokenizer) for r, s in enumerate(stops) if s is not None}

    whole = [len(p) + limit for p, limit in zip(paths, limits, strict=True)]
    shared = (
        not attention.runs_eager(model.hf)
        and sum(limits) + cache.n_nodes <= group_tokens
        and Shared.serves(cache, paths, max(limits))
    )
    rows = list(range(len(paths)))
    """The path at each place in the batch; `waiting` have none yet."""
    if not shared:
        rows.sort(key=lambda r: (-whole[r], r))
    at_once = len(rows) if shared else max(1, group_tokens // whole[rows[0]])
    rows, waiting = rows[:at_once], rows[at_once:]
    state = (Shared if shared else Decode)(
        cache,
        [paths[r] for r in rows],
        max(limits[r] for r in rows),
        model.structure.reaches,
        [under[r] for r in rows] if under else None,
        spend=not waiting,
        positions=model.max_positions,
    )
    living = list(range(len(rows)))
    """Places in the batch of the sequences that have not ended."""

    def ended(row: int, why: Literal["stop", "length"], end_id: int | None = None) -> None:
        done[row] = Generation(tuple(written[row]), why, end_id, gaps=tuple(led[row]))
        if on_done:
            on_done(row, done[row])

    def begun() -> list[int]:
        """The places of sequences that begin now, in place of those that have ended."""
        free = sorted({*range(len(rows))} - {*living})
        if not free or not waiting:
            return []
        longest = max(whole[r] for r in (waiting[0], *(rows[i] for i in living)))
        at_once = max(1, group_tokens // longest)
        if at_once >= 2 * len(rows):
            free += range(len(rows), at_once)
        free = free[: min(at_once - len(living), len(waiting))]
        new = [waiting.pop(0) for _ in free]
        for place, row in zip(free, new, strict=True):
            rows[place : place + 1] = [row]
        of_new = [under[r] for r in new] if under else None
        state.put(free, cache, [paths[r] for r in new], of_new, spend=not waiting)
        return free

    packed = model.packed if len(paths) > 1 else None
    if packed is not None:
        packed.refresh()

    def step(tokens: Tensor) -> Tensor:
        layers = packed.used(len(tokens)) if packed else nullcontext()
        with layers, hooks.patched(model, state.changes, state.positions_on):
            return execute.forward(model, state, tokens, state.positions)

    steps = Steps(model, state, step)

    def after(tokens: Tensor) -> Tensor:
        left = max(limits[row] - len(written[row]) for row in (*rows, *waiting))
        return steps(tokens, left - 2)

    logits, turn = first[rows], living
    while True:
        following: Tensor | None = None
        lines = turn if len(turn) < len(logits) else list(range(len(turn)))
        if choose:
            seen = logits.cpu()
            seen = seen if len(turn) == len(seen) else seen[lines]
            execute.check_finite(model, seen)
            tokens = choose(seen, [rows[i] for i in turn]).tolist()
        else:
            drawn = Greedy(logits)
            # a device runs the next step while the host reads this one
            goes_on = any(len(written[rows[i]]) + 1 < limits[rows[i]] for i in turn)
            if state.static and len(logits) == len(rows) and goes_on:
                following = after(drawn.tokens)
            chosen, of_best, worst = drawn.read()
            execute.check_greatest(model, worst[lines])
            tokens = chosen[lines].tolist()
            for i, gap in zip(turn, of_best[lines].tolist(), strict=True):
                led[rows[i]].append(gap)
        for row, token in zip([rows[i] for i in turn], tokens, strict=True):
            if token in ends:
                ended(row, "stop", token)
                continue
            written[row].append(token)
            stop = stops[row]
            if stop is not None and stop(texts[row].add(token)):
                ended(row, "stop")
            elif len(written[row]) >= limits[row]:
                ended(row, "length")
        living = [i for i in living if rows[i] not in done]
        if new := begun():
            living = sorted([*living, *new])
            if following is None:
                # their first tokens are chosen before all take a step
                logits, turn = first[[rows[i] for i in new]], new
                continue
            if len(rows) > len(following):
                room = len(rows) - len(following)
                following = nn.functional.pad(following, (0, 0, 0, room))
            following[new] = first[[rows[i] for i in new]].to(following)
        if not living:
            return [done[i] for i in range(len(paths))]
        # where keys and values are laid out anew at a cost, ended sequences stay for a while
        if len(living) < len(rows) and (not state.static or 2 * len(living) <= len(rows)):
            state.keep(torch.tensor(living))
            following = following if following is None else following[living]
            rows, living = [rows[i] for i in living], list(range(len(living)))
        if following is None:
            latest = [written[row][-1] if written[row] else 0 for row in rows]
            following = after(torch.tensor(latest))
        logits, turn = following, living


def _beyond(edits: Sequence[Edit], length: int) -> list[Edit]:
    """The edits that may touch tokens after the first `length`."""
    return [edit for edit in edits if edit.reaches(length)]


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
