"""Read a set of branches at their asked positions: logits, attention rows, residuals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from faithscope.interp import execute
from faithscope.interp.edit_checks import check
from faithscope.interp.edits import Edit, Knockout, Site
from faithscope.interp.errors import NoRoom, UserError
from faithscope.interp.execute import Execution
from faithscope.interp.forest import Branch, Forest, Ids, split_by_budget
from faithscope.interp.generation import each_of
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.trunk import NO_TRUNK, linked


@dataclass(frozen=True)
class Read:
    """What one branch showed at its asked positions, in the order asked."""

    logits: Float[Tensor, "A V"]
    """Next-token logits at the asked positions; (0, 0) if not wanted."""
    rows: tuple[Float[Tensor, "L H P"], ...] = ()
    """Per asked position: attention of every layer and head over the path to it."""
    residuals: Float[Tensor, "A L+1 D"] | None = None
    """Embeddings, then the stream after every layer, before the final norm."""
    outputs: Mapping[Site, Float[Tensor, "A L D"]] = field(default_factory=dict)
    """Per site, the outputs of every layer at the asked positions."""

    @property
    def pattern(self) -> Float[Tensor, "L H A P"]:
        """The attention rows of all asked positions as one array, with zeros after each position.

        With every position of a branch asked (`Branch(ids, ask=tuple(range(len(ids))))`) these are
        the full token × token patterns.

        Raises:
            ValueError: the branch was read without attention rows.
        """
        if not self.rows:
            raise ValueError("no attention rows were read; call run with rows=True")
        longest = max(row.shape[-1] for row in self.rows)
        return torch.stack([pad(row, (0, longest - row.shape[-1])) for row in self.rows], dim=2)


@dataclass(frozen=True)
class ForestRun:
    """Readings of the branches of one run, with the execution used and its token counts."""

    branches: tuple[Read, ...]
    execution: Literal["packed", "dense", "flex", "loop"]
    reason: str | None
    """Why the one-by-one loop was used; None if it was not."""
    trie_tokens: int
    naive_tokens: int


def read(
    model: LoadedModel,
    branches: Sequence[Branch],
    *,
    rows: bool = False,
    residuals: bool = False,
    sites: Sequence[Site] = (),
    logits: bool = True,
    execution: Execution = "auto",
) -> ForestRun:
    """Read every branch at its asked positions, in one packed execution.

    Args:
        rows: also the attention rows of the asked tokens.
        residuals: also the residual streams at the asked tokens.
        sites: sites whose output is read at the asked tokens too, for use in a `Patch` of another
            branch.
        logits: whether logits are returned; at thousands of positions they take most of the memory.
        execution: `packed` (one trie, attended to in the way that is best for its size), `dense`
            (one trie under an N x N mask), `flex` (one trie under FlexAttention), `loop` (one by
            one), or `auto`: packed where the model allows.

    Raises:
        UserError: `branches` holds something else; a branch is longer than the model's positions;
            the execution asked for is not possible; or rows or knockouts are wanted of a model
            whose attention does not go through transformers' interface.
        ValueError: an edit names a position, layer or head that is not there.
    """
    request = ReadRequest(
        branches,
        rows=rows,
        residuals=residuals,
        sites=sites,
        logits=logits,
        execution=execution,
    )
    return read_all(model, [request])[0]


@dataclass(frozen=True)
class ReadRequest:
    """The arguments of one call of `read`, which documents them."""

    branches: Sequence[Branch]
    _: KW_ONLY
    rows: bool = False
    residuals: bool = False
    sites: Sequence[Site] = ()
    logits: bool = True
    execution: Execution = "auto"

    @property
    def ids(self) -> list[tuple[int, ...]]:
        return [b.ids for b in self.branches]

    @property
    def edits(self) -> list[tuple[Edit, ...]]:
        return [b.edits for b in self.branches]


def read_all(model: LoadedModel, requests: Sequence[ReadRequest]) -> list[ForestRun]:
    """The readings of several calls of `read`, run in one pack where the token budget allows and
    the calls ask for the same kinds of readings."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, request in enumerate(requests):
        for b in request.branches:
            if not isinstance(b, Branch):
                raise UserError(
                    f"run takes a list of branches, got {type(b).__name__} in it; of token ids "
                    "make one: model.run([Branch(ids)])"
                )
            check(model, b.edits, len(b.ids))
        how, _ = choose_execution(model, request.ids, request.execution)
        wanted = (request.rows, request.residuals, tuple(request.sites), request.logits)
        alike.setdefault((how, *wanted, any(request.edits)), []).append(i)
    runs: dict[int, ForestRun] = {}
    for (how, *_), at in alike.items():
        own = [(requests[i].ids, requests[i].edits, None) for i in at]
        for together in fitting(model, how, own):
            runs |= _run(model, {at[k]: requests[at[k]] for k in together})
    return [runs[i] for i in range(len(requests))]


