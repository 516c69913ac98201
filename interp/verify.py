"""Checks at load: the model does what every measurement takes for granted.

Packed runs, one-by-one runs, decoding and attention rows are compared with what transformers alone,
with its own attention and masks, computes from the same tokens. A model whose packed runs differ by
more than rounding (`interp.noise`) is run one by one and says why; one that is read wrongly that
way too is refused with the numbers, because its measurements would be wrong without a sign.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from faithscope.interp import attention, execute, flex, flex_checks, lockstep
from faithscope.interp.continuation import continue_one_by_one
from faithscope.interp.edits import Knockout, Steer
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.memory import is_out_of_memory
from faithscope.interp.model import Model
from faithscope.interp.read import length_dependent_ropes
from faithscope.interp.reference import MARGIN, Noise, Tree, generated, rows, text, times

TEXTS = 3
"""Texts that must all be read wrongly before a way of running is given up: in half precision
rounding may route a token to other experts, on one text and not on the next."""
_MASKED = 8_192
"""Longest window past which knockouts under FlexAttention are held against a mask."""
AFFORDABLE = {"cpu": 2e11}
"""Floating-point operations that checking past one limit may take; on an accelerator 1e15."""


def verify(model: Model) -> tuple[str, ...]:
    """Run every check that applies, and return one line per check.

    Trees of four shapes, a few dozen tokens each, are read in chunks of the usual size and of 17
    tokens, decoded from in lockstep and one by one, and their attention rows compared. The same
    checks follow past every window, chunk and length at which positions are scaled anew. Their cost
    is bounded: if 2 × parameters of the layers × tokens exceeds `AFFORDABLE`, the limit is not
    checked, and a line says so. On an accelerator a window of 4,096 under 8 billion parameters
    fits; on a CPU one of 512 fits under 20 million, so windows of real models are not reached
    there.

    A failed check turns off what it checked: the packed forest (`model.tree_reason`), or all
    readings of the residual stream (`model.structure.unknown`).

    Raises:
        UserError: the model itself fails; the message names the check, the numbers and what to do.
    """
    trees = functools.cache(functools.partial(Tree.of, model))
    checks = [_edit_changes_output(model)]
    if model.structure.unknown is None:
        checks += _lens_is_output(model, trees(0, None).noise)
    if model.structure.unknown is not None:
        checks.append(f"residual streams and lens off: {model.structure.unknown}")
    reached: list[int | None] = [None]
    for limit, name in sorted(_limits(model).items()):
        if _affordable(model, trees(0, limit)):
            reached.append(limit)
        else:
            checks.append(f"not checked past {name}: too long for the checks at load")
    if model.supports_tree:
        fault = _fault(_packed_fault, trees, reached)
        if fault is None:
            checks.append(_agreement("the packed forest", trees, reached))
        else:
            model.tree_reason = f"packed runs differ from plain transformers: {fault}"
            attention.hand_back(model.hf)
    if not model.supports_tree:
        checks.append(f"packed forest off: {model.tree_reason}")
    elif model.flex_reason is None or model.device.type != "cpu":
        checks.append(_flex(model, trees, reached))
        graphs = "replayed from CUDA graphs" if model.graph_reason is None else "started anew"
        checks.append(f"steps of decoding are {graphs}" + _why(model.graph_reason))
        if model.graph_reason is None:
            model.graph_edit_reason = fault = _fault(_edited_steps_fault, trees, [None])
            checks.append(
                "under edits they are, too" if fault is None else f"not under edits: {fault}"
            )
    if model.packed is not None and model.packed.reason is None:
        checks.append("steps of decoding run over packed weights")
    for limit in reached:
        trees(0, limit).gaps.clear()
    if fault := _fault(_loop_fault, trees, reached):
        raise UserError(
            f"{model.name}: run one by one in {model.dtype}, it differs from plain transformers: "
            f"{fault}; report the architecture, or run it with verify off at your own risk"
        )
    checks.append(_agreement("running one by one", trees, reached))
    return tuple(checks)


def _limits(model: Model) -> dict[int, str]:
    """Lengths beyond which a model computes otherwise than on a short text."""
    config = model.hf.config.get_text_config()
    limits = {
        int(reach.whole): f"attention to {reach}"
        for reach in model.structure.reaches.values()
        if reach is not None and reach.whole != float("inf")
    }
    # the config's limits count too, since the reaches are ours and among what is checked
    for key in ("sliding_window", "attention_chunk_size"):
        if size := getattr(config, key, None):
            limits.setdefault(int(size), f"{key} {size}")
    for kind, original in length_dependent_ropes(config):
        limits[original] = f"the {original} positions that {kind} RoPE leaves as they are"
    longest = model.max_positions or float("inf")
    return {limit: name for limit, name in limits.items() if limit + 12 <= longest}


def _affordable(model: Model, tree: Tree) -> bool:
    embedding = model.hf.get_input_embeddings().weight.numel()  # pyright: ignore
    weights = sum(p.numel() for p in model.hf.parameters()) - embedding
    return 2 * weights * tree.tokens <= AFFORDABLE.get(model.device.type, 1e15)


def _edit_changes_output(model: Model) -> str:
    ids = list(text(model, 24))
    other = list(ids)
    other[len(ids) // 2] = text(model, 1, seed=1)[0]
    if other == ids:
        other[len(ids) // 2] = next(i for i in text(model, 24, seed=2) if i not in ids)
    a, b = (
        model.run([Branch(tuple(x))], execution="loop").branches[0].logits for x in (ids, other)
    )
    if not torch.isfinite(a).all():
        # weights on disk or on no device cannot be looked at
        weights = ((n, p) for n, p in model.hf.named_parameters() if not p.is_meta)
        if broken := [n for n, p in weights if not torch.isfinite(p).all()]:
            raise UserError(
                f"{model.name}: {len(broken)} of its weights hold NaN or infinity (first: "
                f"{broken[0]}): the files are damaged; get them again"
            )
        raise UserError(
            f"{model.name}: logits are not finite in {model.dtype}; load it in bfloat16 or float32"
        )
    change = float((a - b).abs().max())
    if change == 0:
        raise UserError(
            f"{model.name}: changing a token mid-sequence leaves the last logits as they were; "
            "the weights are not loaded, or attention is cut"
        )
    return f"an edited token changes the output (max |Δlogit| {change:.2g})"


def _lens_is_output(model: Model, noise: Noise) -> list[str]:
    """The line of the lens check; none if it fails, and the stream is then unknown."""
    ids = text(model, 24)
    streams: list[torch.Tensor] = []
    hook = model.structure.layers[-1].register_forward_hook(
        lambda _m, _a, out: streams.append(out if isinstance(out, torch.Tensor) else out[0])
    )
    try:
        logits = model.run([Branch(ids)], execution="loop").branches[0].logits.cpu()
    finally:
        hook.remove()
    lens = model.lens(streams[0][0, -1:]).cpu()
    if fault := noise.fault(lens, logits):
        reason = f"the last layer's lens is not the logits ({fault})"
        model.structure = model.structure.without_stream(reason)
        return []
    gap = float((lens - logits).abs().max())
    return [f"the last layer's lens equals the logits (max |Δ| {gap:.2g})"]


_ROWS = 200
"""Longest text (tokens) whose attention rows are compared: plain attention that returns weights
keeps those of every pair of tokens."""
Trees = Callable[[int, int | None], Tree]
"""A function from (seed, limit) to a tree, which makes each tree once."""


def _fault(
    of_tree: Callable[[Tree], str | None], trees: Trees, limits: Sequence[int | None]
) -> str | None:
    """The fault that each of several texts shows, short or past a limit; None if one is sound."""
    for limit in limits:
        faults: list[str] = []
        for seed in range(TEXTS):
            fault = of_tree(trees(seed, limit))
            if fault is None:
                break
            faults.append(fault)
        else:
            return faults[0]
    return None


def _packed_fault(tree: Tree) -> str | None:
    """The fault of a forest of all branches, of decoding from it, or of attention rows."""
    model, usual = tree.model, tree.model.chunk
    try:
        # past a limit one chunk size is enough, since its chunks cross the limit too
        for chunk in (usual, 17) if tree.limit is None else (tree.limit // 2 + 1,):
            model.chunk = min(usual, chunk)
            run = model.run(tree.branches)
            if run.execution == "loop":
                return None
            if fault := _branches_fault(tree, (r.logits for r in run.branches)):
                return fault
        (alone,) = model.run([tree.chain]).branches
        if fault := tree.fault(alone.logits, tree.plain[tree.chain.ids]):
            return f"a chain in chunks{_past(tree)}: {fault}"
        return _decoding_fault(tree) or _rows_fault(tree)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return f"{type(error).__name__}: {error}"
    finally:
        model.chunk = usual


def _why(reason: str | None) -> str:
    return "" if reason is None else f": {reason}"


def _flex(model: Model, trees: Trees, reached: Sequence[int | None]) -> str:
    """The line on FlexAttention, which is turned off where it differs from plain transformers."""
    if model.flex_reason is None:
        for limit in reached:
            trees(0, limit).gaps.clear()
        fault = _fault(_flex_fault, trees, reached)
        if fault is None:
            line = _agreement("the packed forest under FlexAttention", trees, reached)
            # the mask that they are held against grows with the square of the length
            short = [limit for limit in reached if limit is None or limit <= _MASKED]
            model.flex_cut_reason = fault = _fault(_flex_cut_fault, trees, short)
            return line if fault is None else f"{line}; packs with knockouts go without it: {fault}"
        model.flex_reason = f"it differs from plain transformers: {fault}"
    return f"FlexAttention off: {model.flex_reason}"


def _flex_fault(tree: Tree) -> str | None:
    """The fault of a forest of all branches under FlexAttention, or of its kernel at any size."""

    def checked() -> str | None:
        run = tree.model.run(tree.branches, execution="flex")
        fault = _branches_fault(tree, (r.logits for r in run.branches))
        return fault or (flex_checks.fault(tree.model) if tree.limit is None else None)

    return _error_or(checked)


def _flex_cut_fault(tree: Tree) -> str | None:
    """The fault of knockouts of all heads and of one under FlexAttention, against one call under a
    mask; or of its kernel under them."""
    ids = _of_blocks(tree)
    n = len(ids)
    cut = Knockout(queries=(n // 2, None), keys=(n // 4, n // 2))
    one = replace(cut, heads=(0,) if tree.limit is None else None)
    ask = tuple(range(n // 2, n))
    edits = [(), (cut,), (one, replace(cut, queries=(n - 2, None)))]
    branches = [Branch(ids, ask, of_branch) for of_branch in edits]

    def checked() -> str | None:
        here, other = (
            [read.logits for read in tree.model.run(branches, execution=how).branches]
            for how in ("flex", "dense")
        )
        fault = next(filter(None, map(tree.fault, here, other)), None)
        if fault is not None or tree.limit is not None:
            return fault
        return flex_checks.fault(tree.model, edits[-1], longest=16 * flex.SIZE)

    return _error_or(checked)


def _error_or(checked: Callable[[], str | None]) -> str | None:
    """The fault that a check returns, or its error, but for a lack of memory."""
    try:
        return checked()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return f"{type(error).__name__}: {error}"


def _of_blocks(tree: Tree) -> tuple[int, ...]:
    """A text of more than two blocks, for which other graphs are compiled than for one."""
    if len(tree.chain.ids) > 2 * flex.SIZE:
        return tree.chain.ids
    return tuple(text(tree.model, min(2 * flex.SIZE + 40, tree.model.max_positions or 1 << 30)))


def _loop_fault(tree: Tree) -> str | None:
    """The fault of runs one by one, or of a prompt continued one by one; None if there is none."""
    model, chain, steps = tree.model, tree.chain, 3
    (read,) = model.run([chain], execution="loop").branches
    if fault := tree.fault(read.logits, tree.plain[chain.ids]):
        return f"a sequence{_past(tree)}: {fault}"
    written = _continued(model, chain.ids, steps)
    fault = tree.fault(written, tree.plain[chain.ids][-steps:])
    if fault is None:
        return None
    # some families decode with a cache otherwise than in one forward: ours must then do so, too
    ids, own = generated(model, chain.ids[: 1 - steps], steps)
    return (
        None
        if tree.fault(_continued(model, ids, steps), own) is None
        else (f"continuing a prompt{_past(tree)}: {fault}")
    )


def _past(tree: Tree) -> str:
    return "" if tree.limit is None else f" past {tree.limit} tokens"


def _branches_fault(tree: Tree, reads: Iterable[Tensor]) -> str | None:
    of_branch = iter(reads)
    for name, shape in tree.shapes.items():
        plain = torch.cat([tree.plain[b.ids] for b in shape])
        if fault := tree.fault(torch.cat([next(of_branch) for _ in shape]), plain):
            return f"{name}{_past(tree)}: {fault}"
    return None


def _decoding_fault(tree: Tree) -> str | None:
    """The fault of lockstep decoding of sequences of unequal lengths along given tokens."""
    model = tree.model
    chain, nested = tree.chain.ids, tree.shapes["nested branches"][-1].ids
    first = tree.chain.ask[0]
    # enough steps of the first for some to be replayed from a CUDA graph
    goals = [(chain, first + 4, 10), (chain, len(chain) - 1, 2), (nested, len(nested) - 3, 3)]
    prompts = [goal[:start] for goal, start, _ in goals]
    seen: dict[int, list[Tensor]] = {row: [] for row in range(len(goals))}

    def choose(logits: Tensor, of_rows: list[int]) -> Tensor:
        tokens = []
        for row, values in zip(of_rows, logits, strict=True):
            goal, start, _ = goals[row]
            seen[row].append(values.float())
            tokens.append((*goal, 0)[start + len(seen[row]) - 1])
        return torch.tensor(tokens)

    lockstep.decode(
        model,
        *execute.prefill_prompts(model, prompts),
        [steps for *_, steps in goals],
        choose=choose,
        group_tokens=model.token_budget,
        end_ids=frozenset(),
    )
    asked = {b.ids: [p % len(b.ids) for p in b.ask] for b in tree.branches}
    plain = torch.cat(
        [
            tree.plain[goal][[asked[goal].index(start - 1 + k) for k in range(steps)]]
            for goal, start, steps in goals
        ]
    )
    fault = tree.fault(torch.cat([torch.stack(seen[row]) for row in range(len(goals))]), plain)
    return None if fault is None else f"decoding in lockstep: {fault}"


def _edited_steps_fault(tree: Tree) -> str | None:
    """The fault of replayed steps under a knockout and under steering, against started ones."""
    model, ids = tree.model, tree.chain.ids
    n, width = len(ids), model.hf.config.get_text_config().hidden_size
    cut = Knockout(queries=(n, None), keys=(n // 4, n // 2), heads=(0,))
    push = Steer("residual", 0, torch.ones(width) / width**0.5, 1.0, (n + 2, None))
    edits, steps = [[], [cut], [push, cut]], 10

    def written() -> Tensor:
        seen: list[Tensor] = []

        def choose(logits: Tensor, _: list[int]) -> Tensor:
            seen.append(logits.float().cpu())
            return torch.tensor([ids[len(seen)]] * len(edits))

        lockstep.decode(
            model,
            *execute.prefill_prompts(model, [ids] * len(edits), edits),
            steps,
            choose=choose,
            group_tokens=model.token_budget,
            edits=edits,
            end_ids=frozenset(),
        )
        return torch.cat(seen)

    def checked() -> str | None:
        started, model.graph_edit_reason = written(), None
        try:
            replayed = written()
        finally:
            model.graph_edit_reason = "not tried"
        return model.graph_reason or tree.fault(replayed, started)

    return _error_or(checked)


def _continued(model: Model, ids: Sequence[int], steps: int) -> Tensor:
    """(steps, V) logits at the last tokens of one sequence, most of them decoded as if written."""
    prompt, written = ids[: 1 - steps], (*ids[1 - steps :], 0)
    seen: list[Tensor] = []

    def choose(logits: Tensor) -> Tensor:
        seen.append(logits[0].float())
        return torch.tensor([written[len(seen) - 1]])

    continue_one_by_one(model, prompt, steps, choose=choose, end_ids=frozenset())
    return torch.stack(seen)


def _rows_fault(tree: Tree) -> str | None:
    """The fault of the attention rows of a nested branch's last token, in any layer."""
    model = tree.model
    if len(tree.chain.ids) > _ROWS:
        return None
    ids = tree.shapes["nested branches"][-1].ids
    plain, *rounded = rows(model, ids)
    noise = Noise.of(torch.stack([(x - plain).flatten(1) for x in rounded]))
    read = model.run([Branch(tree.chain.ids), Branch(ids)], rows=True).branches[1].rows[0]
    gap = Noise.of((read.to(plain.device) - plain).flatten(1))
    if gap.middle <= MARGIN * noise.middle and gap.most <= MARGIN * noise.most:
        return None
    return (
        f"attention rows: max |Δ| {gap.logit:.2g}, {times(gap.most, noise.most):.3g} times the "
        "rounding noise in the worst layer"
    )


def _agreement(way: str, trees: Trees, reached: Sequence[int | None]) -> str:
    gap = max(gap for limit in reached for gap in trees(0, limit).gaps)
    noise = max(trees(0, limit).noise.logit for limit in reached)
    limits = [str(x) for x in reached if x is not None]
    past = f", also past {' and '.join(limits)} tokens" if limits else ""
    return f"{way} equals plain transformers{past} (max |Δlogit| {gap:.2g}, noise {noise:.2g})"
