"""Tuned lens: an affine translator per layer before the logit lens, from a local checkpoint.

Source: Belrose et al., "Eliciting Latent Predictions from Transformers with the Tuned Lens" (2023,
arXiv 2303.08112). The layout is that of the package `tuned-lens`: a folder with `params.pt` (or
`params.safetensors` with the same names), the state of a list of L linear maps, `0.weight` (D, D)
and `0.bias` (D,) to `L-1.weight` and `L-1.bias`; biases may be left out. Translator l serves the
stream before layer l, which is our layer l: layer 0 is the embeddings. Its output is added to the
stream, h + W h + b, so all zeros are the plain logit lens; the last layer has no translator. A
`config.json` beside it is not read: shapes are checked against the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor

from faithscope.interp.errors import UserError
from faithscope.interp.model import Model

FILES = ("params.safetensors", "params.pt")
_NAME = re.compile(r"(?:layer_translators\.)?(\d+)\.(weight|bias)")


@dataclass(frozen=True)
class TunedLens:
    """The translators of one model, in the order of its layers."""

    weights: tuple[Float[Tensor, "D D"], ...]
    biases: tuple[Float[Tensor, " D"] | None, ...]

    @torch.inference_mode()
    def translate(self, residuals: Float[Tensor, "L+1 D"]) -> Float[Tensor, "L+1 D"]:
        """The streams of one position after every layer, as the last layer would have them."""
        moved = [
            torch.nn.functional.linear(h, w.to(h), None if b is None else b.to(h)) + h
            for h, w, b in zip(residuals[:-1], self.weights, self.biases, strict=True)
        ]
        return torch.stack([*moved, residuals[-1]])


def load_tuned_lens(folder: str | Path, model: Model) -> TunedLens:
    """The tuned lens in `folder`, checked against `model`; the last one read is kept.

    Raises:
        UserError: the folder holds no checkpoint, one that cannot be read, or one whose shapes are
            not the model's.
    """
    path = Path(folder).expanduser()
    files = [path / name for name in FILES if (path / name).is_file()]
    if not files:
        raise UserError(
            f"tuned lens {str(path)!r}: no {' or '.join(FILES)} there; give the folder that "
            "tuned-lens saved, or leave rigidity.tuned_lens out for the logit lens"
        )
    return _checked(_translators(_state(files[0], files[0].stat().st_mtime_ns), files[0]), model)


@lru_cache(maxsize=1)
def _state(file: Path, changed: int) -> Mapping[str, Tensor]:
    """The tensors of a checkpoint; `changed` (its time of change) makes a rewritten one reread."""
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        state = torch.load(file, map_location="cpu", weights_only=True)
    # torch.load raises whatever its unpickler meets in a damaged or foreign file.
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"tuned lens {str(file)!r} cannot be read: {reason}; save it anew"
        ) from None
    if not isinstance(state, Mapping) or not all(isinstance(v, Tensor) for v in state.values()):
        raise UserError(
            f"tuned lens {str(file)!r} holds a {type(state).__name__}, not tensors by name; save "
            "the state_dict of its layer_translators"
        )
    return state


def _translators(
    state: Mapping[str, Tensor], file: Path
) -> tuple[dict[int, Tensor], dict[int, Tensor], Path]:
    weights: dict[int, Tensor] = {}
    biases: dict[int, Tensor] = {}
    for name, tensor in state.items():
        match = _NAME.fullmatch(name)
        if match is None:
            raise UserError(
                f"tuned lens {str(file)!r}: unknown tensor {name!r}; it takes 0.weight, 0.bias, "
                "1.weight … of linear translators"
            )
        (weights if match[2] == "weight" else biases)[int(match[1])] = tensor
    return weights, biases, file


def _checked(
    translators: tuple[dict[int, Tensor], dict[int, Tensor], Path], model: Model
) -> TunedLens:
    weights, biases, file = translators
    layers = model.n_layers
    width = model.hf.config.get_text_config().hidden_size
    here = f"tuned lens {str(file)!r}"
    remedy = f"give the lens that was tuned for {model.name}"
    if sorted(weights) != list(range(layers)):
        raise UserError(
            f"{here} has translators for {len(weights)} layers, {model.name} has {layers} layers; "
            f"{remedy}"
        )
    if biases and sorted(biases) != list(range(layers)):
        raise UserError(f"{here} has {len(biases)} biases for {layers} layers; {remedy}")
    for layer in range(layers):
        for kind, tensors, shape in (
            ("weight", weights, (width, width)),
            ("bias", biases, (width,)),
        ):
            tensor = tensors.get(layer)
            if tensor is not None and tuple(tensor.shape) != shape:
                raise UserError(
                    f"{here}: {layer}.{kind} has shape {tuple(tensor.shape)}, {model.name} needs "
                    f"{shape}; {remedy}"
                )
    return TunedLens(
        tuple(weights[i] for i in range(layers)), tuple(biases.get(i) for i in range(layers))
    )