def _run(model: LoadedModel, requests: Mapping[int, ReadRequest]) -> dict[int, ForestRun]:
    """Index -> the readings of each of some requests that are alike, from one pack."""
    one = next(iter(requests.values()))
    branches = [b for request in requests.values() for b in request.branches]
    run = _read(model, branches, one.rows, one.residuals, one.sites, one.logits, one.execution)
    if len(requests) == 1:
        return dict.fromkeys(requests, run)
    reads = iter(run.branches)
    return {
        i: replace(
            run,
            branches=tuple(itertools.islice(reads, len(request.branches))),
            trie_tokens=len(Forest.of(request.ids, request.edits)),
            naive_tokens=sum(map(len, request.ids)),
        )
        for i, request in requests.items()
    }


def _read(
    model: LoadedModel,
    branches: Sequence[Branch],
    rows: bool,
    residuals: bool,
    sites: Sequence[Site],
    logits: bool,
    execution: Execution,
) -> ForestRun:
    ids, edits = [b.ids for b in branches], [b.edits for b in branches]
    how, reason = choose_execution(model, ids, execution)
    if rows and not model.supports_tree:
        raise UserError(f"{model.name}: no attention rows: {model.tree_reason}")
    reads: list[Read | None] = [None] * len(branches)
    trie, trunk = 0, NO_TRUNK
    packs = (_Pack.of(branches, group) for group in groups(model, ids, how, edits))
    for pack, after, size in linked(packs, apart=how == "loop"):
        cut = any(isinstance(e, Knockout) for i in pack.group for e in edits[i])
        trie += len(pack.forest) - len(trunk.nodes)
        if how == "loop" and not rows and not cut:
            # Not as a forest of one path: chunks of a forest are joined by attention alone, which a
            # model with a recurrent state, or with attention of its own, does not go through.
            (i,) = pack.group
            reads[i] = _loop_read(model, branches[i], residuals, sites, logits)
            continue
        nodes = frozenset(pack.read)
        by_node: dict[int, Tensor] = {}
        taps = execute.Taps(
            rows=nodes if rows else frozenset(),
            hidden=nodes if residuals or sites else frozenset(),
            sites=tuple(sites),
        )
        cache = execute.prefill(
            model,
            pack.forest,
            sorted(nodes) if logits else [],
            lambda here, x, into=by_node: into.update(zip(here, x.float(), strict=True)),
            # in one chunk if positions are scaled by the longest sequence of a forward
            chunk=None if how == "loop" else model.chunk,
            taps=taps,
            way=execute.WAYS.get(how),
            trunk=trunk,
        )
        trunk = cache.trunk(after, spend=True, spill=spills(model, size))
        for i, asked in pack.at.items():
            reads[i] = Read(
                logits=torch.stack([by_node[n] for n in asked]) if logits else torch.empty(0, 0),
                rows=tuple(torch.stack(taps.row_weights[n]) for n in asked) if rows else (),
                residuals=torch.stack([taps.residuals[n] for n in asked]) if residuals else None,
                outputs={s: torch.stack([taps.outputs[n][s] for n in asked]) for s in sites},
            )
    return ForestRun(
        branches=tuple(r for r in reads if r is not None),
        execution=how,
        reason=reason,
        trie_tokens=trie,
        naive_tokens=sum(map(len, ids)),
    )


@dataclass(frozen=True)
class _Pack:
    """Branches that run together."""

    group: list[int]
    forest: Forest
    at: dict[int, list[int]]
    """Branch -> its asked nodes."""

    @classmethod
    def of(cls, branches: Sequence[Branch], group: list[int]) -> _Pack:
        forest = Forest.of([branches[i].ids for i in group], [branches[i].edits for i in group])
        at = {
            i: [int(path[p]) for p in branches[i].ask]
            for i, path in zip(group, forest.paths, strict=True)
        }
        return cls(group, forest, at)

    @property
    def read(self) -> Iterator[int]:
        return (node for asked in self.at.values() for node in asked)

    def path(self, place: int) -> NDArray[np.int64]:
        return self.forest.paths[place]


def spills(model: LoadedModel, nodes: int) -> bool:
    """Whether the trunk of a forest of so many nodes is kept in the CPU's memory."""
    return model.device.type != "cpu" and nodes > model.token_budget


