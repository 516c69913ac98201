"""Checks that a branch and a model have the positions, layers and heads that edits name."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.interp.edits import Edit, Knockout, Patch, Steer
from faithscope.interp.errors import UserError
from faithscope.interp.loaded import LoadedModel


def check(model: LoadedModel, edits: Sequence[Edit], length: int, *, grows: bool = False) -> None:
    """Check that a branch of `length` tokens, and the model, have what the edits name.

    Args:
        grows: whether tokens follow the branch, so that queries may lie beyond its end.

    Raises:
        ValueError: an edit names a position, layer, head or width that is not there, or one `Steer`
            stands there twice.
        UserError: the model's attention does not go through transformers' interface, the model
            has no separate module for a site, or it is steered and its weights are quantised.
    """
    steers = [id(e) for e in edits if isinstance(e, Steer)]
    if len(set(steers)) < len(steers):
        raise ValueError("one Steer stands twice in the edits of a branch; add the coefficients up")
    for edit in edits:
        if isinstance(edit, Knockout):
            _check_knockout(model, edit, length, grows)
        elif isinstance(edit, Patch):
            _check_patch(model, edit, length)
        else:
            _check_steer(model, edit, length, grows)


def _check_knockout(model: LoadedModel, edit: Knockout, length: int, grows: bool) -> None:
    if not model.supports_tree:
        raise UserError(f"{model.name}: attention cannot be cut: {model.tree_reason}")
    if edit.keys[1] > length:
        raise ValueError(f"Knockout.keys {edit.keys} lie outside a branch of {length} tokens")
    _check_span("Knockout.queries", edit.queries, length, grows)
    _check_index(model, "Knockout: layer", edit.layers or (), model.n_layers)
    heads = model.hf.config.get_text_config().num_attention_heads
    _check_index(model, "Knockout: head", edit.heads or (), heads)


def _check_patch(model: LoadedModel, edit: Patch, length: int) -> None:
    outside = [p for p in edit.positions if p >= length]
    if outside:
        raise ValueError(f"patch position {outside[0]} lies outside a branch of {length} tokens")
    _check_place(model, "patch", edit, edit.values.shape[1])


def _check_steer(model: LoadedModel, edit: Steer, length: int, grows: bool) -> None:
    if reason := steering_reason(model):
        raise UserError(f"{model.name}: {reason}")
    _check_span("Steer.positions", edit.positions, length, grows)
    _check_place(model, "steer", edit, len(edit.direction))


def steering_reason(model: LoadedModel) -> str | None:
    """Why a model cannot be steered, with the remedy; None if it can be."""
    if getattr(model.hf, "is_quantized", False):
        return (
            "its weights are quantised, so that its activations are not those that directions are "
            "found in; load it without quantize, or its full-precision weights, to steer it"
        )
    if not model.supports_tree:
        return f"it runs one by one and cannot be steered ({model.tree_reason}); take another model"
    return None


def _check_span(what: str, span: tuple[int, int | None], length: int, grows: bool) -> None:
    first, stop = span
    if not grows and first != stop and max(first + 1, stop or 0) > length:
        raise ValueError(
            f"{what} {span} lie outside a branch of {length} tokens, which nothing follows; end "
            "them with None for all that is there"
        )


def _check_place(model: LoadedModel, what: str, edit: Patch | Steer, width: int) -> None:
    _check_index(model, f"{what}: layer", (edit.place.layer,), model.n_layers)
    if width != (own := model.hf.config.get_text_config().hidden_size):
        kind = "values" if isinstance(edit, Patch) else "direction"
        raise ValueError(f"{what} {kind} of width {width}: {model.name} has width {own}")
    model.structure.part(*edit.place)


def _check_index(model: LoadedModel, what: str, given: Sequence[int], there: int) -> None:
    wrong = [x for x in given if not 0 <= x < there]
    if wrong:
        kind = what.rpartition(" ")[2]
        raise ValueError(f"{what} {wrong[0]}: {model.name} has {kind}s 0 to {there - 1}")
