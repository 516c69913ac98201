"""Runs forests through a model, in chunks; `interp.lockstep` continues them.

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
from faithscope.interp.edits import Edit, Knockout, Site
from faithscope.interp.forest import Forest
from faithscope.interp.keyvalues import KeyValues, Spilled
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.one_after import OneAfter
from faithscope.interp.placement import sent, sent_together
from faithscope.interp.prefill import Prefill, Way, best_way, block_on
from faithscope.interp.trunk import NO_TRUNK, Trunk

Execution = Literal["auto", "packed", "dense", "flex", "loop"]
WAYS: Mapping[str, Way] = {"dense": "mask", "flex": "flex"}
"""Executions that say how the forwards of a pack attend."""
LOGITS, LOGITS_ELSEWHERE = 1 << 24, 1 << 27
"""Most logits of a forward, of which scoring makes two copies: on a CPU where every token has them
(64 MiB in float32), but for a block of queries more; on accelerators of every forward of a pack
(512 MiB), but for a pack that is `dense`, which is one forward."""


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
    chunk: int | None,
    taps: Taps | None = None,
    way: Way | None = None,
    trunk: Trunk = NO_TRUNK,
) -> KeyValues:
    """Run every node once; hand over (nodes, (A, V) logits) chunk by chunk.

    Args:
        chunk: most nodes of a forward; None for all of them in one, whose logits are not bounded.
        way: how forwards attend; by default the best way for each.
        trunk: nodes that an earlier pack has run; they are not run again.
    """
    taps = taps or Taps()
    cache = (Spilled if trunk.spilled else KeyValues)(len(forest), trunk)
    wanted = np.unique(np.asarray(asked, dtype=np.int64))
    step = rows = len(forest)
    if chunk is not None and way != "mask":
        step, rows = chunk, rows if model.device.type == "cpu" else _most_rows(model)
    plain = attention.runs_eager(model.hf)
    cut = any(isinstance(e, Knockout) for edits in forest.edits for e in edits)
    for start, stop in _chunks(trunk.rest(len(forest)), step, wanted, rows):
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
                flexible=model.flex_reason is None and not (cut and model.flex_cut_reason),
            ),
            block=block_on(model.device),
        )
        stream = sorted(n for n in taps.hidden if start <= n < stop)
        at = [n - start for n in stream]
        with (
            # patches come first, so that patched activations are what is read
            hooks.patched(
                model, hooks.placed(forest.edits, forest.mark[start:stop], forest.depth[start:stop])
            ),
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


def _chunks(
    spans: Sequence[tuple[int, int]], step: int, asked: np.ndarray, rows: int
) -> Iterator[tuple[int, int]]:
    """Spans of nodes, cut after every `step` nodes, and before one asked node more than `rows`."""
    for first, last in spans:
        start = first
        while start < last:
            stop = min(start + step, last)
            beyond = asked[np.searchsorted(asked, start) + rows :][:1]
            stop = min([stop, *beyond.tolist()])
            yield start, stop
            start = stop


def prefill_prompts(
    model: LoadedModel,
    prompts: Sequence[Sequence[int]],
    edits: Sequence[Sequence[Edit]] | None = None,
) -> tuple[KeyValues, list[list[int]], Tensor]:
    """Run prompts as one forest: its cache, their paths in it, and (B, V) logits after each."""
    forest = Forest.of(prompts, edits)
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
    wanted = None if keep is None else keep.tolist() or [0]
    given = [tokens, positions, *(() if wanted is None else (torch.tensor(wanted),))]
    ids, at, *kept = sent_together(given, device)
    inputs = {"input_ids": ids[None], "position_ids": at[None]}
    if device.type != "cpu":
        # without a mask transformers looks in the positions for several sequences, and waits
        inputs["attention_mask"] = torch.ones(1, len(tokens), dtype=torch.long, device=device)
    with attention.session(read):
        logits = _logits_at(model, wanted, *kept, **inputs)
    return logits if keep is None else logits[: keep.size]


def _logits_at(
    model: LoadedModel, at: list[int] | None, there: Tensor | None = None, **inputs: Tensor
) -> Tensor:
    """(A, V) logits at the places `at` of a (1, T) batch, or at all places; `there` has them on the
    model's device, if they are there."""
    # accelerate would move a tensor to the device of the first layer, while the states that it
    # indexes are on the device of the last
    spread = model.device.type == "cpu" or hasattr(model.hf, "_hf_hook")
    keep: Any = at
    if at is not None and not spread:
        keep = sent(torch.tensor(at), model.device) if there is None else there
    if not model.structure.keeps_logits:
        logits = model.hf(**inputs, use_cache=False).logits[0]
        return logits if keep is None else logits[keep]
    # zero keeps all
    keep = 0 if keep is None else keep
    return model.hf(**inputs, use_cache=False, logits_to_keep=keep).logits[0]


def _most_rows(model: LoadedModel) -> int:
    """Most rows of logits of a forward, where it bounds them."""
    if model.device.type == "cpu":
        return max(block_on(model.device), LOGITS // model.n_ids)
    return max(1, LOGITS_ELSEWHERE // model.n_ids)


def check_finite(model: LoadedModel, logits: Tensor) -> None:
    """Check that (..., V) logits are finite; argmax would take a NaN for the maximum and go on.

    Raises:
        FloatingPointError: a logit is NaN or plus infinity; the message says what to do.
    """
    # the maximum of a row is NaN if any entry is
    check_greatest(model, logits.amax(-1))


def check_greatest(model: LoadedModel, worst: Tensor) -> None:
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
    # every row has logits, which would take more memory than all else
    step = min(model.chunk, _most_rows(model))
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
        ids, at = torch.tensor([tokens[r] for r in rows]), session.positions
        places = hooks.placed([edits[r] for r in rows], np.arange(len(rows)), at.numpy())
        with hooks.patched(model, places):
            on_logits(rows, forward(model, session, ids, at))


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
    no logits are handed over, and only those of one position are computed. `edits` are patches
    and steering: knockouts need the forest's attention. `on_outputs` is given the outputs of
    `sites`.
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