def _loop_read(
    model: LoadedModel, branch: Branch, residuals: bool, sites: Sequence[Site], wanted: bool
) -> Read:
    """Read one branch in a plain forward of its own, with patches made by plain hooks."""
    logits: list[Tensor] = []
    streams: list[Tensor] = []
    by_site: dict[Site, Tensor] = {}
    execute.one_by_one(
        model,
        [branch.ids],
        [branch.ask],
        lambda _, x: logits.append(x.float()),
        (lambda _, x: streams.append(x)) if residuals else None,
        unembed=wanted,
        edits=[branch.edits],
        sites=sites,
        on_outputs=lambda _, x: by_site.update(x),
    )
    return Read(
        logits=logits[0] if wanted else torch.empty(0, 0),
        residuals=streams[0] if streams else None,
        outputs=by_site,
    )


def loop_logits(
    model: LoadedModel, ids: Sequence[int], ask: Sequence[int], edits: Sequence[Edit] = ()
) -> Float[Tensor, "A V"]:
    """Logits of one sequence in a plain forward of its own, under its edits.

    The edits are checked already: some may begin beyond this sequence.
    """
    if edits:
        branch = Branch(tuple(ids), tuple(ask), tuple(edits))
        return _read(model, [branch], False, False, (), True, "loop").branches[0].logits
    logits: list[Tensor] = []
    execute.one_by_one(model, [ids], [ask], lambda _, x: logits.append(x.float()))
    return logits[0]


def groups(
    model: LoadedModel,
    ids: Sequence[Ids],
    how: str,
    edits: Sequence[Sequence[Edit]] | None = None,
    continued: Sequence[Sequence[Sequence[int]]] | None = None,
    repeat: Sequence[int] = (),
) -> list[list[int]]:
    """Indices of the sequences that run together: one per group in the loop, else by the token
    budget.

    `repeat` holds indices of the sequences that run in every group of a pack; in the loop, where a
    sequence runs in the same way whatever the others are, they run once.
    """
    if how == "loop":
        return [[i] for i in range(len(ids))]
    return split_by_budget(ids, model.token_budget, edits, continued, repeat)


Sequences = tuple[Sequence[Ids], Sequence[Sequence[Edit]], Sequence[Sequence[Sequence[int]]] | None]
"""Token ids of the sequences of one call, the edits and the continuations of each."""


def fitting(model: LoadedModel, how: str, calls: Sequence[Sequences]) -> Iterator[list[int]]:
    """Indices of the calls whose sequences run in one pack: halves, until each fits the budget."""

    def split(at: list[int]) -> Iterator[list[int]]:
        if len(at) == 1:
            yield at
            return
        ids = [x for i in at for x in calls[i][0]]
        edits = [x for i in at for x in calls[i][1]]
        tails = [x for i in at for x in calls[i][2] or [()] * len(calls[i][0])]
        if how != "loop" and len(groups(model, ids, how, edits, tails)) == 1:
            yield at
            return
        for half in (at[: len(at) // 2], at[len(at) // 2 :]):
            yield from split(half)

    yield from split(list(range(len(calls))))


def choose_execution(
    model: LoadedModel,
    ids: Sequence[Ids],
    execution: Execution,
    room: int | Sequence[int] = 0,
) -> tuple[Literal["packed", "dense", "flex", "loop"], str | None]:
    """Execution of sequences that may grow by `room` tokens (all or each), and why not packed."""
    if not ids:
        raise ValueError("no sequence to run; give at least one")
    longest = max(len(x) + n for x, n in zip(ids, each_of(room, len(ids)), strict=True))
    limit = model.max_positions
    if limit is not None and longest > limit:
        raise NoRoom(
            f"{model.name}: a sequence of {longest} tokens does not fit its {limit} positions; "
            "shorten the text or lower max_new_tokens"
        )
    if execution == "loop":
        return "loop", "asked for"
    reason = model.tree_reason or _length_dependent_rope(model.hf.config, longest)
    if execution == "flex" and model.device.type != "cpu":
        reason = reason or model.flex_reason
    if reason is None:
        return ("packed" if execution == "auto" else execution), None
    if execution == "auto":
        return "loop", reason
    raise UserError(f"{model.name}: execution {execution!r} is not possible: {reason}")


def _length_dependent_rope(config: Any, longest: int) -> str | None:
    for kind, original in length_dependent_ropes(config):
        if longest > original:
            return (
                f"{kind} RoPE depends on the longest sequence of a pack "
                f"({longest} > {original} positions)"
            )
    return None


def length_dependent_ropes(config: Any) -> list[tuple[str, int]]:
    """The LongRoPE and dynamic RoPE of a config, which rescale every position of a long batch.

    Returns:
        (kind, the longest sequence that is not rescaled) of each such RoPE in the config.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    kinds = []
    for entry in [rope, *(v for v in rope.values() if isinstance(v, dict))]:
        kind = entry.get("rope_type", entry.get("type"))
        if kind in ("longrope", "dynamic"):
            original = entry.get("original_max_position_embeddings") or getattr(
                text, "original_max_position_embeddings", text.max_position_embeddings
            )
            kinds.append((kind, original))
    return kinds
