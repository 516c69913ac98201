"""Named directions in a model's activations, and the safetensors files that hold them.

A file holds a float32 tensor of shape (D,) for each direction under the direction's name. Its
metadata holds, under the same name, what is known of the direction as one JSON object: `layer`
(from 1), `site`, and whatever its maker adds (`model`, `place`, `label`, `kind`, `n`). A file of
bare tensors is read as well; its directions have no layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from faithscope.interp.documents import json_of
from faithscope.interp.edits import SITES, Site
from faithscope.interp.errors import UserError, did_you_mean


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction in the activations of one model, at one place of it."""

    name: str
    vector: Float[Tensor, " D"]
    """The direction in float32, on the CPU; its norm is part of it."""
    layer: int | None = None
    """The layer that it belongs to, from 1: l is the stream after layer l. None if not known."""
    site: Site = "residual"
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else is known, in JSON's types: the model, the place and label that it was trained on,
    its kind (`logistic`, `ridge`, `difference_of_means`, `given`), the number of items."""

    def __post_init__(self) -> None:
        what = f"direction {self.name!r}"
        x = torch.as_tensor(self.vector)
        if x.ndim != 1 or not x.is_floating_point():
            raise UserError(
                f"{what} has shape {tuple(x.shape)} and type {str(x.dtype).removeprefix('torch.')};"
                " give one vector of floats, (D,)"
            )
        if not bool(x.isfinite().all()) or not bool(x.any()):
            raise UserError(f"{what} is zero or not finite; give a direction of positive norm")
        if self.layer is not None and (type(self.layer) is not int or self.layer < 1):
            raise UserError(f"{what}: layer {self.layer!r}; layers are counted from 1")
        if self.site not in SITES:
            raise UserError(f"{what}: unknown site {self.site!r}; use {', '.join(SITES)}")
        object.__setattr__(self, "vector", x.detach().to("cpu", torch.float32, copy=True))

    @property
    def norm(self) -> float:
        """Euclidean norm of the vector."""
        return float(self.vector.norm())


def save_directions(path: Path | str, directions: Sequence[Direction]) -> Path:
    """Write directions to a safetensors file, and return its path.

    Raises:
        UserError: no direction is given, two have one name, or JSON cannot hold what is known of
            one.
    """
    names = [d.name for d in directions]
    if not names or len(set(names)) < len(names):
        raise UserError(f"directions {names}: give at least one, each under a name of its own")
    about = {}
    for d in directions:
        known = {**d.about, "site": d.site}
        known |= {} if d.layer is None else {"layer": d.layer}
        try:
            about[d.name] = json.dumps(known, sort_keys=True, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UserError(f"direction {d.name!r}: `about` is not JSON: {error}") from error
    path = Path(path)
    save_file({d.name: d.vector.contiguous() for d in directions}, path, metadata=about)
    return path


def load_directions(path: Path | str) -> list[Direction]:
    """The directions of a safetensors file, sorted by name.

    Raises:
        UserError: there is no such file, it is no safetensors file, or it holds something else
            than directions; the message names the file and the tensor.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise UserError(f"{path}: no such file; give a .safetensors file of directions")
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise UserError(f"{path}: cannot be read as safetensors ({error}); write it anew") from None
    if not tensors:
        raise UserError(f"{path}: holds no direction")
    return [_direction(path, name, x, metadata.get(name)) for name, x in tensors.items()]


def load_direction(path: Path | str, name: str | None = None) -> Direction:
    """One direction of a file: the one of this name, or the only one.

    Raises:
        UserError: as `load_directions`; the file has no direction of the name, or several and none
            is named.
    """
    by_name = {d.name: d for d in load_directions(path)}
    if name is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    if name not in by_name:
        names = list(by_name)
        there = ", ".join(names[:10]) + (f", … ({len(names)} in all)" if len(names) > 10 else "")
        problem = "name one" if name is None else f"no direction {name!r}"
        raise UserError(f"{path}: {problem}: it holds {there}{did_you_mean(name or '', names)}")
    return by_name[name]


def _direction(path: Path, name: str, vector: Tensor, known: str | None) -> Direction:
    try:
        about = {} if known is None else json_of(known)
        if not isinstance(about, dict):
            raise TypeError("it is no JSON object")
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{path}: the metadata of {name!r} cannot be read ({error}); give one JSON object with "
            '"layer" and "site"'
        ) from None
    layer, site = about.pop("layer", None), about.pop("site", "residual")
    try:
        return Direction(name, vector, layer, site, about)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
