"""What may be done to a model while it runs a branch, as data that the branch carries.

An edit changes what some of a branch's tokens are computed from; the text stays as it is.
Tokens before the first one that an edit touches are computed as without it, so branches that
differ in their edits share these nodes of the forest, and no later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from interp.model import Model

Span = tuple[int, int]
"""Half-open, of positions counted from the first token of the branch."""
Site = Literal["residual", "attention", "mlp"]
"""The stream after a layer, or what its attention or its MLP puts out, before any norm after it."""
SITES: tuple[Site, ...] = get_args(Site)


@dataclass(frozen=True)
class Knockout:
    """Attention edges that are cut: the queries do not see the keys, softmax is over the rest.

    The keys stay in the text and in every position; who else looks at them still does. A token
    always sees itself, so that something is left to attend to.
    """

    queries: tuple[int, int | None]
    """Half-open span of positions; None as its end is every token that follows, those that are
    scored or decoded after the branch too."""
    keys: Span
    """Half-open span of positions. What comes after a query it does not see anyway."""
    layers: tuple[int, ...] | None = None
    """Indices from 0; None for all."""
    heads: tuple[int, ...] | None = None
    """Query heads by index from 0, in each of the layers; None for all."""

    def __post_init__(self) -> None:
        for name in ("queries", "keys", "layers", "heads"):
            # edits are looked up by their hash
            if isinstance(given := getattr(self, name), list | range):
                object.__setattr__(self, name, tuple(given))
        for what, (start, stop) in (("queries", self.queries), ("keys", self.keys)):
            if start < 0 or (stop is not None and stop < start):
                raise ValueError(
                    f"knockout {what} {(start, stop)}: give a span (first, last + 1) of positions "
                    "from 0"
                )

    @property
    def first(self) -> int | None:
        """The first position that sees less than without it; None if no one does."""
        if self.keys[0] == self.keys[1] or self.layers == () or self.heads == ():
            return None
        first = max(self.queries[0], self.keys[0] + 1)
        return first if self.queries[1] is None or first < self.queries[1] else None

    def cuts_in(self, layer: int) -> bool:
        return self.layers is None or layer in self.layers


@dataclass(frozen=True, eq=False)
class Patch:
    """Activations put in the place of a branch's own, at chosen tokens of one layer.

    The tokens before the first of the positions are computed as without it, and shared; all
    later nodes are computed again through every layer, the layers below the patch too. Where two
    patches of a branch meet, the later of its edits stands.
    """

    site: Site
    layer: int
    """Index from 0; `residual` is the stream after this layer."""
    positions: tuple[int, ...]
    """Counted from the first token of the branch."""
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
        """The first position that is replaced; None if there is none."""
        return min(self.positions, default=None)


Edit = Knockout | Patch


def check(model: Model, edits: Sequence[Edit], length: int, *, grows: bool = False) -> None:
    """Whether a branch of so many tokens, and the model, have what the edits name.

    Args:
        grows: whether tokens follow the branch, so that queries may lie beyond its end.

    Raises:
        ValueError: a position, layer, head or width that is not there.
        UserError: the model's attention does not go through transformers' interface, or it has
            no part of its own for a site.
    """
    for edit in edits:
        if isinstance(edit, Knockout):
            _check_knockout(model, edit, length, grows)
        else:
            _check_patch(model, edit, length)


def _check_knockout(model: Model, edit: Knockout, length: int, grows: bool) -> None:
    from interp.errors import UserError

    if not model.supports_tree:
        raise UserError(f"{model.name}: no attention knockout: {model.tree_reason}")
    if edit.keys[1] > length:
        raise ValueError(f"knockout keys {edit.keys} lie outside a branch of {length} tokens")
    first, stop = edit.queries
    if not grows and first != stop and max(first + 1, stop or 0) > length:
        raise ValueError(
            f"knockout queries {edit.queries} lie outside a branch of {length} tokens, which "
            "nothing follows; end them with None for all that is there"
        )
    _check_index(model, "knockout: layer", edit.layers or (), model.n_layers)
    heads = model.hf.config.get_text_config().num_attention_heads
    _check_index(model, "knockout: head", edit.heads or (), heads)


def _check_patch(model: Model, edit: Patch, length: int) -> None:
    outside = [p for p in edit.positions if p >= length]
    if outside:
        raise ValueError(f"patch position {outside[0]} lies outside a branch of {length} tokens")
    _check_index(model, "patch: layer", (edit.layer,), model.n_layers)
    width = model.hf.config.get_text_config().hidden_size
    if edit.values.shape[1] != width:
        raise ValueError(
            f"patch values of width {edit.values.shape[1]}: {model.name} has width {width}"
        )
    model.structure.part(edit.site, edit.layer)


def _check_index(model: Model, what: str, given: Sequence[int], there: int) -> None:
    wrong = [x for x in given if not 0 <= x < there]
    if wrong:
        kind = what.rpartition(" ")[2]
        raise ValueError(f"{what} {wrong[0]}: {model.name} has {kind}s 0 to {there - 1}")
