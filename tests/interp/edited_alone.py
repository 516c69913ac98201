"""One sequence in a plain forward of transformers under edits, with no code of the forest's: the
oracle of every edit. Knockouts are additive masks in eager attention, all else plain hooks."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from faithscope.interp.edits import Edit, Knockout, Patch, Site
from faithscope.interp.model import Model

_NAMES: dict[Site, tuple[str, ...]] = {
    "residual": ("",),
    "attention": ("self_attn", "attn"),
    "mlp": ("mlp", "block_sparse_moe"),
}


def module_at(model: Model, site: Site, layer: int) -> torch.nn.Module:
    """The module of a site, found by the names that families give it."""
    stack = "transformer.h" if hasattr(model.hf, "transformer") else "model.layers"
    block = model.hf.get_submodule(stack)[layer]  # pyright: ignore
    (module,) = (m for name, m in block.named_modules() if name in _NAMES[site])
    return module


def masks(model: Model, n: int, knockouts: Sequence[Knockout], heads: int) -> list[torch.Tensor]:
    """Per layer (1, H, n, n) additive masks."""
    config = model.hf.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if kinds is None:
        kinds = ["sliding_attention" if window else "full_attention"] * model.n_layers
    q, k = torch.arange(n)[:, None], torch.arange(n)[None]
    made = []
    for layer, kind in enumerate(kinds):
        seen = (k <= q).expand(heads, n, n).clone()
        if kind == "sliding_attention" and window:
            seen &= k > q - window
        for x in knockouts:
            last = n if x.queries[1] is None else x.queries[1]
            hit = (x.queries[0] <= q) & (q < last) & (x.keys[0] <= k) & (k < x.keys[1]) & (k != q)
            for head in range(heads):
                if (x.layers is None or layer in x.layers) and (not x.heads or head in x.heads):
                    seen[head] &= ~hit
        mask = torch.zeros(1, heads, n, n)
        made.append(mask.masked_fill(~seen, torch.finfo(torch.float32).min))
    return made


@torch.inference_mode()
def edited_logits(model: Model, ids: Sequence[int], edits: Sequence[Edit]) -> torch.Tensor:
    """(n, V) logits of transformers' own eager attention under the edits."""
    name, n = str(model.hf.config._attn_implementation), len(ids)
    heads = model.hf.config.get_text_config().num_attention_heads
    wanted = masks(model, n, [e for e in edits if isinstance(e, Knockout)], heads)
    hooks = []
    for layer in model.structure.layers:
        for module in layer.modules():
            if hasattr(module, "layer_idx") and module is not layer:
                mask = wanted[int(module.layer_idx)].to(model.device)  # pyright: ignore

                def give(_, args, kwargs, mask=mask):
                    return args, kwargs | {"attention_mask": mask}

                hooks.append(module.register_forward_pre_hook(give, with_kwargs=True))
    for edit in edits:
        if not isinstance(edit, Knockout):

            def put(_, __, out, edit=edit):
                x = (out if isinstance(out, torch.Tensor) else out[0]).clone()
                _put(x.view(n, -1), edit)
                return x if isinstance(out, torch.Tensor) else (x, *out[1:])

            hooks.append(module_at(model, *edit.place).register_forward_hook(put))
    model.hf.set_attn_implementation("eager")
    try:
        tokens = torch.tensor([list(ids)], device=model.device)
        return model.hf(tokens, use_cache=False).logits[0]
    finally:
        model.hf.set_attn_implementation(name)
        for hook in hooks:
            hook.remove()


def _put(x: torch.Tensor, edit: Edit) -> None:
    """Write an edit into the (n, D) activations of its place."""
    if isinstance(edit, Patch):
        for position, value in zip(edit.positions, edit.values, strict=True):
            x[position] = value.to(x)
        return
    assert not isinstance(edit, Knockout)
    direction = edit.direction.to(x)
    for position in range(len(x))[slice(*edit.positions)]:
        if edit.coefficient is None:
            unit = direction / direction.norm()
            x[position] -= (x[position] @ unit) * unit
        else:
            x[position] += edit.coefficient * direction


def written_alone(
    model: Model, prompt: Sequence[int], edits: Sequence[Edit], n: int
) -> tuple[int, ...]:
    """The likeliest tokens after a prompt, each from the whole sequence run anew."""
    ids = list(prompt)
    for _ in range(n):
        ids.append(int(edited_logits(model, ids, edits)[-1].argmax()))
    return tuple(ids[len(prompt) :])
