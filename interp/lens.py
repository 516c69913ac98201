"""Logit lens: a layer's residual stream through the model's own final norm and unembedding.

Source: nostalgebraist, "interpreting GPT: the logit lens" (2020). The norm is part of it;
a lens without it reads noise. The last layer's lens equals the model's logits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from faithscope.interp.loaded import LoadedModel
from faithscope.interp.placement import device_of


@torch.inference_mode()
def lens(
    model: LoadedModel,
    residuals: Float[Tensor, "*A D"],
    options: Sequence[int] | None = None,
) -> Float[Tensor, "*A V"]:
    """Logits that the unembedding would give if the model stopped at these residuals.

    Args:
        residuals: residual streams before the final norm.
        options: token ids to read; all of the vocabulary by default. With options, only
            their rows of the unembedding are multiplied, unless it is offloaded.

    Returns:
        float32 logits on the device of the model.
    """
    unembedding = model.structure.unembedding
    weight = getattr(unembedding, "weight", None)
    normed = model.structure.final_norm(residuals.to(device_of(model.structure.final_norm)))
    # a tied unembedding may be on another device than the norm
    normed = normed.to(device_of(unembedding))
    if options is None or weight is None or weight.is_meta or weight.dtype not in _PLAIN:
        logits = unembedding(normed)
        logits = logits if options is None else logits[..., list(options)]
    else:
        logits = normed @ weight[list(options)].T.to(normed.dtype)
        bias = getattr(unembedding, "bias", None)
        if bias is not None:
            logits = logits + bias[list(options)]
    return _after(model, logits).float().to(model.device)


_PLAIN = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def _after(model: LoadedModel, logits: Tensor) -> Tensor:
    """Logits after the model's own scaling or soft-cap that follows the unembedding."""
    config = model.hf.config.get_text_config()
    for name in ("logit_scale", "lm_head_multiplier"):
        scale = getattr(config, name, None)
        if scale is not None:
            logits = logits * scale
    divide = getattr(config, "logits_scaling", None)
    if divide is not None:
        logits = logits / divide
    for name in ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap"):
        cap = getattr(config, name, None)
        if cap is not None:
            logits = torch.tanh(logits / cap) * cap
    return logits
