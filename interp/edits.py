"""Edits of a model while it runs a branch, as data that the branch carries.

An edit changes what some of a branch's tokens are computed from; the text stays as it is. Tokens
before the first one that an edit touches are computed as if there were no edit, so branches that
differ in their edits share these nodes of the forest, and no later ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from faithscope.interp.hook_names import SITES, Place, Site, edited_place

Span = tuple[int, int]
"""Half-open span of positions, counted from the first token of the branch."""


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
        for what, span in (("queries", self.queries), ("keys", self.keys)):
            _check_span(f"Knockout.{what}", span)

    @property
    def first(self) -> int | None:
        """The first position that sees fewer keys because of the cut; None if there is none."""
        if self.keys[0] == self.keys[1] or self.layers == () or self.heads == ():
            return None
        first = max(self.queries[0], self.keys[0] + 1)
        return first if self.queries[1] is None or first < self.queries[1] else None

    def cuts_in(self, layer: int) -> bool:
        return self.layers is None or layer in self.layers

    def reaches(self, length: int) -> bool:
        """Whether tokens that follow a branch of `length` tokens may be edited."""
        return _goes_on(self.queries, length)


@dataclass(frozen=True, eq=False)
class Patch:
    """Activations put in the place of a branch's own, at chosen tokens of one layer.

    Tokens before the first patched position are computed without the patch, and shared; all later
    nodes are computed again through every layer, the layers below the patch too. Where two patches
    of a branch meet, the later one in its list of edits holds.
    """

    site: Site | str
    """The site, or TransformerLens' name of a place, whose layer it has (`interp.hook_names`)."""
    layer: int | None
    """Layer index from 0; site `residual` is the stream after this layer. None with a name."""
    positions: tuple[int, ...]
    """Patched positions, counted from the first token of the branch."""
    values: Float[Tensor, "positions D"]

    def __post_init__(self) -> None:
        self.place  # noqa: B018, checks it
        if self.values.ndim != 2 or len(self.values) != len(self.positions):
            raise ValueError(
                f"patch of {len(self.positions)} positions: values of shape "
                f"{tuple(self.values.shape)}; give one row of the model's width for each"
            )
        if any(p < 0 for p in self.positions):
            raise ValueError(f"patch positions {self.positions}: count from 0")
        if len(set(self.positions)) < len(self.positions):
            raise ValueError(f"patch positions {self.positions}: one stands there twice")

    @cached_property
    def place(self) -> Place:
        """The site and layer whose activations are replaced."""
        return _place("patch", self.site, self.layer)

    @property
    def first(self) -> int | None:
        """The first position whose activations are replaced; None if there is none."""
        return min(self.positions, default=None)

    def reaches(self, length: int) -> bool:
        """Whether tokens that follow a branch of `length` tokens may be edited."""
        return any(p >= length for p in self.positions)


@dataclass(frozen=True, eq=False)
class Steer:
    """A direction added to the activations of one layer, or removed from them.

    An activation x becomes x + coefficient · direction; with `ablate` it becomes x − (x · u) u, its
    part that is orthogonal to the direction, where u is the direction of length 1. Edits of one
    place take effect in the order of the branch's list.
    """

    site: Site | str
    """The site, or TransformerLens' name of a place, whose layer it has (`interp.hook_names`)."""
    layer: int | None
    """Layer index from 0; site `residual` is the stream after this layer. None with a name."""
    direction: Float[Tensor, " D"]
    coefficient: float | None = None
    """Factor of the direction, whose own length counts; must be None with `ablate`."""
    positions: tuple[int, int | None] = (0, None)
    """Half-open span of positions; an end of None includes every token that follows, also those
    scored or decoded after the branch."""
    ablate: bool = False

    def __post_init__(self) -> None:
        self.place  # noqa: B018, checks it
        object.__setattr__(self, "positions", tuple(self.positions))
        _check_span("Steer.positions", self.positions)
        x = self.direction
        if x.ndim != 1 or not x.is_floating_point():
            raise ValueError(f"steer: direction of shape {tuple(x.shape)}; give floats, (D,)")
        if not bool(x.isfinite().all()) or not bool(x.any()):
            raise ValueError("steer: the direction is zero or not finite; give one that points")
        if self.ablate != (self.coefficient is None):
            raise ValueError(
                f"steer: coefficient {self.coefficient} with ablate={self.ablate}; give a "
                "coefficient to add the direction, or ablate=True to remove it"
            )
        if self.coefficient is not None and not math.isfinite(self.coefficient):
            raise ValueError(f"steer: coefficient {self.coefficient}; give a finite number")

    @cached_property
    def place(self) -> Place:
        """The site and layer whose activations are changed."""
        return _place("steer", self.site, self.layer)

    @property
    def first(self) -> int | None:
        """The first position whose activations are changed; None if there is none."""
        start, stop = self.positions
        return None if stop == start or self.coefficient == 0 else start

    def reaches(self, length: int) -> bool:
        """Whether tokens that follow a branch of `length` tokens may be edited."""
        return self.coefficient != 0 and _goes_on(self.positions, length)

    @cached_property
    def vector(self) -> Float[Tensor, " D"]:
        """What is added in float32, or the direction of length 1 that is removed."""
        # lengths in float64: squares of large float32 numbers overflow
        x = self.direction.double()
        return (x / x.norm() if self.coefficient is None else self.coefficient * x).float()


Edit = Knockout | Patch | Steer


def _place(what: str, site: str, layer: int | None) -> Place:
    if layer is not None:
        if site not in SITES:
            raise ValueError(
                f"{what}: unknown site {site!r}; use {', '.join(SITES)}, or a hook name with layer "
                "None"
            )
        return Place(site, layer)
    if site in SITES:
        raise ValueError(f"{what}: site {site!r} without a layer; give one, from 0")
    return edited_place(site)


def _check_span(what: str, span: tuple[int, int | None]) -> None:
    start, stop = span
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(
            f"{what} {(start, stop)}: give a span (first, last + 1) of positions from 0"
        )


def _goes_on(span: tuple[int, int | None], length: int) -> bool:
    return span[0] != span[1] and (span[1] is None or span[1] > length)
