"""Runs forests through a model: prefill in chunks, then decoding in lockstep.

The trie's nodes go through the model in depth-first chunks. Every chunk is one ordinary
forward of a (1, T) batch whose position_ids are depths in the trie; attention is computed
run by run over cached ancestors (`interp.prefill`), and the language-model head only at
asked nodes. The one-by-one loop is the oracle, and the way for models a tree cannot serve
(its continuations: `interp.continuation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from faithscope.interp import attention, hooks
from faithscope.interp.decoding import Decode, Shared
from faithscope.interp.detokenise import GrowingText
from faithscope.interp.edits import Edit, Knockout, Site
from faithscope.interp.forest import Forest
from faithscope.interp.generation import Generation, each_of
from faithscope.interp.graphs import Steps
from faithscope.interp.keyvalues import KeyValues, Spilled
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.one_after import OneAfter
from faithscope.interp.placement import sent
from faithscope.interp.prefill import Prefill, Way, best_way, block_on
from faithscope.interp.trunk import NO_TRUNK, Trunk

Execution = Literal["auto", "packed", "dense", "flex", "loop"]
WAYS: Mapping[str, Way] = {"dense": "mask", "flex": "flex"}
"""Executions that say how the forwards of a pack attend."""
Choose = Callable[[Tensor], Tensor]
"""(B, V) float32 logits to (B,) next tokens."""
Stop = Callable[[str], bool]
"""Whether a continuation ends, from its text so far."""
LOGITS = 1 << 24
"""Logits that a forward on a CPU makes where every token has them (64 MiB in float32, of which
scoring makes two copies), but for a block of queries more."""


@dataclass
class Taps:
    """What to read besides logits, at which nodes, and what was read."""

    rows: frozenset[int] = frozenset()
    """Nodes whose attention rows are wanted."""
    hidden: frozenset[int] = frozenset()
    """Nodes whose residual stream is wanted."""
    sites: tuple[Site, ...] = ()
    """Sites whose output in every layer is also wanted, at the nodes of `hidden`."""
    row_weights: dict[int, list[Tensor]] = field(default_factory=dict)
    """node -> per layer, (H, P) attention over the path to it."""
    residuals: dict[int, Tensor] = field(default_factory=dict)
    """node -> (L + 1, D): the embeddings, then after every layer, before the final norm."""
    outputs: dict[int, dict[Site, Tensor]] = field(default_factory=dict)
    """node -> site -> (L, D) outputs."""


@torch.inference_mode()
def prefill(
    model: LoadedModel,
    forest: Forest,
    asked: Sequence[int],
    on_logits: Callable[[list[int], Tensor], None],
    *,
    chunk: int,
    taps: Taps | None = None,
    way: Way | None = None,
    trunk: Trunk = NO_TRUNK,
) -> KeyValues:
    """Run every node once; hand over (nodes, (A, V) logits) chunk by chunk.

    Args:
        way: how forwards attend; by default the best way for each.
        trunk: nodes that an earlier pack has run; they are not run again.
    """
    taps = taps or Taps()
    cache = (Spilled if trunk.spilled else KeyValues)(len(forest), trunk)
    wanted = np.unique(np.asarray(asked, dtype=np.int64))
    step = len(forest) if way == "mask" else chunk
    plain = attention.runs_eager(model.hf)
    cut = any(isinstance(e, Knockout) for edits in forest.edits for e in edits)
    for start, stop in _chunks(trunk.rest(len(forest)), step):
        here = wanted[(wanted >= start) & (wanted < stop)]
        read = Prefill(
            forest,
            cache,
            start,
            stop,
            model.structure.reaches,
            row_nodes=sorted(taps.rows),
            way=way
            or best_way(
                model.device,
                stop - start,
                stop,
                chain=len(forest.bounds(start, stop)) == 1,
                eager=plain,
                flexible=model.flex_reason is None and not cut,
            ),
            block=block_on(model.device),
        )
        stream = sorted(n for n in taps.hidden if start <= n < stop)
        at = [n - start for n in stream]
        with (
            # patches come first, so that patched activations are what is read
            hooks.patched(model, hooks.placed(forest, start, stop)),
            hooks.residuals(model, at) as residuals,
            hooks.outputs(model, at, taps.sites) as outputs,
        ):
            logits = forward(
                model,
                read,
                torch.from_numpy(forest.tokens[start:stop]),
                torch.from_numpy(forest.depth[start:stop]),
                here - start,
            )
        for node, layers in read.rows.items():
            taps.row_weights[node] = [layers[i].to(model.device) for i in sorted(layers)]
        for i, node in enumerate(stream):
            taps.residuals[node] = torch.stack([layer[i] for layer in residuals])
            taps.outputs[node] = {
                site: torch.stack([layer[i] for layer in layers])
                for site, layers in outputs.items()
            }
        if here.size:
            on_logits(here.tolist(), logits)
    return cache


def _chunks(spans: Sequence[tuple[int, int]], step: int) -> Iterator[tuple[int, int]]:
    """Spans of nodes, cut after every `step` nodes."""
    for first, last in spans:
        for start in range(first, last, step):
            yield start, min(start + step, last)


def prefill_prompts(
    model: LoadedModel, prompts: Sequence[Sequence[int]]
) -> tuple[KeyValues, list[list[int]], Tensor]:
    """Run prompts as one forest: its cache, their paths in it, and (B, V) logits after each."""
    forest = Forest.of(prompts)
    firsts: dict[int, Tensor] = {}
    ends = [int(path[-1]) for path in forest.paths]
    cache = prefill(
        model,
        forest,
        ends,
        lambda here, x: firsts.update(zip(here, x.float(), strict=True)),
        chunk=model.chunk,
    )
    return cache, [p.tolist() for p in forest.paths], torch.stack([firsts[n] for n in ends])


def forward(
    model: LoadedModel,
    read: attention.Session,
    tokens: Tensor,
    positions: Tensor,
    keep: np.ndarray | None = None,
) -> Tensor:
    """Run (T,) tokens at their positions, and return (A, V) logits at indices, or at all of them.

    Nothing in it waits for the device.
    """
    device = model.device
    inputs = {
        "input_ids": sent(tokens, device)[None],
        "position_ids": sent(positions, device)[None],
    }
    if device.type != "cpu":
        # without a mask transformers looks in the positions for several sequences, and waits
        inputs["attention_mask"] = torch.ones(1, len(tokens), dtype=torch.long, device=device)
    with attention.session(read):
        logits = _logits_at(model, keep if keep is None else keep.tolist() or [0], **inputs)
    return logits if keep is None else logits[: keep.size]


def _logits_at(model: LoadedModel, at: list[int] | None, **inputs: Tensor) -> Tensor:
    """(A, V) logits at the places `at` of a (1, T) batch, or at all places."""
    # accelerate would move a tensor to the device of the first layer, while the states that it
    # indexes are on the device of the last
    spread = model.device.type == "cpu" or hasattr(model.hf, "_hf_hook")
    keep: Any = at if at is None or spread else sent(torch.tensor(at), model.device)
    if not model.structure.keeps_logits:
        logits = model.hf(**inputs, use_cache=False).logits[0]
        return logits if keep is None else logits[keep]
    # zero keeps all
    keep = 0 if keep is None else keep
    return model.hf(**inputs, use_cache=False, logits_to_keep=keep).logits[0]


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


def check_finite(model: LoadedModel, logits: Tensor) -> None:
    """Check that (..., V) logits are finite; argmax would take a NaN for the maximum and go on.

    Raises:
        FloatingPointError: a logit is NaN or plus infinity; the message says what to do.
    """
    # the maximum of a row is NaN if any entry is
    _check_worst(model, logits.amax(-1))


def _check_worst(model: LoadedModel, worst: Tensor) -> None:
    """Check the greatest logit of each row, as `check_finite`."""
    if bool((worst < torch.inf).all()):
        return
    value = "NaN" if bool(worst.isnan().any()) else "infinite"
    remedy = (
        "its weights, or what it makes of this text, are broken: check the checkpoint"
        if model.dtype in ("float32", "float64")
        else f"{model.dtype} may not hold its numbers: set model.dtype to float32"
    )
    raise FloatingPointError(f"{model.name}: {value} logits in {model.dtype}; {remedy}")


@torch.inference_mode()
def decode(
    model: LoadedModel,
    cache: KeyValues,
    paths: Sequence[Sequence[int]],
    first: Tensor,
    max_new_tokens: int | Sequence[int],
    *,
    choose: Callable[[Tensor, list[int]], Tensor] | None = None,
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
        of_rows = [edits[r] for r in rows] if edits else None
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


@torch.inference_mode()
def one_more(
    model: LoadedModel,
    forest: Forest,
    cache: KeyValues,
    parents: Sequence[int],
    tokens: Sequence[int],
    on_logits: Callable[[list[int], Tensor], None],
    *,
    edits: Sequence[Sequence[Edit]],
) -> None:
    """Run one token after each of `parents`, nodes of the cached forest; hand over (rows, (B, V)
    logits)."""
    order = sorted(range(len(parents)), key=lambda i: (parents[i], tokens[i]))
    block = block_on(model.device)
    step = model.chunk
    if model.device.type == "cpu":
        # every row has logits, which would take more memory than all else
        step = min(step, max(block, LOGITS // model.n_ids))
    for start in range(0, len(order), step):
        rows = order[start : start + step]
        session = OneAfter(
            forest,
            cache,
            [parents[r] for r in rows],
            model.structure.reaches,
            [edits[r] for r in rows],
            block=block,
        )
        ids = torch.tensor([tokens[r] for r in rows])
        on_logits(rows, forward(model, session, ids, session.positions))


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
    choose: Callable[[Tensor, list[int]], Tensor] | None,
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

    steps = Steps(model, state, lambda tokens: forward(model, state, tokens, state.positions))

    def after(tokens: Tensor) -> Tensor:
        left = max(limits[row] - len(written[row]) for row in rows)
        return steps(tokens, left - 2)

    while True:
        following: Tensor | None = None
        if choose:
            seen = logits.cpu()
            seen = seen if len(living) == len(rows) else seen[living]
            check_finite(model, seen)
            tokens = choose(seen, [rows[i] for i in living]).tolist()
        else:
            drawn = Greedy(logits)
            # a device runs the next step while the host reads this one
            if state.static and any(len(written[rows[i]]) + 1 < limits[rows[i]] for i in living):
                following = after(drawn.tokens)
            chosen, of_best, worst = drawn.read()
            _check_worst(model, worst[living])
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


@torch.inference_mode()
def one_by_one(
    model: LoadedModel,
    sequences: Sequence[Sequence[int]],
    ask: Sequence[Sequence[int]],
    on_logits: Callable[[int, Tensor], None],
    on_residuals: Callable[[int, Tensor], None] | None = None,
    unembed: bool = True,
    *,
    edits: Sequence[Sequence[Edit]] | None = None,
    sites: Sequence[Site] = (),
    on_outputs: Callable[[int, dict[Site, Tensor]], None] | None = None,
) -> None:
    """The oracle: each sequence in a plain forward; (index, (A, V) logits) handed over.

    `on_residuals` is given (index, (A, L + 1, D) streams) of the asked positions. Without `unembed`
    no logits are handed over, and only those of one position are computed. `edits` are patches:
    knockouts need the forest's attention. `on_outputs` is given the outputs of `sites`.
    """
    for i, (ids, positions) in enumerate(zip(sequences, ask, strict=True)):
        at = [p % len(ids) for p in positions]
        with (
            hooks.patched(model, hooks.placed_alone(edits[i] if edits else (), len(ids))),
            hooks.residuals(model, at if on_residuals else []) as residuals,
            hooks.outputs(model, at, sites) as outputs,
        ):
            tokens = torch.tensor([list(ids)], device=model.device)
            logits = _logits_at(model, at if unembed else at[:1], input_ids=tokens)
        if on_residuals and at:
            on_residuals(i, torch.stack(residuals, dim=1))
        if on_outputs and at:
            on_outputs(i, {site: torch.stack(layers, dim=1) for site, layers in outputs.items()})
        if unembed:
            on_logits(i, logits)
