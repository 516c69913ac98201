"""Checks at load: the model does what every measurement takes for granted.

Each check compares two ways to the same number. Where the packed forest or the lens fails, the
model is served without it and says so, with the numbers; any other failure stops the load, because
what is measured on such a model would be wrong without a sign.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch

from interp import attention
from interp.errors import UserError
from interp.forest import Branch

if TYPE_CHECKING:
    from interp.model import Model

_TOLERANCE = {"float32": 2e-3, "float64": 1e-6, "float16": 0.25, "bfloat16": 1.0}
"""Largest |Δlogit| that regrouping may cause, by dtype: kernels round differently."""


class _Differs(Exception):
    """Two ways to the same number gave two numbers."""


def verify(model: Model) -> tuple[str, ...]:
    """Run every check that applies; one line each.

    What fails is turned off: the packed forest (`model.tree_reason`), or all that reads the
    residual stream (`model.structure.unknown`).

    Raises:
        UserError: the model itself fails; names the check, the numbers and what to do.
    """
    checks = [_edit_changes_output(model)]
    if model.structure.unknown is None:
        try:
            checks.append(_lens_is_output(model))
        except _Differs as failure:
            model.structure = model.structure.without_stream(str(failure))
    if model.structure.unknown is not None:
        checks.append(f"residual streams and lens off: {model.structure.unknown}")
    if model.supports_tree:
        try:
            checks += [_rows_sum_to_one(model), _forest_is_loop(model)]
        except _Differs as failure:
            model.tree_reason = str(failure)
            attention.hand_back(model.hf)
    if not model.supports_tree:
        checks.append(f"packed forest off: {model.tree_reason}")
    return tuple(checks)


def _text(model: Model, n: int = 24, seed: int = 0) -> list[int]:
    """Seeded ids, control tokens left out."""
    avoid = set(model.tokenizer.all_special_ids)
    draw = random.Random(seed)
    usable = [i for i in range(min(len(model.tokenizer), 4000)) if i not in avoid]
    return draw.choices(usable, k=n)


def _edit_changes_output(model: Model) -> str:
    ids = _text(model)
    other = list(ids)
    other[len(ids) // 2] = _text(model, seed=1)[0]
    if other == ids:
        other[len(ids) // 2] = next(i for i in _text(model, seed=2) if i not in ids)
    a, b = (
        model.run([Branch(tuple(x))], execution="loop").branches[0].logits for x in (ids, other)
    )
    if not torch.isfinite(a).all():
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


def _lens_is_output(model: Model) -> str:
    ids = tuple(_text(model))
    found: list[torch.Tensor] = []
    hook = model.structure.layers[-1].register_forward_hook(
        lambda _m, _a, out: found.append(out if isinstance(out, torch.Tensor) else out[0])
    )
    try:
        logits = model.run([Branch(ids)], execution="loop").branches[0].logits
    finally:
        hook.remove()
    gap = float((model.lens(found[0][0, -1:]).cpu() - logits.cpu()).abs().max())
    _demand(model, "the last layer's lens is not the logits", gap)
    return f"the last layer's lens equals the logits (max |Δ| {gap:.2g})"


def _rows_sum_to_one(model: Model) -> str:
    rows = model.run([Branch(tuple(_text(model)))], rows=True).branches[0].rows[0]
    total = rows.sum(-1)
    # a sink takes its share of the probability, so rows may sum to less, never to more
    sinks = any("sink" in n for n, _ in model.hf.named_parameters())
    gap = float((total - 1).clamp(min=0).max() if sinks else (total - 1).abs().max())
    if gap > 0.02 or float(rows.min()) < 0:
        raise _Differs(
            f"its attention rows sum to {float(total.min()):.3f}..{total.max():.3f}, not to 1"
        )
    return f"attention rows sum to one{' with their sink' if sinks else ''} (within {gap:.2g})"


def _forest_is_loop(model: Model) -> str:
    trunk, a, b, c = _text(model, 12), _text(model, 6, 1), _text(model, 5, 2), _text(model, 4, 3)
    branches = [
        Branch(tuple(x), ask=(-1, 2))
        for x in (trunk + a, trunk + a + c, trunk[:7] + b, trunk + b + a)
    ]
    packed, loop = (model.run(branches, execution=e).branches for e in ("packed", "loop"))
    gap = max(
        float((p.logits - q.logits.to(p.logits.device)).abs().max())
        for p, q in zip(packed, loop, strict=True)
    )
    _demand(model, "the packed forest is not what one-by-one runs are", gap)
    return f"the packed forest equals one-by-one runs (max |Δlogit| {gap:.2g})"


def _demand(model: Model, what: str, gap: float) -> None:
    allowed = _TOLERANCE.get(model.dtype, 1.0)
    if not gap <= allowed:
        raise _Differs(f"{what} (max |Δ| {gap:.3g} > {allowed:.3g} in {model.dtype})")
