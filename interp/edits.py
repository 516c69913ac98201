"""Edits of a model while it runs a branch, as data that the branch carries.

An edit changes what some of a branch's tokens are computed from; the text stays as it is. Tokens
before the first one that an edit touches are computed as if there were no edit, so branches that
differ in their edits share these nodes of the forest, and no later ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from jaxtyping import Float
from torch import Tensor

Span = tuple[int, int]
"""Half-open span of positions, counted from the first token of the branch."""
Site = Literal["residual", "attention", "mlp"]
"""The stream after a layer, or what its attention or its MLP puts out, before any norm after it."""
SITES: tuple[Site, ...] = get_args(Site)


@dataclass(frozen=True)
class Knockout:
    """Attention edges that are cut: the queries do not see the keys, softmax is over the rest.

    The keys stay in the text and at their positions; all other queries still see them. A token
    always sees itself, so that something is left to attend to.
    """

    queries: tuple[int, int | None]
    """Half-open span of positions; an end of None includes every token that follows, also those
    scored or decoded after the branch."""
    keys: Span
    """Half-open span of positions. A query never sees keys after it anyway."""
    layers: tuple[int, ...] | None = None
    """Layer indices from 0; None for all."""
    heads: tuple[int, ...] | None = None
    """Query heads by index from 0, in each of the layers; None for all."""

    def __post_init__(self) -> None:
        for name in ("queries", "keys", "layers", "heads"):
            # edits are hashed, so lists are made tuples
            if isinstance(given := getattr(self, name), list | range):
                object.__setattr__(self, name, tuple(given))
        for what, (start, stop) in (("queries", self.queries), ("keys", self.keys)):
            if start < 0 or (stop is not None and stop < start):
                raise ValueError(
                    f"Knockout.{what} {(start, stop)}: give a span (first, last + 1) of positions "
                    "from 0"
                )

    @property
    def first(self) -> int | None:
        """The first position that sees fewer keys because of the cut; None if there is none."""
        if self.keys[0] == self.keys[1] or self.layers == () or self.heads == ():
            return None
        first = max(self.queries[0], self.keys[0] + 1)
        return first if self.queries[1] is None or first < self.queries[1] else None

    def cuts_in(self, layer: int) -> bool:
        return self.layers is None or layer in self.layers


@dataclass(frozen=True, eq=False)
class Patch:
    """Activations put in the place of a branch's own, at chosen tokens of one layer.

    Tokens before the first patched position are computed without the patch, and shared; all later
    nodes are computed again through every layer, the layers below the patch too. Where two patches
    of a branch meet, the later one in its list of edits holds.
    """

    site: Site
    layer: int
    """Layer index from 0; site `residual` is the stream after this layer."""
    positions: tuple[int, ...]
    """Patched positions, counted from the first token of the branch."""
    values: Float[Tensor, "positions D"]

    def __post_init__(self) -> None:
        if self.site not in SITES:
            raise ValueError(f"patch: unknown site {self.site!r}; use {', '.join(SITES)}")
        if self.values.ndim != 2 or len(self.values) != len(self.positions):
            raise ValueError(
                f"patch of {len(self.positions)} positions: values of shape "
                f"{tuple(self.values.shape)}; give one row of the model's width for each"
            )
        if any(p < 0 for p in self.positions):
            raise ValueError(f"patch positions {self.positions}: count from 0")
        if len(set(self.positions)) < len(self.positions):
            raise ValueError(f"patch positions {self.positions}: one stands there twice")

    @property
    def first(self) -> int | None:
        """The first position whose activations are replaced; None if there is none."""
        return min(self.positions, default=None)


Edit = Knockout | Patch
