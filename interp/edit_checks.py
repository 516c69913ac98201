"""Checks that a branch and a model have the positions, layers and heads that edits name."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.interp.edits import Edit, Knockout, Patch
from faithscope.interp.errors import UserError
from faithscope.interp.loaded import LoadedModel


def check(model: LoadedModel, edits: Sequence[Edit], length: int, *, grows: bool = False) -> None:
    """Check that a branch of `length` tokens, and the model, have what the edits name.

    Args:
        grows: whether tokens follow the branch, so that queries may lie beyond its end.

    Raises:
        ValueError: an edit names a position, layer, head or width that is not there.
        UserError: the model's attention does not go through transformers' interface, or the model
            has no separate module for a site.
    """
    for edit in edits:
        if isinstance(edit, Knockout):
            _check_knockout(model, edit, length, grows)
        else:
            _check_patch(model, edit, length)


def _check_knockout(model: LoadedModel, edit: Knockout, length: int, grows: bool) -> None:
    if not model.supports_tree:
        raise UserError(f"{model.name}: attention cannot be cut: {model.tree_reason}")
    if edit.keys[1] > length:
        raise ValueError(f"Knockout.keys {edit.keys} lie outside a branch of {length} tokens")
    first, stop = edit.queries
    if not grows and first != stop and max(first + 1, stop or 0) > length:
        raise ValueError(
            f"Knockout.queries {edit.queries} lie outside a branch of {length} tokens, which "
            "nothing follows; end them with None for all that is there"
        )
    _check_index(model, "Knockout: layer", edit.layers or (), model.n_layers)
    heads = model.hf.config.get_text_config().num_attention_heads
    _check_index(model, "Knockout: head", edit.heads or (), heads)


def _check_patch(model: LoadedModel, edit: Patch, length: int) -> None:
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


def _check_index(model: LoadedModel, what: str, given: Sequence[int], there: int) -> None:
    wrong = [x for x in given if not 0 <= x < there]
    if wrong:
        kind = what.rpartition(" ")[2]
        raise ValueError(f"{what} {wrong[0]}: {model.name} has {kind}s 0 to {there - 1}")
