"""What may be done to a model while it runs a branch, as data that the branch carries.

An edit changes what some of a branch's tokens are computed from; the text stays as it is.
Tokens before the first one that an edit touches are computed as without it, so branches that
differ in their edits share these nodes of the forest, and no later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.model import Model

Span = tuple[int, int]
"""Half-open, of positions counted from the first token of the branch."""


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


Edit = Knockout


def check(model: Model, edits: Sequence[Edit], length: int) -> None:
    """Whether a branch of so many tokens, and the model, have what the edits name.

    Raises:
        ValueError: a position, layer or head that is not there.
        UserError: the model's attention does not go through transformers' interface.
    """
    from interp.errors import UserError

    for edit in edits:
        if not model.supports_tree:
            raise UserError(f"{model.name}: no attention knockout: {model.tree_reason}")
        if edit.keys[1] > length:
            raise ValueError(f"knockout keys {edit.keys} lie outside a branch of {length} tokens")
        heads = model.hf.config.get_text_config().num_attention_heads
        for what, given, there in (
            ("layer", edit.layers, model.n_layers),
            ("head", edit.heads, heads),
        ):
            wrong = [x for x in given or () if not 0 <= x < there]
            if wrong:
                raise ValueError(
                    f"knockout: {what} {wrong[0]}: {model.name} has {what}s 0 to {there - 1}"
                )
